"""Instructions that hold beyond the task at hand: "always …", "from now on …", "we use … here".

The same words are in tasks and questions ("why does it always fail", "the page should never scroll"). What
counts is who shall do it: the agent ("you", an imperative, "we"), not a part of the program. Sentences come
as ``own.spoken`` makes them. Pure, and linear in time.
"""

from __future__ import annotations

import re
from typing import Final

from .grammar import any_of, asks, bare, begins_task, directs, one

_HOUSE: Final = r"(?:\w{2,20} )?(?:project|repo|repository|codebase|code base|team|company|monorepo|org)s?"
_WORK: Final = (
    "(?:bug |new |code |pull )?"
    + one(
        "commit push change task edit turn session step release merge request pr feature fix refactor "
        "refactoring migration deploy"
    )
    + "s?"
)
_ALWAYS: Final = re.compile(r"(?:always|never|do not ever|don't ever)(?:,[^,]{1,40},)? (?!mind\b)(\S{1,40})")
_AFTER_COMMA: Final = re.compile(
    r"(?:[,:] |\band )(?:(?:then|and|also|so|but|please) ){0,3}(?:always|never) (?!mind\b)(\S{1,40})"
)
_TO_YOU: Final = any_of(
    r"\b(?:you|we)(?: should| must| need to| have to| want to| shall| will|'ll| may| can| to)? (?:always"
    r"|never)(?: to)? (?!mind\b)\w",
    r"\bi (?:want|need|expect|would like|'d like|ask|would prefer|'d prefer) (?:you )?(?:to )?(?:always"
    r"|never) \w",
    after="",
)
_PAST: Final = any_of(
    r"\b(?:you|we|i) (?:always|never) (?:\w{2,20}(?:ed|s)|"
    "had|did|was|were|got|went|saw|made|took|wrote|knew|thought|said|gave|came|found|ran)",
)
_SUBORDINATE: Final = any_of(r"\b" + one("if because since that where which who how why whether"))
_HORIZON: Final = any_of(
    r"\bfrom (?:now|here) on(?:wards?)?",
    r"\bfrom here on out",
    r"\b(?:going|moving) forward",
    r"\bin (?:the )?future(?! (?:we|it|they|version))",
    r"\bhenceforth",
    r"\bnext time(?! i\b)",
    r"\b(?:for|in|on|with) (?:all|any|every) (?:my |your |our )?(?:future|following|upcoming)",
    r"\bas a (?:general )?(?:rule|guideline|principle)",
    r"\bat all times",
)
_MAYBE: Final = any_of(r"\b" + one("perhaps maybe might could would will may"), "'ll")
_NARRATES: Final = any_of("(?:i|it|they|he|she) (?!want|need|expect|'d|would)", after="")
_EACH_TIME: Final = any_of(
    rf"\b(?:every(?: single)? time|each time|whenever|any ?time|always when) (?:you|{_WORK})",
    rf"\b(?:(?:before|after|for|on|with|at) )?(?:every|each) {_WORK}",
)
_MINDS: Final = any_of(
    "(?:make|be) sure(?: that| you| to)?",
    "ensure(?: that| you)?",
    "remember(?: that| to|:|,)?",
    "don't forget(?: to| that|:)?",
    "(?:keep|bear) in mind(?: that)?",
    after=r"(?!\w)",
)
_GENERIC: Final = any_of(
    r"\b(?:before|after|when|whenever|once|if|while|unless) (?:you|you're|(?!done|finished)\w{2,20}ing)",
    r"\b(?:every|each|any) (?!the\b)\w{3,20}",
)
_CONVENTION: Final = any_of(
    rf"(?:our|my|this {_HOUSE}'?s?) (?:\w{{2,20}} ){{0,2}}(?:conventions?|style(?: ?guide)?|standards?"
    rf"|polic(?:y|ies)|practice"
    rf"|rule(?: of thumb)?)(?: here| for \w{{2,20}}(?: \w{{2,20}})?)? (?:is|are|says?|requires?|forbids?)",
    r"the (?:\w{2,20} ){0,2}(?:conventions?|style ?guide|house style) (?:here |for \w{2,20} )?(?:is|are"
    r"|says?|requires?)",
)
_WE: Final = any_of(
    rf"(?:in|for|on|across|throughout) (?:this|our|the) {_HOUSE},? (?:we|only|always|never|please|all|no"
    rf"|use|prefer|avoid|errors?|\w{{3,20}}s)",
    "(?:here,? )?we (?:only |all |usually |strictly |generally |do(?:n't| not) )?"
    + one("use prefer name write keep put follow avoid call format document mock commit squash rebase"),
)
_PLACE: Final = any_of(rf"\b(?:in|across|throughout) (?:this|our|the whole|the entire) {_HOUSE}", r"\bhere")
_PREFERS: Final = any_of(
    r"i(?:'d| would)? (?:(?:strongly|always|generally|much|really) )?(?:prefer|rather) (?:it when |if "
    r"|that )?(?:you|your|my|our|all"
    r"|every|(?:\w{2,20} )?(?!this)\w{3,20}s)",
    r"i (?:generally |usually |strongly )?prefer [^.]{2,60} (?:over|to|instead of|rather than)",
    "i like (?:it when|my|our)",
    r"(?:prefer|favou?r) (?!the (?:first|second|last)|this|that|it\b)\w{2,30}",
    "i (?:don't|do not) (?:like|want) (?:it when|when|you to)",
)
_PICKS: Final = any_of(r"\b" + one("one option first second third former latter variant"))
_KEEPS: Final = any_of(
    r"(?:add|save|put|write|store|note|record|remember) [^.:]{0,60}\b(?:to|in|into|as) (?:your|the|my"
    r"|our) (?:\w{2,20} )?(?:memory"
    r"|rules?|claude\.md|agents\.md|instructions|preferences|guidelines)\b",
    r"(?:(?:new|general|house|project|golden|ground|important) )?rule(?: \d)?:",
    r"remember this\b",
    r"note to self\b",
    after="",
)
_NORM_OF_ALL: Final = any_of(
    r"(?:all|every|each|no|any) (?:(?:new|public|of our|our|single) "
    r")?\w{3,20}(?: \w{2,20}){0,3} (?:should|must|needs?|has to|have to"
    r"|may|can|shall|always)",
    r"no [\w-]{3,20}s\b[^.]{0,60}\b(?:ever|at all)$",
    r"(?!the\b|this\b|that\b|it\b|users?\b)(?:\w{3,20} )?\w{3,20}s (?:should|must|need to|have to"
    r"|shall) (?:always|never|only)",
)
_YOUR_WORDS: Final = any_of(
    r"\byour (?:answers|responses|replies|explanations|summaries|commit messages|status updates)",
    r"^(?:be|stay) (?:more )?(?:concise|brief|terse|succinct|short)",
    r"^(?:answer|respond|reply|write|talk)(?: to me)? in (?:english|german|french|spanish|\w{4,12}ese"
    r"|plain \w{2,20})",
)
_UNASKED: Final = any_of(
    r"\bwithout (?:asking|my (?:explicit |prior )?(?:approval|permission|consent|ok|okay|confirmation)"
    r"|checking with me|telling me)",
)
_IN_DOUBT: Final = any_of(
    "(?:if|when|whenever) (?:you(?:'re| are) )?(?:ever )?(?:not sure|unsure|uncertain|in doubt|stuck)",
    "if you don't know",
)
_WHILE: Final = re.compile(r"when (?!done|finished)\w{2,20}ing\b[^,]{2,60}, ")
_MUST: Final = any_of(
    r"you (?:must(?: not)?|mustn't|may not|may only|are not allowed to|should never) (?!be\b"
    r"|have\b)\w",
    after="",
)
_PROGRAM: Final = any_of(
    rf"^(?:in|on|at|for|inside|within) (?:the|this|that) (?!{_HOUSE}|future)",
    "^" + one("the this that a an it they user users guest guests admin admins customer customers") + r"\b",
    r"\b(?:users?|guests?|customers?|visitors?|clients?|callers?) "
    + one("log logs click clicks open opens is are has have presses selects enters visits can should must")
    + r"\b",
    after="",
)


def standing(sentence: str, *, alone: bool) -> float:
    """How sure it is that the sentence tells the agent how to work from now on, from 0 to 1.

    ``alone``: nothing else is said, or nearly nothing. In a longer text such words mostly belong to its task.
    """
    text = bare(sentence)
    if asks(text):
        return 0.0
    if _KEEPS.match(text):
        return 0.8 if alone else 0.6
    if _CONVENTION.match(text) or (_WE.match(text) and (alone or _PLACE.search(text))):
        return 0.75
    told = _TO_YOU.search(text)
    if told and not (_PAST.search(text) or _SUBORDINATE.search(text[: told.start()])):
        return 0.85
    if _PROGRAM.search(text):
        return 0.0
    if _HORIZON.search(text) and not (_MAYBE.search(text) or _NARRATES.match(text)):
        return 0.85
    if (found := _ALWAYS.match(text)) is not None and directs(found[1]):
        return 0.85 if alone else 0.7
    if (found := _AFTER_COMMA.search(text)) is not None and directs(found[1]):
        return 0.35 if begins_task(text) else 0.85 if alone else 0.4
    return max(_minded(text, alone=alone), _milder(text) if alone else 0.0)


def _minded(text: str, *, alone: bool) -> float:
    """What to think of, and at which steps of the work."""
    about_agent = directs(text) or text.startswith(("you", "we ", "i "))
    if (found := _MINDS.match(text)) is not None:
        kept = found[0].startswith(("remember", "keep", "bear"))
        generic = _GENERIC.search(text)
        return 0.7 if generic and alone else 0.6 if kept and alone else 0.45 if generic else 0.2
    if _UNASKED.search(text) and about_agent:
        return 0.75
    told = about_agent or directs(text.partition(", ")[2])
    if told and _EACH_TIME.search(text) and not begins_task(text):
        return 0.75 if alone else 0.6
    return 0.7 if _IN_DOUBT.match(text) else 0.0


def _milder(text: str) -> float:
    """Wordings that would also suit a requirement of the task: they count only where nothing else is said."""
    if _MUST.match(text):
        return 0.7
    rule = (
        (_PREFERS.match(text) and not _PICKS.search(text))
        or _NORM_OF_ALL.match(text)
        or ((found := _WHILE.match(text)) is not None and directs(text[found.end() :]))
        or (_YOUR_WORDS.search(text) and directs(text) and not begins_task(text))
    )
    return 0.65 if rule else 0.0

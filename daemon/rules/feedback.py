"""Praise and blame of what the agent did, told from the same words in a task, a plan or a bug report.

Praise is a sentence that says nothing but that, or one whose subject is the agent's work. Blame needs the
agent's work as its subject, or a failure that goes on. Sentences come as ``own.spoken`` makes them. Pure, and
linear in time.
"""

from __future__ import annotations

import re
from typing import Final

from .grammar import any_of, asks, bare, one, word_set
from .objections import is_too_much, refusal_of

_STRONG: Final = word_set(
    "perfect perfectly excellent awesome brilliant amazing fantastic beautiful beautifully wonderful "
    "superb outstanding flawless stellar incredible impressive lgtm nailed bravo kudos magnificent love "
    "loving yay woohoo 🎉 👍"
)
_MILD: Final = word_set(
    "great nice nicely good well lovely cool sweet neat solid clean exactly works worked fixed better best"
)
_FILL: Final = word_set(
    "that that's thats this it it's its is was are looks look looking feels reads just so very really "
    "super absolutely now all again finally much way even than before what i we wanted needed meant "
    "want need asked for had in mind the job work approach solution catch call fix one thing stuff "
    "result done did do does yes yeah yep yup ok okay wow thanks thank you thx ty for your my to a an "
    "and oh ah haha indeed right like how exactly spot on got ship man dude claude there here you've "
    "you're as expected up"
)
_ACKNOWLEDGES: Final = frozenset({"great", "nice", "exactly", "lovely", "sweet", "neat"})
_ADJECTIVE: Final = one("great good nice excellent amazing awesome fantastic brilliant solid fine lovely")
_NOT_WORK: Final = any_of(
    r"\b(?:good|great|nice) (?:morning|evening|afternoon|night|day|question|point|luck|idea|to know"
    r"|enough|news)",
    r"\bwell,",
    after="",
)
_PAIRS: Final = any_of(
    rf"\b{_ADJECTIVE} (?:job|work|catch|call|stuff|approach|solution|fix|one|find)",
    r"\b(?:well|nicely|beautifully) done",
    r"\bspot on",
    r"\bnailed it",
    r"\bthat's it",
    r"\blove it",
    r"\b(?:that|this|it)(?:'s)? (?:now )?(?:works?|worked|did it|does it|did the trick|(?:solved|fixed) "
    r"(?:it|the|my))",
    r"\bworks (?:now|great|well|perfectly|fine|like a charm)",
    r"\blooks (?:good|great|nice|amazing|perfect|clean|right)",
    r"\bexactly (?:what|how|right|that|it|the|like)",
    r"\b(?:way|much|far|so much) (?:better|cleaner|nicer|faster|clearer)",
)
_WELL: Final = any_of(rf"\b{_ADJECTIVE} (?:job|work)(?=[!.,]|$| on\b| with\b| here\b)", after="")
_SHOUT: Final = re.compile(
    rf"(?:(?:really|very|such an?|what an?) )?(?:{_ADJECTIVE}|beautiful|impressive|elegant) "
    rf"[\w-]{{3,20}}(?: [\w-]{{2,20}})?"
    r"(?:[,!.]{1,3} ?(?:thanks|thank you|thx)?.{0,10})?$"
)
_DEGREE: Final = (
    "(?: "
    + one(
        "really very so just actually exactly absolutely pretty quite super now much way all even "
        "also a an such totally far simply"
    )
    + "){0,3}"
)
_OF_WORK: Final = (
    r"(?:(?:that|this|it|these|those)(?:'s|'re| is| are| was| looks?| works?| reads?| turned out| did)?"
    r"|(?:the|your|this|that) (?:(?:new|last|latest|updated|current) )?\w{2,20}(?: \w{2,20}){0,2}"
    r" (?:is|are|was|were|looks?|works?|reads?|came out|turned out)"
    r"|(?:the |what )?(?:\w{2,20} )?you (?:\w{2,20} )?(?:is|did|wrote|made|built|are|'re)|you(?:'re|'ve"
    r"| are| did)?)"
)
_GOOD: Final = (
    r"(?:perfect(?:ly)?|excellent(?:ly)?|beautiful(?:ly)?|clean(?:er)?|clear(?:er)?|well done|spot on"
    r"|a (?:big|huge|great) (?:improvement|help)|"
    + one("great awesome brilliant amazing fantastic wonderful good nice lovely better nicer faster")
    + "|"
    + one("impressive superb exactly helpful useful elegant")
    + ")"
)
_PRAISES: Final = any_of(
    rf"{_OF_WORK}{_DEGREE} {_GOOD}",
    "i'm (?:so |really |very |quite )?(?:impressed|happy|pleased|delighted)",
    "i (?:really |absolutely |just |do )?(?:love|like|appreciate)d? (?:how|the way|that|this|it|what"
    "|your|the)",
)
_TURNS: Final = any_of(
    r"\b" + one("but however though although except yet"), r"\bonly problem", r"\bjust one"
)
_IF: Final = any_of(
    r"\b" + one("if unless until make may might want let's needs"),
    r"\b(?:would|could|should|can|to) be",
    r"\bneed to",
)
_FAILS: Final = (
    "(?:"
    + one("broke broken breaks fail fails failed failing crash crashes crashed crashing throws raises")
    + "|"
    + one("segfaults hangs hanging worse")
    + r"|times out|errors out|(?:doesn't|didn't|does not|did not|isn't|is not|not|won't|no longer)"
    r"(?: even| really| seem to| quite| actually)? (?:work|working|help|build|compile|run|start|load"
    r"|show|fix|change|do)\w{0,3}"
    r"|(?:completely |totally |all )?(?:blank|gone|missing|empty|unreadable|unusable|frozen|stuck))"
)
_WORK: Final = (
    r"(?:that|this|it|these|those|your (?:(?:last|latest|previous|recent|new) )?\w{2,20}"
    r"|the \w{2,20}(?: \w{2,20})? you (?:just |'ve )?\w{2,20}(?: me)?"
    r"|the (?:(?:last|latest|new|recent) )?(?:change|fix|patch|refactor|refactoring|commit|edit|update"
    r"|version|code|rewrite|migration)s?)"
)
_BROKE: Final = any_of(
    rf"(?:now )?{_WORK}(?:'s| is| are| has| have| just| also| only| still| now| completely| totally"
    rf"| actually| seems? to(?: have)?){{0,4}}"
    rf" {_FAILS}",
    "you(?:'ve| have| just| also)? (?:completely |totally )?(?:broke|broken|ruined|destroyed|messed up"
    "|screwed up)",
    rf"{_WORK} (?:just |only |actually )?(?:made|makes|got|gets|became|is) (?:(?:it|things|everything"
    rf"|the \w{{2,20}}) )?"
    "(?:even |much |way |a lot )?(?:worse|slower|uglier|harder)",
    rf"{_WORK} (?:\w{{2,12}} )?(?:introduced|introduces|caused|causes) \w",
)
_STILL: Final = any_of(
    rf"(?:it'?s |this is |that'?s |they'?re |and |i'm |i |the \w{{2,20}}(?: \w{{2,20}})? (?:is "
    rf"|are )?)?still (?:{_FAILS}"
    r"|(?:get|see|have|throw)(?:ting|ing)? (?:the|an?|that|this|same)|the same|same|an error|errors?"
    r"|wrong|slow|not \w{2,20})",
    r"(?:the )?(?:exact )?same (?:error|issue|problem|bug|result|failure|thing)",
    rf"(?:(?:the|your|my|all|our) )?\w{{2,20}}(?: \w{{2,20}})? still {_FAILS}",
)
_NOW: Final = any_of(
    rf"(?:and )?now (?:the|my|our|all|every|it|it's|i|i'm|nothing|none"
    rf"|\d{{1,5}})(?: \S{{1,20}}){{0,5}}? (?:{_FAILS}"
    r"|(?:get|see|have)(?:ting|ing)? (?:a|an|the|this|\d{1,4}) (?:\S{1,20} )?(?:errors?|warnings?|crash"
    r"|exception|failures?|conflicts?))",
    rf"(?:the|my|our|all|every) \S{{1,20}}(?: \S{{1,20}}){{0,2}} (?:is |are )?(?:now )?{_FAILS}\b.{{0,40}}"
    r"\b(?:now|since your|after (?:your|that|this)|because of (?:your|that|this))",
    r"(?:none|nothing|\w{2,20} (?:doesn't|don't|can't|isn't|aren't|won't)) [^.]{0,80}\b(?:any ?more"
    r"|any longer)",
)
_TRIED: Final = re.compile(rf"(?!\w{{1,20}}$)(?:{_FAILS}|no luck|no change|no difference)[.! ]*$")
_AWFUL: Final = any_of(
    r"(?:that|this|it|these|those|(?:this|that|the|your) [\w-]{2,20}(?: you \w{2,20})?)(?:'s|'re| is"
    r"| are| was| looks?| feels?| reads?)"
    r"(?: (?:just|really|so|pretty|very|absolutely|completely|even|much|way|a|total|all)){0,3} (?:"
    + one(
        "bad terrible awful horrible ugly garbage nonsense useless ridiculous crap messy unreadable "
        "unusable rubbish trash disappointing worse sloppy"
    )
    + "|a mess|a disaster|not good(?: enough)?|unacceptable)",
    r"bad (?:job|work|idea|solution|approach|fix|code|result|suggestion)",
    one("terrible awful horrible poor sloppy ugly lazy") + r" [\w-]{3,20}(?=[,.!]|$)",
)
_IS_WRONG: Final = re.compile(
    r"(?:the|your) [\w-]{3,20}(?: [\w-]{2,20})?(?: you \w{2,20})? (?:is|are|was|were|looks?)(?: (?:still"
    r"|now|completely|totally|just|all))?"
    r" (?:wrong|incorrect|not (?:right|correct)|off)$|(?:that|this|it)(?:'s| is) (?:(?:still|just|plain"
    r"|simply) )?(?:wrong|incorrect)$"
)
_SUPPOSES: Final = any_of(one("if when unless until while"), "so that", "in case", "make sure")
MOST: Final = 12  # words of a sentence that only praises


def praise(sentence: str, *, alone: bool) -> float:
    """How sure it is that the sentence praises the agent's work, from 0 to 1. ``alone``: nothing is asked for
    besides.
    """
    text = bare(sentence)
    tokens = re.findall(r"[\w']+|🎉|👍", sentence)
    negated = "not" in tokens or any(t.endswith("n't") for t in tokens)
    if not tokens or negated or asks(text) or _TURNS.search(text) or _NOT_WORK.search(text):
        return 0.0
    paired = _PAIRS.search(text)
    if all(t in _STRONG or t in _MILD or t in _FILL for t in tokens):
        if any(t in _STRONG for t in tokens) or paired:
            return 0.9 if alone else 0.75
        if alone and tokens[0] in _ACKNOWLEDGES:
            return 0.7
    if _IF.search(text):
        return 0.0
    if _PRAISES.match(text) or _WELL.search(text):
        return 0.75 if alone else 0.65
    exclaims = tokens[0] in _STRONG and text[len(tokens[0]) :][:1] in {"", ",", ".", "!"}
    begins = exclaims or (paired and not paired.start())
    if begins and len(tokens) <= MOST:
        return 0.7 if alone else 0.6
    return 0.7 if alone and _SHOUT.match(text) else 0.0


def is_polite(sentence: str) -> bool:
    """Whether it only says yes, thanks or the like."""
    return all(t in _FILL for t in re.findall(r"[\w']+", sentence))


def blame(sentence: str) -> float:
    """How sure it is that the sentence says that the agent's work failed or is bad, from 0 to 1."""
    text = bare(refusal_of(sentence) or sentence).rstrip(".! ")
    if asks(text) or _SUPPOSES.match(text):
        return 0.0
    if _BROKE.match(text):
        return 0.85
    if _STILL.match(text):
        return 0.8
    if _AWFUL.match(text) or _NOW.match(text) or _TRIED.match(text):
        return 0.75
    if _IS_WRONG.match(text):
        return 0.6
    return 0.55 if is_too_much(text) and text.startswith(("that", "this", "it")) else 0.0

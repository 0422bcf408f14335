"""The ways in which people object to what an agent did or wants to do.

Each function answers one question about one sentence; ``signals`` weighs the answers. Sentences come as
``own.spoken`` makes them. Pure, and linear in time.
"""

from __future__ import annotations

import re
from typing import Final

from .grammar import any_of, bare, one, word_set

_NO: Final = re.compile(r"no+(?=[\s,.!…:;-]|$)")
_AFTER_NO: Final = word_set(
    "i it it's its that that's this you you're the we not don't do just please only they there these "
    "those my your our stop use keep make put leave revert undo let's need he no wait still never "
    "always should shouldn't"
)
_REFUSES: Final = any_of(
    one("nope nah naw wrong incorrect false") + r"(?=[\s,.!…:;-]|$)",
    "not (?:that|like (?:that|this)|quite|really|right|correct|what|exactly|there)",
    "not(?= (?:a|an|the|in|on|with|as|by|using|for|from|via|under) )",
    "(?:that|this|it)(?:'s| is)?(?: just| still)? (?:not )?(?:what i (?:asked|meant|wanted|said)"
    "|how (?:we|i|it))",
    "stop(?=[,.!]|$)",
)
_THIS: Final = r"(?:that|this|it|these|those|your \w{2,20}(?: \w{2,20})?)"
_WRONG: Final = any_of(
    rf"\b{_THIS}(?:'s|'re| is| are| was|s)?(?: just| still| all| totally| completely| also"
    rf"| clearly)? (?:wrong|incorrect"
    "|not (?:right|correct|true|what|how|where|the|quite|needed|necessary|a|an)|the wrong|the old)",
    rf"\b{_THIS} (?:isn't|wasn't|doesn't (?:seem|look|feel)) (?:right|correct|what|how|where|the)",
    r"^(?:the )?wrong \w{2,20}",
)
_I_SAID: Final = any_of(
    r"\b(?:as|like) i (?:said|told|asked|mentioned|wrote)",
    r"\bi(?:'ve| have)? (?:(?:already|just|clearly|specifically|explicitly|literally|only|never) "
    r"){0,3}(?:said(?! (?:i|we)\b)"
    r"|told you|asked (?:you|for|to|that)|meant(?! to\b)|wanted(?! to\b)|specified|instructed)",
    r"\bi (?:didn't|did not|never|only) (?:ask|asked|want|say|mean|request|tell)",
    r"\bhow (?:many times|often) (?:do|must|should|have) i",
)
_COMPLAINS: Final = any_of(
    r"\byou(?:'re| are) still \w{2,20}ing",
    r"\byou(?:'re| are|'ve| have)?(?: just| also| again| still| clearly| really)? (?:(?:were|are) "
    r"(?:not )?supposed|weren't supposed"
    r"|should(?:n't| not)? have|shouldn't|should not be|keep|kept|forgot|forget|missed|misunderstood"
    r"|misread|left out|skipped"
    r"|ignored|overlooked|always forget|never|didn't|did not|haven't|have not|failed to"
    r"|over\w{4,20}(?:ing|ed)|missing|confusing"
    r"|not (?:using|following|doing|supposed))",
)
_DEED: Final = any_of(
    r"\byou(?:'re| are|'ve)? (?:(?:just|only|also|again|still) ){0,2}(?:(?!need|used to)\w{2,20}(?:ed|ing)"
    r"|put|wrote|made|did|ran|chose|took|set|built|left|went|got|gave)",
)
_SLIP: Final = any_of(
    r"\bagain",
    ", not",
    r"\bnot the",
    r"\binstead",
    r"\brather than",
    r"\bwithout",
    r"\bwrong",
    r"\btoo",
    r"\bunnecessar",
    after="",
)
_CONDITION: Final = any_of(r"\b" + one("if when unless whether until"), r"\bin case", r"\bso that")
_UNDOES: Final = any_of(
    r"(?:just )?(?:revert|undo|roll ?back|back out)(?= (?:this|that|it|those|these|them|all|your|the)\b"
    r"|[,.!]|$)",
    r"(?:put|change|bring|switch|move|take|turn) (?:it|that|this|them|those|the \w{1,20}(?: \w{1,20})?) back",
    "(?:take|rip|leave) (?:it|that|this|them) out",
    "scratch (?:that|this|it)",
    "on second thoughts?",
)
_FORBIDS: Final = any_of(
    r"(?:please )?(?:don't|do not) (?!worry|bother|mind|hesitate|forget|you\b|know|think|understand|see"
    r"|get\b)\w",
    r"(?:stop|quit) (?:\w{1,20}ly )?\w{2,20}ing",
    r"(?:can|could|would|will) you (?:please )?(?:not|stop) \w",
    "let'?s not",
    r"leave [^,.]{2,60} (?:alone|as (?:it|they|is|are)|untouched|unchanged)",
    after="",
)
_NOT_WANTED: Final = any_of(
    "(?:we|i|you) (?:really |definitely )?(?:don't|do not) (?:want|need|use|do) ", after=""
)
_FOR_NOW: Final = any_of(
    r"\b" + one("yet until"),
    r"\bfor now",
    r"\bat this point",
    r"\bbefore (?:i"
    r"|we)",
    r"\bright now",
    r"\bso far",
)
_AGAINST: Final = re.compile(
    r"(?:\binstead of|\brather than|, ?(?:and )?not\b|\bbut not\b|\band not\b"
    r"|\bnot\b(?=[^.]{1,80}\bbut\b)) ?(.{1,120})"
)
_INSTEAD: Final = re.compile(r"\binstead\b(?! of)|\brather\b(?! than)")
_IT_SHOULD: Final = any_of(
    "(?:it|this|that|these|those|they)(?:'s|'re| is| are)? (?:should|must|needs?|has to|have to|ought"
    "|shouldn't|mustn't"
    "|belongs?|supposed|meant to|goes)",
)
_THING_SHOULD: Final = any_of(
    r"(?:the|your|this|that) (?:\S{1,30} ){1,4}?(?:should|shouldn't|must|mustn't|needs? to|has to"
    r"|have to|is supposed to|belongs?)",
)
_NONE_OF: Final = any_of(
    r"no (?!problem|worries|rush|idea|need|changes|more|longer|errors?|tests? (?:fail|need|are)|one|way"
    r"|matter|doubt|hurry|thanks)"
    r"[\w-]{3,20}s(?:[,.!]|$| (?:please|at all|here|anywhere|ever|in|for|allowed)\b)",
    after="",
)
_TOO: Final = any_of(
    r"\b(?:way|far|much|a bit|a little|(?:that|this|it|(?:the|your|this|that) \w{2,20}(?: \w{2,20})?)"
    r"(?:'s| is| are| was| looks| seems)) too (?!soon|late|bad|close)\w{3,20}",
    r"\bover(?:kill|complicat\w{1,9}|engineer\w{1,9})",
)
_NORM: Final = any_of(
    r"\b" + one("should must belong belongs"),
    r"\bsupposed to",
    r"\b(?:needs? to|has to|have to) be",
    r"\bwe (?:use|don't|never|always|only)",
)
_WISHES: Final = any_of(
    r"i(?:'d| would)? (?:really |much )?(?:prefer|rather) (?:it )?(?:if |that )?(?:you|we|not|to (?:use"
    r"|keep|have|see)|\w{2,20}ing)",
    "i (?:don't|do not) want",
)


def refusal_of(sentence: str) -> str | None:
    """What follows a "no", "wrong" or "not that" at the start; None when there is none.

    "No" before a noun says how many ("no tests"), and before a comma or a pronoun that something is refused.
    """
    text = bare(sentence)
    if (found := _NO.match(text)) is not None:
        rest = text[found.end() :]
        if rest[:1] == " " and rest.split()[0].strip(",.!") not in _AFTER_NO:
            return None
    elif (found := _REFUSES.match(text)) is None:
        return None
    return text[found.end() :].lstrip(" ,.!…:;-")


def said_before(sentence: str) -> bool:
    """Whether the person reminds of what they had said."""
    found = _I_SAID.search(sentence)
    if found is None:
        return False
    # elsewhere it only says which thing is meant: "the process that I asked for"
    before = sentence[: found.start()].rstrip()
    return (
        found[0].startswith(("as", "like", "how"))
        or len(before.split()) <= 2
        or before.endswith((",", "but", "because"))
    )


def complains(sentence: str) -> bool:
    """Whether it holds something against what the agent did."""
    found = _COMPLAINS.search(sentence) or (_SLIP.search(sentence) and _DEED.search(sentence))
    return bool(found) and not _CONDITION.search(sentence[: found.start()])  # type: ignore[union-attr]


def calls_wrong(sentence: str) -> bool:
    """Whether it says that something at hand is not right."""
    return bool(_WRONG.search(bare(sentence)))


def undoes(sentence: str) -> bool:
    """Whether it wants the agent's change taken back."""
    return bool(_UNDOES.match(bare(sentence)))


def forbids(sentence: str) -> bool:
    """Whether it begins with what not to do."""
    return bool(_FORBIDS.match(bare(sentence)))


def is_not_wanted(sentence: str) -> bool:
    """Whether it begins with what "we" or "I" don't want or do."""
    return bool(_NOT_WANTED.match(bare(sentence)))


def is_for_now(sentence: str) -> bool:
    """Whether it holds only for a while."""
    return bool(_FOR_NOW.search(sentence))


def rejected_in(sentence: str) -> str:
    """What stands behind "instead of", "rather than" or ", not"; "" when nothing does."""
    found = _AGAINST.search(sentence)
    return found[1] if found else ""


def wants_other(sentence: str) -> bool:
    """Whether it says "instead" without saying of what."""
    return bool(_INSTEAD.search(sentence))


def says_how_it_should_be(sentence: str) -> bool:
    """Whether it begins with "it should", "that must" and the like."""
    return bool(_IT_SHOULD.match(bare(sentence)))


def says_how_a_thing_should_be(sentence: str) -> bool:
    """Whether it begins with "the name should", "your test must" and the like."""
    return bool(_THING_SHOULD.match(bare(sentence)))


def wants_none(sentence: str) -> bool:
    """Whether it begins with what there shall be none of: "no tabs", "no default exports"."""
    return bool(_NONE_OF.match(bare(sentence)))


def is_norm(sentence: str) -> bool:
    """Whether it says how something should be."""
    return bool(_NORM.search(sentence))


def is_too_much(sentence: str) -> bool:
    """Whether it says that there is too much of something."""
    return bool(_TOO.search(sentence))


def wishes(sentence: str) -> bool:
    """Whether it says politely what the person would rather have."""
    return bool(_WISHES.match(bare(sentence)))

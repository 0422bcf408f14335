"""Small closed classes of English words, and what kind of clause they make.

Only what stands where counts: a word such as "no", "always" or "good" means nothing by itself. Sentences come
as ``own.spoken`` makes them: small letters, one blank between words. Pure, and linear in time.
"""

from __future__ import annotations

import re
from typing import Final

from .patterns import EMPTY, NEGATIVE, stem

FLOOR: Final[dict[str, tuple[str, ...]]] = {
    "correction": ("no,", "don't", "stop", "instead", "actually", "wrong", "not that"),
    "instruction": ("always", "never", "make sure", "remember to", "from now on"),
    "positive": ("perfect", "great", "exactly", "good", "yes"),
    "negative": ("broke", "failed", "error", "wrong", "bad"),
}
"""The keywords that the requirements name (TR3). Each makes a message a candidate, none makes it a signal."""


def any_of(*alternatives: str, after: str = r"\b") -> re.Pattern[str]:
    """A pattern of alternatives, each of which ends at the end of a word."""
    return re.compile(f"(?:{'|'.join(alternatives)}){after}")


def word_set(words: str) -> frozenset[str]:
    """The words of a list that is written as one text."""
    return frozenset(words.split())


def one(words: str) -> str:
    """A part of a pattern: one of these words."""
    return f"(?:{'|'.join(words.split())})"


_LEAD: Final = any_of(
    one(
        "ok okay k well hey so and but please pls plz sorry dude man bro listen look wait again right "
        "fyi wow just"
    ),
    one(
        "whoa unfortunately sadly honestly tbh imo generally m{1,9}k{1,9} h{1,9}m{1,9} u{1,9}h{1,9} "
        "u{1,9}m{1,9}"
    ),
    one("o{1,9}h{1,9} a{1,9}h{1,9} ugh argh"),
    "hold on",
    "in general",
    after=r"(?![\w'/-])[\s,.!…:-]{0,5}",
)
_LEADS: Final = 4
_CLOSED: Final = word_set(
    "i you he she it we they this that these those there here who what which when where why how whose "
    "my your our their his her its a an the some any every each all both no not and or but so because "
    "if unless while since although though as than of in on at by with without from to into about over "
    "under is are was were been am isn't aren't wasn't weren't can can't cannot could couldn't would "
    "wouldn't should shouldn't will won't shall may might must has have had hasn't haven't does doesn't "
    "did didn't i'm i've i'd i'll you're you've it's that's there's we're we've they're what's let's "
    "still now maybe perhaps yes no nope ok thanks thank also too very really quite"
)
_SUBJECT: Final = one("i you we it this that these those they there the a an my our your all any")
_ASKS: Final = any_of(
    one("what why how which who whose any") + rf"\b(?! (?:you|we|i) \w{{1,20}} {one('is must should')}\b)",
    one("when where") + " " + one("is are was were do does did can could would will should has have"),
    one("is are was were do does did can could would will should shall have has had am may")
    + f"(?:n't)? {_SUBJECT}",
    one("isn't aren't doesn't didn't can't won't wouldn't shouldn't don't")
    + " "
    + one("i you we it this that they there the"),
)
_REQUEST: Final = any_of(one("can could would will") + " you")
_DISMISSES: Final = any_of(
    "(?:no,? )?(?:it'?s|that'?s|this is|we'?re|i'?m|all)? ?(?:fine|ok(?:ay)?|good|alright|enough|all"
    "(?: good)?|thanks?|thank you|not now|not yet|later|nothing|nvm|never ?mind|forget it|leave (?:it|that)"
    "|skip (?:it|that)|don'?t worry|no need|not necessary|go ahead|no problem|no worries"
    "|i'?ll do (?:it|that)|let me|we can)",
)
_TASK: Final = any_of(
    "(?:let'?s |now |then |go ahead and ){0,2}"
    + one(
        "add fix implement create write build generate extract refactor rename update remove delete migrate "
        "find "
        "look check show explain translate investigate debug review design convert test try run read list "
        "summarize summarise describe compare"
    ),
    "(?:let'?s |now |then ){0,2}make an?",
)
_SELF: Final = any_of(
    r"(?:i|we) (?!want|need|'d|would|don't|do not|told|said|asked|meant|never|didn't|did not|use|only"
    r"|always)\w",
    "my (?:bad|mistake|fault)",
    after="",
)
_MORE: Final = any_of(r"\b" + one("also too another additionally"), r"\bas well", r"\bone more")
_INSISTS: Final = any_of(
    r"\b" + one("again always never must remember"),
    r"\bi(?:'ve| have)? (?:already )?(?:told|said|asked)",
    r"\b(?:as|like) i said",
    r"\byou keep",
    r"\bkeep \w{2,20}ing",
    r"\bhow (?:many times|often)",
    r"\bevery (?:single )?time",
    r"\bfrom now on",
    r"\bgoing forward",
    r"\bin (?:the )?future",
    "!!",
    after="",
)
_SOFT: Final = any_of(r"\b" + one("maybe perhaps might ideally"), r"\bi think", r"\btry to", r"\bif possible")
_PART: Final = re.compile(r"[^\W\d_]{3,40}|\d{2,9}")
_CAMEL: Final = re.compile(r"(?<=[a-z])(?=[A-Z])")
_COMMON: Final = frozenset(
    {"new", "add", "added", "change", "changed", "update", "updated", "fix", "fixed", "one"}
)


def bare(sentence: str) -> str:
    """The sentence without the small words before it ("ok", "hmm", "please", "but")."""
    rest = sentence
    for _ in range(_LEADS):
        found = _LEAD.match(rest)
        if found is None:
            break
        rest = rest[found.end() :]
    return rest or sentence


def asks(sentence: str) -> bool:
    """Whether it is a question. "Can you …", without a question mark, is none."""
    text = bare(sentence)
    return text.endswith("?") or (bool(_ASKS.match(text)) and not _REQUEST.match(text))


def requests(sentence: str) -> bool:
    """Whether it asks for something politely."""
    return bool(_REQUEST.match(bare(sentence)))


def directs(clause: str) -> bool:
    """Whether a clause may tell somebody to do something: it begins with none of the words that can't."""
    first = bare(clause).split(" ", 1)[0].strip(",.!:;")
    return bool(first) and first not in _CLOSED


def dismisses(clause: str) -> bool:
    """Whether it only says that nothing is to be done."""
    return bool(_DISMISSES.match(bare(clause)))


def begins_task(sentence: str) -> bool:
    """Whether it asks for something new to be made or looked at."""
    return bool(_TASK.match(bare(sentence)))


def is_about_self(sentence: str) -> bool:
    """Whether it tells what the person did, knows or got wrong."""
    return bool(_SELF.match(bare(sentence)))


def adds(sentence: str) -> bool:
    """Whether it asks for something more."""
    return bool(_MORE.search(sentence))


def insists(text: str) -> bool:
    """Whether the wording says that it is not the first time, or holds for good."""
    return bool(_INSISTS.search(text))


def is_soft(text: str) -> bool:
    """Whether the wording leaves a choice."""
    return bool(_SOFT.search(text))


def shared(text: str, other: str) -> int:
    """How many content words two texts have in common, whatever their endings; names are cut into words."""
    return len(_content_words(text) & _content_words(other))


def is_candidate(text: str) -> bool:
    """Whether one of the keywords of the requirements is in it (TR3)."""
    low = text.casefold().replace("\u2019", "'")
    return any(word in low for every in FLOOR.values() for word in every)


def _content_words(text: str) -> frozenset[str]:
    parts = _PART.findall(_CAMEL.sub(" ", text).casefold())
    return frozenset(stem(w) for w in parts if w not in EMPTY and w not in NEGATIVE and w not in _COMMON)

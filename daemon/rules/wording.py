"""The instruction in a person's words, normalised: "no, we use strict mode here!" becomes "Use strict mode".

Left out is what only reacts ("no", "I said", "you forgot to"), asks politely, gives the reason, or says that
it holds from now on. Nothing is added but "Do not" where the person said "you must not". What forbids never
becomes what allows: a "no" that belongs to the next word stays. Pure.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from .grammar import asks, directs, one
from .own import spoken

if TYPE_CHECKING:
    from collections.abc import Sequence

MAX_CONTENT: Final = 300
PARTS: Final = 6  # that are left out at the beginning
_VERBS: Final = one(
    "use prefer name write keep put follow avoid call format document mock commit squash rebase do"
)
_REACTIONS: Final = (
    # a "no" before a noun says how many: only before a comma, a full stop or a clause of its own it refuses
    r"no+(?=[,.!…:;-]| [-\u2013—]| (?:i|it|it's|that|that's|this|you|the|we|not|don't|dont|do|just|please"
    r"|only|use|keep|make|put|leave|let's|never|always|wait|stop)\b)",
    r"wrong \w{2,20}(?=[,.!:]|$)",
    one("nope nah wrong incorrect wait actually ok okay well hey oh ah ugh so and but again please pls sorry")
    + r"(?=[\s,.!:…-])",
    one("dude man right just also"),
    r"h+m+|hold on|in general|generally|scratch that|stop(?=[,.!])|instead(?!\s+of)",
    "not (?:that(?: one)?|like (?:that|this)|quite|really|right)(?=[,.!:;-])",
    "remember(?: that| to|:)?|keep in mind that|(?:new |house )?rule:|note to self:?",
    "(?:make|be) sure (?:that you|you|to|that)|ensure (?:that you|you)|don't forget to",
    "(?:that|this|it)(?:'s| is)(?: just| still)? (?:wrong|not (?:right|correct|what i (?:asked(?: for)?"
    "|wanted|meant)))(?=[,.!:])",
    "(?:as|like) i (?:said|told you)(?: before| already)?",
    "i(?:'ve| have)? (?:already |just )?(?:said|told you|asked you|asked for|meant|wanted)(?: to| that"
    "| you to)?",
    "i (?:only )?(?:want|need|expect|would like|'d like|would prefer|'d prefer)(?: you)? to",
    "you (?:forgot|forget) to|you (?:should|must|need to|have to|are supposed to"
    "|were supposed to)(?! have| not)",
    rf"we(?: should| must| need to| have to)?(?= (?:always |never )?{_VERBS}\b)",
    "let'?s(?! not)",
    "from (?:now|here) on(?:wards?| out)?|(?:going|moving) forward|in (?:the )?future|next time|henceforth",
    r"(?:for|in|on|with) all future \w{2,20}|as a (?:general )?(?:rule|guideline|principle)",
    "(?:in|for|on|across) (?:this|our|the) (?:project|repo(?:sitory)?|codebase|team)|here(?=,)",
    r"(?:our|the) (?:\w{2,20} )?(?:convention|policy|standard|style|rule)(?: here)? is (?:that|to)?",
    r"add (?:this|that|it)? ?to (?:your|the|my) (?:rules|memory|instructions):",
)
_REACTION: Final = re.compile(rf"(?:{'|'.join(_REACTIONS)})(?![\w'-])[\s,.!…:;-]*", re.IGNORECASE)
_NOT: Final = re.compile(
    r"(?:you (?:must|should|may|can) not|you (?:mustn't|shouldn't|can't)|we (?:do not|don't)(?=\s+"
    + _VERBS
    + r"\b)|i(?:'d| would) rather (?:you )?not|(?:can|could|would|will) you (?:please )?not) (?!have\b|be\b)",
    re.IGNORECASE,
)
_POLITE: Final = re.compile(r"(?:can|could|would|will) you (?:please )?(?=\w)", re.IGNORECASE)
_TAIL: Final = re.compile(
    r"(?<![\s,])(?:[\s,]++(?:please|pls|plz|ok(?:ay)?|thanks?|thank you|instead|again|here|from now on"
    r"|going forward"
    r"|moving forward|in (?:the )?future|too|already|man|dude|in this (?:project|repo(?:sitory)?|codebase)"
    r"|next time|for me)){1,8}\s*+[.!?…]*$",
    re.IGNORECASE,
)
_REASON: Final = re.compile(
    r", (?:because|since|otherwise|they(?:'re| are| contain)|those (?:are|were)|these (?:are|were)|it's"
    r"|that's|there's"
    r"|this is|i don't|we don't need)\b.*$",
    re.IGNORECASE,
)
_REMINDED: Final = re.compile(
    r", (?:as |like )?i(?:'ve| have)? (?:already |just )?(?:told you|said|asked you)(?: so| that| this| it)?"
    r"(?: before| already| again| earlier| twice| (?:many|several|three|four|five) times){0,2}[\s.!?…]*+$",
    re.IGNORECASE,
)
_COMPLAINT: Final = re.compile(
    r"(?:you(?:'re|'ve)? |why (?:did|do|are|would) you|how (?:many times|often)|i (?:did ?n.?t|never)|that'?s"
    r"|this is|this isn't|it'?s not|not what|your \w+(?: \w+)? is wrong)",
    re.IGNORECASE,
)
_CLAUSE: Final = re.compile(r"[,:] (?=\S+ \S)")


def instruction(written: Sequence[str], at: int) -> str:
    """The instruction of a message: of its sentence ``at`` or, where that one only complains, of its last
    clause or of the next sentence that says what to do.
    """
    first = cut(written[at])
    if first and not _only_complains(first):
        return first
    later = [cut(s) for s in written[at + 1 : at + 3] if not asks(spoken(s))]
    clauses = [cut(c) for c in _CLAUSE.split(written[at], maxsplit=1)[1:]]
    useful = next((s for s in (*later, *clauses) if s and not _COMPLAINT.match(s)), "")
    return useful or first


def cut(sentence: str) -> str:
    """One sentence without what only reacts, with a capital and without its full stop."""
    text = " ".join(sentence.replace("\u2019", "'").split())
    for _ in range(PARTS):
        found = _REACTION.match(text)
        if found is None or not found.end():
            break
        text = text[found.end() :]
    if (found := _NOT.match(text)) is not None:
        text = f"do not {text[found.end() :]}"
    elif (found := _POLITE.match(text)) is not None:
        text = text[found.end() :]
    text = _TAIL.sub("", _REMINDED.sub("", text)).rstrip(" .!,;:…?")
    if (
        (found := _REASON.search(text)) is not None
        and found.start()
        and len(text[: found.start()].split()) > 2
    ):
        text = text[: found.start()]
    if len(text) < 3 or not re.search(r"[^\W\d_]{2}", text):
        return ""
    first = text.split(" ", 1)[0]
    if " " in text and first.replace("'", "").isalpha() and first.islower():
        text = text[0].upper() + text[1:]
    return text[:MAX_CONTENT]


def _only_complains(text: str) -> bool:
    return bool(_COMPLAINT.match(text)) or (len(text.split()) < 2 and not directs(text))

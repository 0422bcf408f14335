"""The instruction in a person's words, normalised: "no, we use strict mode here!" becomes "Use strict mode".

Left out is what only reacts ("no", "I said", "you forgot to"), asks politely, or says that it holds from now
on. Nothing is added, and a part that is left over is never turned into its opposite. Pure.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from .grammar import asks
from .own import spoken

if TYPE_CHECKING:
    from collections.abc import Sequence

MAX_CONTENT: Final = 300
_REACTION: Final = re.compile(
    r"(?:no+|nope|nah|wrong(?: \w{1,20})?|incorrect|not (?:that(?: one)?|like (?:that|this)|quite|really"
    r"|right)|stop(?=[,.!])|wait|hold on|actually|instead(?!\s+of)"
    r"|h+m+|ok(?:ay)?|well|hey|oh|ah|ugh|so|and|but|again|please|pls|sorry|dude|man|right|just|also"
    r"|remember(?: that| to|:)?|note(?: that|:)?|keep in mind that"
    r"|(?:make|be) sure (?:that you|you|to|that)|ensure (?:that you|you)|don'?t forget to"
    r"|always remember to|new rule:|rule:"
    r"|(?:that|this|it)(?:'s| is)(?: just| still)? (?:wrong|not (?:right|correct|what i (?:asked(?: for)?"
    r"|wanted|meant)|the way))"
    r"|as i (?:said|told you)(?: before| already)?|like i said|i(?:'ve| have)? (?:already |just )?(?:said"
    r"|told you|asked you|asked for|meant|wanted)(?: to| that| you to)?"
    r"|i (?:only )?(?:want|need|expect|would like|'d like|would prefer|'d prefer)(?: you)? to|i(?:'d"
    r"| would)? (?:prefer|rather) (?:that |if )?you|you (?:forgot|forget) to"
    r"|you (?:should|must|need to|have to|are supposed to|were supposed to)(?: have)?|we (?:should|must"
    r"|need to|have to)?(?= (?:use|prefer|always|never|write|keep|put|name|follow|avoid)\b)"
    r"|from (?:now|here) on(?:wards?)?|(?:going|moving) forward|in (?:the )?future|next time"
    r"|for all future \w{2,20}|as a (?:general )?rule|in general"
    r"|(?:in|for|on|across) (?:this|our) (?:project|repo(?:sitory)?|codebase|team)|here(?=,)|(?:our|the) "
    r"(?:\w{2,20} )?(?:convention|policy|standard|style)(?: here)? is (?:that|to)?"
    r"|add (?:this|that|it)? ?to (?:your|the|my) (?:rules|memory|instructions):)(?![\w'-])[\s,.!…:;-]*",
    re.IGNORECASE,
)
_TAIL: Final = re.compile(
    r"(?:[\s,]+(?:please|pls|plz|ok(?:ay)?|thanks?|thank you|instead|again|here|from now on|going forward"
    r"|moving forward|in (?:the )?future|too|already|man|dude"
    r"|in this (?:project|repo(?:sitory)?|codebase)|next time|for me))+\s*[.!?…]*$",
    re.IGNORECASE,
)
_COMPLAINT: Final = re.compile(
    r"(?:you |why (?:did|do|are|would) you|how (?:many times|often)|i (?:did ?n.?t|never|only)|that'?s"
    r"|this is|it'?s not|not what)",
    re.IGNORECASE,
)


def instruction(written: Sequence[str], at: int) -> str:
    """The instruction of a message, from its sentence ``at`` or, when that one only complains, from the next
    that directs.
    """
    first = cut(written[at])
    useful = first if first and not _only_complains(first) else ""
    if not useful:
        later = (cut(s) for s in written[at + 1 : at + 3] if not asks(spoken(s)))
        useful = next((s for s in later if s and not _COMPLAINT.match(s)), first)
    return useful[:MAX_CONTENT]


def cut(sentence: str) -> str:
    """One sentence without what only reacts, with a capital and without its full stop."""
    text = " ".join(sentence.replace("\u2019", "'").split())
    for _ in range(6):
        found = _REACTION.match(text)
        if found is None or not found.end():
            break
        text = text[found.end() :]
    text = _TAIL.sub("", text).rstrip(" .!,;:…")
    if len(text) < 3 or not re.search(r"[^\W\d_]{2}", text):
        return ""
    first = text.split(" ", 1)[0]
    return text[0].upper() + text[1:] if first.isalpha() and first.islower() else text


def _only_complains(text: str) -> bool:
    return bool(_COMPLAINT.match(text)) or len(text.split()) < 2

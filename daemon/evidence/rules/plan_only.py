"""A change was asked for, and the work read files and ends with a plan (I25)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from ...core.evidence import Row
from ..words import shorten

if TYPE_CHECKING:
    from ..facts import Facts

MAX_READ: Final = 4_000  # characters of the final text's end
_NO_CHANGE: Final = re.compile(
    r"\b(?:already|no (?:code )?changes? (?:is |are |was |were )?(?:needed|required|necessary|made)"
    r"|nothing to (?:do|change|fix)|no need"
    r"|can(?:'t|not)|could(?:n't| not)|unable|(?:doesn't|does not|don't) (?:exist|seem|appear)"
    r"|works? as (?:intended|expected|designed)"
    r"|not a bug|by design|blocked|no access|credential\w*|need you to|i need|not found|no such"
    r"|correct as)\b",
    re.IGNORECASE,
)
_PLANS: Final = re.compile(
    r"\b(?:i(?:'ll| will| would|'d| can now| plan to| propose| recommend| suggest|'m going to)"
    r"|we (?:should|need to|could|can|will)"
    r"|here(?:'s| is) (?:the|my|a|how)[^.\n]{0,20}(?:plan|approach|proposal|fix|change)|(?:the|my"
    r"|proposed|implementation) plan|plan:|should be (?:changed|replaced|updated|moved|fixed|added)"
    r"|needs? to be (?:changed|replaced|updated|moved|fixed|added|refactored)|to fix (?:this|it)"
    r"|the fix (?:is|would be)|step 1)\b",
    re.IGNORECASE,
)


def plan_only(facts: Facts) -> list[Row]:
    """At most one open row of kind ``unmet``, without id."""
    work, end = facts.work, facts.final[-MAX_READ:]
    if facts.wants != "change" or facts.ending not in {"statement", "next_steps"}:
        return []
    if work.writes or work.opaque or work.delegated or work.done:
        return []
    if _NO_CHANGE.search(end) or not _PLANS.search(end):
        return []
    source, r = next((i, r) for i, r in facts.live if r.change)
    return [
        Row(
            "",
            "unmet",
            "the request asks for a change; the work wrote nothing and ends with a plan",
            open=True,
            detail=f'The request "{shorten(r.text)}" asks for a change',
            cites=(source,),
        )
    ]

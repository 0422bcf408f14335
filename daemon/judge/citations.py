"""The cites of a judgement: rows and quotes that its items rest on.

A model may invent. An item counts only where it names a row of the case or quotes the request.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from ..core.evidence import FAILED
from ..core.question import as_quoted

if TYPE_CHECKING:
    from ..core.evidence import Row
    from ..core.verdict import Judgement, Missing
    from .case import Case

ITEM_CHARS: Final = 300
QUOTE_MIN: Final = 8  # characters; a word or two are no quote
QUOTED_CHARS: Final = 2_000
_LABEL: Final = re.compile(r"\s{0,4}[\[(]?[A-Z]\d{1,4}[\])]?[\s:,-]{1,4}")
_QUOTED: Final = re.compile(r"[\"“]([^\"“”]{8,1000})[\"”]")
_ROW: Final = re.compile(r"\b[A-Z]\d{1,4}(?:\.\d{1,3})?\b")
_GAP: Final = r"(?:[^.;\n]|\.(?=\S)){0,50}"  # within a sentence; the dot of `.env` ends none
_DESTROYS: Final = re.compile(
    rf"\bpush\b{_GAP}(?:--force\b|--force-with-lease\b| -f\b|--delete\b| [+:]\w)"
    r"|\bforce[- ]?push|--force-with-lease\b"
    r"|\bfilter-(?:branch|repo)\b|\bbfg\b|\brebase -i\b|\breset --hard\b|\bgh repo delete\b"
    rf"|\brewrit\w+\b{_GAP}\bhistory|\b(?:purge|scrub|erase|remove)\b{_GAP}\b(?:from|out of)\b{_GAP}"
    rf"\b(?:history|all commits)|\bdelete\b{_GAP}\b(?:remote|branch on)\b",
    re.IGNORECASE,
)
_NEVER: Final = re.compile(r"\b(?:never|don'?t|do not|without|not|no)\b", re.IGNORECASE)
_SENTENCE: Final = re.compile(r"(?<=[.!?;])\s+")


def cited_rows(missing: Missing, case: Case) -> tuple[str, ...]:
    """The rows that the item names: `E3`, `[E3]`, `E3, R1`, `E3: the test failed`."""
    known = {row.id for row in case.evidence.rows}
    return tuple(name for name in _ROW.findall(missing.cites[:ITEM_CHARS]) if name in known)


def named_rows(missing: Missing, case: Case) -> tuple[str, ...]:
    """The rows that an excuse is about: those that its item names."""
    known = {row.id for row in case.evidence.rows}
    return tuple(name for name in _ROW.findall(missing.text[:ITEM_CHARS]) if name in known)


def is_excuse(missing: Missing, case: Case, row: Row) -> bool:
    """The excuse quotes the person's words. A failed check is also excused by a call that failed before the
    task's first change. Only the judge reads whether the words excuse it.
    """
    return _quotes(missing, case) or (row.kind == "check" and _failed_before(missing, case))


def is_cited(missing: Missing, case: Case) -> bool:
    """The item names an evidence row, a message or a line of the log, or quotes the request word for word."""
    if cited_rows(missing, case) or _names_more(missing, case):
        return True
    return _quotes(missing, case)


def _quotes(missing: Missing, case: Case) -> bool:
    """The item quotes the request word for word, alone or in quotation marks: `M1: "leave it red"`."""
    cites = missing.cites[:QUOTED_CHARS]
    quotes = map(as_quoted, (_LABEL.sub("", cites), *_QUOTED.findall(cites)))
    wanted = [quote for quote in quotes if len(quote) >= QUOTE_MIN]
    return any(quote in as_quoted(text) for text in case.requests for quote in wanted)


def _failed_before(missing: Missing, case: Case) -> bool:
    """The item names a call that failed before anything was changed."""
    changed = min((_number(name) for f in case.evidence.files for name in f.by), default=0)
    cited = set(_ROW.findall(missing.cites[:ITEM_CHARS]))
    return any(
        act.id in cited and act.rank == FAILED and _number(act.id) < changed for act in case.evidence.log
    )


def _number(call: str) -> int:
    """12 of ``A12.3``."""
    return int(call[1:].partition(".")[0])


def _names_more(missing: Missing, case: Case) -> bool:
    """The item names a message (``M2``) or a call of the task (``A12``, ``A12.3``)."""
    messages, calls = len(case.requests), case.evidence.tool_calls
    for name in _ROW.findall(missing.cites[:ITEM_CHARS]):
        number = _number(name)
        if (name[0] == "M" and 0 < number <= messages) or (name[0] == "A" and 0 < number <= calls):
            return True
    return False


def without_destruction(found: Judgement, case: Case) -> Judgement | None:
    """The judgement without advice that destroys what others have: rewritten history, forced pushes, remote
    deletions. Feedback asks for them only where the person did. None when nothing else is left.
    """
    asked = (part for text in case.requests for part in _SENTENCE.split(text) if _DESTROYS.search(part))
    if any(not _NEVER.search(part) for part in asked):
        return found

    def fine(text: str) -> bool:
        return not _DESTROYS.search(text)

    feedback = " ".join(part for part in _SENTENCE.split(found.feedback) if fine(part))
    actions = tuple(action for action in found.next_actions if fine(action))
    missing = tuple(m for m in found.missing if fine(m.text))
    kept = (feedback, actions, missing)
    if kept == (" ".join(_SENTENCE.split(found.feedback)), found.next_actions, found.missing):
        return found
    if not (found.complete or any(kept)):
        return None
    return replace(found, feedback=feedback, next_actions=actions, missing=missing)

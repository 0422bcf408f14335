"""``collect``: the evidence of one task, computed from its calls and the form of its last answer, once.

It never reads words of people or agents and never guesses: a row is ``open`` only where it proves by itself
that something is unfinished, because a false "incomplete" is the costly error.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from ..core.evidence import Ending, Evidence, Row, ending
from .activity import activity
from .calls.reading import read
from .check_rows import check_rows
from .diffs import file_changes
from .rows import (
    deed_rows,
    denied_rows,
    error_rows,
    leaks,
    todo_rows,
    unfinished_rows,
    weakened_rows,
    write_rows,
)

if TYPE_CHECKING:
    from ..core.transcript import Transcript

_ENDINGS: Final[dict[Ending, str]] = {
    "cut_off": "the host cut the last answer off, it had reached its largest size",
    "empty": "there is no final text",
}


def collect(transcript: Transcript) -> Evidence:
    """What was written, checked and left open in the current task, every call of it, and what it changed."""
    calls = tuple(c for m in transcript.work for c in m.calls)
    final = next((m for m in reversed(transcript.work) if m.role == "assistant"), None)
    end = ending(final.text, final.finish) if final else "empty"
    work = read(calls, transcript.directory)
    denied = denied_rows(calls, work)
    errors = error_rows(calls, asked=end == "question")
    asked = "\n".join(m.text for m in transcript.requests)
    told = "\n".join(m.text for m in transcript.work if m.order)
    rows = [
        *write_rows(work),
        *weakened_rows(work),
        *check_rows(work, transcript.directory),
        *deed_rows(work),
        *leaks(work, asked, told),
        *todo_rows(transcript.todos, calls, work),
        *denied,
        *errors,
        *unfinished_rows(work, [r.detail for r in errors], denied=bool(denied)),
    ]
    if said := _ENDINGS.get(end):
        rows.append(Row("", "ending", said, open=end == "cut_off"))
    return Evidence(
        rows=tuple(replace(row, id=f"E{i}") for i, row in enumerate(rows, 1)),
        ending=end,
        tool_calls=len(calls),
        writes=len(work.writes),
        code_writes=work.code_writes,
        delegated=work.delegated,
        log=activity(transcript, work),
        files=file_changes(work, transcript.directory),
    )

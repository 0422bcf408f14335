"""What a case says of a task's progress: its files, its checks, its open items (design/anti-loop.md)."""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, Final

from ..core.guards import normalise_items
from ..core.progress import Progress
from ..core.refusals import looks_up
from .citations import cited_rows

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..core.evidence import Row, RowKind
    from ..core.verdict import Missing
    from .case import Case

_CALL: Final = re.compile(r"\bA\d{1,6}(?:\.\d{1,6})?\b")
_SAYS: Final[frozenset[RowKind]] = frozenset({"check", "git", "run", "tests_changed"})


def progress(case: Case, missing: tuple[Missing, ...]) -> Progress:
    """Where the task stands. A tool that is not known counts as a change of files each time it is used."""
    from ..evidence.calls.tools import AGENT_TOOLS, SHELL_TOOLS, WRITE_TOOLS  # not needed to start

    known = SHELL_TOOLS | WRITE_TOOLS | AGENT_TOOLS
    calls = case.transcript.calls if case.transcript is not None else ()
    other = sum(
        c.status == "completed" and c.tool.lower() not in known and not looks_up(c.tool) for c in calls
    )
    files = [
        (f.path, f.how, f.added, f.removed, f.lines, f.by if f.how == "by_command" else ())
        for f in case.evidence.files
    ]
    said = [
        (r.kind, *normalise_items((r.command,)), r.outcome, *_printed(r))
        for r in case.evidence.rows
        if r.kind in _SAYS
    ]
    rows = {row.id: row for row in case.evidence.rows}
    items = {item for m in missing for item in _cites(m, case, rows)}
    cited = [f for f in files if any(_names(m, f[0], case, rows) for m in missing)]
    return Progress(_digest((*files, other)), _digest(said), tuple(sorted(items)), _digest(cited))


def _names(missing: Missing, path: str, case: Case, rows: dict[str, Row]) -> bool:
    """Whether the item, or a row that it cites, names this file."""
    cited = (rows[name] for name in cited_rows(missing, case))
    said = (missing.text, missing.cites, *(part for r in cited for part in (r.text, r.detail, r.command)))
    name = re.compile(rf"(?<![\w.-]){re.escape(path.rpartition('/')[2])}(?![\w-])")
    return any(name.search(text) for text in said)


def _cites(missing: Missing, case: Case, rows: dict[str, Row]) -> tuple[str, ...]:
    """What the item cites, without the numbers of rows, which move; its own words where it cites nothing."""
    cited = [rows[name] for name in cited_rows(missing, case)]
    if cited:
        return tuple(
            f"{r.kind} {' '.join(normalise_items((r.command,)) if r.command else _words(r))}" for r in cited
        )
    return normalise_items((missing.cites or missing.text,))


def _printed(row: Row) -> tuple[str, ...]:
    """What a check printed, without our remarks on it, which change with the calls around it."""
    if row.kind != "check":
        return _words(row)
    return normalise_items((row.detail, row.text.partition("; failed tests: ")[2]))


def _words(row: Row) -> tuple[str, ...]:
    """A row's text without the numbers of calls, which move from round to round."""
    return normalise_items((_CALL.sub("A", row.text),))


def _digest(found: Iterable[object]) -> str:
    return hashlib.sha256(repr(tuple(found)).encode()).hexdigest()[:16]

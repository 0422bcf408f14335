"""What the daemon wrote down: rows of its database, read from outside, and every file it owns."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from harness.machine.sandbox import Sandbox
from harness.machine.waiting import PATIENCE_S, wait_until


@dataclass(frozen=True, slots=True)
class Call:
    """One row of the ledger. ``outcome`` is cut at the first colon."""

    purpose: str
    provider: str
    model: str
    input: int
    output: int
    cost: float | None
    outcome: str

    @property
    def said(self) -> tuple[str, str, str]:
        """(purpose, provider, outcome)."""
        return self.purpose, self.provider, self.outcome


@contextlib.contextmanager
def database(box: Sandbox) -> Iterator[sqlite3.Connection]:
    """The daemon's database, to read from."""
    file = box.state / "reflectd.sqlite3"
    with contextlib.closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True, timeout=PATIENCE_S)) as db:
        yield db


def ledger(box: Sandbox, session: str) -> list[Call]:
    """The calls that were made to judge ``session``, oldest first."""
    with database(box) as db:
        rows = db.execute(
            "SELECT purpose, provider, model, input, output, cost, outcome FROM ledger "
            "WHERE session = ? ORDER BY rowid",
            (session,),
        ).fetchall()
    return [Call(*row[:-1], row[-1].partition(":")[0]) for row in rows]


def wait_ledger(box: Sandbox, session: str, *said: tuple[str, str, str]) -> list[Call]:
    """Until the ledger has these calls for ``session``, and no others: (purpose, provider, outcome)."""

    def hit() -> list[Call]:
        calls = ledger(box, session)
        return calls if [c.said for c in calls] == list(said) else []

    return wait_until(
        hit,
        f"ledger {said}",
        lambda: ledger(box, session),
    )


def open_orders(box: Sandbox, kind: str) -> list[str]:
    """The orders of this kind (``toast``, ``feedback``, ``nudge``) that nobody reported an outcome for."""
    with database(box) as db:
        rows = db.execute("SELECT id FROM outbox WHERE kind = ? AND status IN ('pending', 'sent')", (kind,))
        return [row[0] for row in rows]


def case_files(box: Sandbox, session: str) -> list[dict[str, Any]]:
    """The full evaluations of ``session``, oldest first."""
    found = sorted((box.project / ".reflection").glob(f"{session}_*.json"))
    return [json.loads(path.read_text("utf-8")) for path in found]


def written(box: Sandbox) -> dict[str, bytes]:
    """Every file in the state folder and in ``.reflection``, by path."""
    folders = (box.state, box.project / ".reflection")
    files = (path for folder in folders for path in folder.rglob("*") if path.is_file())
    found = {}
    for path in files:
        with contextlib.suppress(FileNotFoundError):
            found[str(path)] = path.read_bytes()
    return found

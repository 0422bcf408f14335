"""The named migrations of ``migrations.sql``, which are applied once, in order."""

from __future__ import annotations

import sqlite3
from pathlib import Path

Migration = tuple[str, tuple[str, ...]]
"""Its name, and the statements."""
_HEAD = "-- migration "


def _read() -> tuple[Migration, ...]:
    _, *parts = Path(__file__).with_suffix(".sql").read_text("utf-8").split(f"\n{_HEAD}")
    return tuple((name, tuple(_statements(body))) for name, _, body in (p.partition("\n") for p in parts))


def _statements(body: str) -> list[str]:
    """Each statement as it stands. One may hold semicolons, as a trigger does."""
    statements, begun = list[str](), ""
    for line in body.splitlines():
        begun = f"{begun}\n{line}".strip()
        if sqlite3.complete_statement(begun):
            statements.append(begun.rstrip(";"))
            begun = ""
    return statements


MIGRATIONS = _read()

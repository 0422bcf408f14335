"""Finds damage inside rows of a database that is sound as a whole, and keeps such rows aside (I43); finds
tables that are missing.

A value that is not of its column's type would stop the daemon at its start, or make an answer fail for
ever. Such rows are moved to the table ``unreadable`` before anything is read, all their values as SQL
literals. What a BLOB holds is not looked at here: whoever decodes it leaves out what can't be
decoded. The tables behind a full-text index are SQLite's own and are left alone.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import sqlite3

text: Final = partial(str, encoding="utf-8", errors="replace")
"""Reads a TEXT that may not be UTF-8."""
OURS: Final = frozenset({"migrations", "unreadable"})
MOST: Final = 1e9  # of a REAL: a cost in USD
_WRONG: Final = {
    "TEXT": "typeof({c}) != 'text'",
    # no clock and no count has more
    "INTEGER": f"(typeof({{c}}) != 'integer' OR {{c}} NOT BETWEEN 0 AND {1 << 53})",
    "BLOB": "typeof({c}) NOT IN ('blob', 'text')",
    "SIGNED": f"(typeof({{c}}) NOT IN ('real', 'integer') OR {{c}} NOT BETWEEN -{MOST:.0f} AND {MOST:.0f})",
    "REAL": f"(typeof({{c}}) NOT IN ('real', 'integer') OR {{c}} NOT BETWEEN 0 AND {MOST:.0f})",
}


def set_aside(c: sqlite3.Connection, now: int) -> dict[str, int]:
    """Move damaged rows to ``unreadable``. Table → how many, for those that had any. ``now``: epoch ms."""
    found = {}
    tables = [name for (name,) in c.execute("SELECT name FROM pragma_table_list WHERE type = 'table'")]
    for table in tables:
        if table in OURS or table.startswith("sqlite_"):
            continue
        columns = list(c.execute(f"PRAGMA table_info({table})"))
        damaged = " OR ".join(_damaged(name, kind, needed) for _, name, kind, needed, *_ in columns)
        if c.execute(f"SELECT 1 FROM {table} WHERE {damaged} LIMIT 1").fetchone() is None:
            continue
        values = " || ', ' || ".join(f"quote({name})" for _, name, *_ in columns)
        key = columns[0][1]
        c.execute("BEGIN IMMEDIATE")
        c.execute(
            "INSERT INTO unreadable (kind, id, at, body) "
            f"SELECT ?, quote({key}), ?, {values} FROM {table} WHERE {damaged}",
            (table, now),
        )
        found[table] = c.execute(f"DELETE FROM {table} WHERE {damaged}").rowcount
        c.execute("COMMIT")
    return found


def lacking(c: sqlite3.Connection, whole: sqlite3.Connection) -> str:
    """A table or column of ``whole`` that ``c`` does not have; "" when it has all."""
    return min(_shape(whole) - _shape(c), default="")


def _shape(c: sqlite3.Connection) -> set[str]:
    query = (
        "SELECT t.name || '.' || i.name FROM sqlite_schema AS t, pragma_table_info(t.name) AS i "
        "WHERE t.type = 'table'"
    )
    return {name for (name,) in c.execute(query)}


def _damaged(name: str, kind: str, needed: int) -> str:
    """SQL: is the column's value of another type, or missing where there must be one?"""
    wrong = _WRONG.get(kind.upper(), "0").format(c=name)
    return f"({name} IS NULL OR {wrong})" if needed else f"({name} IS NOT NULL AND {wrong})"

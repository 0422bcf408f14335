"""Opens the database beside the daemon, for reports. It is never written and never created.

Readers of a WAL file do not wait for its writer. An unreadable one is ``Unavailable``.
"""

from __future__ import annotations

import sqlite3
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol, Self

from ..core.errors import Unavailable

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

Row = tuple[Any, ...]
text: Final = partial(str, encoding="utf-8", errors="replace")
"""Reads a TEXT that may not be UTF-8."""


class Reads(Protocol):
    """The reading side of a database: ``Database`` and ``ReadOnly`` have it."""

    def read(self, sql: str, parameters: Row = ()) -> list[Row]:
        """Rows of a query."""
        ...


class ReadOnly:
    """``with ReadOnly(path) as db``: a connection that cannot change anything."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> Self:
        if not self._path.is_file():
            raise Unavailable(f"there is no database at {self._path} yet")
        with self._named():
            self._conn = sqlite3.connect(f"{self._path.absolute().as_uri()}?mode=ro", uri=True, timeout=5.0)
            self._conn.text_factory = text
        return self

    def __exit__(self, *_: object) -> None:
        self._conn.close()

    def read(self, sql: str, parameters: Row = ()) -> list[Row]:
        """Rows of a query. Raises ``Unavailable``."""
        with self._named():
            return self._conn.execute(sql, parameters).fetchall()

    @contextmanager
    def _named(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as e:
            if "no such" in str(e):
                old = f"{self._path} was written by an older reflectd; `reflectd start` brings it up to date"
                raise Unavailable(old) from e
            raise Unavailable(f"cannot read {self._path}: {e}") from e

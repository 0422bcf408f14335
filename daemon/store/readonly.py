"""Opens the database beside the daemon, for reports. It is never written and never created.

Readers of a WAL file do not wait for its writer. What cannot be read is ``Unavailable``.
"""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING, Any, Protocol, Self

from ..core.errors import Unavailable
from . import damage

if TYPE_CHECKING:
    from pathlib import Path

Row = tuple[Any, ...]


class Reads(Protocol):
    """What a report needs of a database: ``Database`` and ``ReadOnly`` have it."""

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
        try:
            self._conn = sqlite3.connect(f"{self._path.absolute().as_uri()}?mode=ro", uri=True, timeout=5.0)
            self._conn.text_factory = damage.text
        except sqlite3.Error as e:
            if "no such" in str(e):
                raise Unavailable(
                    f"{self._path} was written by an older reflectd; `reflectd start` brings it up to date"
                ) from e
            raise Unavailable(f"cannot read {self._path}: {e}") from e
        return self

    def __exit__(self, *_: object) -> None:
        self._conn.close()

    def read(self, sql: str, parameters: Row = ()) -> list[Row]:
        """Rows of a query. Raises ``Unavailable``."""
        try:
            return self._conn.execute(sql, parameters).fetchall()
        except sqlite3.Error as e:
            if "no such" in str(e):
                raise Unavailable(
                    f"{self._path} was written by an older reflectd; `reflectd start` brings it up to date"
                ) from e
            raise Unavailable(f"cannot read {self._path}: {e}") from e

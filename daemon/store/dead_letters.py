"""Dead letters: model replies that broke the form, kept to be looked at and counted by ``status`` (I48)."""

from __future__ import annotations

from dataclasses import astuple, dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from .db import Database, Statement

KEPT: Final = 500
RAW_CHARS: Final = 64_000


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """One reply; ``raw`` is redacted, at most ``RAW_CHARS``. ``at`` is epoch ms."""

    at: int
    purpose: str
    session: str
    provider: str
    model: str
    why: str
    raw: str


def add(letters: list[DeadLetter]) -> tuple[Statement, Statement]:
    """The inserts; the oldest beyond ``KEPT`` go."""
    return (
        (
            "INSERT INTO dead_letters (at, purpose, session, provider, model, why, raw) "
            "VALUES (?, ?, ?, ?, ?, ?, ?)",
            [astuple(letter) for letter in letters],
        ),
        (
            "DELETE FROM dead_letters WHERE id <= (SELECT max(id) FROM dead_letters) - ?",
            [(KEPT,)],
        ),
    )


class DeadLetters:
    """The read side."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def summary(self) -> dict[str, Any]:
        """``{"count", "last_at", "last_why"}``; ``last_at`` is epoch ms, 0 when there is none."""
        count, last = self._db.read("SELECT count(*), max(id) FROM dead_letters", ())[0]
        if not count:
            return {"count": 0, "last_at": 0, "last_why": ""}
        at, why = self._db.read("SELECT at, why FROM dead_letters WHERE id = ?", (last,))[0]
        return {"count": count, "last_at": at, "last_why": why}

    def newest(self, session: str, limit: int) -> list[DeadLetter]:
        """Newest first; of one session when it is given."""
        rows = self._db.read(
            "SELECT at, purpose, session, provider, model, why, raw FROM dead_letters "
            "WHERE ? IN ('', session) ORDER BY id DESC LIMIT ?",
            (session, limit),
        )
        return [DeadLetter(*row) for row in rows]

"""What hosts told of a person's answers to questions of ours and of commands that they typed: digests only.

A row of the kind ``shown`` says that a dialog with the question stood before the person. An answer counts
once: ``spend`` changes no second row.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ..core.consent import TYPED, Chosen
from .retention import old

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .db import Statement
    from .readonly import Reads

KEEP_MS: Final = 2 * 86_400_000
_SHOWN: Final = "shown"
_ANSWER: Final = "answer"
_INTO: Final = "INTO consents (session, digest, source, kind, label, place, at) VALUES (?, ?, ?, ?, ?, ?, ?)"


@dataclass(frozen=True, slots=True)
class Consent:
    """What a host told. ``source``: the id of the agent's call, or of the message that was typed. ``place``:
    where the host keeps its own record.
    """

    session: str
    digest: str
    source: str
    label: str
    place: str
    at: int
    spent: int

    @property
    def is_typed(self) -> bool:
        """Whether it is a command, for which there is no dialog."""
        return self.label == TYPED

    @property
    def chosen(self) -> Chosen:
        """What the host's record must say too."""
        return Chosen(self.digest, self.label)


def show(session: str, digests: Iterable[str], at: int) -> Statement:
    """A dialog with these questions is open."""
    return (f"INSERT OR IGNORE {_INTO}", [(session, d, "", _SHOWN, "", "", at) for d in digests])


def answer(session: str, source: str, place: str, answers: Iterable[Chosen], at: int) -> Statement:
    """A person answered. The same call again changes nothing."""
    rows = [(session, a.digest, source, _ANSWER, a.label, place, at) for a in answers]
    return (f"INSERT OR IGNORE {_INTO}", rows)


def type_in(session: str, digest: str, message: str, place: str, at: int) -> Statement:
    """A person typed our command."""
    return (f"INSERT OR IGNORE {_INTO}", [(session, digest, message, TYPED, TYPED, place, at)])


def was_shown(db: Reads, session: str, digest: str) -> bool:
    """Whether the person had that question before their eyes."""
    found = db.read(
        "SELECT 1 FROM consents WHERE session = ? AND digest = ? AND kind = ?", (session, digest, _SHOWN)
    )
    return bool(found)


def told(db: Reads, session: str, digest: str, since: int) -> list[Consent]:
    """The answers to that question, or the commands with that wish, newest first."""
    rows = db.read(
        "SELECT session, digest, source, label, place, at, spent FROM consents "
        "WHERE session = ? AND digest = ? AND kind IN (?, ?) AND at >= ? ORDER BY at DESC, source DESC",
        (session, digest, _ANSWER, TYPED, since),
    )
    return [Consent(*row) for row in rows]


def spend(consent: Consent, at: int) -> Statement:
    """Use it. No row changes when it was used before, or an answer to the same question was."""
    return (
        "UPDATE consents SET spent = ?1 WHERE session = ?2 AND digest = ?3 AND source = ?4 AND spent = 0 "
        "AND (kind = ?5 OR NOT EXISTS "
        "(SELECT 1 FROM consents WHERE session = ?2 AND digest = ?3 AND spent > 0))",
        [(at, consent.session, consent.digest, consent.source, TYPED)],
    )


def prune(now_ms: int) -> Statement:
    """What nobody used in time."""
    return (f"DELETE FROM consents WHERE {old('consents')}", [(now_ms - KEEP_MS,)])

"""What hosts told of a person's answers to questions of ours and of commands that they typed: digests only.

An answer counts once: ``spend`` changes no second row. The columns of the table that are empty were for other
records of the same consent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from ...core.consent import TYPED
from ...store.retention import old

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ...core.consent import Chosen
    from ...store.db import Statement
    from ...store.readonly import Reads

KEEP_MS: Final = 2 * 86_400_000
_ANSWER: Final = "answer"
_INTO: Final = "INTO consents (session, digest, source, kind, label, place, at) VALUES (?, ?, ?, ?, ?, '', ?)"


class Consent(NamedTuple):
    """What a host told. ``source``: the id of the agent's call, or of the message that was typed. ``label``:
    ``TYPED`` for a command, for which there is no dialog.
    """

    session: str
    digest: str
    source: str
    label: str
    at: int
    spent: int


def answer(session: str, source: str, answers: Iterable[Chosen], at: int) -> Statement:
    """A person answered. The same call again changes nothing."""
    rows = [(session, a.digest, source, _ANSWER, a.label, at) for a in answers]
    return (f"INSERT OR IGNORE {_INTO}", rows)


def type_in(session: str, digest: str, message: str, at: int) -> Statement:
    """A person typed our command."""
    return (f"INSERT OR IGNORE {_INTO}", [(session, digest, message, TYPED, TYPED, at)])


def told(db: Reads, session: str, digest: str, since: int) -> list[Consent]:
    """The answers to that question, or the commands with that wish, newest first."""
    rows = db.read(
        "SELECT session, digest, source, label, at, spent FROM consents "
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

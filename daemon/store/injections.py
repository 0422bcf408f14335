"""The texts that each session was given: each offer byte for byte, and its call (table ``injections``)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from ..core.offers import Composed
    from .db import Statement
    from .readonly import Reads


class Given(Struct, frozen=True):
    """An offer as a session was given it: exactly these characters. ``call``: it stands behind the result of
    this call; empty where it stands nowhere in the messages.
    """

    offer: str
    kind: str
    name: str
    heading: str
    text: str
    call: str = ""


def give(session: str, moment: str, at: int, found: Composed, call: str = "") -> Statement:
    """A session is given these offers. ``call``: the id of the call behind whose result they stand."""
    return (
        "INSERT OR REPLACE INTO injections "
        "(session, offer, kind, directory, name, moment, at, heading, text, call) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [
            (session, o.id, o.kind, o.directory, o.name, moment, at, o.heading, o.text, call)
            for o in found.offers
        ],
    )


def first_after(db: Reads, session: str) -> dict[str, str]:
    """The texts of the lessons that the session was given, by name, if its newest verdict is the first one
    after.
    """
    rows = db.read(
        "SELECT name, text FROM injections AS g WHERE session = ? AND kind = 'lesson' AND 1 = "
        "(SELECT count(*) FROM verdicts AS v WHERE v.session = g.session AND v.at >= g.at "
        "AND v.state IN ('complete', 'incomplete'))",
        (session,),
    )
    return dict(rows)


def given(db: Reads, session: str) -> list[Given]:
    """The texts that the session was given, in any order."""
    rows = db.read(
        "SELECT offer, kind, name, heading, text, call FROM injections WHERE session = ?", (session,)
    )
    return [Given(*row) for row in rows]


def behind_calls(db: Reads, session: str) -> dict[str, set[str]]:
    """The texts that the session may have been given behind results of calls, by the id of the call that
    asked; "" for lessons that a prompt asked for, which may have come late.
    """
    found: dict[str, set[str]] = {}
    for g in given(db, session):
        if g.call or g.kind == "lesson":
            found.setdefault(g.call, set()).update((g.text, g.heading))
    return found

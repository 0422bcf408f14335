"""What ``reflectd off`` and ``on`` change in the database, and what they have to say of it.

The daemon uses it, and the command line when no daemon runs. A folder that is off is off with everything
below it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ..core.session import Session
from .sessions import NAMED

if TYPE_CHECKING:
    from .db import Statement
    from .sessions import Sessions


@dataclass(frozen=True, slots=True)
class Switched:
    """``target``: the session's whole id, or the folder. ``changed``: it was the other way before.
    ``off_above``: the folder that holds the target off all the same, "" for none. ``off_below``: the
    first folders below the target that are off on their own. ``sessions``: how many are stored of the folder.
    """

    target: str
    changed: bool
    off_above: str = ""
    off_below: tuple[str, ...] = ()
    sessions: int = 0


def session(sessions: Sessions, identity: str, *, on: bool) -> tuple[Switched, Session]:
    """Switch a known session. Its new state is put into ``sessions``, and waits to be stored."""
    before = sessions.get(identity) or Session(id=identity)
    after = replace(before, off=not on)
    sessions.put(after)
    return Switched(identity, before.off is on, sessions.off_by(after.directory)), after


def folder(sessions: Sessions, directory: str, *, on: bool, now: int) -> tuple[Switched, Statement]:
    """Switch a folder, with what is below it. The statement stores it."""
    off = sessions.off_folders()
    below = tuple(f for f in off if f.startswith(f"{directory.rstrip('/')}/") and f != directory)
    statement = sessions.switch(directory, on=on, now=now)
    above = sessions.off_by(directory.rpartition("/")[0] or "/") if directory != "/" else ""
    changed = (directory in off) is on
    return Switched(directory, changed, above, below[:NAMED], sessions.count_in(directory)), statement


def held(sessions: Sessions, directory: str) -> list[str]:
    """The sessions in memory that this folder's switch holds off."""
    return [s.id for s in sessions.in_memory() if sessions.off_by(s.directory) == directory]

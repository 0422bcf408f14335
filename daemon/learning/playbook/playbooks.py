"""The playbooks of projects as the daemon reads and writes them. Everything here blocks: call it in a thread.

A change is written once, whatever is killed: the revision that is kept before the file is replaced names the
change, so a second try sees whether the first one reached the disk.
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ...core.errors import Unavailable, UserError
from ...core.given import folded, known_as
from ...files.safe import read_text
from ...learning import tables
from ..rules.section import Document
from ..state import ReflectState
from .learn import changed, known_part
from .points import Playbook, each, harms, line
from .project_playbook import ProjectPlaybook

if TYPE_CHECKING:
    from collections.abc import Callable

    from ...core.ports import Clock
    from ...store.db import Database
    from .learn import Applied, Change

BY: Final = "reflectd"
OFFERED: Final = 300  # points that are looked at for one session
RULES: Final = ("AGENTS.md", "CLAUDE.md", ".claude/CLAUDE.md")
RULES_BYTES: Final = 256 * 1024
Stamp = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class View:
    """A project's playbook now. ``known``: the part that agents and models may read. ``approved``: the names
    of the points that a person wrote or approved. ``problem``: why the file can't be used.
    """

    known: Playbook
    approved: frozenset[str]
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Line:
    """A point as an agent reads it."""

    name: str
    digest: str
    text: str
    worth: float


class Playbooks:
    """One for the daemon."""

    def __init__(self, db: Database, clock: Clock, home: str, path: str) -> None:
        self._db = db
        self._path = path
        self._clock = clock
        self._state_dir = db.path.parent
        self._home = os.path.realpath(home)

    def project(self, directory: str) -> str:
        """The folder by its real path; "" for one that is no project (the home folder, the root)."""
        real = os.path.realpath(directory) if directory else ""
        return "" if real in {"", "/", self._home} else real

    def stamp(self, project: str) -> Stamp:
        """Changes when anything does that ``view`` or ``lines`` reads."""
        book = self._book(project)
        stones = ReflectState(self._state_dir, project).folder / "tombstones.json"
        files = [book.path, book.known_file, stones, *(Path(project, name) for name in RULES)]
        confirmed = self._db.read(
            "SELECT count(*), total(settled) FROM learned WHERE directory = ? AND state = 'confirmed'",
            (project,),
        )
        return (book.path, *map(identity, files), *confirmed[0])

    def view(self, project: str) -> View:
        """Read it."""
        book = self._book(project)
        found, state = book.read(), book.known()
        known = tables.confirmed(self._db, project) | state.approved.keys()
        part = known_part(found.playbook, known)
        approved = {p["name"] for _, p in each(found.playbook) if state.is_approved(p["text"])}
        return View(part, frozenset(approved), found.problem)

    def lines(self, project: str) -> list[Line]:
        """The points that may be offered, best first, without those that the project's own rules hold, and
        those that say what the person dismissed.
        """
        view, blocked = self.view(project), self.blocked(project)
        said = folded("\n".join(rules_of(project)))
        points = [
            p
            for _, p in each(view.known)
            if not harms(p) and folded(p["text"]) not in said and not blocked(p["text"])
        ]
        points.sort(key=lambda p: p["harmful"] - p["helpful"])
        return [
            Line(p["name"], known_as(p["text"])[:16], line(p), p["helpful"] - p["harmful"])
            for p in points[:OFFERED]
        ]

    def blocked(self, project: str) -> Callable[[str], bool]:
        """Whether a text says what the person dismissed, or what is a rule of theirs by now: one fact, one
        home.
        """
        return blocked_in(self._state_dir, project)

    def approve(self, project: str, text: str) -> None:
        """A person vouches for this text. Raises ``Unavailable``."""
        self._book(project).approve([text])

    def write(self, project: str, change: Change, number: int, why: str) -> Applied | None:
        """Change the file and keep the revision; None when this change (``number``) is on the disk already,
        or was undone. Raises ``Unavailable``, and ``UserError`` for a project whose playbook lies behind a
        link.
        """
        book, what = self._book(project), f"learned #{number}"
        with book.change(why=why, by=BY) as edit:
            if edit.problem:
                raise Unavailable(edit.problem)
            made = book.history()
            earlier = next((r for r in made if r.by == BY and r.what == what), None)
            if earlier is not None and (
                earlier.before != edit.mark or any(r.undoes == earlier.number for r in made)
            ):
                return None
            kept = {p["name"] for _, p in each(edit.playbook) if edit.known.is_approved(p["text"])}
            applied = changed(edit.playbook, change, edit.names, kept)
            edit.playbook["sections"] = applied.playbook["sections"]
            edit.what = what
        return applied

    def _book(self, project: str) -> ProjectPlaybook:
        return ProjectPlaybook(project, self._state_dir, self._clock, self._path)


def blocked_in(state_dir: Path, project: str) -> Callable[[str], bool]:
    """See ``Playbooks.blocked``."""
    stones = ReflectState(state_dir, project).load("tombstones").values()
    said = [str(stone.get("content", "")) for stone in stones if isinstance(stone, dict)]
    for raw in rules_of(project):
        with suppress(UserError):
            said += [rule.text for rule in Document(raw.encode()).rules if rule.active]
    known = {folded(text) for text in said}
    return lambda text: folded(text) in known


def identity(path: Path) -> tuple[int, int, int]:
    """Changes when the file is replaced or edited."""
    try:
        found = path.lstat()
    except OSError:
        return (0, 0, 0)
    return (found.st_ino, found.st_size, found.st_mtime_ns)


def rules_of(project: str) -> list[str]:
    """What the project's own rules say, as far as they can be read."""
    found = []
    for name in RULES:
        try:
            found.append(read_text(Path(project, name), RULES_BYTES, follow=False) or "")
        except (OSError, ValueError):
            continue
    return found

"""A project's playbook as it is changed: one at a time, each change a revision, no name given twice.

The file is ``.reflection/playbook.json``, unless a person names another one for all projects (setting
``playbook.path``); a project can name none. It is inside the project, is called ``playbook.json``, and no
folder on the way to it may be a link: a clone may ship one that leads out. The home folder and ``/`` have no
playbook.

What reflectd knows of it and does not write into it is in the state folder, in ``known.json`` (0600, replaced
as a whole; one that can't be used counts as empty and is renamed at the next write): the highest number that
was given to a name of each kind, so that no name is given twice, also after its point was removed; and the
texts that a person approved, as digests. ``playbook.json`` may come with a clone, so it can't say that.

A lock on that folder is held from reading to writing, so the daemon and a command lose nothing to each other.
"""

from __future__ import annotations

import json
import os
import time
from contextlib import nullcontext
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple, TypeVar

from ...core.errors import Unavailable, UserError
from ...core.given import known_as
from ...files.alone import alone
from ...files.atomic import set_aside, write_atomic
from ...files.bounded import read_bytes, read_text, reason
from ...files.folders import make_folder
from ...files.verdict import make_reflection
from ..revisions import Revision, Revisions
from ..rules.journal import bury
from ..texts import refusal
from .points import Playbook, by_name, check_form, drop, each, empty, highest, migrated, names_of

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Mapping

    from ...core.ports import Clock
    from ..rules.journal_file import ProjectJournal
    from ..rules.learned_rules import LearnedRules
    from .points import Names, Point

# A person's word on the points of a project's playbook: they vouch for them, or take one back.
#
# Both name each point with its text as the person saw it, so that a point which was edited or removed since
# is left alone. Nobody is asked here: who calls it knows that a person wants it. ``UserError`` says why
# nothing was changed; ``Unavailable`` when the file system refuses.


def unvouched(book: ProjectPlaybook, confirmed: Container[str]) -> list[Point]:
    """The points of the file that nobody vouches for. ``confirmed``: digests of what sessions confirmed.
    Raises ``UserError`` for a file that can't be used.
    """
    found, known = book.read(), book.known()
    if found.problem:
        raise UserError(found.problem)
    return [
        p
        for _, p in each(found.playbook)
        if not known.is_approved(p["text"]) and known_as(p["text"]) not in confirmed
    ]


def may_count(named: Mapping[str, str]) -> None:
    """Raise ``UserError`` when one of these texts (by name) may not be put in front of an agent."""
    for name, text in named.items():
        if why := refusal(text):
            raise UserError(f"{name} may not be offered to agents: {why}")


def as_seen(book: ProjectPlaybook, name: str, seen: str) -> str:
    """The text of the point, if it still has the digest ``seen`` (``known_as``)."""
    point = by_name(book.read().playbook).get(name)
    text = "" if point is None else str(point["text"])
    _unchanged(point, name, text if known_as(text) == seen else "")
    return text


def vouch(book: ProjectPlaybook, named: Mapping[str, str]) -> None:
    """A person vouches for these points: name and text as they saw it."""
    may_count(named)
    there = by_name(book.read().playbook)
    for name, text in named.items():
        _unchanged(there.get(name), name, text)
    book.approve(named.values())


def take_back(rules: LearnedRules, name: str, text: str, *, by: str = "you") -> None:
    """Remove the point, and see to it that what it says is never learned again. That comes first: who is
    ended between the two may ask again.
    """
    _unchanged(by_name(rules.playbook.read().playbook).get(name), name, text)
    never_again(rules.journal, text)

    def edit(playbook: Playbook, names: Names) -> str:
        del names
        point = by_name(playbook).get(name)
        _unchanged(point, name, text)
        drop(playbook, [point] if point is not None else [])
        return name

    rules.playbook.change(edit, lambda name: f"took back {name}", by=by)


def never_again(book: ProjectJournal, text: str) -> None:
    """A person took this text back, so nothing that says the same is learned or suggested."""
    book.change(lambda journal: bury(journal, text, book.day()))


def _unchanged(point: Point | None, name: str, text: str) -> None:
    if point is None:
        raise UserError(f"{name} is not in the playbook any more: nothing was changed")
    if point["text"] != text:
        raise UserError(f"{name} was edited while you were asked: nothing was changed; try again")


# The file ``playbook.json``: read in any form that was ever written, written in today's, as a whole.
#
# A file that is no playbook is not replaced: at the next save it is renamed to
# ``playbook.json.corrupt-<ms>``. It is read twice before that, so that an edit which is just being written
# is not mistaken for a broken file. What the fields mean is in ``playbook.points``.

FILE: Final = ".reflection/playbook.json"
LIMIT: Final = 64 * 1024 * 1024  # bytes; 100,000 points have about 15 MB
AGAIN_S: Final = 0.2  # until a file that can't be read as a playbook is read once more


class Loaded(NamedTuple):
    """A playbook from a file. ``problem``: why the file can't be used, "" when it can or is missing; the
    playbook is empty then. ``told``: what changed when it was brought into today's form. ``mark``: a digest
    of the file's bytes, "" without a file.
    """

    playbook: dict[str, Any]
    problem: str = ""
    told: tuple[str, ...] = ()
    mark: str = ""


def load(
    path: str | Path,
    *,
    marks: Mapping[str, int] | None = None,
    follow: bool = True,
    sleep: Callable[[float], object] = time.sleep,
) -> Loaded:
    """The playbook in the file; an empty one when there is none. Never raises.

    ``marks``: the highest number that was ever given, by how a name begins. ``follow=False`` refuses a link.
    """
    found = _read(path, marks, follow=follow)
    if found.problem:
        sleep(AGAIN_S)
        found = _read(path, marks, follow=follow)
    return found


def _read(path: str | Path, marks: Mapping[str, int] | None, *, follow: bool) -> Loaded:
    mark = ""
    try:
        raw = read_bytes(path, LIMIT, follow=follow)
        if raw is None:
            return Loaded(empty())
        mark = sha256(raw).hexdigest()
        found = migrated(parsed(raw), marks)
    except (OSError, ValueError, RecursionError) as error:
        why = reason(error) if isinstance(error, OSError | ValueError) else "it is nested too deeply"
        return Loaded(empty(), f"{path} is no playbook that can be used: {why}", (), mark)
    return Loaded(found.playbook, "", found.told, mark)


def save(
    path: str | Path,
    playbook: Mapping[str, Any],
    now_ms: int,
    *,
    sleep: Callable[[float], object] = time.sleep,
) -> Path | None:
    """Replace the file, all or nothing; a missing folder is made. The file keeps its mode; a link is
    replaced.

    Returns where a file that is no playbook was kept, None when there was none. Raises ``Unavailable`` when
    the file system refuses, ``TypeError`` and ``ValueError`` for what JSON can't hold.
    """
    data, aside, path = dumped(playbook), None, Path(path)
    if _is_broken(path):
        sleep(AGAIN_S)
        if _is_broken(path):
            aside = set_aside(path, str(now_ms))
    try:
        make_folder(path.parent)
    except OSError as error:
        raise Unavailable(f"can't make the folder {path.parent}: {reason(error)}") from error
    write_atomic(path, data, mode=None)
    return aside


def _is_broken(path: Path) -> bool:
    """Whether there is something that is no playbook."""
    try:
        raw = read_bytes(path, LIMIT)
        if raw is not None:
            check_form(parsed(raw))
    except (OSError, ValueError, RecursionError):
        return True
    return False


def parsed(raw: bytes) -> Any:  # noqa: ANN401 - any JSON value
    """The JSON value in a file. Raises ``ValueError``, for ``NaN`` and ``Infinity`` too: they are no JSON."""
    return json.loads(raw.decode("utf-8-sig"), parse_constant=_no_json)


def _no_json(word: str) -> None:
    raise ValueError(f"{word} is no JSON")


def dumped(playbook: Mapping[str, Any]) -> bytes:
    """The file's bytes for a playbook. Raises ``TypeError`` and ``ValueError`` for what JSON can't hold, and
    ``ValueError`` for a playbook that could not be loaded again (``LIMIT``).
    """
    try:
        text = json.dumps(playbook, indent=2, ensure_ascii=False, allow_nan=False)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    try:
        data = f"{text}\n".encode()
    except UnicodeEncodeError:  # half a character, which JSON allows and UTF-8 does not
        data = f"{json.dumps(playbook, indent=2, allow_nan=False)}\n".encode()
    if len(data) > LIMIT:
        raise ValueError(
            f"it would have {len(data) >> 20} MiB, more than the {LIMIT >> 20} MiB that are read"
        )
    return data


T = TypeVar("T")
ACE: Final = ".claude/playbook.json"
"""Where the ACE plugin of Claude Code keeps a project's playbook."""
FOLDER: Final = "playbooks"  # in the state folder
KNOWN_LIMIT: Final = 16 * 1024 * 1024
APPROVED_KEPT: Final = 100_000


@dataclass(slots=True)
class Known:
    """``highest``: how a name begins → the highest number. ``approved``: digest of a text → epoch ms."""

    highest: dict[str, int] = field(default_factory=dict)
    approved: dict[str, int] = field(default_factory=dict)

    def raise_to(self, highest: dict[str, int]) -> None:
        """Names up to these numbers are never given again."""
        for slug, number in highest.items():
            self.highest[slug] = max(number, self.highest.get(slug, 0))

    def approve(self, texts: Iterable[str], now_ms: int) -> None:
        """A person wrote or approved these texts."""
        for text in texts:
            self.approved.pop(known_as(text), None)
            self.approved[known_as(text)] = now_ms
        while len(self.approved) > APPROVED_KEPT:
            del self.approved[next(iter(self.approved))]

    def is_approved(self, text: str) -> bool:
        """Whether a person wrote or approved exactly this text."""
        return known_as(text) in self.approved


def folder_of(state_dir: Path, project: str | Path) -> Path:
    """The folder of one project's playbook in the state folder, by the project's real path."""
    name = os.path.realpath(project)
    return state_dir / FOLDER / sha256(os.fsencode(name)).hexdigest()[:16]


class StateFile:
    """One project's file. Who changes it holds the lock on its folder (``files.alone``)."""

    def __init__(self, state_dir: Path, project: str | Path) -> None:
        self.folder = folder_of(state_dir, project)
        self._path = self.folder / "known.json"
        self._project = os.path.realpath(project)

    def load(self) -> Known:
        """What is known; nothing when the file is missing or can't be used. Never raises."""
        try:
            found = json.loads(read_text(self._path, KNOWN_LIMIT) or "{}")
            return Known(_numbers(found["highest"]), _numbers(found["approved"]))
        except (OSError, ValueError, RecursionError, KeyError, TypeError):
            return Known()

    def save(self, known: Known, now_ms: int) -> None:
        """Replace the file; its folder is there. Raises ``Unavailable``."""
        if os.path.lexists(self._path) and self.load() == Known() and known != Known():
            set_aside(self._path, str(now_ms))
        text = {"project": self._project, "highest": known.highest, "approved": known.approved}
        write_atomic(self._path, json.dumps(text, indent=1) + "\n", mode=0o600)


def _numbers(found: object) -> dict[str, int]:
    if not isinstance(found, dict) or not all(type(n) is int and n >= 0 for n in found.values()):
        raise ValueError("it is no table of numbers")
    return found


@dataclass(frozen=True, slots=True)
class Changed(Generic[T]):
    """What a change came to. ``revision`` is None when nothing was written: nothing changed, or a dry run.
    ``told``: what a person should know, a line each.
    """

    result: T
    playbook: Playbook
    revision: Revision | None = None
    told: tuple[str, ...] = ()


class ProjectPlaybook:
    """The playbook of one project. ``setting``: the person's ``playbook.path``. ``named``: its file, from the
    project on.
    """

    def __init__(self, project: str | Path, state_dir: Path, clock: Clock, setting: str) -> None:
        self._project = project
        self._state = StateFile(state_dir, project)
        self._clock = clock
        self.named = setting or FILE
        self.path = Path(project, self.named)
        own = () if self.named == FILE else (f"of-{known_as(self.named)[:16]}",)  # a file, its revisions
        self._kept = self._state.folder.joinpath(*own)
        self._revisions = Revisions(self._kept, self.path)

    def read(self) -> Loaded:
        """The playbook as it is; names are given above those that were ever given here. Never raises."""
        if problem := self.problem():
            return Loaded(empty(), problem)
        return load(self.path, marks=self._state.load().highest, follow=False)

    def known(self) -> Known:
        """The numbers that were given and the texts that a person approved. Never raises."""
        return self._state.load()

    def approve(self, texts: Iterable[str]) -> None:
        """A person approves these texts. Raises ``Unavailable``."""
        with alone(self._state.folder):
            known = self._state.load()
            known.approve(texts, self._clock.now_ms())
            self._state.save(known, self._clock.now_ms())

    def change(
        self,
        edit: Callable[[Playbook, Names], T],
        what: Callable[[T], str],
        *,
        why: str = "",
        by: str = "you",
        approved: Callable[[T], Iterable[str]] | None = None,
        dry_run: bool = False,
    ) -> Changed[T]:
        """Let ``edit`` change the playbook in place, and write what came of it as one revision.

        ``edit`` is given where new names come from. ``what`` says in words what was done. ``approved``: the
        texts in the result that a person wrote. Raises ``Unavailable``, ``UserError`` for a folder that can
        have no playbook, and whatever ``edit`` raises; nothing is written then.
        """
        now = self._clock.now_ms()
        self._check()
        with nullcontext() if dry_run else alone(self._state.folder):
            known = self._state.load()
            loaded = load(self.path, marks=known.highest, follow=False)
            playbook, told = loaded.playbook, list(loaded.told)
            before = self._bytes(playbook)
            known.raise_to(highest(p["name"] for _, p in each(playbook)))
            result = edit(playbook, names_of(playbook, known.highest))
            if dry_run or (self._bytes(playbook) == before and not loaded.told):
                return Changed(result, playbook, None, tuple(told + [loaded.problem] * bool(loaded.problem)))
            made_from = loaded.mark
            if loaded.problem and os.path.lexists(self.path):
                made_from = ""
                aside = set_aside(self.path, str(now))
                told.append(f"{loaded.problem}; it is kept as {aside.name}")
            playbook["last_updated"] = datetime.fromtimestamp(now / 1000, UTC).isoformat()
            known.raise_to(highest(p["name"] for _, p in each(playbook)))
            if approved is not None:
                known.approve(approved(result), now)
            self._state.save(known, now)  # before the file: a name that is written is never free again
            self._make_folders()
            revision = self._revisions.write(
                self._bytes(playbook), at=now, what=what(result), why=why, by=by, made_from=made_from
            )
        return Changed(result, playbook, revision, tuple(told))

    def history(self) -> list[Revision]:
        """Every change, newest first."""
        return self._revisions.all()

    def content_before(self, revision: Revision) -> bytes | None:
        """The file's bytes before that change, None when there was none. Raises ``UserError``."""
        return self._revisions.before(revision)

    def undo(self, number: int, *, dry_run: bool = False) -> Revision:
        """Undo that change, the newest one for 0. Raises ``UserError`` when the file was edited since."""
        self._check()
        with nullcontext() if dry_run else alone(self._state.folder):
            return self._revisions.undo(number, at=self._clock.now_ms(), dry_run=dry_run)

    def problem(self, path: str = "") -> str:
        """Why this folder can have no playbook there (where it is), "" when it can."""
        if os.path.realpath(self._project) in {"/", os.path.realpath(os.environ.get("HOME") or "/")}:
            return f"{self._project} is no project"
        folders = Path(self._project, path or self.named).parents
        depth = len(Path(path or self.named).parents) - 1
        link = next((folder for folder in reversed(folders[:depth]) if folder.is_symlink()), None)
        return f"{link} is a link: nothing is read or written there" if link is not None else ""

    def _bytes(self, playbook: Playbook) -> bytes:
        """The file's bytes. Raises ``UserError`` for a playbook that could not be read again."""
        try:
            return dumped(playbook)
        except ValueError as error:
            raise UserError(f"{self.path} is not written: {error}") from None

    def _check(self, path: str = "") -> None:
        if problem := self.problem(path):
            raise UserError(problem)

    def _make_folders(self) -> None:
        """The file's folder, and that of its revisions. Raises ``Unavailable``."""
        try:
            self._kept.mkdir(mode=0o700, exist_ok=True)
            if self.named == FILE:
                make_reflection(self.path.parent)
            else:
                make_folder(self.path.parent)
        except OSError as error:
            raise Unavailable(f"can't make the folder {self.path.parent}: {reason(error)}") from error

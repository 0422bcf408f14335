"""A project's playbook: its file, read in any form that was ever written and replaced as a whole; its
changes, one at a time, each a revision; a person's word on its points; and what agents may be given of it.

The file is ``.reflection/playbook.json``, unless a person names another one for all projects (setting
``playbook.path``); a project can name none. It is inside the project, is called ``playbook.json``, and no
folder on the way to it may be a link: a clone may ship one that leads out. The home folder and ``/`` have no
playbook. A file that is no playbook is renamed to ``playbook.json.corrupt-<ms>`` at the next change.

Facts about it that are not written into it are in the state folder, in ``known.json`` (0600, replaced
as a whole; one that can't be used counts as empty and is renamed at the next write): the highest number that
was given to a name of each kind, so that no name is given twice, also after its point was removed; and the
texts that a person approved, as digests. ``playbook.json`` may come with a clone, so it can't say that.

A lock on that folder is held from reading to writing, so the daemon and a command lose nothing to each other.
"""

from __future__ import annotations

import json
import os
import time
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from msgspec import Struct, field

from ...core.errors import Unavailable, UserError, words
from ...core.given import folded, known_as
from ...files.safe import alone, make_folder, read_bytes, read_text, set_aside, write_atomic
from ...files.verdict import make_reflection
from ..revisions import Revision, RevisionsOf
from ..rules.journal import bury
from ..rules.section import Document
from ..state import ReflectState, problem_of
from ..texts import refusal
from .points import Names, Playbook, by_name, copy, drop, each, empty, harms, highest, migrated, names_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

    from ...core.ports import Clock
    from ..rules.journal_file import ProjectJournal
    from .points import Point

FILE: Final = ".reflection/playbook.json"
ACE: Final = ".claude/playbook.json"
"""Where the ACE plugin of Claude Code keeps a project's playbook."""
FOLDER: Final = "playbooks"  # in the state folder
LIMIT: Final = 64 * 1024 * 1024  # bytes; 100,000 points have about 15 MB
KNOWN_LIMIT: Final = 16 * 1024 * 1024
APPROVED_KEPT: Final = 100_000
AGAIN_S: Final = 0.2  # until a file that can't be read as a playbook is read once more
MOST_KNOWN: Final = 2_000  # points of one playbook that agents and models are given a choice of
OFFERED: Final = 300  # of them to one session
RULES: Final = ("AGENTS.md", "CLAUDE.md", ".claude/CLAUDE.md")
RULES_BYTES: Final = 256 * 1024


# --- the file ----------------------------------------------------------------------------------------------


class Loaded(NamedTuple):
    """A playbook from a file. ``problem``: why the file can't be used, "" when it can or is missing; the
    playbook is empty then. ``told``: what changed when it was brought into today's form. ``mark``: the
    SHA-256 of the file's bytes, "" without a file.
    """

    playbook: Playbook
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
    """The playbook in the file; an empty one when there is none. Never raises. One that can't be used is read
    once more, because an edit may just be written.

    ``marks``: the highest number that was ever given, by how a name begins. ``follow=False`` refuses a link.
    """
    loaded = _read(path, marks, follow=follow)
    if loaded.problem:
        sleep(AGAIN_S)
        loaded = _read(path, marks, follow=follow)
    return loaded


def _read(path: str | Path, marks: Mapping[str, int] | None, *, follow: bool) -> Loaded:
    mark = ""
    try:
        raw = read_bytes(path, LIMIT, follow=follow)
        if raw is None:
            return Loaded(empty())
        mark = sha256(raw).hexdigest()
        playbook, told = migrated(parsed(raw), marks)
    except (OSError, ValueError, RecursionError) as error:
        why = "it is nested too deeply" if isinstance(error, RecursionError) else words(error)
        return Loaded(empty(), f"{path} is no playbook that can be used: {why}", (), mark)
    return Loaded(playbook, "", told, mark)


def save(
    path: str | Path, playbook: Mapping[str, Any], now_ms: int, sleep: Callable[[float], object] = time.sleep
) -> Path | None:
    """Replace the file, all or nothing; a missing folder is made. The file keeps its mode; a link is
    replaced.

    Returns where a file that is no playbook was kept, None when there was none. Raises ``Unavailable`` when
    the file system refuses, ``TypeError`` and ``ValueError`` for what JSON can't hold.
    """
    data, path = dumped(playbook), Path(path)
    broken = os.path.lexists(path) and load(path, sleep=sleep).problem
    aside = set_aside(path, str(now_ms)) if broken else None
    try:
        make_folder(path.parent)
    except OSError as error:
        raise Unavailable(f"can't make the folder {path.parent}: {words(error)}") from error
    write_atomic(path, data, mode=None)
    return aside


def parsed(raw: bytes) -> Any:  # noqa: ANN401 - any JSON value
    """The JSON value in a file. Raises ``ValueError``, for ``NaN`` and ``Infinity`` too: they are no JSON."""

    def no_json(word: str) -> None:
        raise ValueError(f"{word} is no JSON")

    return json.loads(raw.decode("utf-8-sig"), parse_constant=no_json)


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


# --- what is known of it -----------------------------------------------------------------------------------


class Known(Struct):
    """``highest``: how a name begins → the highest number. ``approved``: digest of a text → epoch ms."""

    highest: dict[str, int] = field(default_factory=dict)
    approved: dict[str, int] = field(default_factory=dict)

    def raise_to(self, highest: dict[str, int]) -> None:
        """Names up to these numbers are never given again."""
        for slug, number in highest.items():
            self.highest[slug] = max(number, self.highest.get(slug, 0))

    def approve(self, texts: Iterable[str], now_ms: int) -> None:
        for digest in map(known_as, texts):
            self.approved.pop(digest, None)
            self.approved[digest] = now_ms
        while len(self.approved) > APPROVED_KEPT:
            del self.approved[next(iter(self.approved))]

    def is_approved(self, text: str) -> bool:
        """Says whether a person wrote or approved exactly this text."""
        return known_as(text) in self.approved


class Edit(Struct):
    """A change that is being made: ``playbook`` may be changed in place, ``names`` gives new names.

    ``what`` says in words what was done; ``approved``: the texts that a person wrote. ``mark`` and
    ``problem`` are those of the file as it was read. Afterwards ``revision`` is what was written, None when
    nothing was: nothing changed, or a dry run; ``told``: what a person should know, a line each.
    """

    playbook: Playbook
    names: Names
    known: Known
    mark: str
    problem: str
    told: list[str]
    what: str = "names of points"
    approved: list[str] = field(default_factory=list)
    revision: Revision | None = None


class View(NamedTuple):
    """A project's playbook now. ``known``: the part that agents and models may read. ``approved``: the names
    of the points that a person wrote or approved. ``problem``: why the file can't be used.
    """

    known: Playbook
    approved: frozenset[str]
    problem: str = ""


class ProjectPlaybook:
    """The playbook of one project. ``setting``: the person's ``playbook.path``. ``named``: its file, from the
    project on. ``folder``: what is kept of it in the state folder, by the project's real path.
    """

    def __init__(self, project: str | Path, state_dir: Path, clock: Clock, setting: str) -> None:
        self._project = Path(project)
        self._state_dir = state_dir
        self._clock = clock
        self.named = setting or FILE
        self.path = self._project / self.named
        self.folder = state_dir / FOLDER / sha256(os.fsencode(os.path.realpath(project))).hexdigest()[:16]
        self.known_file = self.folder / "known.json"
        own = () if self.named == FILE else (f"of-{known_as(self.named)[:16]}",)  # a file, its revisions
        self._kept = self.folder.joinpath(*own)
        self._revisions = RevisionsOf(self._kept, self.path, Revision)

    def read(self) -> Loaded:
        """The playbook as it is; names are given above those that were ever given here. Never raises."""
        if problem := self.problem():
            return Loaded(empty(), problem)
        return load(self.path, marks=self.known().highest, follow=False)

    def known(self) -> Known:
        """The numbers that were given and the texts that a person approved; nothing when the file is missing
        or can't be used. Never raises.
        """
        try:
            kept = json.loads(read_text(self.known_file, KNOWN_LIMIT) or "{}")
            return Known(_numbers(kept["highest"]), _numbers(kept["approved"]))
        except (OSError, ValueError, RecursionError, KeyError, TypeError):
            return Known()

    def _save_known(self, known: Known, now_ms: int) -> None:
        if os.path.lexists(self.known_file) and self.known() == Known() and known != Known():
            set_aside(self.known_file, str(now_ms))
        project = os.path.realpath(self._project)
        text = {"project": project, "highest": known.highest, "approved": known.approved}
        write_atomic(self.known_file, json.dumps(text, indent=1) + "\n", mode=0o600)

    def approve(self, texts: Iterable[str]) -> None:
        with alone(self.folder):
            known, now = self.known(), self._clock.now_ms()
            known.approve(texts, now)
            self._save_known(known, now)

    @contextmanager
    def change(self, *, why: str = "", by: str = "you") -> Iterator[Edit]:
        """Give the playbook out to be changed, and write what came of it as one revision.

        Raises ``Unavailable``, and ``UserError`` for a folder that can have no playbook. When the block
        raises, nothing is written.
        """
        now = self._clock.now_ms()
        self._check()
        with alone(self.folder):
            known = self.known()
            playbook, problem, told, mark = load(self.path, marks=known.highest, follow=False)
            before = self._bytes(playbook)
            known.raise_to(highest(by_name(playbook)))
            edit = Edit(playbook, names_of(playbook, known.highest), known, mark, problem, [*told])
            yield edit
            if self._bytes(playbook) == before and not told:
                edit.told += [problem] if problem else []
                return
            if problem and os.path.lexists(self.path):
                mark = ""
                edit.told.append(f"{problem}; it is kept as {set_aside(self.path, str(now)).name}")
            playbook["last_updated"] = datetime.fromtimestamp(now / 1000, UTC).isoformat()
            known.raise_to(highest(by_name(playbook)))
            known.approve(edit.approved, now)
            self._save_known(known, now)  # before the file: a name that is written is never free again
            self._make_folders()
            made = Revision(0, now, edit.what, why, by)
            edit.revision = self._revisions.keep(made, self._bytes(playbook), made_from=mark)

    def _make_folders(self) -> None:
        """The file's folder, and that of its revisions. Raises ``Unavailable``."""
        try:
            self._kept.mkdir(mode=0o700, exist_ok=True)
            (make_reflection if self.named == FILE else make_folder)(self.path.parent)
        except OSError as error:
            raise Unavailable(f"can't make the folder {self.path.parent}: {words(error)}") from error

    def history(self) -> list[Revision]:
        return self._revisions.all()

    def undo(self, number: int) -> Revision:
        """Undo that change, the newest one for 0. Raises ``UserError`` when the file was edited since."""
        self._check()
        with alone(self.folder):
            return self._revisions.undo(number, at=self._clock.now_ms())

    def problem(self, path: str = "") -> str:
        """Why this folder can have no playbook there (where it is), "" when it can."""
        return problem_of(self._project, self._project / (path or self.named))

    def _bytes(self, playbook: Playbook) -> bytes:
        """The file's bytes. Raises ``UserError`` for a playbook that could not be read again."""
        try:
            return dumped(playbook)
        except ValueError as error:
            raise UserError(f"{self.path} is not written: {error}") from None

    def _check(self) -> None:
        if problem := self.problem():
            raise UserError(problem)

    # --- what agents and models may be given ---------------------------------------------------------------

    def view(self, confirmed: Collection[str]) -> View:
        """Read it. A point is known when its text is (by digest): a person approved it, or it is one of
        ``confirmed``, which sessions showed to be true. Other members of the file reach no model. Of
        more than ``MOST_KNOWN`` the best stay: looking at a text takes a while.
        """
        loaded, known = self.read(), self.known()
        part = copy(loaded.playbook)
        digests = known.approved.keys() | set(confirmed)
        points = [p for _, p in each(part) if known_as(p["text"]) in digests]
        if len(points) > MOST_KNOWN:
            points = sorted(points, key=_worst_last)[:MOST_KNOWN]
        kept = {id(p) for p in points if not refusal(p["text"])}
        drop(part, [p for _, p in each(part) if id(p) not in kept])
        approved = (p["name"] for _, p in each(loaded.playbook) if known.is_approved(p["text"]))
        return View(part, frozenset(approved), loaded.problem)

    def best(self, confirmed: Collection[str]) -> list[Point]:
        own = OwnWords(self._state_dir, str(self._project))
        points = [p for _, p in each(self.view(confirmed).known) if not own.objection(p["text"], harms(p))]
        return sorted(points, key=_worst_last)[:OFFERED]


def _worst_last(point: Point) -> int:
    return int(point["harmful"] - point["helpful"])


def _numbers(value: object) -> dict[str, int]:
    if not isinstance(value, dict) or not all(type(n) is int and n >= 0 for n in value.values()):
        raise ValueError("it is no table of numbers")
    return value


class OwnWords:
    """The project's own rules and the person's dismissals there: no agent is told them again. Making one
    blocks.
    """

    def __init__(self, state_dir: Path, project: str) -> None:
        files = rules_of(project)
        settled = [str(stone["content"]) for stone in ReflectState(state_dir, project).tombstones()]
        for raw in files:
            with suppress(UserError):
                settled += [rule.text for rule in Document(raw.encode()).rules if rule.active]
        self._files, self._settled = folded("\n".join(files)), set(map(folded, settled))

    def holds(self, text: str) -> bool:
        return folded(text) in self._files

    def blocked(self, text: str) -> bool:
        """Says whether it says what the person dismissed, or what is a rule of theirs by now."""
        return folded(text) in self._settled

    def objection(self, text: str, harms: bool = False) -> str:
        """Why no agent is given a point that says this; "" when one is."""
        if why := refusal(text):
            return why
        if harms:
            return "it harmed more often than it helped"
        if self.holds(text):
            return "AGENTS.md or CLAUDE.md says it already"
        return "a rule says it already, or you dismissed it" if self.blocked(text) else ""


def rules_of(project: str) -> list[str]:
    """The texts of the project's own rules, as far as they can be read."""
    texts = []
    for name in RULES:
        with suppress(OSError, ValueError):
            texts.append(read_text(Path(project, name), RULES_BYTES, follow=False) or "")
    return texts


# --- a person's word on points -----------------------------------------------------------------------------
# Each point is named with its text as the person saw it, so that one which was edited or removed since is
# left alone. Nobody is asked here. ``UserError`` says why nothing was changed.


def may_count(name: str, text: str) -> None:
    """Raise ``UserError`` when a text may not be put in front of an agent."""
    if why := refusal(text):
        raise UserError(f"{name} may not be offered to agents: {why}")


def vouch(book: ProjectPlaybook, name: str, text: str) -> None:
    may_count(name, text)
    _seen(book.read().playbook, name, text)
    book.approve([text])


def take_back(
    book: ProjectPlaybook, journal: ProjectJournal, name: str, text: str, *, by: str = "you"
) -> None:
    """Remove the point, and see to it that what it says is never learned again. That comes first: who is
    ended between the two may ask again.
    """
    _seen(book.read().playbook, name, text)
    never_again(journal, text)
    with book.change(by=by) as edit:
        drop(edit.playbook, [_seen(edit.playbook, name, text)])
        edit.what = f"took back {name}"


def never_again(book: ProjectJournal, text: str) -> None:
    """A person took this text back, so nothing that says the same is learned or suggested."""
    with book.change() as draft:
        bury(draft.journal, text, book.day())


def _seen(playbook: Playbook, name: str, text: str) -> Point:
    point = by_name(playbook).get(name)
    if point is None:
        raise UserError(f"{name} is not in the playbook any more: nothing was changed")
    if point["text"] != text:
        raise UserError(f"{name} was edited while you were asked: nothing was changed; try again")
    return point

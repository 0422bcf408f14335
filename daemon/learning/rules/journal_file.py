"""The learning journal of a project as a file: read, and changed by one writer at a time.

It is ``.claude/orchestration/temp/reflect-journal.json``; in a project that only opencode works in,
``.reflection/reflect-journal.json``. The lock is held from reading to writing, so two commands lose nothing
to each other. What is new in it is redacted before it is written. A file that is no journal is renamed to
``….corrupt-<ms>`` at the next write, and ``told`` says so. Links are not followed, and nothing is done in a
folder that is one: a clone may ship it. A ``temp`` folder of ours gets a ``.gitignore``, unless git tracks
something in it.
"""

from __future__ import annotations

import json
import os
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple, TypeVar

from ...core.errors import Unavailable, UserError, words
from ...files.safe import alone, make_folder, read_bytes, set_aside, write_atomic
from ...files.verdict import make_reflection
from ...redact import redact
from ..state import ReflectState, problem_of
from . import journal as journals
from .journal import Journal

if TYPE_CHECKING:
    from collections.abc import Callable

    from ...core.ports import Clock

T = TypeVar("T")
NAME: Final = "reflect-journal.json"
FILE: Final = f".claude/orchestration/temp/{NAME}"
OPENCODE_FILE: Final = f".reflection/{NAME}"
LIMIT: Final = 64 * 1024 * 1024
_CLAUDE: Final = (".claude", "CLAUDE.md")
_OPENCODE: Final = (".opencode", "opencode.json", "opencode.jsonc")
_IGNORED: Final = "*\n"
_INDEX_LIMIT: Final = 64 * 1024 * 1024


class Loaded(NamedTuple):
    """A journal from its file. ``problem``: why the file can't be used, "" when it can or is missing.
    ``refused``: this folder can have none at all; else the next write begins a new one.
    """

    journal: Journal
    problem: str = ""
    refused: bool = False

    def to_tell(self) -> tuple[str, ...]:
        """What somebody who only looks should know. Raises ``UserError`` where there can be no journal."""
        if self.refused:
            raise UserError(self.problem)
        return (
            (f"{self.problem}; the next change keeps it aside and begins a new one",) if self.problem else ()
        )


@dataclass(frozen=True, slots=True)
class Changed(Generic[T]):
    """What a change came to. ``written``: whether the file was replaced. ``told``: what a person should know,
    a line each.
    """

    result: T
    journal: Journal
    written: bool
    told: tuple[str, ...] = ()


class ProjectJournal:
    """The journal of one project, and what is kept of it in the state folder (``state``)."""

    def __init__(self, project: str | Path, state_dir: Path, clock: Clock) -> None:
        self.project = Path(project)
        self.path = place(self.project)
        self.state = ReflectState(state_dir, project)
        self._clock = clock

    def day(self) -> str:
        """Today, in UTC."""
        return datetime.fromtimestamp(self._clock.now_ms() / 1000, UTC).date().isoformat()

    def read(self) -> Loaded:
        """The journal as it is, empty where there is none. Never raises."""
        if problem := problem_of(self.project, self.path):
            return Loaded(self._empty(), problem, refused=True)
        try:
            raw = read_bytes(self.path, LIMIT, follow=False)
            if raw is None:
                return Loaded(self._with_tombstones(self._empty()))
            return Loaded(self._with_tombstones(journals.checked(json.loads(raw.decode("utf-8-sig")))))
        except (OSError, ValueError, RecursionError) as error:
            why = "it is nested too deeply" if isinstance(error, RecursionError) else words(error)
            return Loaded(
                self._with_tombstones(self._empty()), f"{self.path} is no journal that can be used: {why}"
            )

    def change(
        self,
        edit: Callable[[Journal], T],
        *,
        dry_run: bool = False,
        after: Callable[[Journal, T], None] | None = None,
    ) -> Changed[T]:
        """Let ``edit`` change the journal in place, and write what came of it. ``after`` writes what belongs
        to it into the state folder, while the lock is still held.

        Raises ``Unavailable``, ``UserError`` for a folder that can have no journal, and whatever ``edit``
        raises; nothing is written then.
        """
        if problem := problem_of(self.project, self.path):
            raise UserError(problem)
        with nullcontext() if dry_run else alone(self.state.folder):
            loaded = self.read()
            journal, told = loaded.journal, list[str]()
            before = _dumped(journal)
            known = _contents(journal)
            try:
                result = edit(journal)
            except UserError as error:
                if not loaded.problem:
                    raise
                raise UserError(f"{error}. {loaded.problem}: the next scan begins a new one") from None
            _redact_new(journal, known)
            text = _dumped(journal)
            written = not dry_run and (
                text != before or bool(loaded.problem) or not os.path.lexists(self.path)
            )
            if written:
                now = self._clock.now_ms()
                if loaded.problem and os.path.lexists(self.path):
                    aside = set_aside(self.path, str(now))
                    told.append(f"{loaded.problem}; it is kept as {aside.name}, and a new one was begun")
                self._make_folder()
                # a dismissal holds also when the journal, which lies in a folder called temp, is thrown away
                stones = {stone["content"]: stone for stone in journal["tombstones"]}
                if stones != self.state.load("tombstones"):
                    self.state.save("tombstones", stones, now)
                write_atomic(self.path, text, mode=None if os.path.lexists(self.path) else 0o600)
            elif loaded.problem:
                told.append(loaded.problem)
            if after is not None and not dry_run:
                after(journal, result)
        return Changed(result, journal, written, tuple(told))

    def _empty(self) -> Journal:
        now = datetime.fromtimestamp(self._clock.now_ms() / 1000, UTC)
        return journals.empty(self.project.resolve().name, now.isoformat(timespec="milliseconds"))

    def _with_tombstones(self, journal: Journal) -> Journal:
        there = {stone["content"] for stone in journal["tombstones"]}
        for stone in self.state.load("tombstones").values():
            if isinstance(stone, dict) and isinstance(stone.get("content"), str):
                journal["tombstones"] += [] if stone["content"] in there else [stone]
        return journal

    def _make_folder(self) -> None:
        folder = self.path.parent
        try:
            if folder.name == ".reflection":
                make_reflection(folder)
                return
            make_folder(folder)
            ignore = folder / ".gitignore"
            if not os.path.lexists(ignore) and not _is_tracked(self.project, folder):
                write_atomic(ignore, _IGNORED, mode=None, durable=False)
        except OSError as error:
            raise Unavailable(f"can't make the folder {folder}: {words(error)}") from error


def place(project: Path) -> Path:
    """Where the project's journal is, or would be."""
    there = [project / name for name in (FILE, OPENCODE_FILE) if os.path.lexists(project / name)]
    if there:
        return there[0]
    claude, opencode = (any(os.path.lexists(project / n) for n in names) for names in (_CLAUDE, _OPENCODE))
    return project / (OPENCODE_FILE if opencode and not claude else FILE)


def _is_tracked(project: Path, folder: Path) -> bool:
    """Whether git's index names a file in the folder. The index is only searched: running git in a clone is
    something that a person must allow.
    """
    try:
        found = read_bytes(project / ".git" / "index", _INDEX_LIMIT) or b""
    except (OSError, ValueError):
        return False
    return os.fsencode(f"{folder.relative_to(project)}/") in found


def _contents(journal: Journal) -> set[str]:
    return {entry["content"] for key in _LISTS for entry in journal[key]}


_LISTS: Final = ("signals", "learned_rules", "tombstones")


def _redact_new(journal: Journal, known: set[str]) -> None:
    for key in _LISTS:
        for entry in journal[key]:
            if entry["content"] not in known:
                entry["content"] = redact(entry["content"])


def _dumped(journal: dict[str, Any]) -> bytes:
    text = json.dumps(journal, indent=2, ensure_ascii=False)
    return f"{text}\n".encode("utf-8", "backslashreplace")

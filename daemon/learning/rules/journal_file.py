"""The learning journal of a project as a file, and what belongs to it in the state folder.

The file is ``.claude/orchestration/temp/reflect-journal.json`` (TR4). The lock is held from reading to
writing, so two commands lose nothing to each other. New texts are redacted before they are written. A file
that is no journal is renamed to ``….corrupt-<ms>`` at the next write, and ``told`` says so. Links are not
followed, and nothing is done in a folder that is one: a clone may ship it. A ``temp`` folder of ours gets a
``.gitignore``.

Tombstones, a person's messages, what became of them, and the places where reading stopped are in the state
folder. All but the tombstones are written after the journal, so a killed scan reads some files a second time
and counts nothing twice.
"""

from __future__ import annotations

import json
import os
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from msgspec import Struct, field
from msgspec.structs import replace

from ...core.errors import Unavailable, UserError, words
from ...files.safe import alone, make_folder, read_bytes, set_aside, write_atomic
from ...redact import redact, redact_head
from ..state import Name, ReflectState, problem_of
from . import journal as journals
from .candidates import NOTHING, Candidate, merged, stored
from .journal import MAX_CONTENT, Adding, Journal, Reading, count, trim

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ...core.ports import Clock
    from .journal import Entry

Json = dict[str, Any]
FILE: Final = ".claude/orchestration/temp/reflect-journal.json"
LIMIT: Final = 64 * 1024 * 1024
CREATED: Final = "journal"  # among the messages: when their journal was created
MOST: Final = 100_000  # cursors of files; what is dropped is read again
_LISTS: Final = ("signals", "learned_rules", "tombstones")
_NONE: Final[Mapping[str, Reading]] = {}


class Loaded(NamedTuple):
    """A journal from its file. ``problem``: why the file can't be used, "" when it can or is missing; the
    next write begins a new one.
    """

    journal: Journal
    problem: str = ""


class Draft(Struct):
    """A journal while it is changed. ``told``: lines that a person should know. ``state``: files of the state
    folder that are written after it.
    """

    journal: Journal
    told: list[str] = field(default_factory=list)
    state: dict[Name, Json] = field(default_factory=dict)


class ProjectJournal:
    """The journal of one project, and what is kept of it in the state folder (``state``)."""

    def __init__(self, project: str | Path, state_dir: Path, clock: Clock) -> None:
        self.project = Path(project)
        self.path = self.project / FILE
        self.state = ReflectState(state_dir, project)
        self._clock = clock

    def day(self) -> str:
        """Today, in UTC."""
        return datetime.fromtimestamp(self._clock.now_ms() / 1000, UTC).date().isoformat()

    def read(self) -> Loaded:
        """The journal as it is, empty where there is none. Never raises."""
        journal, problem = self._empty(), problem_of(self.project, self.path)
        try:
            raw = None if problem else read_bytes(self.path, LIMIT, follow=False)
            if raw is not None:
                journal = journals.checked(json.loads(raw.decode("utf-8-sig")))
        except (OSError, ValueError, RecursionError) as error:
            why = "it is nested too deeply" if isinstance(error, RecursionError) else words(error)
            problem = f"{self.path} is no journal that can be used: {why}"
        return Loaded(journal | {"tombstones": self.state.tombstones()}, problem)

    def check(self) -> None:
        """Raise ``UserError`` for a folder that can have no journal."""
        if problem := problem_of(self.project, self.path):
            raise UserError(problem)

    @contextmanager
    def change(self) -> Iterator[Draft]:
        """Give the journal out to be changed in place, and write it. When the block raises, nothing is
        written. Raises ``Unavailable``, and ``UserError`` for a folder that can have no journal.
        """
        self.check()
        with alone(self.state.folder):
            loaded = self.read()
            draft = Draft(loaded.journal)
            before, known = _dumped(draft.journal), _contents(draft.journal)
            yield draft
            for entry in (entry for key in _LISTS for entry in draft.journal[key]):
                if entry["content"] not in known:
                    entry["content"] = redact(entry["content"])
            # a dismissal holds also when the journal, which lies in a folder called temp, is thrown away
            now = self._clock.now_ms()
            stones = {stone["content"]: stone for stone in draft.journal["tombstones"]}
            if stones != self.state.load("tombstones"):
                self.state.save("tombstones", stones, now)
            text = _dumped(draft.journal)
            begins = "messages" in draft.state and not os.path.lexists(self.path)
            if text != before or loaded.problem or begins:
                self._write(draft, text, loaded.problem, now)
            for name, kept in draft.state.items():
                self.state.save(name, kept, now)

    def _write(self, draft: Draft, text: bytes, problem: str, now: int) -> None:
        if problem and os.path.lexists(self.path):
            aside = set_aside(self.path, str(now))
            draft.told.append(f"{problem}; it is kept as {aside.name}, and a new one was begun")
        make_place(self.path.parent, ignored=True)
        write_atomic(self.path, text, mode=None if os.path.lexists(self.path) else 0o600)

    def _empty(self) -> Journal:
        now = datetime.fromtimestamp(self._clock.now_ms() / 1000, UTC)
        return journals.empty(self.project.resolve().name, now.isoformat(timespec="milliseconds"))

    # --- what a person typed -----------------------------------------------------------------------------

    def messages(self, journal: Journal) -> dict[str, Candidate]:
        """The person's messages by key, each with its outcome."""
        found = self.state.load("messages")
        same = found.get(CREATED) == journal.get("created", "")  # a new journal gave the same ids to others
        return stored(found, {signal["id"] for signal in journal["signals"]} if same else ())

    def unread(self) -> list[Candidate]:
        """The messages that nobody read yet."""
        return [c for c in self.messages(self.read().journal).values() if not c.became]

    def keep(
        self,
        more: Mapping[str, Candidate],
        readings: Mapping[str, Reading] = _NONE,
        cursors: Json | None = None,
    ) -> Draft:
        """Keep more messages, and count what they were read as. ``readings``: by key, of those that wait.
        ``cursors``: path → where reading stopped. Raises ``Unavailable``.
        """
        with self.change() as draft:
            journal = draft.journal
            known = merged(more, self.messages(journal))
            adding, signals = Adding(journal), {signal["id"]: signal for signal in journal["signals"]}
            for key in more:
                if key in known and (signal := signals.get(known[key].became)):
                    for at in known[key].seen:
                        count(signal, at)
            for key, reading in readings.items():
                if key in known and not known[key].became:
                    known[key] = _counted(adding, known[key], reading)
            if gone := trim(journal):
                draft.told.append(f"{gone} of the least signals were dropped: there are too many")
            if more or readings:
                entries = {key: candidate.object() for key, candidate in known.items()}
                draft.state["messages"] = {CREATED: journal.get("created", ""), **entries}
            if cursors:
                files = list({**self.state.load("cursors"), **cursors}.items())
                draft.state["cursors"] = dict(files[-MOST:])
        return draft

    def word(self, keys: Sequence[str], content: str) -> Entry:
        """Count waiting messages as a signal in these words. Raises ``UserError``, ``Unavailable``."""
        readings = {}
        for candidate in self._waiting(keys):
            stopped = {"refused", "interrupted"} & set(candidate.why)
            readings[candidate.key] = Reading("correction" if stopped else "instruction", content)
        journal = self.keep({}, readings).journal
        became = self.messages(journal)[keys[0]].became
        return journals.signal_named(journal, became)

    def drop(self, keys: Sequence[str]) -> None:
        """These messages teach nothing: they are not shown again. Raises as ``word`` does."""
        self.keep({}, {candidate.key: Reading("none", "") for candidate in self._waiting(keys)})

    def _waiting(self, keys: Sequence[str]) -> list[Candidate]:
        """Raises ``UserError`` before anything is counted."""
        waiting = {candidate.key: candidate for candidate in self.unread()}
        gone = [key for key in keys if key not in waiting]
        if gone or not keys:
            name = gone[0][:40] if gone else ""
            raise UserError(f"no message {name!r} waits to be read; `reflectd reflect --json` lists them")
        return [waiting[key] for key in dict.fromkeys(keys)]


def _counted(adding: Adding, candidate: Candidate, reading: Reading) -> Candidate:
    """A message as it was read."""
    if reading.type == "none":
        return Candidate(candidate.key, "", became=NOTHING)
    text = redact_head(" ".join((reading.content or candidate.text).split()), MAX_CONTENT)
    worded = Reading(reading.type, text, reading.severity, reading.against)
    (became,) = {adding.add(worded, at) for at in candidate.seen}
    return replace(candidate, became=became)


def make_place(folder: Path, *, ignored: bool = False) -> None:
    """Make a folder of the project. ``ignored``: git ignores one that is new. Raises ``Unavailable``."""
    try:
        if not folder.is_dir():  # one that is there may be tracked
            make_folder(folder)
            if ignored:
                write_atomic(folder / ".gitignore", "*\n", mode=None, durable=False)
    except OSError as error:
        raise Unavailable(f"can't make the folder {folder}: {words(error)}") from error


def _contents(journal: Journal) -> set[str]:
    return {entry["content"] for key in _LISTS for entry in journal[key]}


def _dumped(journal: Journal) -> bytes:
    kept = {key: value for key, value in journal.items() if key != "tombstones"}
    text = json.dumps(kept, indent=2, ensure_ascii=False)
    return f"{text}\n".encode("utf-8", "backslashreplace")

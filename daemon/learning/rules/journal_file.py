"""The learning journal of a project as a file, and what belongs to it in the state folder.

The file is ``.claude/orchestration/temp/reflect-journal.json``; in a project that only opencode works in,
``.reflection/reflect-journal.json``. The lock is held from reading to writing, so two commands lose nothing
to each other. New texts are redacted before they are written. A file that is no journal is renamed to
``….corrupt-<ms>`` at the next write, and ``told`` says so. Links are not followed, and nothing is done in a
folder that is one: a clone may ship it. A ``temp`` folder of ours gets a ``.gitignore``.

A person's words, the texts that wait to be read and the places where reading stopped are draft. They are
written after the journal, so a scan that is killed reads some files a second time and counts nothing twice.
Cursors and quotes belong to one journal: with a new one everything is read again.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import contextmanager, nullcontext
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from msgspec import Struct, field

from ...core.errors import Unavailable, UserError, words
from ...files.safe import alone, make_folder, read_bytes, set_aside, write_atomic
from ...files.verdict import make_reflection
from ...redact import redact, redact_head
from ..state import ReflectState, problem_of
from . import journal as journals
from .candidates import Candidate, Finding, Gathering, keep_quotes, merged, stored
from .journal import MAX_CONTENT, Adding, Journal, Reading, trim

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ...core.ports import Clock
    from .journal import Entry

Json = dict[str, Any]
NAME: Final = "reflect-journal.json"
FILE: Final = f".claude/orchestration/temp/{NAME}"
OPENCODE_FILE: Final = f".reflection/{NAME}"
LIMIT: Final = 64 * 1024 * 1024
CREATED: Final = "journal"  # among quotes and cursors: when their journal was created
MOST: Final = 100_000  # cursors of files, and texts that were decided; what is dropped is read again
_CLAUDE: Final = (".claude", "CLAUDE.md")
_OPENCODE: Final = (".opencode", "opencode.json", "opencode.jsonc")
_LISTS: Final = ("signals", "learned_rules", "tombstones")


class Loaded(NamedTuple):
    """A journal from its file. ``problem``: why the file can't be used, "" when it can or is missing.
    ``refused``: this folder can have none at all; else the next write begins a new one.
    """

    journal: Journal
    problem: str = ""
    refused: bool = False

    def to_tell(self) -> list[str]:
        """The lines for somebody who only looks. Raises ``UserError`` where there can be no journal."""
        if self.refused:
            raise UserError(self.problem)
        later = "the next change keeps it aside and begins a new one"
        return [f"{self.problem}; {later}"] if self.problem else []


class Draft(Struct):
    """A journal while it is changed. ``told``: lines that a person should know. The rest is of a scan:
    ``new`` and ``again`` (ids of signals), ``quotes`` by such ids, ``decided`` (the fate of texts, by their
    keys: the id of a signal, or "none"), ``kept`` (candidates that wait), ``cursors`` (path → where reading
    stopped). The last four are written into the state folder after the journal.
    """

    journal: Journal
    told: list[str] = field(default_factory=list)
    new: list[str] = field(default_factory=list)
    again: list[str] = field(default_factory=list)
    quotes: list[tuple[str, Json]] = field(default_factory=list)
    decided: dict[str, str] = field(default_factory=dict)
    kept: Mapping[str, Candidate] | None = None
    cursors: Json | None = None


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
            found = self._empty() if raw is None else journals.checked(json.loads(raw.decode("utf-8-sig")))
            return Loaded(self._with_tombstones(found))
        except (OSError, ValueError, RecursionError) as error:
            why = "it is nested too deeply" if isinstance(error, RecursionError) else words(error)
            problem = f"{self.path} is no journal that can be used: {why}"
            return Loaded(self._with_tombstones(self._empty()), problem)

    def usable(self) -> Journal:
        """The journal. Raises ``UserError`` for one that can't be used."""
        loaded = self.read()
        if loaded.problem:
            raise UserError(f"{loaded.problem}: the next scan begins a new one")
        return loaded.journal

    @contextmanager
    def change(self, *, dry_run: bool = False) -> Iterator[Draft]:
        """Give the journal out to be changed in place, and write it. When the block raises, nothing is
        written. Raises ``Unavailable``, and ``UserError`` for a folder that can have no journal.
        """
        if problem := problem_of(self.project, self.path):
            raise UserError(problem)
        with nullcontext() if dry_run else alone(self.state.folder):
            loaded = self.read()
            draft = Draft(loaded.journal)
            before, known = _dumped(draft.journal), _contents(draft.journal)
            try:
                yield draft
            except UserError as error:
                if not loaded.problem:
                    raise
                raise UserError(f"{error}. {loaded.problem}: the next scan begins a new one") from None
            for entry in (entry for key in _LISTS for entry in draft.journal[key]):
                if entry["content"] not in known:
                    entry["content"] = redact(entry["content"])
            text = _dumped(draft.journal)
            if not dry_run and (text != before or loaded.problem or not os.path.lexists(self.path)):
                self._write(draft, text, loaded.problem)
            elif loaded.problem:
                draft.told.append(loaded.problem)
            if not dry_run:
                self._keep(draft)

    def _write(self, draft: Draft, text: bytes, problem: str) -> None:
        now = self._clock.now_ms()
        if problem and os.path.lexists(self.path):
            aside = set_aside(self.path, str(now))
            draft.told.append(f"{problem}; it is kept as {aside.name}, and a new one was begun")
        self._make_folder()
        # a dismissal holds also when the journal, which lies in a folder called temp, is thrown away
        stones = {stone["content"]: stone for stone in draft.journal["tombstones"]}
        if stones != self.state.load("tombstones"):
            self.state.save("tombstones", stones, now)
        write_atomic(self.path, text, mode=None if os.path.lexists(self.path) else 0o600)

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
            elif not folder.is_dir():  # one that is there may be tracked
                make_folder(folder)
                write_atomic(folder / ".gitignore", "*\n", mode=None, durable=False)
        except OSError as error:
            raise Unavailable(f"can't make the folder {folder}: {words(error)}") from error

    # --- what a scan found -------------------------------------------------------------------------------

    def count(
        self,
        findings: Sequence[Finding],
        *,
        cursors: Json | None = None,
        kept: Mapping[str, Candidate] | None = None,
        nothing: Mapping[str, str] | None = None,
        dry_run: bool = False,
    ) -> Draft:
        """Count findings in the journal. ``cursors``: path → where reading stopped. ``kept``: candidates that
        wait; ``nothing``: keys of those that teach nothing. Raises ``Unavailable``.
        """
        again = set[str]()
        with self.change(dry_run=dry_run) as draft:
            draft.decided, draft.kept, draft.cursors = dict(nothing or {}), kept, cursors
            adding = Adding(draft.journal)
            for candidate, reading in findings:
                for sighting in candidate.seen:
                    name, changed = adding.add(_worded(candidate, reading), sighting)
                    draft.quotes.append((name, candidate.quote(sighting)))
                    draft.decided[candidate.key] = name
                    again |= {name} if changed else set()
            draft.new, draft.again = adding.new, sorted(again - set(adding.new))
            if gone := trim(draft.journal):
                draft.told.append(f"{gone} of the least signals were dropped: there are too many")
        return draft

    def _keep(self, draft: Draft) -> None:
        """Write what belongs to the journal into the state folder."""
        journal, state, now = draft.journal, self.state, self._clock.now_ms()
        created = {CREATED: journal.get("created", "")}
        ids = {signal["id"] for signal in journal["signals"]}
        if draft.quotes:
            known = {name: old for name, old in self._of_journal("quotes", journal).items() if name in ids}
            for name, quote in draft.quotes:
                if name in ids:
                    known[name] = keep_quotes(known.get(name), quote)
            state.save("quotes", created | known, now)
        decided = {**state.load("decided"), **draft.decided}
        if draft.decided:
            state.save("decided", _newest(decided), now)
        if draft.kept is not None or draft.decided:  # what a kill left in both is decided
            found = merged(draft.kept or {}, stored(state.load("candidates")))
            waiting = {key: c.object() for key, c in found.items() if decided.get(key) not in ids | {"none"}}
            state.save("candidates", waiting, now)
        if draft.cursors is not None:
            files = _newest({**self.cursors(journal), **draft.cursors})
            state.save("cursors", {**created, "files": files}, now)

    def gathering(self, journal: Journal) -> Gathering:
        """The texts that wait to be read, and the fate of the others, for a scan that goes on."""
        return Gathering(
            stored(self.state.load("candidates")), self.state.load("decided"), journal["signals"]
        )

    def unread(self) -> list[Candidate]:
        """The candidates that nobody read yet."""
        return list(stored(self.state.load("candidates")).values())

    def word(self, keys: Sequence[str], content: str) -> Entry:
        """Count candidates as a signal in somebody's words, and return it. Raises ``UserError`` for a
        candidate that is not there, and ``Unavailable``.
        """
        findings = []
        for candidate in self._waiting(keys):
            stopped = {"refused", "interrupted"} & set(candidate.why)
            findings.append(Finding(candidate, Reading("correction" if stopped else "instruction", content)))
        journal = self.count(findings).journal
        messages = {sighting.message for candidate, _ in findings for sighting in candidate.seen}
        for signal in journal["signals"]:
            counted = messages & {m for of in signal["sightings"].values() for m in of}
            if counted and journals.same(signal["content"], redact(content)):
                return dict(signal)
        raise UserError("these messages were counted as something else meanwhile: scan again")

    def drop(self, keys: Sequence[str]) -> None:
        """These candidates teach nothing: they are not shown again. Raises as ``word`` does."""
        self.count((), nothing={candidate.key: "none" for candidate in self._waiting(keys)})

    def _waiting(self, keys: Sequence[str]) -> list[Candidate]:
        """Raises ``UserError`` before anything is counted."""
        waiting = stored(self.state.load("candidates"))
        gone = [key for key in keys if key not in waiting]
        if gone:
            raise UserError(
                f"no message {gone[0][:40]!r} waits to be read; `reflectd reflect scan` lists them"
            )
        return [waiting[key] for key in dict.fromkeys(keys)]

    def cursors(self, journal: Journal) -> Json:
        """The cursors of files, by path; nothing when they are of another journal."""
        files = self._of_journal("cursors", journal).get("files")
        return dict(files) if isinstance(files, dict) else {}

    def _of_journal(self, name: Literal["cursors", "quotes"], journal: Journal) -> Json:
        """The entries of this journal; nothing of another one, which gave the same ids to others."""
        found = self.state.load(name)
        return found if found.get(CREATED) == journal.get("created", "") else {}


def _worded(candidate: Candidate, reading: Reading) -> Reading:
    text = redact_head(" ".join((reading.content or candidate.text).split()), MAX_CONTENT)
    return Reading(reading.type, text, reading.severity, reading.against)


def _newest(found: Json) -> Json:
    """The newest ``MOST`` entries."""
    return dict(list(found.items())[-MOST:])


def place(project: Path) -> Path:
    """The path of the project's journal, there or not."""
    there = [project / name for name in (FILE, OPENCODE_FILE) if os.path.lexists(project / name)]
    if there:
        return there[0]
    claude, opencode = (any(os.path.lexists(project / n) for n in names) for names in (_CLAUDE, _OPENCODE))
    return project / (OPENCODE_FILE if opencode and not claude else FILE)


def _contents(journal: Journal) -> set[str]:
    return {entry["content"] for key in _LISTS for entry in journal[key]}


def _dumped(journal: Journal) -> bytes:
    text = json.dumps(journal, indent=2, ensure_ascii=False)
    return f"{text}\n".encode("utf-8", "backslashreplace")

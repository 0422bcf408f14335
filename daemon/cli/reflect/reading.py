"""A scan of past sessions for what the person typed in them: Claude Code's files, exports of opencode, and
opencode's own sessions, page by page, through the daemon and an opencode that is open there.

opencode keeps its sessions in a database of its own, so only opencode reads them. Of each session come its
human messages, each with the agent's answer before it. The place where the last scan stopped is kept as a
cursor. The journal is written every few seconds, so an end at any time loses nothing and little memory is
needed. A file that can't be read is told of and skipped.
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import urlencode

from ...core.errors import BadReply, ReflectdError, Unavailable, UserError
from ...files.safe import read_bytes
from ...hosts.claude_code.past import SUFFIX, all_folders, files_in, folders_of, said_in
from ...hosts.codex import past as codex
from ...hosts.jsonl import Cursor
from ...hosts.opencode.past import parse_export
from ...learning.rules.candidates import for_a_model
from ...learning.rules.candidates import said_in as said_in_session
from ...learning.rules.questions import batches
from ..terminal import Progress
from .model import stands_in

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from ...core.transcript import Said, Transcript
    from ...learning.rules.learned_rules import LearnedRules
    from ...paths import Paths
    from .in_host import InHost
    from .model import OwnModel


Json = dict[str, Any]
COUNT_S: Final = 5.0  # seconds between two writes of the journal
FINDINGS: Final = 1_000  # that are held at most
SHOW_S: Final = 0.1
EXPORT_LIMIT: Final = 256 * 1024 * 1024
EXPORT: Final = ".json"
PAGE_S: Final = 90.0  # a page of long sessions takes opencode seconds
MOST_PAGES: Final = 100_000
OPEN_S: Final = 5.0
CURSOR: Final = "opencode"  # among the cursors of files, whose names are paths


class Source(NamedTuple):
    """A file, and what is known of it without opening it."""

    path: str
    stat: os.stat_result

    @property
    def name(self) -> str:
        """Its name without the folder."""
        return os.path.basename(self.path)  # noqa: PTH119 - a path from scandir


def of_project(project: Path, env: Mapping[str, str], *, everywhere: bool) -> list[Source]:
    """Claude Code's and Codex's sessions of the project, or of all projects."""
    folders = all_folders(env) if everywhere else folders_of(project, env)
    rollouts = codex.files(env) if everywhere else codex.files_of(project, env)
    return _sources([*(entry.path for entry in files_in(folders)), *map(str, rollouts)])


def named(paths: Sequence[str]) -> list[Source]:
    """These files, and those in these folders. Raises ``UserError`` for a path that is neither."""
    names: list[str] = []
    for name in paths:
        path = Path(name).expanduser()
        if path.is_dir():
            names += [entry.path for entry in files_in([path])]
            names += sorted(str(p) for p in path.iterdir() if p.suffix == EXPORT)
        elif path.is_file() and path.suffix in {SUFFIX, EXPORT}:
            names.append(str(path.absolute()))
        else:
            raise UserError(
                f"{name} is no transcript (.jsonl), no export of opencode (.json) and no folder of them"
            )
    return _sources(names)


def _sources(paths: Iterable[str]) -> list[Source]:
    return [Source(path, Path(path).stat()) for path in paths if Path(path).is_file()]


class Scan:
    """A scan as it goes. ``new`` and ``again``: ids of signals. ``read`` and ``unchanged``: numbers of
    sessions; ``failed``: those that could not be read; ``told``: lines that a person should know.
    """

    def __init__(self, rules: LearnedRules, since: int = 0, *, dry_run: bool = False) -> None:
        """It goes on where the last one stopped. ``since``: epoch ms."""
        self.rules, self.book = rules, rules.journal
        self.since, self.dry_run = since, dry_run
        self.journal = self.book.read().journal
        self.gathering = self.book.gathering(self.journal)
        self.new: list[str] = []
        self.again: set[str] = set()
        self.told: list[str] = []
        self.failed: list[str] = []
        self.read = self.unchanged = self.bytes = 0
        self._cursors = self.book.cursors(self.journal)
        self._fresh: Json = {}  # cursors that are not stored yet
        self._old = False  # something in the file that is read was said before ``since``
        self._counted = time.monotonic()

    def all(self, sources: Sequence[Source], paths: Paths | None, *, quiet: bool) -> bool:
        """Read these files, and with ``paths`` opencode's past sessions; ``quiet``: without a bar. Returns
        whether an opencode could be asked. After Ctrl-C what was read is counted and not read again.
        """
        try:
            self._files(sources, quiet=quiet)
            return paths is not None and self._past(paths, quiet=quiet)
        finally:
            self.count()

    def have_read(self, model: OwnModel | InHost, *, most: int = 0, quiet: bool) -> None:
        """Have the candidates read, and count what they teach. ``most``: how many at most, 0 for all. An
        unread one stays a candidate.
        """
        waiting = for_a_model(self.gathering.kept.values())
        parts = batches(waiting[:most] if most else waiting)
        progress = Progress(0 if quiet else len(parts))
        try:
            for done, part in enumerate(parts):
                progress.show(done, "asking")
                readings, why = model.read(part, stands_in(self.rules))
                for at, reading in readings.items():
                    self.gathering.settle(part[at], reading)
                self.count()
                if why:
                    self.told.append(f"not all was read: {why}")
                    return
        finally:
            progress.clear()

    def count(self) -> None:
        """Count in the journal what was found so far, and keep what nobody read yet."""
        findings, kept = list(self.gathering.found), dict(self.gathering.kept)
        nothing, dry_run = self.gathering.nothing, self.dry_run
        draft = self.book.count(findings, cursors=self._fresh, kept=kept, nothing=nothing, dry_run=dry_run)
        # only now: an interrupt before it must leave them for the next time, as it leaves the cursors
        del self.gathering.found[: len(findings)]
        self._fresh, self._counted = {}, time.monotonic()
        self.new += draft.new
        self.again |= set(draft.again)
        self.told += draft.told
        self.journal = draft.journal

    # --- files -------------------------------------------------------------------------------------------

    def _files(self, sources: Sequence[Source], *, quiet: bool) -> None:
        progress, shown = Progress(0 if quiet else len(sources)), time.monotonic()
        try:
            for done, source in enumerate(sources):
                if time.monotonic() - shown >= SHOW_S:
                    progress.show(done, source.name)
                    shown = time.monotonic()
                try:
                    self._file(source)
                except (BadReply, ValueError):
                    self.failed.append(f"{source.path}: it is no export of opencode")
                except (ReflectdError, OSError, RecursionError) as e:
                    self.failed.append(f"{source.path}: {str(e) or type(e).__name__}")
                self._count_sometimes()
        finally:
            progress.clear()

    def _count_sometimes(self) -> None:
        if time.monotonic() - self._counted >= COUNT_S or len(self.gathering.found) >= FINDINGS:
            self.count()

    def _file(self, source: Source) -> None:
        """Read one file from where reading stopped."""
        self._old = False
        known, read = self._cursors.get(source.path), self.bytes
        cursor = self._export(source, known) if source.path.endswith(EXPORT) else self._lines(source, known)
        if cursor is None:
            self.unchanged += 1
            self.bytes = read
            return
        self._goes_on(source.path, cursor, 1)

    def _goes_on(self, name: str, cursor: list[Any], sessions: int) -> None:
        """The next scan goes on at this cursor, unless something was passed over."""
        self.read += sessions
        if not self._old:
            self._cursors[name] = self._fresh[name] = cursor

    def _lines(self, source: Source, known: object) -> list[Any] | None:
        cursor = Cursor.of(known)
        if cursor is not None and cursor.is_unchanged(source.stat):
            return None
        self.bytes += source.stat.st_size - (cursor.at if cursor else 0)
        path = Path(source.path)
        read = codex.said_in if codex.is_named_so(path) else said_in
        found = read(path, cursor, lambda said: self._take(said, source.name))
        return list(found) if found is not None else None

    def _export(self, source: Source, known: object) -> list[Any] | None:
        mark = [source.stat.st_ino, source.stat.st_size, source.stat.st_mtime_ns]
        if known == mark:
            return None
        self.bytes += source.stat.st_size
        raw = read_bytes(source.path, EXPORT_LIMIT)
        for said in said_in_session(parse_export(json.loads(raw or b"null"))):
            self._take(said, source.name)
        return mark

    def _take(self, said: Said, file: str) -> None:
        if said.at < self.since:
            self._old = True
        else:
            self.gathering.take(said, file)

    # --- opencode's past sessions ------------------------------------------------------------------------

    def _past(self, where: Paths, *, quiet: bool) -> bool:
        """Read new sessions of an opencode that is open in the project; False when there is none. One that
        fails half-way is told of, and asked again for the rest by the next scan.
        """
        directory = open_in(where, self.book.project)
        if directory is None:
            return False
        mark = self._cursors.get(CURSOR)
        known = mark[0] if isinstance(mark, list) and mark and isinstance(mark[0], str) else ""
        begin = max(known, f"{self.since:015d}:" if self.since else "")
        progress = Progress(0 if quiet else 1)
        self._old = begin != known  # what was passed over now must not be passed over by the next scan
        try:
            for transcripts, after in pages(where, directory, begin):
                for transcript in transcripts:
                    for said in said_in_session(transcript):
                        self._take(said, transcript.session)
                self._goes_on(CURSOR, [after], len(transcripts))
                progress.show(0, f"opencode: {self.read} sessions")
                self._count_sometimes()
        except Unavailable as e:
            self.failed.append(f"opencode's past sessions: {e}")
        finally:
            progress.clear()
        return True


def open_in(where: Paths, project: Path) -> str | None:
    """The folder of an opencode that is open in the project, as that names it; None when there is none, or no
    daemon.
    """
    from ...client import request
    from ...paths import find_socket

    try:
        instances = request(find_socket(where), "GET", "/v1/status", timeout_s=OPEN_S)["instances"]
    except (ReflectdError, KeyError):
        return None
    here = os.path.realpath(project)
    folders = (i["directory"] for i in instances if i["host"] == "opencode")
    return next((f for f in folders if os.path.realpath(f) == here), None)


def pages(where: Paths, project: Path | str, after: str = "") -> Iterator[tuple[list[Transcript], str]]:
    """The pages behind ``after``, "" for all: sessions, those that were used longest ago first, and the mark
    where the next page begins. A session that can't be read is left out (I36).
    """
    from ...hosts.opencode.messages import parse_transcript
    from ...paths import find_socket

    for sessions, end in listed(find_socket(where), "/v1/features/rules/history", str(project), after):
        transcripts = []
        for session in sessions:
            try:
                made = (
                    parse_transcript(session, is_ours=lambda _: True) if isinstance(session, dict) else None
                )
            except BadReply:
                continue
            transcripts += [made] if made is not None and made.session else []
        yield transcripts, end


def listed(socket: Path, route: str, directory: str, after: str) -> Iterator[tuple[list[Any], str]]:
    """The sessions of each page of this route, as JSON, and its mark. Raises ``ReflectdError``."""
    from ...client import request

    for _ in range(MOST_PAGES):
        query = urlencode({"directory": directory, "after": after})
        page = request(socket, "GET", f"{route}?{query}", timeout_s=PAGE_S).get("page")
        if not isinstance(page, dict) or not isinstance(page.get("sessions"), list):
            raise Unavailable("opencode answered with no list of sessions")
        end = str(page.get("after", ""))
        yield page["sessions"], end
        if page.get("more") is not True or end <= after:
            return
        after = end

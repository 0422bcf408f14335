"""Past sessions of a project, read for what the person typed in them: Claude Code's files, exports of
opencode, and opencode's own sessions, page by page, through the daemon and an opencode that is open there.

opencode keeps its sessions in a database of its own, so only opencode reads them. Of each session come its
human messages, each with the agent's answer before it. Where the last scan stopped is kept as cursors. Raises
``Unavailable`` when no daemon runs or no opencode is open in the project.
"""

from __future__ import annotations

import json
import os
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import urlencode

from ...core.errors import BadReply, ReflectdError, Unavailable, UserError
from ...files.safe import read_bytes
from ...hosts.claude_code.past import SUFFIX, all_folders, files_in, folders_of, said_in
from ...hosts.jsonl import Cursor
from ...hosts.opencode.past import parse_export
from ...learning.rules import findings
from ...learning.rules.candidates import Gathering
from ...learning.rules.candidates import said_in as said_in_session
from ...learning.rules.journal_file import ProjectJournal
from ..progress import Progress

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from ...core.transcript import Said, Transcript
    from ...paths import Paths


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


# --- where it reads --------------------------------------------------------------------------------


class Source(NamedTuple):
    """A file, and what is known of it without opening it."""

    path: str
    found: os.stat_result

    @property
    def is_export(self) -> bool:
        """Whether it is one of opencode."""
        return self.path.endswith(EXPORT)


def of_project(project: Path, env: Mapping[str, str], *, everywhere: bool) -> list[Source]:
    """Claude Code's sessions of the project, or of all projects."""
    folders = all_folders(env) if everywhere else folders_of(project, env)
    return _sources(files_in(folders))


def named(paths: Sequence[str]) -> list[Source]:
    """These files, and those in these folders. Raises ``UserError`` for a path that is neither."""
    found: list[Source] = []
    for name in paths:
        path = Path(name).expanduser()
        if path.is_dir():
            exports = sorted(p for p in path.iterdir() if p.suffix == EXPORT)
            found += [
                *_sources(files_in([path])),
                *(Source(str(p), p.stat()) for p in exports if p.is_file()),
            ]
        elif path.is_file() and path.suffix in {SUFFIX, EXPORT}:
            found.append(Source(str(path.absolute()), path.stat()))
        else:
            raise UserError(
                f"{name} is no transcript (.jsonl), no export of opencode (.json) and no folder of them"
            )
    return found


def _sources(entries: Iterable[os.DirEntry[str]]) -> list[Source]:
    found: list[Source] = []
    for entry in entries:
        try:
            if entry.is_file():
                found.append(Source(entry.path, entry.stat()))
        except OSError:
            continue
    return found


# --- as it goes --------------------------------------------------------------------------------


@dataclass(slots=True)
class Scan:
    """A scan as it goes. ``new`` and ``again``: ids of signals."""

    book: ProjectJournal
    gathering: Gathering
    cursors: Json
    since: int
    dry_run: bool
    new: list[str] = field(default_factory=list)
    again: set[str] = field(default_factory=set)
    told: list[str] = field(default_factory=list)
    read: int = 0
    unchanged: int = 0
    failed: list[str] = field(default_factory=list)
    bytes: int = 0
    old: bool = False  # something in the file that is read was said before ``since``
    fresh: Json = field(default_factory=dict)  # cursors that are not stored yet
    journal: Json = field(default_factory=dict)

    def all(self, sources: Sequence[Source], paths: Paths | None, *, quiet: bool) -> bool:
        """Read these files, and with ``paths`` opencode's past sessions; ``quiet``: without a bar. Whether an
        opencode could be asked. After Ctrl-C what was read is counted and not read again.
        """
        try:
            read_all(self, sources, quiet=quiet)
            return paths is not None and read_past(self, paths, quiet=quiet)
        finally:
            self.count()

    def file(self, source: Source) -> None:
        """Read one file from where reading stopped."""
        self.old = False
        known = self.cursors.get(source.path)
        cursor = self._export(source, known) if source.is_export else self._transcript(source, known)
        if cursor is None:
            self.unchanged += 1
            return
        self.read += 1
        if not self.old:
            self.cursors[source.path] = self.fresh[source.path] = cursor

    def sessions(self, found: Sequence[Transcript], name: str, cursor: list[Any]) -> None:
        """Take in whole sessions. ``cursor``: where the next scan goes on, kept under ``name`` unless
        something was passed over.
        """
        for transcript in found:
            for said in said_in_session(transcript):
                self._take(said, transcript.session)
        self.read += len(found)
        if not self.old:
            self.cursors[name] = self.fresh[name] = cursor

    def count(self) -> None:
        """Count in the journal what was found so far, and keep what nobody read yet."""
        found, kept = list(self.gathering.found), dict(self.gathering.kept)
        done = findings.count(
            self.book,
            found,
            now_ms=int(time.time() * 1000),
            cursors=self.fresh,
            kept=kept,
            decided=self.gathering.nothing,
            dry_run=self.dry_run,
        )
        # only now: an interrupt before it must leave them for the next time, as it leaves the cursors
        del self.gathering.found[: len(found)]
        self.fresh = {}
        self.new += done.result.new
        self.again |= set(done.result.again)
        self.told += [*done.told, *done.result.told]
        self.journal = done.journal

    def _transcript(self, source: Source, known: object) -> list[Any] | None:
        cursor = Cursor.of(known)
        if cursor is not None and cursor.is_unchanged(source.found):
            return None
        self.bytes += source.found.st_size - (cursor.at if cursor else 0)
        name = os.path.basename(source.path)  # noqa: PTH119 - a path from scandir
        found = said_in(Path(source.path), cursor, lambda said: self._take(said, name))
        return list(found) if found is not None else None

    def _export(self, source: Source, known: object) -> list[Any] | None:
        mark = [source.found.st_ino, source.found.st_size, source.found.st_mtime_ns]
        if known == mark:
            return None
        self.bytes += source.found.st_size
        raw = read_bytes(source.path, EXPORT_LIMIT)
        for said in said_in_session(parse_export(json.loads(raw or b"null"))):
            self._take(said, os.path.basename(source.path))  # noqa: PTH119
        return mark

    def _take(self, said: Said, file: str) -> None:
        if said.at < self.since:
            self.old = True
            return
        self.gathering.take(said, file)


def read_all(scan: Scan, sources: Sequence[Source], *, quiet: bool) -> None:
    """Read these files, with a bar on a terminal unless ``quiet``."""
    progress = Progress(0 if quiet else len(sources))
    shown = counted = time.monotonic()
    try:
        for done, source in enumerate(sources):
            now = time.monotonic()
            if now - shown >= SHOW_S:
                progress.show(done, os.path.basename(source.path))  # noqa: PTH119
                shown = now
            try:
                scan.file(source)
            except (ReflectdError, OSError, ValueError, RecursionError) as e:
                scan.failed.append(f"{source.path}: {_why(e)}")
            if now - counted >= COUNT_S or len(scan.gathering.found) >= FINDINGS:
                scan.count()
                counted = time.monotonic()
    finally:
        progress.clear()


def _why(e: Exception) -> str:
    return (
        "it is no export of opencode" if isinstance(e, BadReply | ValueError) else str(e) or type(e).__name__
    )


# --- opencode's past sessions ----------------------------------------------------------------------


class Page(NamedTuple):
    """Sessions, those that were used longest ago first. ``after``: where the next page begins, also for a
    scan on another day.
    """

    sessions: tuple[Transcript, ...]
    after: str


def read_past(scan: Scan, where: Paths, *, quiet: bool) -> bool:
    """Read what is new in opencode's past sessions of the project, with a line that moves on a terminal
    unless ``quiet``. Whether an opencode could be asked; one that fails half-way is told of, and asked again
    for the rest by the next scan.
    """
    directory = open_in(where, scan.book.project)
    if directory is None:
        return False
    mark = scan.cursors.get(CURSOR)
    known = mark[0] if isinstance(mark, list) and mark and isinstance(mark[0], str) else ""
    begin = max(known, f"{scan.since:015d}:" if scan.since else "")
    progress, counted = Progress(0 if quiet else 1), time.monotonic()
    scan.old = begin != known  # what was passed over now must not be passed over by the next scan
    try:
        for page in pages(where, directory, begin):
            scan.sessions(page.sessions, CURSOR, [page.after])
            progress.show(0, f"opencode: {scan.read} sessions")
            if time.monotonic() - counted >= COUNT_S:
                scan.count()
                counted = time.monotonic()
    except Unavailable as e:
        scan.failed.append(f"opencode's past sessions: {e}")
    finally:
        progress.clear()
    return True


def open_in(where: Paths, project: Path) -> str | None:
    """What an opencode that is open in the project calls its folder; None when there is none, or no
    daemon.
    """
    from ...client import request
    from ...paths import find_socket

    try:
        found = request(find_socket(where), "GET", "/v1/status", timeout_s=OPEN_S)["instances"]
    except (ReflectdError, KeyError):
        return None
    here = os.path.realpath(project)
    folders = (i["directory"] for i in found if i["host"] == "opencode")
    return next((f for f in folders if os.path.realpath(f) == here), None)


def pages(where: Paths, project: Path | str, after: str = "") -> Iterator[Page]:
    """The pages behind ``after``, "" for all."""
    from ...paths import find_socket

    for sessions, end in listed(find_socket(where), "/v1/features/rules/history", str(project), after):
        yield Page(tuple(t for s in sessions if (t := _session(s)) is not None), end)


def listed(socket: Path, route: str, directory: str, after: str) -> Iterator[tuple[list[Any], str]]:
    """What each page of this route has, as JSON, and its mark. Raises ``ReflectdError``."""
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


def _session(found: Any) -> Transcript | None:  # noqa: ANN401 - JSON
    """One session as a transcript; None for one that can't be read (I36)."""
    from ...hosts.opencode.messages import parse_transcript

    if not isinstance(found, dict):
        return None
    try:
        made = parse_transcript(found, is_ours=lambda _: True)
    except BadReply:
        return None
    return made if made.session else None

"""One scan as it goes: which files are read, what was found in them, and when it is counted.

Read is only what is new since the last time. What was found is counted every few seconds, so an end at any
time loses nothing and little memory is needed. A file that can't be read is told of and skipped. Raises
``Unavailable`` when the journal can't be written.
"""

from __future__ import annotations

import json
import os
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ...core.errors import BadReply, ReflectdError
from ...files.bounded import read_bytes
from ...files.findings import count as count_in
from ...files.journal import ProjectJournal
from ...hosts.claude_code.history import Cursor, is_unchanged, said_in
from ...hosts.opencode.export import parse_export
from ...learning.rules.candidates import Gathering
from ...learning.rules.candidates import said_in as said_in_session
from ..progress import Progress

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...core.transcript import Said, Transcript
    from .sources import Source

Json = dict[str, Any]
COUNT_S: Final = 5.0  # seconds between two writes of the journal
FINDINGS: Final = 1_000  # that are held at most
SHOW_S: Final = 0.1
EXPORT_LIMIT: Final = 256 * 1024 * 1024


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
        findings, kept = list(self.gathering.found), dict(self.gathering.kept)
        done = count_in(
            self.book,
            findings,
            now_ms=int(time.time() * 1000),
            cursors=self.fresh,
            kept=kept,
            decided=self.gathering.nothing,
            dry_run=self.dry_run,
        )
        # only now: an interrupt before it must leave them for the next time, as it leaves the cursors
        del self.gathering.found[: len(findings)]
        self.fresh = {}
        self.new += done.result.new
        self.again |= set(done.result.again)
        self.told += [*done.told, *done.result.told]
        self.journal = done.journal

    def _transcript(self, source: Source, known: object) -> list[Any] | None:
        cursor = Cursor.of(known)
        if cursor is not None and is_unchanged(cursor, source.found):
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

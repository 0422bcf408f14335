"""Reads a Claude Code transcript file.

The first time it reads from the end backwards until it has the current task; after that only what was
appended. So it need not read all of a file of 500 MB. It decodes no bulky line and never waits for a FIFO. A
last line without its end is left for the next time. A file that was replaced, cut or rewritten is read anew.
A file that is not there yet gives an empty transcript; a file that can't be read raises ``Unavailable``. It
blocks: call it in a thread.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from dataclasses import field as default
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import Struct, field

from ...core.transcript import Transcript
from .branch import Bounds, Branch
from .lines import HEAD, entry_of, is_bulky
from .reading import HEAD_OF_FILE, MAX_LINE, each_line, line_start, opened

if TYPE_CHECKING:
    from collections.abc import Callable

    from ...core.transcript import Message

_MARK: Final = 64  # bytes before the cursor; when they differ, the file was rewritten
_COMPARED: Final = 200  # characters at the end of the final text


@dataclass(frozen=True, slots=True)
class Reach:
    """How far back a file is read. ``window``: bytes at the file's end that are read first; then four times
    as many, and so on. ``context``: bytes within which earlier requests are looked for once the task is
    found.
    """

    window: int = 1 << 20
    context: int = 16 << 20
    bounds: Bounds = default(default_factory=Bounds)


@dataclass(slots=True)
class _Cursor:
    """Where the next line begins, and in which file (device and inode)."""

    file: tuple[int, int]
    at: int
    mark: bytes


class TranscriptReader:
    """Reads one session's file. ``is_ours`` says whether an order id is one of ours.

    ``found``: whether the last ``read`` found the final text that it was told to expect. ``directory``: where
    the session works; when empty, the file's first lines say it.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        is_ours: Callable[[str], bool],
        directory: str = "",
        reach: Reach | None = None,
    ) -> None:
        self.path = Path(path)
        self.found = False
        self._is_ours = is_ours
        self._given = directory
        self._directory = directory
        self._reach = reach or Reach()
        self._cursor: _Cursor | None = None
        self._branch: Branch | None = None

    def read(self, expect: str = "", *, closed: bool = False) -> Transcript:
        """The task and its work so far. ``expect``: the final text by the Stop hook, which may come before
        the file has it: see ``found``. ``closed``: nobody writes to the file any more, so a last line without
        its end counts; do not read again after that.
        """
        transcript = Transcript(self.path.stem, directory=self._directory)
        with opened(self.path) as fd:
            if fd >= 0:
                transcript = self._read(fd, closed=closed)
        self.found = _says(transcript, expect)
        return transcript

    def _read(self, fd: int, *, closed: bool) -> Transcript:
        found = os.fstat(fd)
        file, size = (found.st_dev, found.st_ino), found.st_size
        cursor, branch = self._cursor, self._branch
        if cursor is None or branch is None or not _is_same(fd, cursor, file, size):
            self._directory = self._given
            branch, end = self._locate(fd, size)
        else:
            end = _feed(fd, branch, cursor.at, size)
            if not branch.opened:  # a line names a parent that was dropped: read further back
                branch, end = self._locate(fd, size)
        if closed and size - end <= MAX_LINE:
            _take(branch, os.pread(fd, size - end, end))
        self._branch = branch
        self._directory = self._directory or folder_in(os.pread(fd, HEAD_OF_FILE, 0))
        self._cursor = _Cursor(file, end, os.pread(fd, min(_MARK, end), max(0, end - _MARK)))
        return _named(branch.transcript(self._directory), self.path.stem)

    def _locate(self, fd: int, size: int) -> tuple[Branch, int]:
        """The current task: read more and more of the file's end, until it includes the task's beginning."""
        window = self._reach.window
        while True:
            start = max(0, size - window)
            branch = Branch(self._is_ours, self._reach.bounds, whole=start == 0)
            end = _feed(fd, branch, line_start(fd, start, size), size)
            far = branch.opened and window >= self._reach.context
            if start == 0 or branch.is_enough() or far:
                return branch, end
            window *= 4


def transcript_of(data: bytes, name: str, *, directory: str = "") -> Transcript:
    """The transcript in ``data``, a whole file. Its last line needs no line end."""
    branch = Branch(lambda _: True, Bounds(), whole=True)
    for line in data.split(b"\n"):
        _take(branch, line)
    return _named(branch.transcript(directory or folder_in(data[:HEAD_OF_FILE])), name)


def every_task(path: Path) -> Transcript:
    """All tasks of a session that is over, within the bounds of one; empty when there is no file. Raises
    ``Unavailable``.
    """
    with opened(path) as fd:
        if fd < 0:
            return Transcript(path.stem)
        branch, size = Branch(lambda _: True, Bounds(), whole=True, every=True), os.fstat(fd).st_size
        end = _feed(fd, branch, 0, size)
        if size - end <= MAX_LINE:
            _take(branch, os.pread(fd, size - end, end))
        return _named(branch.transcript(folder_in(os.pread(fd, HEAD_OF_FILE, 0))), path.stem)


def end_of(path: Path, limit: int) -> bytes:
    """The last whole lines of a file, at most ``limit`` bytes; empty when there is none. Raises
    ``Unavailable``.
    """
    with opened(path) as fd:
        if fd < 0:
            return b""
        size = os.fstat(fd).st_size
        start = line_start(fd, max(0, size - limit), size)
        return os.pread(fd, size - start, start)


class _Mark(Struct):
    """What every line of a transcript has."""

    type: str
    session: str = field(name="sessionId")


def is_transcript(data: bytes) -> bool:
    """Whether ``data``, the beginning of a file or more, is a transcript of Claude Code."""
    for line in data[:HEAD_OF_FILE].split(b"\n", 20)[:20]:
        try:
            msgspec.json.decode(line, type=_Mark)
        except (ValueError, RecursionError):
            continue
        return True
    return False


def _named(found: Transcript, name: str) -> Transcript:
    if found.session:
        return found
    return Transcript(name, found.messages, found.todos, directory=found.directory)


def _says(transcript: Transcript, expect: str) -> bool:
    """Whether the transcript ends with an answer, and that answer ends as expected."""
    turn: Message | None = transcript.turn
    if turn is None or any(m.human or m.order for m in transcript.since(turn.id)):
        return False
    said, wanted = (turn.text or turn.error_message).rstrip(), expect.rstrip()[-_COMPARED:]
    return said.endswith(wanted)


def _is_same(fd: int, cursor: _Cursor, file: tuple[int, int], size: int) -> bool:
    if cursor.file != file or size < cursor.at:
        return False
    return os.pread(fd, len(cursor.mark), cursor.at - len(cursor.mark)) == cursor.mark


def folder_in(data: bytes) -> str:
    """The folder in the first line that has one."""
    for line in data.split(b"\n", 200)[:200]:
        if b'"cwd"' in line and (entry := entry_of(line)) is not None and entry.cwd:
            return entry.cwd
    return ""


def _take(branch: Branch, line: bytes) -> None:
    if line.startswith(b"{") and not is_bulky(line[:HEAD]) and (entry := entry_of(line)) is not None:
        branch.feed(entry)


def _feed(fd: int, branch: Branch, at: int, size: int) -> int:
    """Feed all complete lines from ``at`` on. Returns where the next line begins."""

    def take(line: bytes, _: int) -> None:
        if (entry := entry_of(line)) is not None:
            branch.feed(entry)

    return each_line(fd, at, size, take)[0]

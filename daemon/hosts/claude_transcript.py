"""Reads a Claude Code transcript file: what was appended since the last time, and at first from the end back.

Blocking; call it in a thread. Never reads 500 MB for an answer in the last one, never decodes a bulky line,
never waits for a FIFO. A torn last line stays for the next time. A file that was replaced, cut or rewritten
is read anew. A file that is not there yet is an empty transcript; what can't be read is ``Unavailable``.
"""

from __future__ import annotations

import os
import stat
from contextlib import contextmanager
from dataclasses import dataclass
from dataclasses import field as default
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import Struct, field

from daemon.core.errors import Unavailable
from daemon.core.transcript import Transcript
from daemon.hosts.claude_lines import HEAD, entry_of, is_bulky
from daemon.hosts.claude_path import Bounds, Path

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from daemon.core.transcript import Message

BLOCK: Final = 4 << 20
HEAD_OF_FILE: Final = 1 << 20
MAX_LINE: Final = 64 << 20
_MARK: Final = 64  # bytes before the cursor by which a rewritten file is known
_COMPARED: Final = 200  # characters of the final text


@dataclass(frozen=True, slots=True)
class Reach:
    """``window``: how much of a file's end is looked at first, in bytes; then four times as much, and so on.
    ``context``: how far back earlier requests are looked for once the task is found.
    """

    window: int = 1 << 20
    context: int = 16 << 20
    bounds: Bounds = default(default_factory=Bounds)


@dataclass(slots=True)
class _Cursor:
    """Where in which file the next line begins."""

    file: tuple[int, int]
    at: int
    mark: bytes


class TranscriptReader:
    """One session's file. ``is_ours`` says whether an order id is one of ours.

    ``found``: whether the final text that the last ``read`` was to expect is there. ``directory``: where the
    session works; if empty, what the file's first lines say.
    """

    def __init__(
        self,
        path: str | FilePath,
        *,
        is_ours: Callable[[str], bool],
        directory: str = "",
        reach: Reach | None = None,
    ) -> None:
        self.path = FilePath(path)
        self.found = False
        self._is_ours = is_ours
        self._given = directory
        self._directory = directory
        self._reach = reach or Reach()
        self._cursor: _Cursor | None = None
        self._live: Path | None = None

    def read(self, expect: str = "", *, closed: bool = False) -> Transcript:
        """The task and its work so far. ``expect``: the final text as the Stop hook has it, which may be
        earlier than the file: see ``found``. ``closed``: nobody writes any more, so that a last line without
        an end counts; read no further after that.
        """
        transcript = Transcript(self.path.stem, directory=self._directory)
        with _opened(self.path) as fd:
            if fd >= 0:
                transcript = self._read(fd, closed=closed)
        self.found = _says(transcript, expect)
        return transcript

    def _read(self, fd: int, *, closed: bool) -> Transcript:
        found = os.fstat(fd)
        file, size = (found.st_dev, found.st_ino), found.st_size
        cursor, live = self._cursor, self._live
        if cursor is None or live is None or not _is_same(fd, cursor, file, size):
            self._directory = self._given
            live, end = self._locate(fd, size)
        else:
            end = _feed(fd, live, cursor.at, size)
            if not live.opened:  # a line follows one that was let go: look further back
                live, end = self._locate(fd, size)
        if closed and size - end <= MAX_LINE:
            _take(live, os.pread(fd, size - end, end))
        self._live = live
        self._directory = self._directory or _folder_in(os.pread(fd, HEAD_OF_FILE, 0))
        self._cursor = _Cursor(file, end, os.pread(fd, min(_MARK, end), max(0, end - _MARK)))
        return _named(live.transcript(self._directory), self.path.stem)

    def _locate(self, fd: int, size: int) -> tuple[Path, int]:
        """The task from the file's end: more and more of it until the task's beginning is there."""
        window = self._reach.window
        while True:
            start = max(0, size - window)
            live = Path(self._is_ours, self._reach.bounds, whole=start == 0)
            end = _feed(fd, live, _line_start(fd, start, size), size)
            far = live.opened and window >= self._reach.context
            if start == 0 or live.is_enough() or far:
                return live, end
            window *= 4


def transcript_of(data: bytes, name: str, *, directory: str = "") -> Transcript:
    """All of a transcript that is in memory; a last line without its end counts if it is whole."""
    live = Path(lambda _: True, Bounds(), whole=True)
    for line in data.split(b"\n"):
        _take(live, line)
    return _named(live.transcript(directory or _folder_in(data[:HEAD_OF_FILE])), name)


class _Mark(Struct):
    """What every line of Claude Code has."""

    type: str
    session: str = field(name="sessionId")


def is_transcript(data: bytes) -> bool:
    """Whether the first whole line is one of Claude Code's; the head of a file will do."""
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
    """Whether the last answer is there, unanswered, and ends as expected."""
    turn: Message | None = transcript.turn
    if turn is None or any(m.human or m.order for m in transcript.since(turn.id)):
        return False
    said, wanted = (turn.text or turn.error_message).rstrip(), expect.rstrip()[-_COMPARED:]
    return said.endswith(wanted)


@contextmanager
def _opened(path: FilePath) -> Iterator[int]:
    """A descriptor of the file, -1 when there is none."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        yield -1
        return
    except (OSError, ValueError) as e:
        raise Unavailable(f"can't read the transcript {path}: {e}") from None
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise Unavailable(f"the transcript {path} is not a regular file")
        yield fd
    except OSError as e:
        raise Unavailable(f"can't read the transcript {path}: {e.strerror}") from None
    finally:
        os.close(fd)


def _is_same(fd: int, cursor: _Cursor, file: tuple[int, int], size: int) -> bool:
    if cursor.file != file or size < cursor.at:
        return False
    return os.pread(fd, len(cursor.mark), cursor.at - len(cursor.mark)) == cursor.mark


def _folder_in(data: bytes) -> str:
    """The folder that the first line which names one names."""
    for line in data.split(b"\n", 200)[:200]:
        if b'"cwd"' in line and (entry := entry_of(line)) is not None and entry.cwd:
            return entry.cwd
    return ""


def _line_start(fd: int, start: int, size: int) -> int:
    """The first byte of the first line that begins at or after ``start``; ``size`` when none does."""
    if start == 0:
        return 0
    at = start - 1
    while at < size and (block := os.pread(fd, HEAD_OF_FILE, at)):
        end = block.find(b"\n")
        if end >= 0:
            return at + end + 1
        at += len(block)
    return size


def _take(live: Path, line: bytes) -> None:
    if line.startswith(b"{") and not is_bulky(line[:HEAD]) and (entry := entry_of(line)) is not None:
        live.feed(entry)


def _feed(fd: int, live: Path, at: int, size: int) -> int:
    """Feed all whole lines from ``at`` on; returns where the next line begins."""
    buffer = bytearray(max(0, min(BLOCK, size - at)))
    view = memoryview(buffer)
    parts: list[bytes] = []  # of a line that began in an earlier block
    held, bulky, begins = 0, False, at
    while at < size:
        got = os.preadv(fd, [view[: size - at]], at)
        if got <= 0:
            break
        pos = 0
        while pos < got:
            end = buffer.find(b"\n", pos, got)
            stop = got if end < 0 else end
            if not held:
                bulky = is_bulky(buffer[pos : min(stop, pos + HEAD)])
            if bulky or held > MAX_LINE:
                parts.clear()
            else:
                parts.append(bytes(view[pos:stop]))
            held += stop - pos
            if end < 0:
                break
            if len(parts) == 1:
                if parts[0].startswith(b"{") and (entry := entry_of(parts[0])) is not None:
                    live.feed(entry)
            elif parts:
                _take(live, b"".join(parts))
            parts, held, pos = [], 0, end + 1
            begins = at + pos
        at += got
    return begins

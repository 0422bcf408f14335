"""Reads files of JSON lines that a host appends to, without decoding them.

It never waits for a FIFO, holds one block at a time, and hands over no line that ``skip`` names by its first
bytes. Raises ``Unavailable`` for a file that can't be read. It blocks: call it in a thread.
"""

from __future__ import annotations

import os
import stat
from contextlib import contextmanager
from hashlib import blake2b
from typing import TYPE_CHECKING, Final, Generic, NamedTuple, Protocol, TypeVar

from ..core.errors import Unavailable, words

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    Skip = Callable[[bytes | bytearray], bool]

BLOCK: Final = 4 << 20
HEAD_OF_FILE: Final = 1 << 20
HEAD: Final = 256  # bytes of a line that ``skip`` is shown
MAX_LINE: Final = 64 << 20
_MARKED: Final = 64  # bytes before a cursor; when they differ, the file was rewritten


@contextmanager
def opened(path: Path) -> Iterator[int]:
    """An open descriptor of the file, -1 when there is no file."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        yield -1
        return
    except (OSError, ValueError) as e:
        raise Unavailable(f"can't read the transcript {path}: {words(e)}") from None
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise Unavailable(f"the transcript {path} is not a regular file")
        yield fd
    except OSError as e:
        raise Unavailable(f"can't read the transcript {path}: {e.strerror}") from None
    finally:
        os.close(fd)


class Cursor(NamedTuple):
    """The place where reading stopped. ``file``: the inode. ``size`` and ``mtime_ns``: of the file then.
    ``at``: where the next line begins. ``lines``: the number before it. ``mark``: a digest of the bytes
    before it.
    """

    file: int
    size: int
    mtime_ns: int
    at: int
    lines: int
    mark: str

    @classmethod
    def here(cls, fd: int, then: os.stat_result, at: int, lines: int = 0) -> Cursor:
        """The cursor at byte ``at``. ``then``: the open file before reading; lines may be added while it is
        read.
        """
        return cls(then.st_ino, then.st_size, then.st_mtime_ns, at, lines, _mark(fd, at))

    @classmethod
    def of(cls, kept: object) -> Cursor | None:
        """A cursor that was stored as a list; None for anything else."""
        kinds = [int, int, int, int, int, str]
        return cls(*kept) if isinstance(kept, list) and [type(value) for value in kept] == kinds else None

    def only_grew(self, fd: int) -> bool:
        """Says whether the open file is the same one, with nothing but lines added."""
        now = os.fstat(fd)
        return self.file == now.st_ino and now.st_size >= self.at and _mark(fd, self.at) == self.mark

    def is_unchanged(self, now: os.stat_result) -> bool:
        """Says whether the file is as it was when reading stopped."""
        return (self.file, self.size, self.mtime_ns) == (now.st_ino, now.st_size, now.st_mtime_ns)


def _mark(fd: int, at: int) -> str:
    return blake2b(os.pread(fd, min(_MARKED, at), max(0, at - _MARKED)), digest_size=8).hexdigest()


def line_start(fd: int, start: int, size: int) -> int:
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


def end_of(path: Path, limit: int) -> bytes:
    """The last whole lines of a file, at most ``limit`` bytes; empty when there is none."""
    with opened(path) as fd:
        if fd < 0:
            return b""
        size = os.fstat(fd).st_size
        start = line_start(fd, max(0, size - limit), size)
        return os.pread(fd, size - start, start)


def last_line(fd: int, at: int, size: int) -> bytes:
    """A last line without its end, which begins at ``at``; empty when it is no JSON, or too long."""
    line = os.pread(fd, size - at, at) if at < size <= at + MAX_LINE else b""
    return line if line.startswith(b"{") else b""


def lines_of(fd: int, at: int, size: int, skip: Skip) -> Iterator[tuple[bytes, int]]:
    """Each complete line from ``at`` on, and where the next one begins. A line that is skipped, too long or
    no JSON is empty.
    """
    buffer = bytearray(max(0, min(BLOCK, size - at)))
    view = memoryview(buffer)
    parts: list[bytes] = []  # of a line that began in an earlier block
    held, skipped = 0, False
    while at < size:
        got = os.preadv(fd, [view[: size - at]], at)
        if got <= 0:
            break
        pos = 0
        while pos < got:
            end = buffer.find(b"\n", pos, got)
            stop = got if end < 0 else end
            if not held:
                skipped = skip(buffer[pos : min(stop, pos + HEAD)])
            if skipped or held > MAX_LINE:
                parts.clear()
            else:
                parts.append(bytes(view[pos:stop]))
            held += stop - pos
            if end < 0:
                break
            line = parts[0] if len(parts) == 1 else b"".join(parts)
            wanted = line.startswith(b"{") and not (len(parts) > 1 and skip(line[:HEAD]))
            parts, held, pos = [], 0, end + 1
            yield line if wanted else b"", at + pos
        at += got


class Fold(Protocol):
    """Collects a host's lines. ``opened``: they include the beginning of the current task. ``enough``: and as
    much of the time before it as is wanted.
    """

    @property
    def opened(self) -> bool: ...

    @property
    def enough(self) -> bool: ...

    def take(self, line: bytes) -> None:
        """The next line of the file, without its end."""


F = TypeVar("F", bound=Fold)


class Follower(Generic[F]):
    """Reads a file that a host appends to: the first time from the end backwards until it has the current
    task, after that only appended lines. So it need not read all of a file of 500 MB. A last line without its
    end is left for the next time. A file that was replaced, cut or rewritten is read anew.

    ``make``: a fold for the whole file, or for its end. ``window``: bytes at the end that are read first;
    then four times as many, and so on. ``context``: bytes in which the time before the task is looked for.
    """

    def __init__(self, make: Callable[[bool], F], skip: Skip, window: int, context: int) -> None:
        self._make, self._skip, self._window, self._context = make, skip, window, context
        self._fold: F | None = None
        self._cursor: Cursor | None = None

    def read(self, fd: int, *, closed: bool = False) -> F:
        """The fold after all lines of the open file. ``closed``: nobody writes to it any more, so a last line
        without its end counts; do not read again after that.
        """
        then, fold, end = os.fstat(fd), self._fold, 0
        size = then.st_size
        if fold is not None and self._cursor is not None and self._cursor.only_grew(fd):
            end = self._feed(fd, fold, self._cursor.at, size)
        else:
            fold = None
        window = self._window
        while fold is None or not fold.opened:  # perhaps a line names one that was not read
            start = max(0, size - window)
            fold = self._make(start == 0)
            end = self._feed(fd, fold, line_start(fd, start, size), size)
            if start == 0 or fold.enough or (fold.opened and window >= self._context):
                break
            window, fold = window * 4, None
        if closed:
            fold.take(last_line(fd, end, size))
        self._fold, self._cursor = fold, Cursor.here(fd, then, end)
        return fold

    def _feed(self, fd: int, fold: F, at: int, size: int) -> int:
        """Feed all complete lines from ``at`` on. Returns where the next line begins."""
        for line, end in lines_of(fd, at, size, self._skip):
            at = end
            if line:
                fold.take(line)
        return at

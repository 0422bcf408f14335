"""Opens a transcript file and cuts it into lines, without decoding them.

It never waits for a FIFO, holds one block at a time, and copies no line of a type that is never looked at.
Raises ``Unavailable`` for a file that can't be read. It blocks: call it in a thread.
"""

from __future__ import annotations

import os
import stat
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from ..core.errors import Unavailable, words
from .claude_code.lines import HEAD, is_bulky

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

BLOCK: Final = 4 << 20
HEAD_OF_FILE: Final = 1 << 20
MAX_LINE: Final = 64 << 20


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


def each_line(fd: int, at: int, size: int, take: Callable[[bytes, int], object]) -> tuple[int, int]:
    """Hand over each complete line from ``at`` on that may be JSON and is not bulky (``lines.is_bulky``),
    with the number of lines before it.

    Returns where the next line begins, and how many lines there were.
    """
    buffer = bytearray(max(0, min(BLOCK, size - at)))
    view = memoryview(buffer)
    parts: list[bytes] = []  # of a line that began in an earlier block
    held, bulky, begins, count = 0, False, at, 0
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
            if parts:
                line = parts[0] if len(parts) == 1 else b"".join(parts)
                if line.startswith(b"{") and not (len(parts) > 1 and is_bulky(line[:HEAD])):
                    take(line, count)
            parts, held, pos = [], 0, end + 1
            begins, count = at + pos, count + 1
        at += got
    return begins, count

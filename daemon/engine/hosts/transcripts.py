"""The transcript files of a host's sessions, and the files that their agents wrote: one reader for each
session, and one read of it at a time.

Decides nothing. A file that can't be read raises ``Unavailable``. Bounded: the session that was not read for
longest goes first (I44).
"""

from __future__ import annotations

import asyncio
import os
import stat
from collections import OrderedDict
from hashlib import sha256
from itertools import islice
from typing import TYPE_CHECKING, Final, Protocol

from msgspec import Struct, field

from ...core.errors import Unavailable, words
from ...core.guards import ABORT_ERROR

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from ...core.transcript import Transcript

POLL_S: Final = 0.05
POLLS: Final = 100  # the file may be seconds behind the hook on a busy machine
READERS: Final = 200
WRITTEN: Final = 200  # files of a task, the newest; of each its size and its first bytes are compared
COMPARED_BYTES: Final = 1 << 20
KEPT: Final = 2_000  # versions of files that Claude Code keeps for a rewind


class Reader(Protocol):
    """Reads one session's file. ``found``: the last ``read`` found the final text that it was told to
    expect.
    """

    path: Path
    found: bool

    def read(self, expect: str = "") -> Transcript:
        """The task and its work so far. It blocks. Raises ``Unavailable``."""
        ...


class _File(Struct, eq=False):
    reader: Reader
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    written: dict[str, str] | None = None  # path → digest, when the turn was read to be judged


class Transcripts:
    """Reads sessions by their ids."""

    def __init__(
        self, reader_of: Callable[[Path], Reader], with_agents: Callable[[Transcript, Path], Transcript]
    ) -> None:
        """``with_agents``: adds the calls of sub-agents, which stand in files of their own."""
        self._reader_of = reader_of
        self._with_agents = with_agents
        self._known: OrderedDict[str, _File] = OrderedDict()

    def locate(self, session: str, path: Path) -> None:
        """The session's file is here."""
        known = self._known.get(session)
        if known is None or known.reader.path != path:
            self._known[session] = _File(self._reader_of(path))
        self._known.move_to_end(session)
        while len(self._known) > READERS:
            self._known.popitem(last=False)

    def forget(self, session: str) -> None:
        """The session is over."""
        self._known.pop(session, None)

    async def read(
        self, session: str, expect: str = "", *, escaped: bool = False, agents: bool = False
    ) -> Transcript:
        """The transcript as the file has it. ``expect``: the last answer by a hook; ``escaped``: the person
        pressed Esc. It waits up to 5 s for either. ``agents``: with the calls of its sub-agents. Raises
        ``Unavailable``.
        """
        known = self._known.get(session)
        if known is None:
            raise Unavailable("its transcript is not known yet")
        async with known.lock:
            for left in reversed(range(POLLS)):
                try:
                    found = await asyncio.to_thread(known.reader.read, expect)
                except OSError as e:
                    raise Unavailable(f"the transcript cannot be read: {words(e)}") from e
                if not left or (_is_escaped(found) if escaped else known.reader.found or not expect):
                    break
                await asyncio.sleep(POLL_S)
            if agents and found.agents:
                found = await asyncio.to_thread(self._with_agents, found, known.reader.path)
        return found

    async def note_written(self, session: str, found: Transcript) -> None:
        """Keep what the files are that the task's edit tools wrote, until ``renew``; once."""
        from ...evidence.edits import written_by_tool  # patterns, which no start needs

        known = self._known.get(session)
        if known is None or known.written is not None:
            return
        calls = (each for call in found.calls for each in (call, *call.inner))
        paths = (write.path for call in calls for write in written_by_tool(call.tool, call.input))
        newest = [path for path in dict.fromkeys(paths) if path.startswith("/")][-WRITTEN:]
        known.written = {}
        known.written = await asyncio.to_thread(lambda: {path: _digest(path) for path in newest})

    def renew(self, session: str) -> None:
        """Another turn ended."""
        if (known := self._known.get(session)) is not None:
            known.written = None

    async def taken_back(self, session: str) -> bool:
        """Says whether a file that was noted is gone, or is what Claude Code kept of it before the agent
        wrote. A rewind of the code puts files back and tells nobody. A file that somebody goes on with is
        neither.
        """
        known = self._known.get(session)
        if known is None or not known.written:
            return False
        written, kept = known.written, known.reader.path.parents[2] / "file-history" / session

        def look() -> bool:
            now = {path: _digest(path) for path, was in written.items() if was}
            changed = {digest for path, digest in now.items() if digest != written[path]}
            return bool(changed) and ("" in changed or not changed.isdisjoint(_kept(kept)))

        return await asyncio.to_thread(look)


def _kept(folder: Path) -> set[str]:
    """The digests of the files in this folder."""
    try:
        with os.scandir(folder) as entries:
            return {_digest(entry.path) for entry in islice(entries, KEPT)}
    except OSError:
        return set()


def _digest(path: str) -> str:
    """The digest of a regular file; "" for anything else. It never waits for a FIFO."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError):
        return ""
    try:
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode):
            return ""
        return f"{found.st_size} {sha256(os.pread(fd, COMPARED_BYTES, 0)).hexdigest()}"
    except OSError:
        return ""
    finally:
        os.close(fd)


def _is_escaped(found: Transcript) -> bool:
    """Says whether the last thing in it is an answer that the person stopped."""
    turn = found.turn
    return turn is not None and turn.error == ABORT_ERROR and not any(m.human for m in found.since(turn.id))

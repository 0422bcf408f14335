"""Reads a Claude Code transcript file.

The first time it reads from the end backwards until it has the current task; after that only what was
appended. So it need not read all of a file of 500 MB. It decodes no bulky line and never waits for a FIFO. A
last line without its end is left for the next time. A file that was replaced, cut or rewritten is read anew.
A file that is not there yet gives an empty transcript; a file that can't be read raises ``Unavailable``. It
blocks: call it in a thread.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, replace
from dataclasses import field as default
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import Struct, field

from ...core.errors import Unavailable
from ...core.transcript import MAX_AGENTS, Transcript
from ..jsonl import HEAD_OF_FILE, MAX_LINE, each_line, line_start, opened
from .branch import Bounds, Branch, messages_of
from .lines import HEAD, entry_of, is_bulky

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from ...core.transcript import Message, ToolCall

# The calls of a sub-agent, from the transcript that Claude Code keeps of it beside the session's own.
#
# The file is ``<session>/subagents/agent-<id>.jsonl``. Only its end is read where it is large. A file that
# is not there or can't be read gives no calls. It blocks: call it in a thread.

READ: Final = 2 << 20  # bytes of one file
_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,80}")


def with_sub_agents(transcript: Transcript, path: Path) -> Transcript:
    """The transcript with the calls of its last sub-agents. ``path``: the session's own file."""
    folder = path.with_suffix("") / "subagents"
    names = [agent for agent in transcript.agents[-MAX_AGENTS:] if _ID.fullmatch(agent)]
    files = {agent: folder / f"agent-{agent}.jsonl" for agent in names}
    cut = {agent for agent, file in files.items() if _size(file) > READ}
    return transcript.with_agents({agent: calls_of(file) for agent, file in files.items()}, cut)


def _size(file: Path) -> int:
    try:
        return file.stat().st_size
    except OSError:
        return 0


def calls_of(path: Path) -> tuple[ToolCall, ...]:
    """All calls in the file, in order; empty when it can't be read."""
    try:
        data = end_of(path, READ)
    except Unavailable:
        return ()
    lines = (line for line in data.split(b"\n") if line.startswith(b"{") and not is_bulky(line[:HEAD]))
    entries = [entry for line in lines if (entry := entry_of(line, agent=True)) is not None]
    return tuple(c for m in messages_of(entries, lambda _: False) for c in m.calls)


# Which shells in the background a turn waits for, and which calls left them running.
#
# A shell that this turn started may be a test run that the answer depends on, or a server that never ends.
# One that is older counts only where the agent looked at it again. No I/O.

# Whether a session is still where it was when a prompt for it was decided, by its transcript.


def moved_on(transcript: Transcript, task: str, turn: str) -> str:
    """Why a prompt about this task and turn is out of date; empty when it may leave. An empty ``turn``: any
    turn of the task. A compaction is no work of the agent's.
    """
    said = [m for m in transcript.messages if not (m.summary or m.compaction)]
    now = next((m for m in reversed(said) if m.role == "assistant"), None)
    begun = replace(transcript, begun=task).task
    if begun is None or begun.id != task or (now and any(m.human for m in transcript.since(now.id))):
        return "the person wrote meanwhile"
    if now is None or (turn and now.id != turn):
        return "the agent went on meanwhile"
    if now.error or not now.finish:
        return "the agent was stopped, or works"
    if said[-1] is not now:
        return "the person ran a command, or the agent was told something else"
    return ""


def has_order(transcript: Transcript, order: str) -> bool:
    """Whether the agent was told this order."""
    return any(message.order == order for message in transcript.messages)


def awaited(transcript: Transcript, shells: Collection[str]) -> set[str]:
    """Those of ``shells`` (ids) that were started, read or awaited since a person or our feedback spoke."""
    calls: list[ToolCall] = []
    for message in reversed(transcript.messages):
        if message.human or message.order:
            break
        calls += message.calls
    started = {call.shell for call in calls}
    return {shell for shell in shells if shell and (shell in started or _is_named(shell, calls))}


def still_running(transcript: Transcript, shells: Collection[str]) -> Transcript:
    """The transcript with the calls that left one of ``shells`` running marked as running."""
    if not any(call.shell in shells for message in transcript.messages for call in message.calls):
        return transcript
    messages = (
        replace(m, calls=tuple(replace(c, status="running") if c.shell in shells else c for c in m.calls))
        for m in transcript.messages
    )
    return replace(transcript, messages=tuple(messages))


def _is_named(shell: str, calls: list[ToolCall]) -> bool:
    """Whether a call names the shell: by its id, or by its file of output, which has the id in its name."""
    return any(shell in value for call in calls for value in call.input.values() if isinstance(value, str))


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

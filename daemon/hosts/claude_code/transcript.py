"""A Claude Code transcript file as a transcript.

A file that is not there yet gives an empty transcript; a file that can't be read raises ``Unavailable``.
Reading blocks: call it in a thread.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from ...core.transcript import Transcript
from .. import past
from ..jsonl import HEAD, HEAD_OF_FILE, Follower, opened
from .branch import Bounds, Branch, messages_of
from .lines import entry_of, is_bulky

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from ...core.transcript import ToolCall

_COMPARED: Final = 200  # characters at the end of the final text
_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,80}")


class Reach(Struct, frozen=True):
    """How far back a file is read. ``window``: bytes at the file's end that are read first; then four times
    as many, and so on. ``context``: bytes in which earlier requests are looked for once the task is found.
    """

    window: int = 1 << 20
    context: int = 16 << 20
    bounds: Bounds = field(default_factory=Bounds)


class TranscriptReader:
    """Reads one session's file (``jsonl.Follower``). ``is_ours`` says whether an order id is one of ours.

    ``found``: whether the last ``read`` found the final text that it was told to expect. ``rested``: whether
    it ended with the end of the turn's Stop hooks, the person's own among them. ``directory``: where
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
        self.rested = False
        self._directory = directory
        reach = reach or Reach()
        self._file = Follower(
            lambda whole: Branch(is_ours, reach.bounds, whole=whole), is_bulky, reach.window, reach.context
        )

    def read(self, expect: str = "", *, closed: bool = False) -> Transcript:
        """The task and its work so far. ``expect``: the final text by the Stop hook, which may come before
        the file has it: see ``found``. ``closed``: see ``Follower``.
        """
        transcript = Transcript(self.path.stem, directory=self._directory)
        with opened(self.path) as fd:
            if fd >= 0:
                self._directory = self._directory or folder_of(fd)
                branch = self._file.read(fd, closed=closed)
                self.rested = branch.rested
                transcript = branch.transcript(self._directory).named(self.path.stem)
        self.found = _says(transcript, expect)
        return transcript


def transcript_of(data: bytes, name: str, *, directory: str = "") -> Transcript:
    """The transcript in ``data``, a whole file. Its last line needs no line end."""
    branch = Branch(lambda _: True, Bounds(), whole=True)
    for line in data.split(b"\n"):
        branch.take(line)
    return branch.transcript(directory or folder_in(data[:HEAD_OF_FILE])).named(name)


class _Mark(msgspec.Struct, rename={"session": "sessionId"}):
    """The fields of every line of a transcript."""

    type: str
    session: str


def is_transcript(data: bytes) -> bool:
    """Says whether ``data``, the beginning of a file or more, is a transcript of Claude Code."""
    for line in data[:HEAD_OF_FILE].split(b"\n", 20)[:20]:
        try:
            msgspec.json.decode(line, type=_Mark)
        except (ValueError, RecursionError):
            continue
        return True
    return False


def folder_of(fd: int) -> str:
    """The folder in which the session of the open file works."""
    return folder_in(os.pread(fd, HEAD_OF_FILE, 0))


def folder_in(data: bytes) -> str:
    """The folder in the first line that has one."""
    for line in data.split(b"\n", 200)[:200]:
        if b'"cwd"' in line and (entry := entry_of(line)) is not None and entry.cwd:
            return entry.cwd
    return ""


def _says(transcript: Transcript, expect: str) -> bool:
    """Says whether the transcript ends with an answer, and that answer ends as expected."""
    turn = transcript.turn
    if turn is None or any(m.human or m.order for m in transcript.since(turn.id)):
        return False
    return (turn.text or turn.error_message).rstrip().endswith(expect.rstrip()[-_COMPARED:])


def with_sub_agents(transcript: Transcript, path: Path) -> Transcript:
    """The transcript with the calls of its last sub-agents, from ``<session>/subagents/agent-<id>.jsonl``.
    ``path``: the session's own file.
    """
    folder = path.with_suffix("") / "subagents"

    def file_of(agent: str) -> Path | None:
        return folder / f"agent-{agent}.jsonl" if _ID.fullmatch(agent) else None

    return past.with_sub_agents(transcript, file_of, calls_in)


def calls_in(data: bytes) -> tuple[ToolCall, ...]:
    """All calls of a sub-agent's file, in order."""
    lines = (line for line in data.split(b"\n") if line.startswith(b"{") and not is_bulky(line[:HEAD]))
    entries = [entry for line in lines if (entry := entry_of(line, agent=True)) is not None]
    return tuple(c for m in messages_of(entries, lambda _: False) for c in m.calls)


# What a transcript shows


def awaited(transcript: Transcript, shells: Collection[str]) -> set[str]:
    """Those of ``shells`` (ids) that were started, read or awaited since a person or our feedback spoke:
    they may be a test run that the answer depends on. One that is older, and was not looked at again, may be
    a server.
    """
    calls: list[ToolCall] = []
    for message in reversed(transcript.messages):
        if message.human or message.order:
            break
        calls += message.calls
    # a call names a shell by its id, or by its file of output, which has the id in its name
    named = [
        value for call in calls for value in (call.shell, *call.input.values()) if isinstance(value, str)
    ]
    return {shell for shell in shells if shell and any(shell in value for value in named)}


def still_running(transcript: Transcript, shells: Collection[str]) -> Transcript:
    """The transcript with the calls that left one of ``shells`` running marked as running."""
    if not any(call.shell in shells for message in transcript.messages for call in message.calls):
        return transcript
    messages = (
        replace(m, calls=tuple(replace(c, status="running") if c.shell in shells else c for c in m.calls))
        for m in transcript.messages
    )
    return replace(transcript, messages=tuple(messages))

"""The stops in a transcript of Claude Code that is over, each as the file was at that moment.

The file is read once, from its beginning; a stop is the branch before the line that follows it, so what came
later (a rewind, a compaction) is not in it. Holds one task at a time. A line that can't be read is left out,
a file that is not there has no stops. Raises ``Unavailable``. It blocks.
"""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from ...core.stop import Stop
from .branch import Bounds, Branch
from .lines import HEAD, entry_of, is_bulky
from .reading import HEAD_OF_FILE, MAX_LINE, each_line, opened
from .subagents import with_sub_agents
from .transcript import folder_in

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from ...core.stop import After
    from .entries import Entry

STEP: Final = 4 << 20  # bytes that are read before the stops in them are handed over
_RAN: Final = "<bash-input"
_ENDS: Final = frozenset({"human", "note", "boundary", "summary"})  # kinds of lines that follow a turn


def stops_in(path: Path) -> Iterator[Stop]:
    """The stops of the session, oldest first."""
    with opened(path) as fd:
        if fd < 0:
            return
        size, at = os.fstat(fd).st_size, 0
        reading = _Reading(path, folder_in(os.pread(fd, HEAD_OF_FILE, 0)))
        while at < size:
            end = at
            step = STEP
            while end == at and at + step < size:  # a line may be longer than a step
                end = each_line(fd, at, at + step, reading.take)[0]
                step *= 4
            if end == at:
                end = each_line(fd, at, size, reading.take)[0]
                if end < size <= end + MAX_LINE:
                    reading.take(os.pread(fd, size - end, end), 0)  # nobody writes to it any more
                at = size
            else:
                at = end
            yield from reading.found()
        reading.close()
        yield from reading.found()


class _Reading:
    """The branch, and the stops that were found and not handed over yet."""

    def __init__(self, path: Path, directory: str) -> None:
        self._path = path
        self._directory = directory
        self._branch = Branch(lambda _: True, Bounds(), whole=True)
        self._answered = False  # since the last stop
        self._turn = ""
        self._found: list[Stop] = []

    def found(self) -> list[Stop]:
        """What was found since this was asked last."""
        found, self._found = self._found, []
        return found

    def take(self, line: bytes, _: int) -> None:
        """One line."""
        if not line.startswith(b"{") or is_bulky(line[:HEAD]) or (entry := entry_of(line)) is None:
            return
        if self._answered and entry.kind in _ENDS:
            self._stop(_after(entry), entry.text if entry.kind == "human" else "")
        self._answered = self._answered or entry.kind in {"answer", "interrupt"}
        self._branch.feed(entry)

    def close(self) -> None:
        """The file is over."""
        if self._answered:
            self._stop("end", "")

    def _stop(self, after: After, said: str) -> None:
        """A stop, if the last answer ended its turn: what a person types while the agent works ends none."""
        self._answered = False
        found = self._branch.transcript(self._directory)
        turn = found.turn
        if turn is None or turn.id == self._turn or not (turn.is_end or turn.error):
            return
        self._turn = turn.id
        found = with_sub_agents(replace(found, session=found.session or self._path.stem), self._path)
        self._found.append(Stop(found, after, said))


def _after(entry: Entry) -> After:
    """Who speaks in the line that follows a turn. A compaction and a `!command` are nobody's word."""
    if entry.kind == "human":
        return "person"
    if entry.kind == "note" and not entry.text.lstrip().startswith(_RAN):
        return "feedback" if entry.order else "host"
    return "end"

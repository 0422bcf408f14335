"""Past sessions in files of JSON lines: their stops, what was said in them, their sub-agents.

The same for each host that keeps its sessions so. Raises ``Unavailable`` for a file that can't be read. It
blocks: call it in a thread.
"""

from __future__ import annotations

import os
from itertools import chain
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, Protocol, TypeVar

from ..core.errors import Unavailable
from ..core.transcript import MAX_AGENTS, Said, Stop
from .jsonl import HEAD, Cursor, end_of, last_line, line_start, lines_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator
    from pathlib import Path

    from ..core.transcript import After, ToolCall, Transcript
    from .jsonl import Skip

BEFORE: Final = 1 << 18  # bytes before a cursor in which the agent's words are looked for
ANSWERS: Final = 12  # of the agent, that are kept until a person says something
PRIOR: Final = 6_000  # characters of these words
SUB_AGENT: Final = 2 << 20  # bytes of a sub-agent's file: its end
_RAN: Final = "<bash-input"  # a `!command` of a person in Claude Code


class Entry(Protocol):
    """A line of a host's file. ``order``: of ours, where the line is a note to the agent."""

    @property
    def kind(self) -> str: ...

    @property
    def text(self) -> str: ...

    @property
    def order(self) -> str: ...


E = TypeVar("E", bound=Entry)


def is_below(folder: str, project: Path) -> bool:
    """Says whether a session's folder is the project's, or lies in it; links of the project are followed."""
    roots = {str(project), os.path.realpath(project)}
    return any(folder == root or folder.startswith(root.rstrip("/") + "/") for root in roots)


def all_lines(fd: int, skip: Skip) -> Iterator[bytes]:
    """The lines of an open file to which nobody writes any more, the last one also without its end."""
    size, at = os.fstat(fd).st_size, 0
    for line, end in lines_of(fd, 0, size, skip):
        at = end
        if line:
            yield line
    line = last_line(fd, at, size)
    if line and not skip(line[:HEAD]):
        yield line


def stops(
    entries: Iterable[E],
    feed: Callable[[E], None],
    transcript: Callable[[], Transcript],
    *,
    answers: Collection[str],
    follows: Collection[str],
) -> Iterator[Stop]:
    """The stops of a session that is over, oldest first: each as the conversation was before the line that
    follows it, so what came later (a rewind, a compaction) is not in it.

    ``answers``: the kinds of lines that the agent wrote; ``follows``: those that follow a turn.
    """
    answered, last = False, ""
    for entry in chain(entries, (None,)):
        if answered and (entry is None or entry.kind in follows):
            answered = False
            found = transcript()
            turn = found.turn
            # what a person types while the agent works ends no turn
            if turn is not None and turn.id != last and (turn.is_end or turn.error):
                last = turn.id
                said = entry.text if entry is not None and entry.kind == "human" else ""
                yield Stop(found, _after(entry), said)
        if entry is not None:
            answered = answered or entry.kind in answers
            feed(entry)


def _after(entry: Entry | None) -> After:
    """The speaker of the line that follows a turn. A compaction and a `!command` are nobody's word."""
    if entry is not None and entry.kind == "human":
        return "person"
    if entry is not None and entry.kind == "note" and not entry.text.lstrip().startswith(_RAN):
        return "feedback" if entry.order else "host"
    return "end"


class Word(NamedTuple):
    """The part of one line in a conversation. ``who``: ``stopped`` is the person's Esc. ``refusal``: the
    person said it when they refused a tool call. ``acts``: the purpose of the agent's calls.
    """

    who: Literal["person", "agent", "stopped"]
    text: str = ""
    refusal: bool = False
    acts: str = ""
    at: int = 0
    session: str = ""
    message: str = ""


class _Listener:
    """Hands over each message of a person, with the agent's last words before it. ``lines``: how many there
    were.
    """

    def __init__(self, word_in: Callable[[bytes], Word | None], hand: Callable[[Said], object]) -> None:
        self.lines = 0
        self._word_in, self._hand = word_in, hand
        self._prior: list[str] = []
        self._acts = ""
        self._stopped = False

    def take(self, line: bytes, *, new: bool = True) -> None:
        """The next line, empty where it is skipped. What is not ``new`` is handed over no more."""
        self.lines += new
        word = self._word_in(line) if line else None
        if word is None:
            return
        if word.who == "stopped":
            self._stopped = True
        elif word.who == "agent":
            self._stopped, self._acts = False, word.acts or self._acts
            self._prior = [*self._prior, word.text.strip()][-ANSWERS:] if word.text else self._prior
        elif new and word.text.strip():
            prior = [*self._prior, self._acts] if word.refusal and self._acts else self._prior
            said = Said(
                word.text,
                "\n\n".join(prior)[-PRIOR:],
                refusal=word.refusal,
                interrupted=self._stopped,
                at=word.at,
                session=word.session,
                message=word.message,
                line=self.lines,
            )
            self._hand(said)
        if word.who == "person" and not word.refusal:
            self._prior, self._stopped = [], False


def hear(
    fd: int,
    cursor: Cursor | None,
    skip: Skip,
    word_in: Callable[[bytes], Word | None],
    hand: Callable[[Said], object],
) -> Cursor:
    """Hand over a person's messages in the lines since ``cursor`` (None: all). Returns the new cursor.

    A file that only grew is read from the cursor on; one that was replaced, cut or rewritten is read anew, so
    a caller that counts must know messages by their ids. A last line without its end may come a second time.
    """
    then, at, listener = os.fstat(fd), 0, _Listener(word_in, hand)
    size = then.st_size
    if cursor is not None and cursor.only_grew(fd):
        at, listener.lines = cursor.at, cursor.lines
        for line, _ in lines_of(fd, line_start(fd, max(0, at - BEFORE), at), at, skip):
            listener.take(line, new=False)
    for line, end in lines_of(fd, at, size, skip):
        at = end
        listener.take(line)
    lines = listener.lines
    listener.take(last_line(fd, at, size))  # perhaps it is still being written; the cursor stays before it
    return Cursor.here(fd, then, at, lines)


def with_sub_agents(
    transcript: Transcript,
    file_of: Callable[[str], Path | None],
    calls_in: Callable[[bytes], tuple[ToolCall, ...]],
) -> Transcript:
    """The transcript with the calls of its last sub-agents. ``file_of``: a sub-agent's own file; of a large
    one only the end is read, and one that can't be read gives no calls.
    """
    calls: dict[str, tuple[ToolCall, ...]] = {}
    cut: set[str] = set()
    for agent in transcript.agents[-MAX_AGENTS:]:
        file = file_of(agent)
        if file is None:
            continue
        try:
            data = end_of(file, SUB_AGENT)
            large = bool(data) and file.stat().st_size > SUB_AGENT
        except (Unavailable, OSError):
            continue
        calls[agent] = calls_in(data)
        cut |= {agent} if large else set()
    return transcript.with_agents(calls, cut)

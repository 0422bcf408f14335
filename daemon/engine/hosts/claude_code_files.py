"""The transcript files of Claude Code's sessions: one reader for each session, and one read of it at a time.

Decides nothing. A file that can't be read raises ``Unavailable``. Bounded: the session that was not read for
longest goes first (I44).
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from ...core.errors import Unavailable, words
from ...core.guards import ABORT_ERROR
from ...hosts.claude_code.record import recorded
from ...hosts.claude_code.subagents import with_sub_agents
from ...hosts.claude_code.transcript import TranscriptReader, end_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from ...core.consent import Chosen
    from ...core.transcript import Transcript

POLL_S: Final = 0.05
RECORD_BYTES: Final = 2 << 20
RECORD_MOST: Final = 64 << 20  # an answer stands near the end of the file, but its call may be far above
POLLS: Final = 100  # the file may be seconds behind the hook on a busy machine
READERS: Final = 200


@dataclass(slots=True, eq=False)
class _File:
    reader: TranscriptReader
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


class Files:
    """Reads sessions by their ids."""

    def __init__(self, is_ours: Callable[[str], bool]) -> None:
        """``is_ours``: is this the id of an order that we stored?"""
        self._is_ours = is_ours
        self._known: OrderedDict[str, _File] = OrderedDict()

    def locate(self, session: str, path: Path) -> None:
        """The session's file is here."""
        known = self._known.get(session)
        if known is None or known.reader.path != path:
            self._known[session] = _File(TranscriptReader(path, is_ours=self._is_ours))
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
                found = await asyncio.to_thread(with_sub_agents, found, known.reader.path)
        return found

    @staticmethod
    async def recorded(path: Path, session: str, source: str) -> tuple[Chosen, ...]:
        """What the file says of an answer or a command of a person (``hosts.claude_code.record``); it is read
        from its end, for up to 5 s. Raises ``Unavailable``.
        """

        def look(limit: int) -> tuple[Chosen, ...]:
            return recorded(end_of(path, limit).split(b"\n"), session, source)

        for _ in range(POLLS):
            if found := await asyncio.to_thread(look, RECORD_BYTES):
                return found
            await asyncio.sleep(POLL_S)
        return await asyncio.to_thread(look, RECORD_MOST)


def _is_escaped(found: Transcript) -> bool:
    """Whether the last thing in it is an answer that the person stopped."""
    turn = found.turn
    return turn is not None and turn.error == ABORT_ERROR and not any(m.human for m in found.since(turn.id))

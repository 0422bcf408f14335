"""Who is judged, and when: per session at most one judgement at a time; what comes meanwhile sets one more
(I3).

A human message, a busy agent, an abort, the off switch or a deletion cancels a judgement under way.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from ..core.errors import ReflectdError

if TYPE_CHECKING:
    from ..core.session import Session
    from .commit import Commit
    from .round import Rounds
    from .world import World


class Schedule:
    """Starts, joins and cancels judgements."""

    def __init__(self, world: World, rounds: Rounds, commit: Commit) -> None:
        self._world = world
        self._rounds = rounds
        self._commit = commit
        self._running: dict[str, asyncio.Task[None]] = {}
        self._again: set[str] = set()
        self._closed = False

    def request(self, session: str) -> None:
        """Judge the session's last turn, unless that is under way: then look once more afterwards."""
        if self._closed:
            return
        if session in self._running:
            self._again.add(session)
            return
        self._running[session] = self._world.spawn(self._run(session), f"judge {session}", "judge")

    def cancel(self, session: str, why: str) -> None:
        """What is being judged is out of date: the call is cancelled and its judge session deleted."""
        self._again.discard(session)
        self._rounds.forget(session)
        if self._rounds.decides(session):  # what was committed is sent or marked stale by delivery
            self._rounds.outdated(session)
            return
        task = self._running.pop(session, None)
        if task is not None:
            self._world.log.info("evaluation cancelled", session=session, why=why)
            task.cancel()

    def supersede(self, before: Session | None, why: str) -> None:
        """A turn that judging began on is over without a judgement; it still gets its final verdict (I21)."""
        if before is None or not before.turn or before.final == before.turn:
            return
        now = self._world.sessions.get(before.id)
        if now is None or now.final == before.turn:
            return
        self._world.spawn(self._commit.passed_over(before, why), "record")

    def task(self, session: str) -> asyncio.Task[None] | None:
        """What judges this session right now."""
        return self._running.get(session)

    def running(self, instance: str) -> list[asyncio.Task[None]]:
        """The judgements of this instance's sessions."""
        found = []
        for session, task in self._running.items():
            s = self._world.sessions.get(session)
            if s is not None and s.instance == instance:
                found.append(task)
        return found

    def busy(self) -> bool:
        """Is any turn being judged?"""
        return bool(self._running)

    @property
    def closed(self) -> bool:
        """The daemon stops: nothing more is judged."""
        return self._closed

    def close(self) -> None:
        """Start no more judgements."""
        self._closed = True

    async def _run(self, session: str) -> None:
        me = asyncio.current_task()
        try:
            while True:
                self._again.discard(session)
                try:
                    await self._rounds.judge(session)
                except ReflectdError as e:
                    self._world.log.warning("not judged", session=session, error=str(e))
                    await self._rounds.failed(session, str(e))
                except Exception as e:
                    self._world.log.exception("bug", session=session)
                    await self._rounds.failed(session, f"a bug of reflectd: {type(e).__name__}")
                if session not in self._again:
                    return
        finally:
            if self._running.get(session) is me:
                del self._running[session]

"""Verdict files, written by one thread-hopping worker, in order, off the host's path.

A verdict is stored before its file is written; ``filed`` is stored after. What a crash left unfiled is
written at the next start (I21, I42). A failure is logged once and shown by ``status``; nothing waits.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from daemon.store import outbox, verdicts

if TYPE_CHECKING:
    from daemon.core.verdict import Verdict
    from daemon.engine.world import World
    from daemon.files.verdict import Judging, VerdictFiles
    from daemon.judge.case import Case
    from daemon.judge.decide import Decision
    from daemon.judge.flow import Opinion

COLLISION_MS = 600_000
Job = tuple[Callable[[], object], "Verdict | None"]
"""What to write, and the verdict that is filed once it is written."""

FRESH_MS = 60_000
FRESH_KEPT = 200
SHORT = 8


class Filing:
    """The queue of files to write. Unbounded by design: it holds at most a few rows per session."""

    def __init__(self, world: World, files: VerdictFiles) -> None:
        self._world = world
        self._files = files
        self._fresh: dict[str, tuple[Verdict, str]] = {}
        self._queue: asyncio.Queue[Job] = asyncio.Queue()

    def judging(self, judging: Judging, directory: str) -> None:
        """Say that the turn is being judged."""
        self._put(lambda: self._files.judging(judging, directory))

    def final(self, verdict: Verdict, directory: str) -> None:
        """The final verdict; marked as filed once it is on disk."""
        collides = self.collides(verdict.session)
        self._fresh[verdict.session] = (verdict, directory)
        while len(self._fresh) > FRESH_KEPT:
            del self._fresh[next(iter(self._fresh))]
        self._put(lambda: self._files.final(verdict, directory, collides=collides), verdict)

    def outdated(self, session: str) -> None:
        """A new task began: the verdict of the old one must not look fresh to its readers (I22)."""
        last = self._fresh.pop(session, None)
        if last is not None and self._world.clock.now_ms() - last[0].at < FRESH_MS:
            self._put(lambda: self._files.outdated(*last))

    def case(self, case: Case, opinion: Opinion, decision: Decision) -> None:
        """The full evaluation; its JSON is built in the thread."""
        s, at = decision.session, decision.verdict.at
        self._put(lambda: self._files.case(s.id, at, _case_file(case, opinion, decision), s.directory))

    def collides(self, session: str) -> bool:
        """Another session with the same first 8 characters was active in the last 10 minutes (I23)."""
        since = self._world.clock.now_ms() - COLLISION_MS
        return self._world.sessions.has_sibling(session, session[:SHORT], since)

    def recover(self) -> int:
        """Queue what a crash left unfiled. Returns how many."""
        unfiled = self._world.verdicts.unfiled()
        for stored in unfiled:
            self.final(stored.verdict, stored.directory)
        return len(unfiled)

    def _put(self, write: Callable[[], object], verdict: Verdict | None = None) -> None:
        self._queue.put_nowait((write, verdict))

    async def run(self) -> None:
        """The worker. Ends by cancellation, after ``drain``."""
        while True:
            job = await self._queue.get()
            try:
                await self._do(job)
            finally:
                self._queue.task_done()

    async def drain(self) -> None:
        """Wait until everything queued is written."""
        await self._queue.join()

    async def _do(self, job: Job) -> None:
        write, verdict = job
        try:
            await asyncio.to_thread(write)
            if verdict is not None:
                await self._world.db.commit(verdicts.filed(verdict))
        except Exception as e:  # noqa: BLE001 - the worker must live; the row stays unfiled and is retried
            self._world.log.warning("file not written", error=str(e))
            self._world.degraded = f"verdict files: {e}"
        else:
            if self._world.degraded.startswith("verdict files"):
                self._world.log.info("files can be written again")
                self._world.degraded = ""
                self.recover()


def _case_file(case: Case, opinion: Opinion, decision: Decision) -> dict[str, Any]:
    """The full evaluation (schema: ``.reflection/schemas/case.schema.json``)."""
    return {
        "version": 1,
        "case": {**asdict(case), "templates": None},
        "prompts": [{"purpose": p.purpose, "system": p.system, "text": p.text} for p in opinion.prompts],
        "replies": [
            {"provider": r.provider, "model": r.model, "text": r.text, "data": r.data, "seconds": r.seconds}
            for r in opinion.replies
        ],
        "why": opinion.why,
        "verdict": asdict(decision.verdict),
        "orders": [{"kind": outbox.kind_of(o), **asdict(o)} for o in decision.orders],
    }

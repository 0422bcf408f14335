"""Verdict files, written by a few workers off the host's path: one session's in order, judged turns first.

A session has one verdict file, so of what waits only its newest is written. Turns that ended without a
judgement (a host that never answered, a start after a crash) may be thousands at once, and wait behind those
that someone listens for. A verdict is stored before its file is written; ``filed`` is stored after. What a
crash left unfiled is written at the next start (I21, I42). A failure is logged once and shown by ``status``.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from daemon.core.verdict import Verdict
from daemon.files.verdict import Judging, Stalled, verdict_object
from daemon.store import outbox, verdicts

if TYPE_CHECKING:
    from daemon.engine.stream import Kind
    from daemon.engine.world import World
    from daemon.files.verdict import VerdictFiles
    from daemon.judge.case import Case
    from daemon.judge.decide import Decision
    from daemon.judge.flow import Opinion

COLLISION_MS = 600_000
WORKERS = 3
LISTENED, LEFT_OVER, CASE = 0, 1, 2
FRESH_MS = 60_000
FRESH_KEPT = 200
READ_MS = 2_000  # whoever waited for an alias has read it by then
SHORT = 8
_KINDS: Final[dict[type, Kind]] = {Judging: "judging", Stalled: "stuck"}
Key = tuple[str, str]
"""What is written one after the other (a session; "" for the cases, whose pruning is shared), and which."""


@dataclass(frozen=True, slots=True)
class _Job:
    """What to write, and the verdict that is filed once it is written."""

    write: Callable[[], object]
    verdict: Verdict | None = None


class Filing:
    """What waits to be written: one job per session, one per case. Bounded by what the engine holds."""

    def __init__(self, world: World, files: VerdictFiles) -> None:
        self._world = world
        self._files = files
        self._fresh: dict[str, tuple[Verdict, str]] = {}
        self._jobs: dict[Key, _Job] = {}
        self._queue: asyncio.PriorityQueue[tuple[int, int, Key]] = asyncio.PriorityQueue()
        self._count = itertools.count()
        self._writing: set[str] = set()
        self._behind: dict[str, list[tuple[int, int, Key]]] = {}

    def judging(self, judging: Judging, directory: str) -> None:
        """Say that the turn is being judged."""
        self._publish(judging, directory)
        self._put(LISTENED, (judging.session, ""), _Job(lambda: self._files.judging(judging, directory)))

    def stalled(self, stalled: Stalled, directory: str) -> None:
        """Say that the agent seems stuck."""
        self._publish(stalled, directory)
        self._put(LISTENED, (stalled.session, ""), _Job(lambda: self._files.stalled(stalled, directory)))

    def final(self, verdict: Verdict, directory: str) -> None:
        """The final verdict; marked as filed once it is on disk."""
        self._publish(verdict, directory)
        self._final(LEFT_OVER if verdict.state in {"error", "skipped"} else LISTENED, verdict, directory)

    def _final(self, lane: int, verdict: Verdict, directory: str) -> None:
        collides = self.collides(verdict.session)
        self._fresh[verdict.session] = (verdict, directory)
        while len(self._fresh) > FRESH_KEPT:
            del self._fresh[next(iter(self._fresh))]
        job = _Job(lambda: self._files.final(verdict, directory, collides=collides), verdict)
        self._put(lane, (verdict.session, ""), job)

    def _publish(self, v: Verdict | Judging | Stalled, directory: str) -> None:
        """For those who watch, before the file is written."""
        stream = self._world.stream
        if stream.watched:
            s = self._world.sessions.get(v.session)
            more = {
                "at": v.at,
                "title": s.title if s is not None else "",
                "directory": directory,
                "feedback_sent": isinstance(v, Verdict) and v.will_prompt,
            }
            kind: Kind = _KINDS.get(type(v), "verdict")
            stream.publish(kind, verdict_object(v) | more)

    def outdated(self, session: str) -> None:
        """A new task began: the verdict of the old one must not look fresh to its readers (I22)."""
        last = self._fresh.pop(session, None)
        if last is not None and self._world.clock.now_ms() - last[0].at < FRESH_MS:
            self._put(LISTENED, (session, ""), _Job(lambda: self._files.outdated(*last)))
        s = self._world.sessions.get(session)
        for verdict, directory in list(self._fresh.values()):
            sibling = verdict.session != session and verdict.session[:SHORT] == session[:SHORT]
            if sibling and s is not None and directory == s.directory:
                self._stale_alias(verdict, directory)

    def went_on(self, session: str) -> None:
        """The agent works on its feedback: the alias has been read, and is not to be taken for the next
        turn's, whose end its readers may see before us (I22).
        """
        verdict, directory = self._fresh.get(session, (None, ""))
        if verdict is None or not verdict.will_prompt or self._world.clock.now_ms() - verdict.at < READ_MS:
            return
        self._fresh[session] = (replace(verdict, will_prompt=False), directory)
        self._stale_alias(verdict, directory)

    def _stale_alias(self, verdict: Verdict, directory: str) -> None:
        if self._world.clock.now_ms() - verdict.at < FRESH_MS and (verdict.complete or verdict.will_prompt):
            job = _Job(lambda: self._files.alias_outdated(verdict, directory))
            self._put(LISTENED, (verdict.session, "alias"), job)

    def case(self, case: Case, opinion: Opinion, decision: Decision) -> None:
        """The full evaluation; its JSON is built in the thread."""
        s, at = decision.session, decision.verdict.at
        job = _Job(lambda: self._files.case(s.id, at, _case_file(case, opinion, decision), s.directory))
        self._put(CASE, ("", f"{s.id} {at}"), job)

    def collides(self, session: str) -> bool:
        """Another session with the same first 8 characters was active in the last 10 minutes (I23)."""
        since = self._world.clock.now_ms() - COLLISION_MS
        return self._world.sessions.has_sibling(session, session[:SHORT], since)

    def recover(self) -> int:
        """Queue what a crash left unfiled. Returns how many."""
        unfiled = self._world.verdicts.unfiled()
        for stored in unfiled:
            self._final(LEFT_OVER, stored.verdict, stored.directory)
        return len(unfiled)

    @property
    def waiting(self) -> bool:
        """Something is still to be written."""
        return bool(self._jobs or self._writing)

    def _put(self, lane: int, key: Key, job: _Job) -> None:
        self._jobs[key] = job
        self._queue.put_nowait((lane, next(self._count), key))

    async def run(self) -> None:
        """The workers. Ends by cancellation, after ``drain``."""
        async with asyncio.TaskGroup() as workers:
            for n in range(WORKERS):
                workers.create_task(self._work(), name=f"filing {n}")

    async def drain(self) -> None:
        """Wait until everything queued is written."""
        await self._queue.join()

    async def _work(self) -> None:
        while True:
            ticket = await self._queue.get()
            row, _ = key = ticket[2]
            if row in self._writing:
                self._behind.setdefault(row, []).append(ticket)
                continue
            self._writing.add(row)
            try:
                job = self._jobs.pop(key, None)  # None: an earlier ticket wrote what came after it
                if job is not None:
                    await self._do(job)
            finally:
                self._writing.discard(row)
                for waiting in self._behind.pop(row, ()):
                    self._queue.put_nowait(waiting)
                    self._queue.task_done()
                self._queue.task_done()

    async def _do(self, job: _Job) -> None:
        try:
            await asyncio.to_thread(job.write)
            if job.verdict is not None:
                await self._world.db.commit(verdicts.filed(job.verdict))
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

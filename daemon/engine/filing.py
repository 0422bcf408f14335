"""Writes verdict files off the host's path: a folder's one after the other, those of judged turns first. A
disk that hangs holds up only its own folder (``lanes``).

A session has one verdict file, so of the verdicts that wait for it only the newest is written. Turns that
ended without a judgement (a host that never answered, a start after a crash) may be thousands at once; they
wait behind those that someone listens for. A verdict is stored before its file is written; ``filed`` is
stored after. What a crash left unfiled is written at the next start (I21, I42), what a fault left unfiled
when the fault is over.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from msgspec import to_builtins

from ..core.errors import Unavailable
from ..core.verdict import Verdict
from ..files.verdict import Judging, Stalled, verdict_object
from ..store import outbox, verdicts
from .health import DATABASE
from .lanes import HUNG_S, Lanes, Work

if TYPE_CHECKING:
    from ..files.verdict import VerdictFiles
    from ..judge.case import Case
    from ..judge.decide import Decision
    from ..judge.flow import Opinion
    from .lanes import Key
    from .stream import Kind
    from .world import World

COLLISION_MS = 600_000
LISTENED, LEFT_OVER, CASE = 0, 1, 2
VERDICTS_WAITING = 5_000
CASES_WAITING = 50  # one may hold a megabyte
CASES = "cases"
FRESH_MS = 60_000
FRESH_KEPT = 200
READ_MS = 2_000  # whoever waited for an alias has read it by then
SHORT = 8
RETRY_S = 5.0
LONGEST_PAUSE_S = 300.0
_KINDS: Final[dict[type, Kind]] = {Judging: "judging", Stalled: "stuck"}


@dataclass(frozen=True, slots=True)
class _Job:
    """What to write, and the verdict that is filed once it is written."""

    write: Callable[[], object]
    directory: str
    verdict: Verdict | None = None


class Filing:
    """What waits to be written: of each session the newest, and the newest cases. Bounded (I44)."""

    def __init__(self, world: World, files: VerdictFiles, *, hung_s: float = HUNG_S) -> None:
        self._world = world
        self._hung_s = hung_s
        self._files = files
        self._fresh: dict[str, tuple[Verdict, str]] = {}
        self._under_way: dict[str, None] = {}  # sessions whose file is about a turn without a verdict
        self._aliases: dict[tuple[str, str], Verdict] = {}  # folder and alias → the verdict that it shows
        limits = (VERDICTS_WAITING, VERDICTS_WAITING, CASES_WAITING)
        self._lanes = Lanes(limits, self._hung, self._dropped, hung_s=hung_s)
        self._cases_dropped = 0
        self._retry_at = 0.0
        self._pause_s = RETRY_S

    def judging(self, judging: Judging, directory: str) -> None:
        """Say that the turn is being judged."""
        self._publish(judging, directory)
        self._begun(
            judging.session, directory, _Job(lambda: self._files.judging(judging, directory), directory)
        )

    def stalled(self, stalled: Stalled, directory: str) -> None:
        """Say that the agent seems stuck."""
        self._publish(stalled, directory)
        self._begun(
            stalled.session, directory, _Job(lambda: self._files.stalled(stalled, directory), directory)
        )

    def _begun(self, session: str, directory: str, job: _Job) -> None:
        self._aliases.pop(_alias(session, directory), None)
        self._under_way[session] = None
        _keep_newest(self._under_way)
        self._put(LISTENED, (session, ""), job)

    def final(self, verdict: Verdict, directory: str) -> None:
        """The final verdict; marked as filed once it is on disk."""
        self._publish(verdict, directory)
        self._final(LEFT_OVER if verdict.state in {"error", "skipped"} else LISTENED, verdict, directory)

    def delivered(self, session: str, turn: str) -> None:
        """The feedback on this turn reached the agent, perhaps long after its file was written: then the file
        is written again, unless it is about something newer by now.
        """
        verdict, directory = self._fresh.get(session, (None, ""))
        if verdict is None or verdict.turn != turn or verdict.state != "incomplete" or verdict.will_prompt:
            return
        if session not in self._under_way:
            at = self._world.clock.now_ms()
            self._final(LISTENED, replace(verdict, will_prompt=True, at=at), directory)

    def _final(self, lane: int, verdict: Verdict, directory: str) -> None:
        collides = self.collides(verdict.session)
        self._under_way.pop(verdict.session, None)
        self._fresh[verdict.session] = (verdict, directory)
        alias = _alias(verdict.session, directory)
        self._aliases.pop(alias, None)
        if not collides and (verdict.complete or verdict.will_prompt):
            self._aliases[alias] = verdict
        _keep_newest(self._fresh)
        _keep_newest(self._aliases)
        job = _Job(lambda: self._files.final(verdict, directory, collides=collides), directory, verdict)
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
            self._put(LISTENED, (session, ""), self._outdated(*last))
            if self._aliases.get(_alias(session, last[1])) is last[0]:
                del self._aliases[_alias(session, last[1])]  # the same job writes it
        s = self._world.sessions.get(session)
        if s is not None:
            self._stale_alias(session, s.directory)

    def _outdated(self, verdict: Verdict, directory: str) -> _Job:
        return _Job(lambda: self._files.outdated(verdict, directory), directory, verdict)

    def went_on(self, session: str) -> None:
        """The agent works on its feedback: mark the alias as out of date (I22).

        Its readers have read it. They may see the end of the next turn before we do, and would then take the
        alias for the verdict on that turn.
        """
        verdict, directory = self._fresh.get(session, (None, ""))
        if verdict is None or not verdict.will_prompt or self._world.clock.now_ms() - verdict.at < READ_MS:
            return
        self._fresh[session] = (replace(verdict, will_prompt=False), directory)
        self._stale_alias(session, directory)

    def _stale_alias(self, session: str, directory: str) -> None:
        """Of all sessions with these 8 characters one at most is shown by the alias."""
        verdict = self._aliases.pop(_alias(session, directory), None)
        if verdict is not None and self._world.clock.now_ms() - verdict.at < FRESH_MS:
            job = _Job(lambda: self._files.alias_outdated(verdict, directory), directory)
            self._put(LISTENED, (verdict.session, "alias"), job)

    def case(self, case: Case, opinion: Opinion, decision: Decision) -> None:
        """The full evaluation; its JSON is built in the thread."""
        s, at = decision.session, decision.verdict.at
        job = _Job(
            lambda: self._files.case(s.id, at, _case_file(case, opinion, decision), s.directory), s.directory
        )
        self._put(CASE, (s.id, str(at)), job)

    def collides(self, session: str) -> bool:
        """Another session with the same first 8 characters was active in the last 10 minutes (I23)."""
        since = self._world.clock.now_ms() - COLLISION_MS
        return self._world.sessions.has_sibling(session, session[:SHORT], since)

    def recover(self, directory: str = "") -> int:
        """Queue what a crash or a fault left unfiled, in one folder or in all. Returns how many."""
        unfiled = [v for v in self._world.verdicts.unfiled() if directory in {"", v.directory}]
        for stored in unfiled:
            s = self._world.sessions.get(stored.verdict.session)
            if s is not None and s.phase == "judging":
                self._world.later(verdicts.filed(stored.verdict))  # its file says so, and soon what follows
            elif s is not None and s.task != stored.verdict.task:
                self._put(LEFT_OVER, (s.id, ""), self._outdated(stored.verdict, stored.directory))
            else:
                self._final(LEFT_OVER, stored.verdict, stored.directory)
        return len(unfiled)

    def tidy(self) -> None:
        """At the start: remove the temporary files that a crash left in the folders used last."""
        for directory in self._world.verdicts.folders() | self._world.sessions.open_folders():
            self._put(LEFT_OVER, ("", "tidy"), _Job(partial(self._files.tidy, directory), directory))

    @property
    def waiting(self) -> bool:
        """Something is still to be written, on a disk that answers."""
        return self._lanes.busy

    def status(self) -> dict[str, int]:
        """How many files wait, and how many cases were dropped since the start."""
        kinds = (LISTENED, LEFT_OVER, CASE)
        return {"waiting": sum(self._lanes.waiting(n) for n in kinds), "cases_dropped": self._cases_dropped}

    def _put(self, urgency: int, key: Key, job: _Job) -> None:
        self._lanes.put(job.directory, key, urgency, Work(job.write, partial(self._written, job)))

    async def run(self) -> None:
        """Write. Ends by cancellation, after ``drain``."""
        await self._lanes.run()

    async def drain(self) -> None:
        """Wait until everything queued is written, but for folders whose disk hangs."""
        await self._lanes.drain()

    async def _written(self, job: _Job, error: Exception | None) -> None:
        """It was written, or it was not: then the row stays unfiled, and is tried again."""
        health, fault = self._world.health, _fault(job.directory)
        if error is not None:
            health.failed(fault, f"verdict files: {error}")
            self._retry_later()
            return
        was_broken = health.works(fault)
        if not self._lanes.waiting(CASE):
            health.works(CASES)
        try:
            if job.verdict is not None:
                await self._world.db.commit(verdicts.filed(job.verdict))
        except Unavailable as e:
            health.failed(DATABASE, str(e))
            self._retry_later()
            return
        if was_broken:
            self._pause_s = RETRY_S
            try:
                self.recover(job.directory)
            except Exception:
                self._world.log.exception("bug", task="filing")

    def _hung(self, directory: str) -> None:
        """Its disk does not answer: other folders go on, and this one waits for it."""
        where = directory or "the state folder"
        text = (
            f"verdict files: the disk of {where} does not answer since {self._hung_s:g} s; files there wait"
        )
        self._world.health.failed(_fault(directory), text)

    def _dropped(self, urgency: int) -> None:
        """Too many wait. A verdict's row stays unfiled, and is tried again; a case is lost and counted."""
        if urgency != CASE:
            self._retry_later()
            return
        self._cases_dropped += 1
        text = f"{self._cases_dropped} evaluations were not saved in .reflection: the disk is too slow"
        self._world.health.failed(CASES, text)

    def _retry_later(self) -> None:
        """What is unfiled now is tried again by ``retry``: after 5 s, 10 s … at most 5 minutes."""
        if not self._retry_at:
            self._retry_at = self._world.clock.monotonic() + self._pause_s

    def retry(self) -> None:
        """Call it now and then: files that could not be written are tried again when it is time."""
        if not self._retry_at or self._world.clock.monotonic() < self._retry_at:
            return
        self._retry_at = 0.0
        self._pause_s = min(self._pause_s * 2, LONGEST_PAUSE_S) if self.recover() else RETRY_S


def _keep_newest(kept: dict[Any, Any]) -> None:
    while len(kept) > FRESH_KEPT:
        del kept[next(iter(kept))]


def _alias(session: str, directory: str) -> tuple[str, str]:
    return directory, session[:SHORT]


def _fault(directory: str) -> str:
    return f"files in {directory or 'the state folder'}"


def _case_file(case: Case, opinion: Opinion, decision: Decision) -> dict[str, Any]:
    """The full evaluation (schema: ``.reflection/schemas/case.schema.json``)."""
    return {
        "version": 1,
        "case": {**to_builtins(case), "templates": None},
        "prompts": [{"purpose": p.purpose, "system": p.system, "text": p.text} for p in opinion.prompts],
        "replies": [
            {"provider": r.provider, "model": r.model, "text": r.text, "data": r.data, "seconds": r.seconds}
            for r in opinion.replies
        ],
        "why": opinion.why,
        "verdict": to_builtins(decision.verdict),
        "orders": [{"kind": outbox.kind_of(o), **to_builtins(o)} for o in decision.orders],
    }

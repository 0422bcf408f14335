"""Writes verdict files and cases in threads: a folder's one after the other, those of judged turns first.

A session has one verdict file, so of the verdicts that wait for it only the newest is written. A verdict is
stored before its file is written; ``filed`` is stored after. A crash or a fault leaves it unfiled: it is
written at the next start, or when the fault is over (I21, I42). A disk that does not answer within ``HUNG_S``
gets a named fault and holds up only its own folder.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from msgspec import to_builtins

from ..core.errors import Unavailable
from ..core.verdict import Verdict
from ..files.verdict import Judging, Stalled, verdict_object
from ..store import outbox, verdicts
from .threads import Threads
from .world import DATABASE

if TYPE_CHECKING:
    from ..files.verdict import VerdictFiles
    from ..judge.case import Case
    from ..judge.decide import Decision
    from ..judge.flow import Opinion
    from .stream import Kind
    from .world import World

COLLISION_MS = 600_000
LISTENED, LEFT_OVER, CASE = 0, 1, 2
CASES_WAITING = 50  # one may hold a megabyte
WAITING: Final = (5_000, 5_000, CASES_WAITING)
HUNG_S: Final = 10.0
AT_ONCE: Final = 4  # folders that are written to, beside those that hang
HUNG_MOST: Final = 32  # of them: more of them take the place of others
CASES = "cases"
FRESH_MS = 60_000
FRESH_KEPT = 200
READ_MS = 2_000  # whoever waited for an alias has read it by then
SHORT = 8
RETRY_S = 5.0
LONGEST_PAUSE_S = 300.0
_KINDS: Final[dict[type, Kind]] = {Judging: "judging", Stalled: "stuck"}
Key = tuple[str, str, str]
"""Folder, session, and which of the session's files."""


@dataclass(frozen=True, slots=True)
class _Piece:
    """``write`` runs in a thread. ``verdict`` is filed by it."""

    write: Callable[[], object]
    verdict: Verdict | None = None


class Filing:
    """The files that wait to be written, bounded (I44). All methods belong to the loop's thread."""

    def __init__(self, world: World, files: VerdictFiles, *, hung_s: float = HUNG_S) -> None:
        self._world = world
        self._files = files
        self._hung_s = hung_s
        self._fresh: dict[str, tuple[Verdict, str]] = {}
        self._under_way: dict[str, None] = {}  # sessions whose file is about a turn without a verdict
        self._aliases: dict[tuple[str, str], Verdict] = {}  # folder and alias → the verdict that it shows
        self._threads = Threads("reflectd-files")
        self._queues: tuple[OrderedDict[Key, _Piece], ...] = tuple(OrderedDict() for _ in WAITING)
        self._at_work: dict[str, asyncio.Task[None]] = {}  # by folder
        self._hung: set[str] = set()
        self._closed = False
        self._moved = asyncio.Event()
        self._cases_dropped = 0
        self._retry_at = 0.0
        self._pause_s = RETRY_S

    def judging(self, judging: Judging, directory: str) -> None:
        """Say that the turn is being judged."""
        self._begun(judging, directory, self._files.judging)

    def stalled(self, stalled: Stalled, directory: str) -> None:
        """Say that the agent seems stuck."""
        self._begun(stalled, directory, self._files.stalled)

    def _begun(self, turn: Any, directory: str, write: Callable[[Any, str], object]) -> None:  # noqa: ANN401
        self._publish(turn, directory)
        self._aliases.pop(_alias(turn.session, directory), None)
        self._under_way[turn.session] = None
        _keep_newest(self._under_way)
        self._put(LISTENED, (directory, turn.session, ""), _Piece(partial(write, turn, directory)))

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

    def _final(self, urgency: int, verdict: Verdict, directory: str) -> None:
        collides = self.collides(verdict.session)
        self._under_way.pop(verdict.session, None)
        self._fresh[verdict.session] = (verdict, directory)
        alias = _alias(verdict.session, directory)
        self._aliases.pop(alias, None)
        if not collides and (verdict.complete or verdict.will_prompt):
            self._aliases[alias] = verdict
        _keep_newest(self._fresh)
        _keep_newest(self._aliases)
        write = partial(self._files.final, verdict, directory, collides=collides)
        self._put(urgency, (directory, verdict.session, ""), _Piece(write, verdict))

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
        verdict, directory = self._fresh.pop(session, (None, ""))
        if verdict is not None and self._world.clock.now_ms() - verdict.at < FRESH_MS:
            self._outdated(LISTENED, verdict, directory)
            if self._aliases.get(_alias(session, directory)) is verdict:
                del self._aliases[_alias(session, directory)]  # the same piece writes it
        s = self._world.sessions.get(session)
        if s is not None:
            self._stale_alias(session, s.directory)

    def _outdated(self, urgency: int, verdict: Verdict, directory: str) -> None:
        write = partial(self._files.outdated, verdict, directory)
        self._put(urgency, (directory, verdict.session, ""), _Piece(write, verdict))

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
            write = partial(self._files.alias_outdated, verdict, directory)
            self._put(LISTENED, (directory, verdict.session, "alias"), _Piece(write))

    def case(self, case: Case, opinion: Opinion, decision: Decision) -> None:
        """The full evaluation; its JSON is built in the thread."""
        s, at = decision.session, decision.verdict.at

        def write() -> object:
            return self._files.case(s.id, at, case_object(case, opinion, decision), s.directory)

        self._put(CASE, (s.directory, s.id, str(at)), _Piece(write))

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
                self._outdated(LEFT_OVER, stored.verdict, stored.directory)
            else:
                self._final(LEFT_OVER, stored.verdict, stored.directory)
        return len(unfiled)

    def tidy(self) -> None:
        """At the start: remove the temporary files that a crash left in the folders used last."""
        for directory in self._world.verdicts.folders() | self._world.sessions.open_folders():
            self._put(LEFT_OVER, (directory, "", "tidy"), _Piece(partial(self._files.tidy, directory)))

    @property
    def waiting(self) -> bool:
        """Something is still to be written, on a disk that answers."""
        return bool(self._at_work.keys() - self._hung)

    def status(self) -> dict[str, int]:
        """How many files wait, and how many cases were dropped since the start."""
        return {"waiting": sum(map(len, self._queues)), "cases_dropped": self._cases_dropped}

    async def drain(self) -> None:
        """Wait until everything queued is written, but for folders whose disk hangs."""
        while self.waiting and not self._closed:
            self._moved.clear()
            await self._moved.wait()

    def close(self) -> None:
        """Begin nothing more, and wait for no disk."""
        self._closed = True
        for task in self._at_work.values():
            task.cancel()

    def _put(self, urgency: int, key: Key, piece: _Piece) -> None:
        """Of one key only the newest is written, at the most urgent place that it had."""
        for place, queue in enumerate(self._queues):
            if key in queue:
                if place <= urgency:
                    queue[key] = piece
                    return
                del queue[key]
        self._queues[urgency][key] = piece
        if len(self._queues[urgency]) > WAITING[urgency]:
            self._queues[urgency].popitem(last=False)
            self._dropped(urgency)
        if key[0] not in self._at_work:
            self._begin()

    def _begin(self) -> None:
        """Begin with the most urgent pieces of folders that nothing is written to."""
        while not self._closed and len(self._at_work) - min(len(self._hung), HUNG_MOST) < AT_ONCE:
            free = ((q, key) for q in self._queues for key in q if key[0] not in self._at_work)
            queue, key = next(free, (None, None))
            if queue is None or key is None:
                return
            work = self._write(key[0], queue.pop(key))
            self._at_work[key[0]] = asyncio.get_running_loop().create_task(work, name=f"write in {key[0]}")

    async def _write(self, directory: str, piece: _Piece) -> None:
        """One piece, however long its disk takes."""
        try:
            answer = self._threads.ask(piece.write)
            await asyncio.wait([answer], timeout=self._hung_s)
            if not answer.done():
                self._hangs(directory)
                await asyncio.wait([answer])
                self._hung.discard(directory)
            error = answer.exception()
            if error is not None and not isinstance(error, Exception):
                raise error
            await self._written(directory, piece.verdict, error)
        finally:
            self._hung.discard(directory)
            del self._at_work[directory]
            self._begin()
            self._moved.set()

    def _hangs(self, directory: str) -> None:
        """Its disk does not answer: other folders go on, and this one waits for it."""
        self._hung.add(directory)
        where = directory or "the state folder"
        text = f"the disk of {where} does not answer since {self._hung_s:g} s; files there wait"
        self._world.health.failed(_fault(directory), f"verdict files: {text}")
        self._begin()
        self._moved.set()

    async def _written(self, directory: str, verdict: Verdict | None, error: Exception | None) -> None:
        """It was written, or it was not: then the row stays unfiled, and is tried again."""
        health, fault = self._world.health, _fault(directory)
        if error is not None:
            health.failed(fault, f"verdict files: {error}")
            self._retry_later()
            return
        was_broken = health.works(fault)
        if not self._queues[CASE]:
            health.works(CASES)
        try:
            if verdict is not None:
                await self._world.db.commit(verdicts.filed(verdict))
            if was_broken:
                self._pause_s = RETRY_S
                self.recover(directory)
        except Unavailable as e:
            health.failed(DATABASE, str(e))
            self._retry_later()
        except Exception:
            self._world.log.exception("bug", task="filing")

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


def case_object(case: Case, opinion: Opinion, decision: Decision) -> dict[str, Any]:
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

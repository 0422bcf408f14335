"""Writes verdict files and cases in threads: in each folder one after the other, those of judged turns first.

A session has one verdict file, so of the verdicts that wait for it only the newest is written. A verdict is
stored before its file is written; ``filed`` is stored after. A crash or a fault leaves it unfiled: it is
written at the next start, or when the fault is over (I21, I42). A disk that does not answer within ``HUNG_S``
gets a named fault and holds up only its own folder.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct, field, to_builtins
from msgspec.structs import replace

from ..core.errors import Unavailable
from ..core.verdict import Verdict
from ..files.verdict import Judging, VerdictFiles, verdict_object
from ..store import outbox, verdicts
from .threads import on_disk
from .world import DATABASE, World

if TYPE_CHECKING:
    from ..judge.case import Case
    from ..judge.decide import Decision
    from ..judge.flow import Opinion
    from .stream import Kind

COLLISION_MS: Final = 600_000
CASES_WAITING: Final = 50  # one may hold a megabyte
HUNG_S: Final = 10.0
AT_ONCE: Final = 4  # folders that are written to, beside those that hang
CASES: Final = "cases"
FRESH_MS: Final = 60_000
FRESH_KEPT: Final = 200
READ_MS: Final = 2_000  # whoever waited for an alias has read it by then
SHORT: Final = 8
RETRY_S: Final = 5.0
LONGEST_PAUSE_S: Final = 300.0


class _Piece(Struct, frozen=True):
    """``write`` runs in a thread. ``verdict`` is filed by it."""

    write: Callable[[], object]
    verdict: Verdict | None = None


class _Folder(Struct, eq=False):
    """The waiting files of one folder, by session and file: ``urgent`` before ``rest``, each in order: an
    alias is marked as out of date after the verdict that wrote it.
    """

    urgent: OrderedDict[tuple[str, str], _Piece] = field(default_factory=OrderedDict)
    rest: OrderedDict[tuple[str, str], _Piece] = field(default_factory=OrderedDict)
    hangs: bool = False


class Filing:
    """One file for each session, and a bounded number of cases (I44). For the loop's thread."""

    def __init__(self, world: World, files: VerdictFiles, *, hung_s: float = HUNG_S) -> None:
        self._world = world
        self._files = files
        self._hung_s = hung_s
        self._fresh: dict[str, tuple[Verdict, str]] = {}  # by session: what its file says, and its folder
        self._folders: dict[str, _Folder] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._turns = asyncio.Semaphore(AT_ONCE)
        self._moved = asyncio.Event()
        self._cases: OrderedDict[tuple[str, str, str], None] = OrderedDict()
        self._cases_dropped = 0
        self._retry_at = 0.0
        self._pause_s = RETRY_S

    def begun(self, turn: Judging, directory: str) -> None:
        """The turn is being judged, or its agent seems stuck."""
        self._publish(turn, directory)
        self._fresh.pop(turn.session, None)
        self._put(directory, turn.session, "", _Piece(partial(self._files.begun, turn, directory)))

    def final(self, verdict: Verdict, directory: str) -> None:
        """The final verdict; marked as filed once it is on disk."""
        self._publish(verdict, directory)
        self._final(verdict, directory, urgent=verdict.state not in {"error", "skipped"})

    def delivered(self, session: str, turn: str) -> None:
        """The feedback on this turn reached the agent, perhaps long after its file was written: then the file
        is written again, unless it is about something newer by now.
        """
        verdict, directory = self._fresh.get(session, (None, ""))
        if verdict is None or verdict.turn != turn or verdict.state != "incomplete" or verdict.will_prompt:
            return
        self._final(replace(verdict, will_prompt=True, at=self._world.clock.now_ms()), directory)

    def _final(self, verdict: Verdict, directory: str, *, urgent: bool = True) -> None:
        self._fresh[verdict.session] = (verdict, directory)
        while len(self._fresh) > FRESH_KEPT:
            del self._fresh[next(iter(self._fresh))]
        write = partial(self._files.final, verdict, directory, collides=self.collides(verdict.session))
        self._put(directory, verdict.session, "", _Piece(write, verdict), urgent=urgent)

    def _publish(self, v: Verdict | Judging, directory: str) -> None:
        """For those who watch, before the file is written."""
        stream = self._world.stream
        if stream.watched:
            s = self._world.sessions.get(v.session)
            sent = isinstance(v, Verdict) and v.will_prompt
            more = {"title": s.title if s is not None else "", "directory": directory, "feedback_sent": sent}
            kind: Kind = "verdict" if isinstance(v, Verdict) else v.state
            stream.publish(kind, verdict_object(v) | more | {"at": v.at})

    def outdated(self, session: str) -> None:
        """A new task began: the verdict of the old one must not look fresh to its readers (I22)."""
        verdict, directory = self._fresh.pop(session, (None, ""))
        if verdict is not None and self._world.clock.now_ms() - verdict.at < FRESH_MS:
            self._outdated(verdict, directory)
        s = self._world.sessions.get(session)
        if s is not None:
            self._stale_alias(session, s.directory)

    def _outdated(self, verdict: Verdict, directory: str, *, urgent: bool = True) -> None:
        write = partial(self._files.outdated, verdict, directory)
        self._put(directory, verdict.session, "", _Piece(write, verdict), urgent=urgent)

    def went_on(self, session: str) -> None:
        """The agent works on its feedback: mark the alias as out of date (I22).

        Its readers have read it. They may see the end of the next turn before we do, and would then take the
        alias for the verdict on that turn.
        """
        verdict, directory = self._fresh.get(session, (None, ""))
        if verdict is None or not verdict.will_prompt or self._world.clock.now_ms() - verdict.at < READ_MS:
            return
        self._stale_alias(session, directory)
        self._fresh[session] = (replace(verdict, will_prompt=False), directory)

    def _stale_alias(self, session: str, directory: str) -> None:
        """The alias may show another session with these 8 characters."""
        since = self._world.clock.now_ms() - FRESH_MS
        for verdict, folder in self._fresh.values():
            shown = (verdict.complete or verdict.will_prompt) and verdict.at > since
            if shown and folder == directory and verdict.session[:SHORT] == session[:SHORT]:
                write = partial(self._files.alias_outdated, verdict, directory)
                self._put(directory, verdict.session, "alias", _Piece(write))

    def case(self, case: Case, opinion: Opinion, decision: Decision) -> None:
        """The full evaluation; its JSON is built in the thread. When too many wait, the oldest is lost."""
        s, at = decision.session, decision.verdict.at

        def write() -> object:
            return self._files.case(s.id, at, case_object(case, opinion, decision), s.directory)

        self._cases[s.directory, s.id, str(at)] = None
        self._put(s.directory, s.id, str(at), _Piece(write), urgent=False)
        if len(self._cases) > CASES_WAITING:
            (directory, session, name), _ = self._cases.popitem(last=False)
            if (folder := self._folders.get(directory)) is not None:
                folder.rest.pop((session, name), None)
            self._cases_dropped += 1
            text = f"{self._cases_dropped} evaluations were not saved in .reflection: the disk is too slow"
            self._world.health.failed(CASES, text)

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
                self._outdated(stored.verdict, stored.directory, urgent=False)
            else:
                self._final(stored.verdict, stored.directory, urgent=False)
        return len(unfiled)

    def tidy(self) -> None:
        """At the start: remove the temporary files that a crash left in the folders used last."""
        for directory in self._world.verdicts.folders() | self._world.sessions.open_folders():
            self._put(directory, "", "tidy", _Piece(partial(self._files.tidy, directory)), urgent=False)

    @property
    def waiting(self) -> bool:
        """Something is still to be written, on a disk that answers."""
        return any(not folder.hangs for folder in self._folders.values())

    def status(self) -> dict[str, int]:
        waiting = sum(len(folder.urgent) + len(folder.rest) for folder in self._folders.values())
        return {"waiting": waiting, "cases_dropped": self._cases_dropped}

    async def drain(self) -> None:
        """Wait until everything queued is written, but for folders whose disk hangs."""
        while self.waiting:
            self._moved.clear()
            await self._moved.wait()

    def close(self) -> None:
        """Begin nothing more, and wait for no disk."""
        for task in self._tasks:
            task.cancel()

    def _put(self, directory: str, session: str, name: str, piece: _Piece, *, urgent: bool = True) -> None:
        """Of one file only the newest is written, at the most urgent place that it had."""
        key, folder = (session, name), self._folders.get(directory)
        if folder is None:
            folder = self._folders[directory] = _Folder()
            task = asyncio.get_running_loop().create_task(self._work(directory, folder))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        if urgent or key in folder.urgent:
            folder.rest.pop(key, None)
            folder.urgent[key] = piece
        else:
            folder.rest[key] = piece

    async def _work(self, directory: str, folder: _Folder) -> None:
        try:
            while folder.urgent or folder.rest:
                await self._turns.acquire()
                key, piece = (folder.urgent or folder.rest).popitem(last=False)
                self._cases.pop((directory, *key), None)
                await self._write(directory, folder, piece)
        finally:
            del self._folders[directory]
            self._moved.set()

    async def _write(self, directory: str, folder: _Folder, piece: _Piece) -> None:
        """One piece. A disk that does not answer gives its turn to the other folders."""
        try:
            answer = on_disk(piece.write)
            await asyncio.wait([answer], timeout=self._hung_s)
            if not answer.done():
                folder.hangs = True
                where = directory or "the state folder"
                text = f"the disk of {where} does not answer since {self._hung_s:g} s; files there wait"
                self._world.health.failed(_fault(directory), f"verdict files: {text}")
                self._turns.release()
                self._moved.set()
                await asyncio.wait([answer])
                folder.hangs = False
                await self._turns.acquire()
            await self._written(directory, piece.verdict, answer.exception())
        except Exception:
            self._world.log.exception("bug", task="filing")
        finally:
            if not folder.hangs:
                self._turns.release()

    async def _written(self, directory: str, verdict: Verdict | None, error: BaseException | None) -> None:
        """It was written, or it was not: then the row stays unfiled, and is tried again."""
        health, fault = self._world.health, _fault(directory)
        if error is not None:
            health.failed(fault, f"verdict files: {error}")
            self._retry_later()
            return
        was_broken = health.works(fault)
        if not self._cases:
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

    def _retry_later(self) -> None:
        """Unfiled verdicts are tried again by ``retry``: after 5 s, 10 s … at most 5 minutes."""
        if not self._retry_at:
            self._retry_at = self._world.clock.monotonic() + self._pause_s

    def retry(self) -> None:
        """Call it now and then: files that could not be written are tried again when it is time."""
        if not self._retry_at or self._world.clock.monotonic() < self._retry_at:
            return
        self._retry_at = 0.0
        self._pause_s = min(self._pause_s * 2, LONGEST_PAUSE_S) if self.recover() else RETRY_S


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

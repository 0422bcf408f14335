"""Judges a turn and, where the person allows it, runs the project's own check before the turn counts as done
(design/proof.md).

One run at a time, in its own process group, within its limits, never twice for the same files, and never
while an agent works there. A run is evidence like the agent's own. Where it can't be told what a run means,
nothing follows from it.
"""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct
from msgspec.structs import replace

from .. import config
from ..core.errors import ReflectdError, Unavailable
from ..core.orders import ShowToast
from ..core.proof import Ended, Known, Proof
from ..core.settings import Proof as Settings
from ..core.settings import folders
from ..files.prompts import trusts_command
from ..proof import tree
from ..proof.run import RunFiles, Written, identity, run
from ..store import proofs
from .world import DAY_MS, World

if TYPE_CHECKING:
    from collections.abc import Collection, Coroutine, Mapping, Sequence

    from ..core.session import Session
    from ..evidence.work import Work
    from ..judge.case import Case
    from ..proof.choice import Ran
    from ..store.db import Statement
    from .asking import Asking, Formed
    from .hosts.host import Instance
    from .turn import Messages

LEFT_S: Final = 5.0  # of the host's wait, for what follows from a run
SHORTEST_S: Final = 5.0
REASON: Final = 300  # characters of why no check was run
FOLDER: Final = "proof"  # in the state folder


class _Wanted(Struct, frozen=True):
    """The checks to run for one turn. ``ran``: the agent's own runs in this task; ``written``: the files that
    the agent wrote; ``end``: when the last run must be over (monotonic seconds).
    """

    case: Case
    session: Session
    settings: Settings
    plan: tuple[Known, ...]
    ran: Sequence[Ran]
    written: frozenset[str]
    end: float
    project: str

    @property
    def task_at(self) -> int:
        """When the person gave the task, epoch ms."""
        task = self.case.transcript.task if self.case.transcript is not None else None
        return task.at if task is not None else 0


class Proving:
    """``judge`` is what a round asks; the rest is told by it."""

    def __init__(self, world: World, asking: Asking, messages: Messages) -> None:
        self._world = world
        self._asking = asking
        self._messages = messages
        self._files = RunFiles(world.db.path.parent / FOLDER)
        self.proofs = proofs.Proofs(world.db)
        self._one = asyncio.Lock()
        self._cleared = False
        self.runs = ""
        """The check that runs now, as a person types it."""

    async def clear(self) -> None:
        """End what a daemon that was killed left running; before the first run."""
        async with self._one:
            await self._clear()

    async def _clear(self) -> None:
        if not self._cleared:
            self._cleared = True
            for left in await asyncio.to_thread(self._files.clear):
                self._world.log.warning("a run of an earlier daemon was ended", run=left)

    async def judge(
        self, case: Case, s: Session, instance: Instance | None = None, within_s: float | None = None
    ) -> Formed:
        """The judge's opinion, after a run of the check. ``within_s``: instead of ``Limits.wait_s``."""
        world, begun = self._world, self._world.clock.monotonic()
        formed = await self._asking.judge(case, s)
        settings = world.project(s.directory).proof
        if not settings.enabled or not case.evidence.tool_calls or case.transcript is None:
            return formed
        end = begun + (within_s or world.limits(s).wait_s) - LEFT_S
        try:
            ended = await self._proved(formed, s, settings, end, instance)
        except (ReflectdError, OSError) as e:
            reason = str(e)[:REASON]
            world.log.info("not proved", session=s.id, reason=reason)
            none = Proof("", None, 0.0, "not_run", at=world.clock.now_ms(), reason=reason)
            return replace(formed, opinion=replace(formed.opinion, proof=none))
        if ended is None:
            return formed
        formed = await asyncio.to_thread(with_run, formed, *ended)
        proof = formed.opinion.proof
        if proof is None or proof.state != "failed_before" or formed.opinion.judgement is None:
            return formed
        # whether the task was about what fails, only a reader of the request can say
        again = await self._asking.judge(formed.case, s)
        if again.opinion.judgement is None:
            return formed
        return replace(again, opinion=replace(again.opinion, proof=proof), ms=formed.ms + again.ms)

    async def _proved(
        self, formed: Formed, s: Session, settings: Settings, end: float, instance: Instance | None
    ) -> tuple[Ended, frozenset[str]] | None:
        """The run that decides, and the files that the agent wrote. Raises ``ReflectdError``."""
        world = self._world
        learned, wanted = await asyncio.to_thread(self._look, formed, s, settings, end)
        if learned:
            world.later(*learned)
        if wanted is None:
            return None
        if not wanted.plan:
            raise Unavailable(
                "no check that may be run covers the edits (`reflectd proof` lists those known)"
            )
        if (busy := await self._working_there(s)) is not None:
            raise Unavailable(f"the agent of {busy} works in this folder")
        try:
            async with asyncio.timeout(max(0.0, end - world.clock.monotonic())):
                await self._one.acquire()
        except TimeoutError:
            raise Unavailable("another check ran until the host's wait was over") from None
        try:
            await self._clear()
            if (busy := await self._working_there(s)) is not None:  # it began while we waited
                raise Unavailable(f"the agent of {busy} works in this folder")
            return await self._run_all(wanted, instance), wanted.written
        finally:
            self._one.release()

    def _look(
        self, formed: Formed, s: Session, settings: Settings, end: float
    ) -> tuple[list[Statement], _Wanted | None]:
        """Statements that keep the agent's own checks, and the checks to run for this turn: None where no run
        can decide, no code was written, or the agent's own run proves it already. Blocks: in a thread.
        """
        from ..evidence.collect import read
        from ..proof.choice import is_proved, planned, refused, run_by_agent

        case = formed.case
        assert case.transcript is not None  # noqa: S101 - the caller looked
        calls = tuple(c for m in case.transcript.work for c in m.calls)
        work: Work = read(calls, s.directory)
        project = os.path.realpath(s.directory)
        ran = run_by_agent(work, s.directory)
        learned = self._learned(project, case, ran)
        if not case.evidence.code_writes or not wants(formed):
            return learned, None
        known = self.proofs.commands(project)
        struck = {c.known.key for c in known if c.struck}
        chosen = [Known(settings.command, "", "person")] if settings.command else []
        theirs = config.project_command(Path(s.directory))
        if theirs and trusts_command(self._world.prompts.trust, s.directory, theirs):
            chosen.append(Known(theirs, "", "project"))
        every = [*chosen, *(c.known for c in known), *(r.known for r in ran)]
        may = [k for k in every if k.key not in struck and not refused(k.command)]
        here = [r for r in ran if r.known.key not in struck]
        plan = planned(list(dict.fromkeys(may)), here, work, s.directory)
        if is_proved(plan, ran, work, s.directory):
            return learned, None
        written = frozenset(w.path for w in work.writes)
        return learned, _Wanted(case, s, settings, plan, ran, written, end, project)

    def _learned(self, project: str, case: Case, ran: Sequence[Ran]) -> list[Statement]:
        at = self._world.clock.now_ms()
        last = {r.known: r for r in ran}
        return proofs.learn(project, list(last), at) + [
            proofs.ended(project, case.task, known, r.outcome, r.tests, at)
            for known, r in last.items()
            if r.outcome != "unknown"
        ]

    async def _working_there(self, s: Session) -> str | None:
        """Another session whose agent works in this folder, below or above it; or a sub-agent's."""
        if self._messages.children_busy(s.id):
            return "a sub-agent"
        busy = {
            other.id: other.directory
            for other in self._world.sessions.in_memory()
            if other.id != s.id and other.busy and not other.judge and other.directory
        }
        return await asyncio.to_thread(_sharing, s.directory, busy) if busy else None

    def _tell(self, s: Session, known: Known, instance: Instance | None) -> None:
        world = self._world
        world.log.info("proof", session=s.id, command=known.command, folder=known.folder)
        if instance is not None and instance.mode == "tui" and world.limits(s).toasts and instance.connected:
            text = f"Running `{known.command}` to see whether the task is done. Type a message to take over"
            instance.tell(ShowToast(s.id, text[:300], "info"))

    async def _run_all(self, wanted: _Wanted, instance: Instance | None) -> Ended:
        before, took = await self._state(wanted)
        wanted = replace(wanted, end=wanted.end - took)  # for the look afterwards
        for known in wanted.plan:
            same = self.proofs.same(wanted.project, before.digest, known, self._left(wanted))
            if same is not None:
                ended = await self._aged(wanted, same)
            else:
                self._tell(wanted.session, known, instance)
                ended = await self._run_one(wanted, known, before)
            if ended.proof.state != "passed":
                break
        return ended

    async def _state(self, wanted: _Wanted) -> tuple[tree.State, float]:
        """The project's files, and the seconds for them. Raises ``Unavailable`` after the host's wait."""
        clock, folder = self._world.clock, Path(wanted.session.directory)
        begun = clock.monotonic()
        try:
            async with asyncio.timeout(max(SHORTEST_S, wanted.end - begun)):
                found = await asyncio.to_thread(tree.look, folder, wanted.written)
        except TimeoutError:
            raise Unavailable(f"the files of {folder} could not be read while the host waits") from None
        return found, clock.monotonic() - begun

    async def _run_one(self, wanted: _Wanted, known: Known, before: tree.State) -> Ended:
        """One check, and what is known of it afterwards; it is stored."""
        world = self._world
        ended = await self._aged(wanted, await self._ran(wanted, known))
        if ended.proof.state == "failed":
            again = await self._again(wanted, ended)
            if again.proof.state == "passed":
                ended = replace(again, proof=replace(again.proof, state="flaky", tests=ended.proof.tests))
            elif again.proof.state != "failed":  # it did not fail twice
                ended = again
        after, _ = await self._state(wanted)
        if tree.differs(before, after, wanted.written):
            ended = replace(ended, proof=replace(ended.proof, state="changed"))
        ended = replace(ended, proof=replace(ended.proof, at=world.clock.now_ms()))
        s, outcome = wanted.session, "failed" if ended.proof.state.startswith("failed") else ended.proof.state
        statements = [
            proofs.ran(identity(), wanted.project, s.id, wanted.case.task, ended, before.digest, after.digest)
        ]
        if outcome in {"passed", "failed"}:
            at = ended.proof.at
            statements.append(proofs.ended(wanted.project, wanted.case.task, known, outcome, ended.marks, at))
        await world.db.commit(*statements)
        world.log.info(
            "proof ended", session=s.id, command=known.command, state=ended.proof.state,
            exit=ended.proof.exit, seconds=ended.proof.seconds, tests=len(ended.proof.tests),
        )  # fmt: skip
        return ended

    async def _again(self, wanted: _Wanted, failed: Ended) -> Ended:
        """The repeat of a check that failed. Where it can't be made nothing follows from the failure."""
        try:
            return await self._ran(wanted, failed.known)
        except Unavailable as e:
            reason = f"`{failed.known.typed}` failed once and could not be run again: {e}"[:REASON]
            return replace(failed, proof=replace(failed.proof, state="not_run", reason=reason))

    async def _aged(self, wanted: _Wanted, ended: Ended) -> Ended:
        """A failure beside what failed before the task's first edit, as far as anybody knows."""
        from ..proof.outcome import compared

        known = ended.known
        if ended.proof.state != "failed":
            return ended
        earlier = [r for r in wanted.ran if r.before and r.known.key == known.key and r.outcome != "unknown"]
        seen = self.proofs.before(wanted.project, wanted.case.task, known)
        if earlier:
            return compared(ended, earlier[-1].tests)
        if seen is not None:
            return compared(ended, seen[1] if seen[0] == "failed" else ())
        if not wanted.settings.before:
            return ended
        folder = Path(wanted.session.directory)
        commit = await asyncio.to_thread(tree.commit_before, folder, wanted.task_at)
        if not commit:
            return ended
        try:
            base = await self._ran(wanted, known, commit)
        except Unavailable:  # the check may be newer than that commit
            return ended
        outcome = base.proof.state
        if outcome in {"passed", "failed"}:
            at = self._world.clock.now_ms()
            self._world.later(
                proofs.ended(wanted.project, f"before {wanted.case.task}", known, outcome, base.marks, at)
            )
        return compared(ended, base.marks)

    async def _ran(self, wanted: _Wanted, known: Known, commit: str = "") -> Ended:
        """Run it once: in the project's folder, in a worktree of what is there, or in one of ``commit``."""
        from ..proof.outcome import ended

        mark = identity()
        self._seconds(wanted)
        folder = Path(wanted.session.directory)
        written = Written(mark, 0, self._world.clock.now_ms(), known.command, str(folder / known.folder))
        in_tree = bool(commit) or wanted.settings.where == "worktree"
        found, begun, stored = None, -1.0, None
        try:
            if in_tree:
                top, inside = await asyncio.to_thread(tree.repository, folder)
                place = self._files.place(mark)
                written = replace(written, place=str(place), repository=str(top))
                self._files.write(written)
                share = folders(wanted.settings.share)
                await _whole(asyncio.to_thread(tree.make, place, top, inside, share, commit))
                folder = place / inside
            whole = place if in_tree else folder  # a folder of an older commit may be a link
            below = known.folder if not in_tree else f"{inside}/{known.folder}"
            where = await asyncio.to_thread(_inside, whole, below)
            seconds, begun = self._seconds(wanted), self._world.clock.monotonic()

            def started(pid: int) -> None:
                self._files.write(replace(written, pid=pid))

            self.runs = known.typed
            found = await run(known.command, where, seconds, mark, started)
        finally:
            self.runs = ""
            if begun >= 0:
                took = found.seconds if found is not None else self._world.clock.monotonic() - begun
                now = self._world.clock.now_ms()
                stored = self._world.later(proofs.spent(mark, now, int(took * 1000)))
            await self._cleaned(written)
        if stored is not None:
            await asyncio.wait([stored])  # so that it counts before another run begins
        end = await asyncio.to_thread(ended, known, found, str(folder))
        return replace(end, proof=replace(end.proof, place="worktree" if in_tree else "folder"))

    async def _cleaned(self, written: Written) -> None:
        """Remove the worktree of a run. One that stays is tried again at the next start."""
        try:
            if written.place:
                await _whole(asyncio.to_thread(tree.remove, Path(written.place), written.repository))
        except (Unavailable, OSError) as e:
            self._world.log.warning("a worktree stays", reason=str(e))
        else:
            self._files.done(written.id)

    def _seconds(self, wanted: _Wanted) -> float:
        """How long one run may take now. Raises ``Unavailable`` when nothing is left."""
        seconds = self._left(wanted)
        if seconds < SHORTEST_S:
            waits = wanted.end - self._world.clock.monotonic() >= SHORTEST_S
            raise Unavailable("proof.minutes_a_day are used up" if waits else "the host waits no longer")
        return seconds

    def _left(self, wanted: _Wanted) -> float:
        """Seconds that the host's wait, the limit of one run and that of the day leave."""
        clock, settings = self._world.clock, wanted.settings
        today = settings.minutes_a_day * 60 - self.proofs.spent_ms(clock.now_ms() - DAY_MS) / 1000
        return min(float(settings.timeout_s), wanted.end - clock.monotonic(), today)


def wants(formed: Formed) -> bool:
    """Says whether a run can decide this opinion."""
    from ..proof.outcome import wants_a_run

    opinion = formed.opinion
    return wants_a_run(opinion.judgement, formed.case, no_proof=opinion.no_proof)


def with_run(formed: Formed, ended: Ended, written: Collection[str] = ()) -> Formed:
    """The opinion with the run as evidence, and what follows from it. ``written``: by the agent."""
    from ..proof import outcome
    from ..proof.choice import defines

    case, opinion = formed.case, formed.opinion
    own = case.evidence.of("tests_changed") or any(defines(ended.known.command, path) for path in written)
    if ended.proof.state == "passed" and own:
        ended = replace(ended, proof=replace(ended.proof, state="tests_changed"))
    evidence, row = outcome.with_run(case.evidence, ended)
    judgement = outcome.judged(opinion.judgement, ended, row)
    if judgement is not opinion.judgement:
        opinion = replace(opinion, judgement=judgement, why=ended.proof.text, no_proof=False)
    return replace(formed, case=replace(case, evidence=evidence), opinion=replace(opinion, proof=ended.proof))


def _sharing(directory: str, others: Mapping[str, str]) -> str | None:
    """Which of the sessions works in this folder, below or above it, links followed."""

    def real(folder: str) -> str:
        return f"{os.path.realpath(folder).rstrip('/')}/"

    mine = real(directory)
    return next((i for i, d in others.items() if mine.startswith(real(d)) or real(d).startswith(mine)), None)


def _inside(folder: Path, below: str) -> Path:
    """The folder in which a check runs. Raises ``Unavailable`` when it isn't in the project."""
    where = Path(os.path.realpath(folder / below))
    if not where.is_dir() or not where.is_relative_to(os.path.realpath(folder)):
        raise Unavailable(f"there is no folder {below} where it would run")
    return where


async def _whole(work: Coroutine[Any, Any, None]) -> None:
    """Wait for the end of it also where we are cancelled meanwhile."""
    task = asyncio.ensure_future(work)
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        raise

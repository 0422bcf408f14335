"""Codex as a host: hooks come in, and their answers are the only way out (docs/codex.md).

A Stop hook waits for its turn's verdict. Feedback is its answer, with which Codex goes on in the same turn;
nothing is the answer when there is nothing to say. Codex has no limit of its own for such answers: the guards
and ``Capabilities.prompts`` are the limit, and they count in the database, so neither a restart nor
``stop_hook_active`` begins anew. Esc kills the hook and is told by another one.

Every failure is an empty answer: Codex goes on as if we were not there (I35).
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from ...core import events as ev
from ...core.errors import BadReply, Unavailable
from ...core.orders import Prompting, SendFeedback, SendNudge, ShowToast
from ...hosts.codex.hooks import Hook, events_of, parse_hook
from ...hosts.codex.rollout import RolloutReader, head_of, with_sub_agents
from ...hosts.jsonl import HEAD_OF_FILE, opened
from ..threads import beside
from .host import NOTHING, Answer, Host
from .transcripts import Transcripts

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ...core.offers import When
    from ...core.orders import CallOrder, ResultStatus, StoredOrder
    from ...core.session import Session
    from ...core.transcript import Transcript
    from ..intake import Intake
    from ..offering import Offering
    from ..round import Schedule
    from ..world import World
    from .host import Instance, Instances, Mode

HOST: Final = "codex"
HOLD_S: Final = 30.0  # how long a Stop waits for commands and sub-agents that still run
POLL_S: Final = 0.5
FIRST_LOOKS, FIRST_LOOK_S = 20, 0.05
SEEN_AFTER_S: Final = (*[0.05] * 60, *[1.0] * 57)  # when the file is looked at for a prompt that was given
RUNS: Final = frozenset({"exec", "mcp", "appServer"})
"""Where a session comes from, by its file, if no person sits at it."""
_NULL: Final = msgspec.Raw(b"null")


@dataclass(slots=True, eq=False)
class _Stop:
    """A Stop hook that waits for its verdict. ``prompt``: an order's id and text; empty when there is nothing
    to say.
    """

    final: str
    prompt: asyncio.Future[tuple[str, str]] = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )
    toasts: list[str] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class _Known:
    """One session. ``source``: where it comes from, "" until its file says so. ``turn``: the last one that a
    prompt opened. ``news``: what the person has not read yet.
    """

    source: str = ""
    turn: str = ""
    stop: _Stop | None = None
    ending: bool = False
    news: str = ""

    @property
    def one_shot(self) -> bool:
        """Whether nobody sits at it; so also where that is not known."""
        return not self.source or self.source in RUNS

    def release(self) -> None:
        """A Stop hook that still waits has nothing to say."""
        stop, self.stop = self.stop, None
        if stop is not None and not stop.prompt.done():
            stop.prompt.set_result(("", ""))


class Codex(Host):
    """Answers hooks."""

    name = HOST

    def __init__(
        self, world: World, instances: Instances, intake: Intake, schedule: Schedule, offering: Offering
    ) -> None:
        self._world = world
        self._instances = instances
        self._intake = intake
        self._schedule = schedule
        self._offering = offering
        is_ours = world.outbox.is_ours
        self._files = Transcripts(lambda path: RolloutReader(path, is_ours=is_ours), with_sub_agents)
        self._sessions: dict[str, _Known] = {}

    def _of(self, session: str) -> _Known:
        return self._sessions.setdefault(session, _Known())

    async def hook(self, event: str, body: bytes, headers: Mapping[str, str], *, strict: bool) -> Answer:  # noqa: ARG002
        """One hook. Raises ``BadReply`` for what is no hook of this host."""
        hook = await beside(len(body), lambda: parse_hook(event, body, headers))
        if hook.agent and event != "SubagentStop":
            return NOTHING
        await self._world.projects.read(hook.directory)
        settings, known = self._world.project(hook.directory), self._sessions.get(hook.session) or _Known()
        for _ in range(FIRST_LOOKS if hook.rollout else 0):  # the file is written when the session begins
            known.source = known.source or await asyncio.to_thread(_source_of, Path(hook.rollout))
            if known.source or hook.event != "SessionStart":
                break
            await asyncio.sleep(FIRST_LOOK_S)
        if not settings.enabled or (known.one_shot and not (hook.headless or settings.codex.headless)):
            return NOTHING
        self._sessions[hook.session] = known
        if hook.rollout:
            self._files.locate(hook.session, Path(hook.rollout))
        if event == "PostToolUse":
            await self._intake.hear(self._instance(hook), events_of(hook, self._world.clock.now_ms()))
            return await self._late(hook)
        instance = self._instance(hook)
        if event == "Stop":
            return await self._stop(hook, instance, settings.codex.wait_s)
        return await self._heard(hook, instance)

    async def _heard(self, hook: Hook, instance: Instance) -> Answer:
        """Every hook but Stop."""
        known, t = self._of(hook.session), self._world.clock.now_ms()
        if hook.event == "SessionEnd":
            s = self._world.sessions.get(hook.session)
            cut_short = s is not None and (s.busy or s.recheck)
            self._ends(
                instance, [e for e in events_of(hook, t) if cut_short or isinstance(e, ev.SessionEnded)]
            )
            return NOTHING
        before = self._world.sessions.get(hook.session)
        begins = hook.typed and (before is None or not before.busy)  # else it steers an agent that works
        name = ""
        if hook.event in {"UserPromptSubmit", "Interrupt"}:
            known.release()
        if hook.event == "UserPromptSubmit":
            name, known.turn = (f"prompt-{t}" if hook.turn == known.turn else ""), hook.turn
        await self._intake.hear(instance, events_of(hook, t, name))
        known.ending = False
        if hook.event == "UserPromptSubmit":
            return await self._offered(hook, instance, "prompt", hook.prompt if begins else "")
        if hook.event == "SessionStart":
            offered = await self._offered(
                hook, instance, "compacted" if hook.source == "compact" else "start"
            )
            return NOTHING if hook.source == "fork" else offered  # a fork has what its session was given
        return NOTHING

    def _instance(self, hook: Hook) -> Instance:
        """The session's own instance: orders are carried out here, not in the host."""
        identity = f"{HOST}-{hook.session}"
        before = self._instances.get(identity)
        was = before is not None and before.connected
        mode: Mode = "run" if self._of(hook.session).one_shot else "tui"
        instance = self._instances.add(identity, self, mode, hook.pid, hook.directory)
        instance.session, instance.connected = hook.session, True
        if not was:
            self._intake.connected(instance)
        return instance

    # The end of a session

    def _ends(self, instance: Instance, events: Sequence[ev.Event]) -> None:
        """The session is over. It stays connected until its last turn is judged, unless it begins anew."""
        known = self._of(instance.session)
        known.release()
        known.ending = True
        self._world.spawn(self._end(instance, events), "codex end")

    async def _end(self, instance: Instance, events: Sequence[ev.Event]) -> None:
        session = instance.session
        with contextlib.suppress(Unavailable):  # it could not be stored, which `health` tells
            await self._intake.hear(instance, events)
        judged = self._schedule.task(session)
        if judged is not None:
            await asyncio.wait([judged], timeout=self._world.settings.codex.wait_s)
        await self._resolve(session, over=True)
        known = self._sessions.get(session)
        if known is None or not known.ending:
            return
        instance.connected = False
        known.release()
        del self._sessions[session]
        self._files.forget(session)

    def sweep(self) -> None:
        """Sessions whose process is gone without a word are over."""
        for instance in self._instances:
            if instance.host is not self or not instance.connected or instance.alive:
                continue
            if not self._of(instance.session).ending:
                self._ends(instance, [ev.SessionEnded(instance.session, self._world.clock.now_ms())])

    # The end of a turn

    async def _stop(self, hook: Hook, instance: Instance, wait_s: float) -> Answer:
        """Judge the turn, and answer when there is something to say or nothing left to wait for."""
        session, known, clock = hook.session, self._of(hook.session), self._world.clock
        end = clock.monotonic() + wait_s
        if known.stop is not None and known.stop.final != hook.final and self._schedule.task(session):
            await self._intake.hear(instance, [ev.SessionBusied(session, clock.now_ms())])
        known.release()
        stop = known.stop = _Stop(hook.final)
        try:
            await self._resolve(session, over=True, said=hook.final)
            held = await self._held(hook, stop, min(end, clock.monotonic() + HOLD_S))
            if stop.prompt.done():  # while it was waited the session went on
                return NOTHING
            events = events_of(hook, clock.now_ms())
            if held:
                events = (*events[:-1], ev.BackgroundAwaited(session, events[-1].t, held))
                await self._intake.hear(instance, events)
                return NOTHING  # Codex goes on by itself when a sub-agent ends, and another Stop follows
            await self._intake.hear(instance, events)
            return await self._answer(session, stop, end)
        except asyncio.CancelledError:
            if not known.one_shot and not self._schedule.closed:  # Codex waited for it and hung up: Esc
                aborted = ev.TurnAborted(session, clock.now_ms())
                self._world.spawn(self._intake.hear(instance, [aborted]), "codex esc")
            raise
        finally:
            if self._is_waiting(session, stop):
                known.stop = None

    def _is_waiting(self, session: str, stop: _Stop) -> bool:
        known = self._sessions.get(session)
        return known is not None and known.stop is stop

    async def _held(self, hook: Hook, stop: _Stop, end: float) -> tuple[str, ...]:
        """Waits for commands of the task that still run. The names of sub-agents that do then."""
        while True:
            try:
                transcript = await self._files.read(hook.session, hook.final)
            except (Unavailable, BadReply):
                return ()  # the judgement will say so
            agents = [call.agent for call in transcript.calls if call.agent and call.status == "running"]
            runs = any(call.shell and call.status == "running" for call in transcript.calls)
            if agents or not runs or stop.prompt.done() or self._world.clock.monotonic() > end:
                return tuple(f"sub-agent {agent}" for agent in agents)
            await asyncio.sleep(POLL_S)

    async def _answer(self, session: str, stop: _Stop, end: float) -> Answer:
        """What the judgement has to say. A prompt leaves only if the file still ends with its turn."""
        clock = self._world.clock
        while (judged := self._schedule.task(session)) is not None:
            left = max(0.0, end - clock.monotonic())
            await asyncio.wait((stop.prompt, judged), timeout=left, return_when=asyncio.FIRST_COMPLETED)
            if not stop.prompt.done():
                return _json({"systemMessage": f"reflectd: {'; '.join(stop.toasts)}"} if stop.toasts else {})
            order, text = stop.prompt.result()
            if not order:
                return NOTHING
            stale = await self._stale(session, stop, order)
            if not stale:
                self._of(session).stop = None
                self._world.spawn(self._look_for(session), "codex seen", "look")
                instance = self._instances.get(f"{HOST}-{session}")
                if instance is not None:
                    await self._intake.hear(instance, [ev.SessionBusied(session, clock.now_ms())])
                return _json({"decision": "block", "reason": text})
            await self._intake.result(order, "stale", _NULL, stale)
            if not self._is_waiting(session, stop):
                return NOTHING
            stop.prompt = asyncio.get_running_loop().create_future()  # the newest turn is judged next
        return NOTHING

    async def _stale(self, session: str, stop: _Stop, order: str) -> str:
        """Why the prompt must not leave, by the file as it is now; "" when it may."""
        stored = self._world.outbox.get(order)
        if stored is None or stored.status != "sent" or not isinstance(stored.order, Prompting):
            return "it is void"
        turn = stored.order.turn if isinstance(stored.order, SendFeedback) else ""
        try:
            why = (await self._files.read(session, stop.final)).stale(stored.order.task, turn)
        except (Unavailable, BadReply) as e:
            return str(e)
        return why or ("" if self._is_waiting(session, stop) else "another turn ended")

    # What became of a prompt

    async def _look_for(self, session: str) -> None:
        """Codex was given a prompt: look for it in the file."""
        for wait_s in SEEN_AFTER_S:
            if await self._resolve(session):
                return
            await asyncio.sleep(wait_s)

    async def _resolve(self, session: str, *, over: bool = False, said: str = "") -> bool:
        """Note which prompts the file shows: they reached the agent. True when each has its outcome.
        ``over``: none can come any more. ``said``: the answer that the file must hold by then.
        """
        prompts = [o for o in self._world.outbox.open(session) if isinstance(o.order, Prompting)]
        if not prompts:
            return True
        try:
            transcript = await self._files.read(session, said)
        except (Unavailable, BadReply):
            return False
        shown = {message.order for message in transcript.messages}
        for stored in prompts:
            if stored.id in shown:
                await self._intake.result(stored.id, "done", _NULL, "")
            elif over:
                await self._intake.result(stored.id, "failed", _NULL, "the host dropped it")
        return over or all(stored.id in shown for stored in prompts)

    # The port

    def take(self, instance: Instance, identity: str, order: StoredOrder | CallOrder) -> None:
        """A prompt answers the Stop hook that waits, if one does. Raises ``Unavailable`` for a call."""
        known = self._sessions.get(instance.session) or _Known()
        stop = known.stop
        status: ResultStatus = "done"
        error = ""
        match order:
            case SendFeedback() | SendNudge():
                if stop is not None and not stop.prompt.done():
                    stop.prompt.set_result((identity, f"{order.text}\n(reflectd {identity})"))
                    return
                status, error = "stale", "no Stop hook waits for it"
            case ShowToast():
                if stop is not None:
                    stop.toasts.append(order.message)
                elif order.variant != "info":
                    known.news = order.message
            case _:
                raise Unavailable(f"Codex does not take {type(order).__name__}")
        self._world.spawn(self._intake.result(identity, status, _NULL, error), "codex result")

    async def read(self, s: Session, instance: Instance) -> Transcript:  # noqa: ARG002 - the port
        """The transcript; the file may lag behind the hook that says how the turn ended."""
        known = self._sessions.get(s.id) or _Known()
        final = known.stop.final if known.stop is not None else ""
        transcript = await self._files.read(s.id, final, agents=True)
        return replace(transcript, session=s.id, busy=s.busy, directory=s.directory)

    # Context for the agent

    async def _late(self, hook: Hook) -> Answer:
        """A lesson that was chosen when the prompt was on its way already."""
        instance, s = self._instances.get(f"{HOST}-{hook.session}"), self._world.sessions.get(hook.session)
        if instance is None or s is None:
            return NOTHING
        return _json(_context(hook, await self._offering.text(s, "action", instance)))

    async def _offered(self, hook: Hook, instance: Instance, when: When, prompt: str = "") -> Answer:
        """What the features offer at this moment; with a prompt also what became of the last turn."""
        s = self._world.sessions.get(hook.session)
        output = _context(hook, await self._offering.text(s, when, instance, prompt) if s is not None else "")
        known = self._of(hook.session)
        if when == "prompt" and known.news and hook.typed and not known.one_shot:
            output["systemMessage"] = f"reflectd, on the last turn: {known.news}"
            known.news = ""
        return _json(output)


def _json(body: Mapping[str, Any]) -> Answer:
    return Answer(200, msgspec.json.encode(body)) if body else NOTHING


def _context(hook: Hook, text: str) -> dict[str, Any]:
    output = {"hookSpecificOutput": {"hookEventName": hook.event, "additionalContext": text}}
    return output if text else {}


def _source_of(path: Path) -> str:
    """Where the session comes from, by its file; "" while that is not written."""
    try:
        with opened(path) as fd:
            if fd < 0:
                return ""
            head = head_of(os.pread(fd, HEAD_OF_FILE, 0))
    except (Unavailable, OSError):
        return ""
    return head.status if head is not None else ""

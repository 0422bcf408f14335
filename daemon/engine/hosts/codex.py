"""Codex as a host: hooks come in, and their answers are the only way out (docs/codex.md).

A Stop hook waits for its turn's verdict. Feedback is its answer, with which Codex goes on in the same turn;
nothing is the answer when there is nothing to say. Codex has no limit of its own for such answers: the guards
and ``Capabilities.prompts`` are the limit, and they count in the database, so neither a restart nor
``stop_hook_active`` begins anew. Esc kills the hook and is told by another one.

Every failure is an empty answer: Codex goes on as if we were not there (I35).
"""

from __future__ import annotations

import asyncio
import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from ...core import events as ev
from ...core.errors import BadReply, Unavailable
from ...hosts.codex.hooks import Hook, events_of, parse_hook
from ...hosts.codex.rollout import RolloutReader, begun_by, head_of, with_sub_agents
from ...hosts.jsonl import HEAD_OF_FILE, opened
from ..threads import beside
from .hooked import Hooked, Known, Stop, as_json
from .host import NOTHING, Answer
from .transcripts import Transcripts

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ...core.offers import When
    from ...core.orders import ShowToast
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
RUNS: Final = frozenset({"exec", "mcp", "appServer"})
"""Where a session comes from, by its file, if no person sits at it."""


class _Known(Known, eq=False):
    """One session. ``source``: where it, or its last turn, comes from, "" until its file says so. ``turn``:
    the last one that a prompt opened. ``news``: what the person has not read yet.
    """

    source: str = ""
    turn: str = ""
    news: str = ""

    @property
    def one_shot(self) -> bool:
        """Says whether nobody sits at it; so also where that is not known."""
        return not self.source or self.source in RUNS

    def resumed_by(self, began: str) -> None:
        """Take the trigger of its turn: a person resumes what ``codex exec`` began, or reversed."""
        if "exec" in {began, self.source} and began in {"exec", "user"}:
            self.source = began

    def show(self, toast: ShowToast) -> None:
        """With the person's next prompt, if it is more than news."""
        if toast.variant != "info":
            self.news = toast.message


class Codex(Hooked[_Known]):
    """Answers hooks."""

    name, known = HOST, _Known

    def __init__(
        self, world: World, instances: Instances, intake: Intake, schedule: Schedule, offering: Offering
    ) -> None:
        is_ours = world.outbox.is_ours
        files = Transcripts(lambda path: RolloutReader(path, is_ours=is_ours), with_sub_agents)
        super().__init__(world, instances, intake, schedule, offering, files, world.settings.codex.wait_s)

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
        if hook.event in {"UserPromptSubmit", "Stop"} and hook.rollout:
            known.resumed_by(await asyncio.to_thread(_begun_by, Path(hook.rollout), hook.turn))
        if not settings.enabled or (known.one_shot and not (hook.headless or settings.run.headless)):
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
            self._ends(instance, events_of(hook, t))
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
        mode: Mode = "run" if self._of(hook.session).one_shot else "tui"
        instance, was = self._connect(hook.session, mode, hook.pid, hook.directory)
        if not was:
            self._intake.connected(instance)
        return instance

    # The end of a turn

    async def _stop(self, hook: Hook, instance: Instance, wait_s: float) -> Answer:
        """Judge the turn, and answer when there is something to say or nothing left to wait for."""
        session, known, clock = hook.session, self._of(hook.session), self._world.clock
        end = clock.monotonic() + wait_s
        stop = Stop(hook.final)
        await self._stops(session, instance, stop)
        try:
            await self._resolve(session, over=True, said=hook.final)
            held = await self._held(hook, stop, min(end, clock.monotonic() + HOLD_S))
            if stop.released:  # while it was waited the session went on
                return NOTHING
            events = events_of(hook, clock.now_ms())
            if held:
                events = (*events[:-1], ev.BackgroundAwaited(session, events[-1].t, held))
                await self._intake.hear(instance, events)
                return NOTHING  # Codex goes on by itself when a sub-agent ends, and another Stop follows
            await self._intake.hear(instance, events)
            return await self._answer(session, instance, stop, end)
        except asyncio.CancelledError:
            self._hung_up(session, instance, watched=not known.one_shot)
            raise
        finally:
            if self._is_waiting(session, stop):
                known.stop = None

    async def _held(self, hook: Hook, stop: Stop, end: float) -> tuple[str, ...]:
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

    async def read(self, s: Session, instance: Instance) -> Transcript:  # noqa: ARG002 - the port
        """The transcript; the file may lag behind the hook that says how the turn ended."""
        known = self._sessions.get(s.id) or _Known()
        final = known.stop.said if known.stop is not None else ""
        transcript = await self._files.read(s.id, final, agents=True)
        return replace(transcript, session=s.id, busy=s.busy, directory=s.directory)

    # Context for the agent

    async def _late(self, hook: Hook) -> Answer:
        """A lesson that was chosen when the prompt was on its way already."""
        instance = self._instance_of(hook.session)
        return as_json(await self._context(hook.event, hook.session, "action", instance))

    async def _offered(self, hook: Hook, instance: Instance, when: When, prompt: str = "") -> Answer:
        """The features' offers at this moment; with a prompt also the outcome of the last turn."""
        output = await self._context(hook.event, hook.session, when, instance, prompt)
        known = self._of(hook.session)
        if when == "prompt" and known.news and hook.typed and not known.one_shot:
            output["systemMessage"] = f"reflectd, on the last turn: {known.news}"
            known.news = ""
        return as_json(output)


def _begun_by(path: Path, turn: str) -> str:
    """The trigger of the turn; "" where its file does not say."""
    with suppress(Unavailable, OSError):
        return begun_by(path, turn)
    return ""


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

"""Codex as a host: hooks come in, and their answers are the only way out (docs/codex.md).

Feedback is the answer of the Stop hook, with which Codex goes on in the same turn. Codex has no limit of its
own for such answers: the guards and ``Capabilities.prompts`` count in the database, so neither a restart nor
``stop_hook_active`` begins anew. Esc kills the hook and is told by another one. Every failure is an empty
answer (I35).
"""

from __future__ import annotations

import asyncio
import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ...core.errors import BadReply, Unavailable
from ...hosts.codex.hooks import events_of, parse_hook
from ...hosts.codex.rollout import RolloutReader, begun_by, head_of, with_sub_agents
from ...hosts.hook import Hook
from ...hosts.jsonl import HEAD_OF_FILE, opened
from ..threads import beside
from .hooked import Hooked, Known, Stop
from .host import NOTHING, Answer

if TYPE_CHECKING:
    from collections.abc import Mapping


HOST: Final = "codex"
LONGEST_S: Final = 540
HOLD_S: Final = 30.0  # how long a Stop waits for commands and sub-agents that still run
POLL_S: Final = 0.5
FIRST_LOOKS, FIRST_LOOK_S = 20, 0.05
RUNS: Final = frozenset({"exec", "mcp", "appServer"})
"""Where a session comes from, by its file, if no person sits at it."""


class _Known(Known, eq=False):
    """One session. ``source``: where it, or its last turn, comes from, "" until its file says so. ``turn``:
    the last one that a prompt opened.
    """

    source: str = ""
    turn: str = ""

    @property
    def one_shot(self) -> bool:
        """Says whether nobody sits at it; so also where that is not known."""
        return not self.source or self.source in RUNS

    def resumed_by(self, began: str) -> None:
        """Take the trigger of its turn: a person resumes what ``codex exec`` began, or reversed."""
        if "exec" in {began, self.source} and began in {"exec", "user"}:
            self.source = began


class Codex(Hooked[Hook, _Known]):
    name, known, reader, longest_s = HOST, _Known, RolloutReader, LONGEST_S
    with_agents, events_of = staticmethod(with_sub_agents), staticmethod(events_of)

    async def hook(self, event: str, body: bytes, headers: Mapping[str, str], *, strict: bool) -> Answer:  # noqa: ARG002
        hook = await beside(len(body), lambda: parse_hook(event, body, headers))
        if hook.agent_id and event != "SubagentStop":
            return NOTHING
        await self._world.projects.read(hook.directory)
        settings, known = self._world.project(hook.directory), self._sessions.get(hook.session) or _Known()
        for _ in range(FIRST_LOOKS if hook.transcript else 0):  # the file is written when the session begins
            known.source = known.source or await asyncio.to_thread(_source_of, Path(hook.transcript))
            if known.source or hook.event != "SessionStart":
                break
            await asyncio.sleep(FIRST_LOOK_S)
        if hook.event in {"UserPromptSubmit", "Stop"} and hook.transcript:
            known.resumed_by(await asyncio.to_thread(_begun_by, Path(hook.transcript), hook.turn_id))
        if not settings.enabled or (known.one_shot and not (hook.headless or settings.run.headless)):
            return NOTHING
        self._sessions[hook.session] = known
        if hook.transcript:
            self._files.locate(hook.session, Path(hook.transcript))
        instance = self._connect(hook, one_shot=known.one_shot)
        t = self._world.clock.now_ms()
        match event:
            case "Stop":
                return await self._stop(hook, instance, Stop(hook.last_assistant_message))
            case "SessionEnd":
                self._ends(instance, events_of(hook, t))
                return NOTHING
            case "PostToolUse":
                await self._intake.hear(instance, events_of(hook, t))
                return await self._late(hook)
            case "Interrupt" | "UserPromptSubmit":
                known.release()
        name = f"prompt-{t}" if event == "UserPromptSubmit" and hook.turn_id == known.turn else ""
        known.turn = hook.turn_id if event == "UserPromptSubmit" else known.turn
        return await self._told(hook, instance, events_of(hook, t, name))

    async def _awaited(self, hook: Hook, stop: Stop, end: float) -> tuple[str, ...]:
        """Waits for commands of the task that still run. The names of sub-agents that do then: Codex goes on
        by itself when one of them ends, and another Stop follows.
        """
        clock = self._world.clock
        end = min(end, clock.monotonic() + HOLD_S)
        while True:
            try:
                transcript = await self._files.read(hook.session, stop.said)
            except (Unavailable, BadReply):
                return ()  # the judgement will say so
            agents = [call.agent for call in transcript.calls if call.agent and call.status == "running"]
            runs = any(call.shell and call.status == "running" for call in transcript.calls)
            if agents or not runs or stop.prompt.done() or clock.monotonic() > end:
                return tuple(f"sub-agent {agent}" for agent in agents)
            await asyncio.sleep(POLL_S)


def _begun_by(path: Path, turn: str) -> str:
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

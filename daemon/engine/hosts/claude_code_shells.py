"""The shells that a turn of Claude Code leaves in the background, and the turns that wait for them.

A turn that waits is over when its time is up, unless the session goes on before. Decides nothing else. A
transcript that can't be read means that no turn waits.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Final

from ...core import events as ev
from ...core.errors import BadReply, Unavailable
from ...hosts.claude_code.transcript import awaited

if TYPE_CHECKING:
    from collections.abc import Collection

    from ...hosts.claude_code.hooks import Hook
    from ..intake import Intake
    from ..world import World
    from .claude_code_files import Files
    from .host import Instance

POLL_S: Final = 0.5


class Shells:
    """By session; each is forgotten with it."""

    def __init__(self, world: World, intake: Intake, files: Files) -> None:
        self._world = world
        self._intake = intake
        self._files = files
        self._running: dict[str, set[str]] = {}
        self._waits: dict[str, asyncio.Event] = {}

    def told(self, hook: Hook) -> None:
        """A Stop hook says which shells run."""
        self._running[hook.session] = {task.id for task in hook.lasting if task.id}

    def of(self, session: str) -> Collection[str]:
        """The ids of the shells that ran at its last Stop hook."""
        return self._running.get(session, ())

    async def awaited(self, hook: Hook) -> tuple[str, ...]:
        """The names of the shells that the turn of this Stop hook waits for."""
        s = self._world.sessions.get(hook.session)
        limit = self._world.project(hook.directory).claude_code.background_s
        if s is None or not limit or not hook.lasting:
            return ()
        try:
            found = await self._files.read(s.id, hook.last_assistant_message)
        except (Unavailable, BadReply):
            return ()  # the judgement will say so
        held = awaited(found, self.of(s.id))
        return tuple(task.name for task in hook.lasting if task.id in held)

    def wait(self, session: str, instance: Instance, began: float) -> asyncio.Task[None]:
        """Let the turn wait, from ``began`` on. The task ends with the wait."""
        off = self._waits[session] = asyncio.Event()
        end = began + self._world.project(instance.directory).claude_code.background_s
        return self._world.spawn(self._wait(session, off, instance, end), "claude-code hold", "look")

    async def _wait(self, session: str, off: asyncio.Event, instance: Instance, end: float) -> None:
        """The turn is over when the time is up, unless something else happened first (``off``)."""
        clock = self._world.clock
        while (left := end - clock.monotonic()) > 0 and not off.is_set():
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(min(left, POLL_S)):
                    await off.wait()
        if not off.is_set():
            await self._intake.hear(instance, [ev.SessionIdled(session, clock.now_ms())])

    def end_wait(self, session: str) -> None:
        """The turn is not the last one any more, or the session is over."""
        off = self._waits.pop(session, None)
        if off is not None:
            off.set()

    def forget(self, session: str) -> None:
        """The session is over."""
        self.end_wait(session)
        self._running.pop(session, None)

"""What became of the prompts that Claude Code was given: its transcript file shows it.

Reads the file and reports outcomes; gives no prompt itself. A file that can't be read leaves an outcome open.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

import msgspec

from ...core.errors import BadReply, Unavailable
from ...core.orders import Prompting, SendFeedback
from ...hosts.claude_code.moved import has_order, moved_on

if TYPE_CHECKING:
    from ..intake import Intake
    from ..world import World
    from .claude_code_files import Files

POLL_S: Final = 0.05


class Prompts:
    """Asked by the session's id."""

    def __init__(self, world: World, intake: Intake, files: Files) -> None:
        self._world = world
        self._intake = intake
        self._files = files

    async def moved(self, session: str, order: str) -> str:
        """Why the prompt must not leave, by the file as it is now; empty when it may."""
        stored = self._world.outbox.get(order)
        if stored is None or stored.status != "sent" or not isinstance(stored.order, Prompting):
            return "it is void"
        turn = stored.order.turn if isinstance(stored.order, SendFeedback) else ""
        try:
            return moved_on(await self._files.read(session), stored.order.task, turn)
        except (Unavailable, BadReply) as e:
            return str(e)

    async def seen(self, session: str) -> None:
        """Claude Code was given a prompt: look for it in the file. It may come late, or be dropped."""
        for wait_s in (*[POLL_S] * 60, *[1.0] * 57):
            if await self.resolve(session):
                return
            await asyncio.sleep(wait_s)

    async def resolve(self, session: str, *, over: bool = False, said: str = "") -> bool:
        """Note which prompts the file shows: they reached the agent. True when each has its outcome.

        ``over``: none can come any more, so one that is not there was dropped by the host. ``said``: the
        answer that the file must hold by then, because it lags behind the hooks.
        """
        open_ = [o for o in self._world.outbox.open(session) if isinstance(o.order, Prompting)]
        if not open_:
            return True
        try:
            found = await self._files.read(session, said)
        except (Unavailable, BadReply):
            return False
        left = False
        for stored in open_:
            if has_order(found, stored.id):
                await self._intake.result(stored.id, "done", msgspec.Raw(b"null"), "")
            elif over:
                await self._intake.result(stored.id, "failed", msgspec.Raw(b"null"), "the host dropped it")
            else:
                left = True
        return not left

"""A daemon that stops at one step, so that it can be killed there."""

from __future__ import annotations

import asyncio

from daemon.app import Daemon
from daemon.store.db import Statement


class Held:
    """Stops the daemon at one commit: before it is stored, or when it is and nobody knows yet."""

    def __init__(self, daemon: Daemon, sql: str, *, stored: bool) -> None:
        self.reached = asyncio.Event()
        commit = daemon.db.commit

        async def held(*statements: Statement, durable: bool = False) -> int:
            mine = any(text.startswith(sql) for text, _ in statements)
            if mine and stored:
                await commit(*statements, durable=durable)
            if mine:
                self.reached.set()
                await asyncio.Event().wait()
            return await commit(*statements, durable=durable)

        daemon.db.commit = held  # type: ignore[method-assign]

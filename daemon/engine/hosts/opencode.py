"""opencode as a host: it is asked for its messages, and orders go down its stream."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from ...core.errors import BadReply, Unavailable
from ...core.orders import CallOrder, ReadHistory, ReadMessages, ReadProviders, StoredOrder
from ...core.transcript import MAX_AGENTS, ToolCall, Transcript
from ...hosts.opencode.events import KINDS, parse_event
from ...hosts.opencode.messages import parse_providers, parse_transcript
from ...hosts.opencode.orders import order_object, wire_order
from ...redact import redact
from ..threads import beside
from .host import Host, Instance

if TYPE_CHECKING:
    from collections.abc import Callable

    import msgspec

    from ...core.events import Event
    from ...core.fast import Offered
    from ...core.session import Session
    from ...log import Logger

READ_S: Final = 30.0
AGENTS_S: Final = 3.0  # for all sub-agents of a task together
PROVIDERS_S: Final = 5.0
HISTORY_S: Final = 60.0
KIND_CHARS: Final = 80


class Opencode(Host):
    """The ``Host`` that speaks through the shim."""

    name = "opencode"

    def __init__(self, is_ours: Callable[[str], bool], logger: Callable[..., Logger]) -> None:
        """``is_ours``: is this the id of an order that we stored? ``logger``: see ``World.logger``."""
        self._is_ours = is_ours
        self._logger = logger

    async def read(self, s: Session, instance: Instance) -> Transcript:
        """The messages from the task's own message on, with calls of sub-agents that are read in time."""
        found = await self._read(s, instance, s.id, READ_S)
        calls: dict[str, tuple[ToolCall, ...]] = {}
        try:
            async with asyncio.timeout(AGENTS_S):
                for agent in found.agents[-MAX_AGENTS:]:
                    calls[agent] = (await self._read(s, instance, agent, AGENTS_S)).calls
        except (Unavailable, BadReply, TimeoutError) as e:
            self._logger(s, debug=instance.debug).info("sub-agent not read", session=s.id, error=str(e))
        return found.with_agents(calls)

    async def _read(self, s: Session, instance: Instance, session: str, left_s: float) -> Transcript:
        """The messages of the session or of a child of it."""
        data = bytes(await instance.call(ReadMessages(session), left_s))

        def parse() -> Transcript:
            log = self._logger(s, debug=instance.debug)
            found = parse_transcript(
                data,
                is_ours=self._is_ours,
                session=session,
                on_skip=lambda why: log.debug("message skipped", why=why),
            )
            return replace(found, title=redact(found.title), directory=found.directory or s.directory)

        return await beside(len(data), parse)

    def take(self, instance: Instance, identity: str, order: StoredOrder | CallOrder) -> None:
        instance.push(wire_order(identity, order))

    def as_answer(self, identity: str, order: StoredOrder) -> dict[str, Any]:
        return order_object(identity, order)

    def events(self, kind: str, t: int, data: msgspec.Raw) -> tuple[Event, ...]:
        if kind not in KINDS:
            raise BadReply(f"unknown kind {kind[:KIND_CHARS]!r}")
        return parse_event(kind, t, data)

    async def offered(self, instance: Instance) -> Offered:
        data = await instance.call(ReadProviders(), PROVIDERS_S)
        return await beside(len(memoryview(data)), lambda: parse_providers(data))

    async def history(
        self, instance: Instance, after: str, limit: int, *, listed: bool = False
    ) -> msgspec.Raw:
        return await instance.call(ReadHistory(after, limit, listed), HISTORY_S)

    async def whole(self, instance: Instance, session: str) -> msgspec.Raw:
        return await instance.call(ReadMessages(session, whole=True), HISTORY_S)

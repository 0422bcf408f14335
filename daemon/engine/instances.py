"""The hosts that said hello: their order streams, and the calls they answer.

An instance is one host process in one directory. Orders queue while its stream is away, up to a bound.
A call that gets no answer in time, or whose host goes away, raises ``Unavailable``.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from daemon.core.errors import Unavailable
from daemon.core.orders import CallOrder, StoredOrder
from daemon.core.session import Session
from daemon.core.transcript import Transcript
from daemon.hosts.opencode_orders import wire_order

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    import msgspec

    from daemon.core.orders import ResultStatus, ShowToast

Mode = Literal["run", "serve", "tui"]
QUEUE = 1_000
INSTANCES_KEPT = 2_000
HEARTBEAT_S = 15.0


@dataclass(slots=True, eq=False)
class Instance:
    """One host process in one directory. ``seq``: its highest event folded. ``stream``: counts streams.

    ``take`` and ``read``: of a host without an order stream, who carries out its orders and reads its
    messages.
    """

    id: str
    host: str
    mode: Mode
    pid: int
    directory: str
    debug: bool = False
    seq: int = 0
    stream: int = 0
    connected: bool = False
    queue: asyncio.Queue[bytes | None] = field(default_factory=lambda: asyncio.Queue(QUEUE))
    take: Callable[[str, StoredOrder | CallOrder], None] | None = None
    read: Callable[[Session], Awaitable[Transcript]] | None = None

    @property
    def local(self) -> bool:
        """Its orders are carried out in the daemon (Claude Code): it can be prompted only when it asks."""
        return self.take is not None

    def order(self, identity: str, order: StoredOrder | CallOrder) -> None:
        """Hand it an order. Raises ``Unavailable`` when it can't take it."""
        if self.take is not None:
            self.take(identity, order)
        else:
            self.push(wire_order(identity, order))

    def renew(self) -> asyncio.Queue[bytes | None]:
        """A queue for a new stream, with what the old one has not sent, unless it never read at all."""
        old, self.queue = self.queue, asyncio.Queue(QUEUE)
        while not old.full() and not old.empty():
            self.queue.put_nowait(old.get_nowait())
        with contextlib.suppress(asyncio.QueueFull):
            old.put_nowait(None)  # wakes the older stream, which sees that it was replaced
        return self.queue

    def push(self, line: bytes) -> None:
        """Queue one line for the stream."""
        try:
            self.queue.put_nowait(line)
        except asyncio.QueueFull:
            raise Unavailable(f"{self.id} does not read its orders ({QUEUE} are waiting)") from None


class Instances:
    """The registry. Bounded: the oldest that is not connected goes first (I44)."""

    def __init__(self, boot: str) -> None:
        self._all: dict[str, Instance] = {}
        self._boot = boot
        self._count = itertools.count(1)
        self.on_connected: Callable[[Instance], None] | None = None
        self._calls: dict[str, tuple[str, asyncio.Future[msgspec.Raw]]] = {}

    def __iter__(self) -> Any:  # noqa: ANN401 - Iterator[Instance]
        return iter(list(self._all.values()))

    def add(self, instance: Instance) -> Instance:
        """Register, or refresh the one that says hello again."""
        known = self._all.pop(instance.id, None)
        if known is not None:
            known.debug, known.mode, known.pid = instance.debug, instance.mode, instance.pid
            known.directory = instance.directory
            instance = known
        self._all[instance.id] = instance
        if len(self._all) > INSTANCES_KEPT:
            gone = next((i for i in self._all.values() if not i.connected), None)
            if gone is not None:
                del self._all[gone.id]
        return instance

    def get(self, instance: str) -> Instance | None:
        """The instance, if it said hello to this daemon."""
        return self._all.get(instance)

    def connected(self, instance: str, directory: str = "") -> Instance | None:
        """The instance if its stream is open, else (given a directory) the newest of opencode open there."""
        found = self._all.get(instance)
        if found is not None and found.connected:
            return found
        if directory:
            there = (i for i in reversed(self._all.values()) if i.connected and i.directory == directory)
            return next((i for i in there if not i.local), None)
        return None

    async def lines(self, instance: Instance, heartbeat_s: float = HEARTBEAT_S) -> AsyncIterator[bytes]:
        """The order stream: lines as they come, a blank line as heartbeat. A newer stream ends this one."""
        instance.stream += 1
        mine, queue = instance.stream, instance.renew()
        instance.connected = True
        if self.on_connected is not None:
            self.on_connected(instance)
        try:
            yield b"\n"
            while instance.stream == mine:
                try:
                    async with asyncio.timeout(heartbeat_s):
                        line = await queue.get()
                except TimeoutError:
                    line = b"\n"
                if line is None:
                    continue
                yield line
        finally:
            if instance.stream == mine:
                instance.connected = False
                self._fail_calls(instance.id, "its stream closed")

    async def call(self, instance: Instance, order: CallOrder, timeout_s: float) -> msgspec.Raw:
        """Send a call and wait for its result data."""
        identity = f"{self._boot}-{next(self._count)}"
        answer: asyncio.Future[msgspec.Raw] = asyncio.get_running_loop().create_future()
        self._calls[identity] = (instance.id, answer)
        try:
            instance.order(identity, order)
            async with asyncio.timeout(timeout_s):
                return await answer
        except TimeoutError:
            raise Unavailable(
                f"{type(order).__name__}: no answer from {instance.id} in {timeout_s:g} s"
            ) from None
        finally:
            self._calls.pop(identity, None)
            if not answer.done() or answer.cancelled():
                self._abandon(instance, identity, order)

    def send(self, instance: Instance, identity: str, order: StoredOrder) -> None:
        """Send an order of the outbox; its outcome comes through ``delivery``."""
        instance.order(identity, order)

    def tell(self, instance: Instance, toast: ShowToast) -> None:
        """Show something that is not worth storing; lost when the host does not listen."""
        with contextlib.suppress(Unavailable):
            instance.order(f"{self._boot}-{next(self._count)}", toast)

    def result(self, identity: str, status: ResultStatus, data: msgspec.Raw, error: str) -> bool:
        """The outcome of a call; False when no call waits for it (an outbox order, or too late)."""
        call = self._calls.get(identity)
        if call is None:
            return False
        answer = call[1]
        if not answer.done():
            if status == "done":
                answer.set_result(data)
            else:
                answer.set_exception(Unavailable(f"the host answered {status}: {error[:500]}"))
        return True

    def close(self) -> None:
        """End all streams and calls."""
        for instance in self._all.values():
            instance.stream += 1
            instance.connected = False
            if not instance.queue.full():
                instance.queue.put_nowait(None)
        for identity in list(self._calls):
            self._fail_calls(self._calls[identity][0], "the daemon stops")

    def _fail_calls(self, instance: str, why: str) -> None:
        for owner, answer in self._calls.values():
            if owner == instance and not answer.done():
                answer.set_exception(Unavailable(f"{instance}: {why}"))

    def _abandon(self, instance: Instance, identity: str, order: CallOrder) -> None:
        """Nobody waits any more: a judge session must not go on spending."""
        from daemon.core.orders import CancelOrder, RunJudge

        if isinstance(order, RunJudge) and not (instance.local or instance.queue.full()):
            instance.push(wire_order(f"{identity}-cancel", CancelOrder(identity)))

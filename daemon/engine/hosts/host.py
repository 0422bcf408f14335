"""The port to a coding agent: its abilities, its messages, its orders.

A ``Host`` is one kind of coding agent. An ``Instance`` is one process of it in one directory. Differences
between hosts are capabilities here; no other part of the engine asks which host a session belongs to.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal

from msgspec import Struct, field

from ...core.errors import BadReply, Fault, Unavailable
from ...core.orders import CallOrder, CancelOrder, RenewContext, ResultStatus, RunJudge, StoredOrder

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Mapping

    import msgspec

    from ...core.events import Event
    from ...core.fast import Offered
    from ...core.session import Session
    from ...core.transcript import Transcript
    from ...llm.offered import Fresh

INSTANCES_KEPT = 2_000
HEARTBEAT_S = 15.0
FOLDER_CHARS = 200  # of a folder in an error


class Instances:
    """The processes that said hello. Bounded: the oldest that is not connected goes first (I44)."""

    def __init__(self, boot: str) -> None:
        self._all: dict[str, Instance] = {}
        self.answers = Answers(boot)

    def __iter__(self) -> Iterator[Instance]:
        return iter(list(self._all.values()))

    def add(
        self, identity: str, host: Host, mode: Mode, pid: int, directory: str, *, debug: bool = False
    ) -> Instance:
        """Register an instance, or refresh the one that says hello again."""
        known = self._all.pop(identity, None)
        if known is None:
            known = Instance(identity, host, mode, pid, directory, self.answers, debug=debug)
        known.debug, known.mode, known.pid, known.directory = debug, mode, pid, directory
        self._all[identity] = known
        if len(self._all) > INSTANCES_KEPT:
            gone = next((i for i in self._all.values() if not i.connected), None)
            if gone is not None:
                del self._all[gone.id]
        return known

    def get(self, instance: str) -> Instance | None:
        return self._all.get(instance)

    def connected(self, instance: str, directory: str = "") -> Instance | None:
        """The instance if it is connected; else the newest in ``directory`` that shares its sessions."""
        found = self._all.get(instance)
        if found is not None and found.connected:
            return found
        if directory:
            there = (i for i in reversed(self._all.values()) if i.connected and i.directory == directory)
            return next((i for i in there if i.can.shares_sessions), None)
        return None

    def telling(self, directory: str) -> Instance:
        """A host of this folder that can be asked for its past sessions. Raises ``Unavailable``."""
        there = (i for i in self._all.values() if i.connected and i.can.tells_history)
        found = next((i for i in there if i.directory == directory), None)
        if found is None:
            raise Unavailable(f"no opencode is open in {directory[:FOLDER_CHARS]}")
        return found

    async def lines(self, instance: Instance, heartbeat_s: float = HEARTBEAT_S) -> AsyncIterator[bytes]:
        """The stream of orders, with a blank line as heartbeat. A newer stream ends this one."""
        instance.stream += 1
        mine, queue = instance.stream, instance.renew()
        instance.connected, instance.left, instance.away_at = True, False, None
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
                self.gone(instance, "its stream closed")

    def gone(self, instance: Instance, why: str) -> None:
        """Its host ends: nobody carries out orders there, or answers."""
        instance.connected = False
        # `opencode run` ends while it is judged as a matter of course; then the rules may judge
        fault: Fault = "" if instance.mode == "run" else "gone"
        self.answers.fail(instance.id, why, fault)

    def close(self) -> None:
        for instance in self._all.values():
            instance.stream += 1
            instance.connected = False
            if not instance.queue.full():
                instance.queue.put_nowait(None)
        self.answers.fail("", "the daemon stops")


Mode = Literal["run", "serve", "tui", "unknown"]
QUEUE: Final = 1_000
READS: Final = 8  # sessions whose messages one process is asked for at once; it answers one after the other


class Capabilities(Struct, frozen=True):
    """A host's abilities.

    ``order_stream``: it holds a stream of orders open, so it answers calls and can be prompted at any time it
    is idle. A host without one is prompted only in answer to its own question. ``shares_sessions``: any of
    its processes in a folder can read every session of that folder. ``lends_models``: it asks its own models
    for us. ``tells_activity``: it tells of work as it happens, so that its silence means something.
    ``tells_history``: it can be asked for past sessions. ``prompts``: the number of our prompts that it takes
    for one task; None is any number. ``wait_s``: how long it waits for a verdict, in seconds.
    """

    order_stream: bool = False
    shares_sessions: bool = False
    lends_models: bool = False
    tells_activity: bool = False
    tells_history: bool = False
    prompts: int | None = None
    wait_s: int = 600


CAPABILITIES: Final[dict[str, Capabilities]] = {
    "opencode": Capabilities(
        order_stream=True, shares_sessions=True, lends_models=True, tells_activity=True, tells_history=True
    ),
    # Claude Code ends the ninth wake of a prompt without a result, and kills a hook after 110 s
    "claude-code": Capabilities(prompts=8, wait_s=100),
    # Codex has no limit: it honoured 40 blocks in a row, so this one is ours
    "codex": Capabilities(prompts=8, wait_s=540),
}


def capabilities(host: str) -> Capabilities:
    """The abilities of the host with this name; an unknown one has none."""
    return CAPABILITIES.get(host, Capabilities())


class Answer(Struct, frozen=True):
    """The answer to a hook: a status, and a body that is JSON for 200 and plain text for a wake."""

    status: int = 204
    body: bytes = b""


NOTHING: Final = Answer()


class Host:
    """One kind of coding agent. Methods that a host can't do stay as they are here."""

    name: ClassVar[str]
    """Its name in hello, in stored sessions and in ``CAPABILITIES``."""

    async def read(self, s: Session, instance: Instance) -> Transcript:
        """The session's messages as the host has them now. Raises ``Unavailable`` or ``BadReply``."""
        raise NotImplementedError

    def take(self, instance: Instance, identity: str, order: StoredOrder | CallOrder) -> None:
        """Hand one order to the host. Raises ``Unavailable`` when it can't take it."""
        raise NotImplementedError

    def as_answer(self, identity: str, order: StoredOrder) -> dict[str, Any]:
        """The order as the answer to a question of the host. Raises ``Unavailable`` if it asks none."""
        raise Unavailable(f"{self.name} asked nothing that {identity} ({type(order).__name__}) answers")

    def events(self, kind: str, t: int, data: msgspec.Raw) -> tuple[Event, ...]:  # noqa: ARG002 - no stream
        """One event of the host's stream as core events. Raises ``BadReply`` for one of the wrong form."""
        raise BadReply(f"{self.name} has no event {kind}")

    async def hook(
        self,
        event: str,
        body: bytes,  # noqa: ARG002 - no hooks
        headers: Mapping[str, str],  # noqa: ARG002
        *,
        strict: bool,  # noqa: ARG002
    ) -> Answer:
        """One hook; ``strict``: it waits for the answer. Raises ``BadReply`` for no hook of this host."""
        raise BadReply(f"{self.name} has no hook {event}")

    async def offered(self, instance: Instance) -> Offered:
        """Provider ids and the models of each, as the host has them. Raises ``ReflectdError``."""
        raise Unavailable(f"{instance.id} lends no models")

    async def history(
        self, instance: Instance, after: str, limit: int, *, listed: bool = False
    ) -> msgspec.Raw:
        """A page of what people typed in the host's past sessions (``design/protocol.md``); ``listed``: only
        which sessions there are. Raises ``Unavailable``. Asked only where it ``tells_history``.
        """
        raise NotImplementedError

    async def whole(self, instance: Instance, session: str) -> msgspec.Raw:
        """All messages of a past session, in the form of ``read`` there; as ``history``."""
        raise NotImplementedError


class Answers:
    """The calls that wait for their result, of all instances."""

    def __init__(self, boot: str) -> None:
        """``boot``: makes the ids of this daemon's calls differ from those of an earlier one."""
        self._boot = boot
        self._count = itertools.count(1)
        self._waiting: dict[str, tuple[str, asyncio.Future[msgspec.Raw]]] = {}

    def new_id(self) -> str:
        return f"{self._boot}-{next(self._count)}"

    def expect(self, identity: str, instance: str) -> asyncio.Future[msgspec.Raw]:
        """A future for the result of this call, until ``forget``."""
        answer: asyncio.Future[msgspec.Raw] = asyncio.get_running_loop().create_future()
        self._waiting[identity] = (instance, answer)
        return answer

    def forget(self, identity: str) -> None:
        self._waiting.pop(identity, None)

    def result(self, identity: str, status: ResultStatus, data: msgspec.Raw, error: str) -> bool:
        """The result of a call; False when no call waits for it (a stored order, or too late)."""
        found = self._waiting.get(identity)
        if found is None:
            return False
        answer = found[1]
        if not answer.done():
            if status == "done":
                answer.set_result(data)
            else:
                answer.set_exception(Unavailable(f"the host answered {status}: {error[:500]}"))
        return True

    def fail(self, instance: str, why: str, fault: Fault = "") -> None:
        """Nobody answers the calls of this instance any more. Empty: of all instances."""
        for owner, answer in self._waiting.values():
            if instance in {owner, ""} and not answer.done():
                answer.set_exception(Unavailable(f"{owner}: {why}", fault))


class Instance(Struct, eq=False):
    """One host process in one directory.

    ``session``: the only session that it has, where each session is a process of its own; "" for a process
    with many. ``seq``: the highest number of its events that was folded. ``stream``: counts the streams of
    orders that it opened. ``answers``: shared by all instances. ``reading``: held while it is asked for the
    messages of a session. ``told``: the state that its last hello was answered with, and ``looked_at``
    when that was last compared. ``mod``: whether our code that Claude Code runs beside its hooks is there;
    None where nothing says so. ``offers``: the models of its providers, once it was asked. ``away_at``: when
    it was first seen without its stream (monotonic seconds), None while it is connected. ``left``: it said
    goodbye, or its process is gone.
    """

    id: str
    host: Host
    mode: Mode
    pid: int
    directory: str
    answers: Answers
    debug: bool = False
    session: str = ""
    seq: int = 0
    stream: int = 0
    connected: bool = False
    away_at: float | None = None
    left: bool = False
    told: dict[str, Any] = field(default_factory=dict)
    looked_at: float = 0.0
    mod: bool | None = None
    offers: Fresh[Offered] | None = None
    queue: asyncio.Queue[bytes | None] = field(default_factory=lambda: asyncio.Queue(QUEUE))
    reading: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(READS))

    @property
    def can(self) -> Capabilities:
        return capabilities(self.host.name)

    @property
    def alive(self) -> bool:
        """Its process runs. One that did not tell its id is alive until it says goodbye."""
        if self.pid <= 0:
            return True
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return False
        except OSError:
            return True
        return True

    def send(self, identity: str, order: StoredOrder) -> None:
        """Hand it a stored order, whose outcome comes through ``effects``. Raises ``Unavailable``."""
        self.host.take(self, identity, order)

    def tell(self, order: StoredOrder | RenewContext) -> None:
        """Hand it an order that is not worth storing; it is lost when the host does not listen."""
        with contextlib.suppress(Unavailable):
            self.host.take(self, self.answers.new_id(), order)

    async def call(self, order: CallOrder, timeout_s: float) -> msgspec.Raw:
        """Send a call and wait for the data of its result. Raises ``Unavailable``."""
        identity = self.answers.new_id()
        answer = self.answers.expect(identity, self.id)
        try:
            self.host.take(self, identity, order)
            async with asyncio.timeout(timeout_s):
                return await answer
        except TimeoutError:
            what = f"{type(order).__name__}: no answer from {self.id} in {timeout_s:g} s"
            raise Unavailable(what) from None
        finally:
            self.answers.forget(identity)
            left = not answer.done() or answer.cancelled()
            if left and isinstance(order, RunJudge):  # it must not go on spending
                with contextlib.suppress(Unavailable):
                    self.host.take(self, f"{identity}-cancel", CancelOrder(identity))

    def renew(self) -> asyncio.Queue[bytes | None]:
        """A queue for a new stream, with what the old one has not sent, unless it never read at all."""
        old, self.queue = self.queue, asyncio.Queue(QUEUE)
        while not old.full() and not old.empty():
            self.queue.put_nowait(old.get_nowait())
        with contextlib.suppress(asyncio.QueueFull):
            old.put_nowait(None)  # wakes the older stream, which sees that it was replaced
        return self.queue

    def push(self, line: bytes) -> None:
        """Queue one line for its stream of orders. Raises ``Unavailable``."""
        try:
            self.queue.put_nowait(line)
        except asyncio.QueueFull:
            raise Unavailable(f"{self.id} does not read its orders ({QUEUE} are waiting)") from None

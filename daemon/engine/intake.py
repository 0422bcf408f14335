"""Where hosts come in: hello, events, results, questions, switches (DESIGN §3, §8).

Folding never waits: a batch is folded at once, answered when state and mark are stored, and only then
evaluations start. When the store fails the batch is refused (503), kept by the shim and sent again; what
it asked for is not forgotten.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from daemon.core import events as ev
from daemon.core.errors import BadReply, ReflectdError, Unavailable
from daemon.core.orders import DeleteSessions
from daemon.core.redact import redact
from daemon.core.session import Session, fold
from daemon.hosts.opencode_events import KINDS, parse_event
from daemon.store import sessions as rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    import msgspec

    from daemon.core.orders import ResultStatus
    from daemon.engine.compaction import Compaction
    from daemon.engine.delivery import Delivery
    from daemon.engine.evaluation import Evaluations
    from daemon.engine.filing import Filing
    from daemon.engine.gate import Gate
    from daemon.engine.instances import Instance, Instances
    from daemon.engine.persist import Persist
    from daemon.engine.stuck import Stuck
    from daemon.engine.world import World
    from daemon.store.outbox import Stored

ID_CHARS = 200
SWEEP_S = 20.0
SETTLE_S = 1.4
DAY_MS = 86_400_000
LEFT_MS = 600_000  # no judgement takes longer


class Wire(NamedTuple):
    """One event as it came: ``data`` is still JSON."""

    seq: int
    t: int
    kind: str
    data: msgspec.Raw


class Intake:
    """The engine's front."""

    def __init__(
        self,
        world: World,
        persist: Persist,
        instances: Instances,
        delivery: Delivery,
        evaluations: Evaluations,
        gate: Gate,
        filing: Filing,
        stuck: Stuck,
        compaction: Compaction,
    ) -> None:
        self._world = world
        self._persist = persist
        self._instances = instances
        self._delivery = delivery
        self._evaluations = evaluations
        self._gate = gate
        self._filing = filing
        self._stuck = stuck
        self._compaction = compaction
        self._wanted: set[str] = set()
        self._boot = world.clock.now_ms()
        self.events = 0
        self.last_event = world.clock.monotonic()
        delivery.on_stale = self._stale
        instances.on_connected = self._connected

    def hello(self, instance: Instance) -> Instance:
        """Register a host. When its order stream opens, what was left behind is looked after."""
        known = self._instances.get(instance.id)
        if known is None:
            instance.seq = self._world.sessions.seq(instance.id)
        instance = self._instances.add(instance)
        self._world.log.info(
            "hello", instance=instance.id, mode=instance.mode, directory=instance.directory, seq=instance.seq
        )
        return instance

    async def accept(self, instance: Instance, batch: Sequence[Wire]) -> int:
        """Fold a batch; the highest ``seq`` when it is stored. Raises ``Unavailable``."""
        for wire in sorted(batch, key=lambda w: w.seq):
            if wire.seq > instance.seq:
                instance.seq = wire.seq
                try:
                    self._fold(instance, wire)
                except Exception:
                    self._world.log.exception("bug", kind=wire.kind, instance=instance.id, seq=wire.seq)
        self.last_event = self._world.clock.monotonic()
        self._persist.mark(instance.id, instance.seq)
        await self._persist.flush()
        self._request()
        return instance.seq

    def _request(self) -> None:
        wanted, self._wanted = self._wanted, set()
        for session in wanted:
            self._evaluations.request(session)

    async def hear(self, instance: Instance, events: Sequence[ev.Event]) -> None:
        """Fold events that are told once (hooks); they are stored when it returns. Raises ``Unavailable``."""
        for event in events:
            if not isinstance(event, ev.InstanceDisposed) and len(event.session) <= ID_CHARS:
                self.events += 1
                self._session_event(instance, event)
        self.last_event = self._world.clock.monotonic()
        await self._persist.flush()
        self._request()

    async def result(self, identity: str, status: ResultStatus, data: msgspec.Raw, error: str) -> None:
        """The outcome of an order: of a call, of the outbox, or of nothing we know."""
        if self._instances.result(identity, status, data, error):
            return
        if status == "done":
            await self._gate.settled(identity, sent=True)
        await self._delivery.result(identity, status, error)

    async def ask_gate(
        self, instance: Instance, session: str, message: str, text: str
    ) -> dict[str, Any] | None:
        """See ``gate``."""
        return await self._gate.ask(instance, session, message, text)

    async def settle(self, instance: Instance) -> None:
        """Returns when nothing of this instance is being judged, or after a moment."""
        tasks = self._evaluations.running(instance.id)
        if tasks:
            await asyncio.wait(tasks, timeout=SETTLE_S)

    async def switch(self, *, on: bool, session: str = "", directory: str = "") -> None:
        """The off switch of one session or one project; siblings are not touched (I40)."""
        world = self._world
        if session:
            found = world.sessions.get(session) or Session(id=session)
            world.sessions.put(replace(found, off=not on))
            touched = [session]
        else:
            self._persist.add(world.sessions.switch(directory, on=on, now=world.clock.now_ms()))
            touched = [s.id for s in world.sessions.in_memory() if s.directory == directory]
        for each in touched:
            if on:
                self._stuck.back(each)
                continue
            self._evaluations.cancel(each, "switched off")
            self._supersede(world.sessions.get(each), "off")
            self._stuck.leave(each)
            self._delivery.expire(each)
        await self._persist.flush()
        world.log.info("switch", on=on, target=session or directory)

    def recheck_all(self) -> None:
        """After a clock jump (sleep): every connected host's open sessions are re-read."""
        for instance in self._instances:
            if instance.connected:
                self._connected(instance)

    def _connected(self, instance: Instance) -> None:
        self._world.spawn(self._look_after(instance), f"look after {instance.id}")

    def _fold(self, instance: Instance, wire: Wire) -> None:
        self.events += 1
        try:
            found = parse_event(wire.kind, wire.t, wire.data)
        except BadReply as e:
            self._world.log.debug("event skipped", kind=wire.kind, error=str(e))
            return
        if not found and wire.kind not in KINDS:
            self._world.log.debug("event skipped", kind=wire.kind, error="unknown kind")
        for event in found:
            if not isinstance(event, ev.InstanceDisposed) and len(event.session) <= ID_CHARS:
                self._session_event(instance, event)

    def _session_event(self, instance: Instance, event: ev.SessionEvent) -> None:
        world = self._world
        before = world.sessions.get(event.session)
        known = before or Session(
            id=event.session, host=instance.host, directory=instance.directory, instance=instance.id
        )
        if isinstance(event, ev.SessionSeen):
            event = replace(event, title=redact(event.title))
        after = fold(known, event)
        owner = isinstance(event, ev.SessionBusied) or self._instances.connected(after.instance) is None
        if owner and after.instance != instance.id:
            after = replace(after, instance=instance.id)
            self._delivery.expire(after.id, keep_instance=instance.id)
        self._stuck.heard(before, after, event)
        self._compaction.heard(after, event)
        if isinstance(event, ev.ActivitySeen) and after.busy:
            self._filing.went_on(after.id)
        if after is before:
            return
        world.sessions.put(after)
        self._consequences(before, after, event)
        if instance.debug or world.settings.log.debug:
            log = world.logger(after, debug=instance.debug)
            log.debug("event", kind=type(event).__name__, t=event.t, task=after.task, phase=after.phase)

    def _consequences(self, before: Session | None, after: Session, event: ev.SessionEvent) -> None:
        """What an event starts or stops. Only an idle (or what it waited for) starts a judgement."""
        match event:
            case ev.SessionIdled():
                self._wanted.add(after.id)
                if after.parent:
                    self._want_again(after.parent)
            case ev.HumanMessaged() if before is None or after.task != before.task:
                self._evaluations.cancel(after.id, "the person typed")
                self._supersede(before, "human_typed")
                self._filing.outdated(after.id)
                self._delivery.expire(after.id)
            case ev.SessionBusied() if before is not None and not before.busy:
                self._evaluations.cancel(after.id, "the agent went on")
                self._supersede(before, "busy")
            case ev.TurnAborted() if after.aborted:
                self._evaluations.cancel(after.id, "the person pressed Esc")
                self._delivery.expire(after.id)
                if not after.busy:
                    self._wanted.add(after.id)
            case ev.SessionDeleted():
                self._evaluations.cancel(after.id, "the session was deleted")
                if after.parent:
                    self._want_again(after.parent)
                self._delivery.expire(after.id)
                if after.judge:
                    self._persist.add(rows.judge_deleted(after.id, self._world.clock.now_ms()))
            case ev.PersonAnswered():
                self._want_again(after.id)
            case ev.JudgeCreated():
                now = self._world.clock.now_ms()
                self._persist.add(rows.judge_created(after.id, after.directory, now))
            case _:
                pass

    def _supersede(self, before: Session | None, why: str) -> None:
        if before is not None and before.phase == "judging":
            self._evaluations.supersede(before, why)

    def _want_again(self, session: str) -> None:
        s = self._world.sessions.get(session)
        if s is not None and s.recheck and not s.busy:
            self._wanted.add(session)

    async def _look_after(self, instance: Instance) -> None:
        """Orders without a result are looked up, rows left ``judging`` judged again, leftovers deleted."""
        world = self._world
        try:
            self._delivery.toasts_done(instance.id)
            for stored in self._delivery.unresolved(instance):
                s = world.sessions.get(stored.session)
                if s is not None:
                    await self._look_up(stored, s, instance)
            since = world.clock.now_ms() - DAY_MS
            for session in world.sessions.open_in(instance.directory, since):
                s = world.sessions.get(session)
                if s is not None and s.busy:
                    self._stuck.watch(s, world.clock.now_ms())
                if s is None or not s.busy or s.recheck or s.phase == "judging":
                    self._evaluations.request(session)
            self._stuck.wake()
            left = () if instance.local else self._left_over(instance.directory)
            if left:
                await self._instances.call(instance, DeleteSessions(left), SWEEP_S)
                now = world.clock.now_ms()
                for session in left:
                    self._persist.add(rows.judge_deleted(session, now))
                await self._persist.flush()
        except ReflectdError as e:
            world.log.info("not looked after", instance=instance.id, error=str(e))

    def _left_over(self, directory: str) -> tuple[str, ...]:
        """Judge sessions whose answer nobody can get any more: asked for by an earlier daemon, of a host that
        is gone, or older than any judgement. One that runs is not touched (I37).
        """
        world = self._world
        before = max(self._boot, world.clock.now_ms() - LEFT_MS)
        left = []
        for session, created in world.sessions.judge_sessions(directory).items():
            s = world.sessions.get(session)
            if created < before or (s is not None and self._instances.connected(s.instance) is None):
                left.append(session)
        return tuple(left)

    async def _look_up(self, stored: Stored, s: Session, instance: Instance) -> None:
        try:
            await self._delivery.look_up(stored, await self._evaluations.read(s, instance))
        except ReflectdError as e:
            self._world.log.info("order not looked up", order=stored.id, session=s.id, error=str(e))

    async def _stale(self, order: str) -> bool:
        try:
            return await self._gate.settled(order, sent=False)
        except Unavailable:
            return False

"""Where hosts come in: hello, events, results, questions, switches.

Folding never waits: a batch is folded at once (a long one is read before, beside the loop), answered when
state and mark are stored, and only then are judgements started. When the store fails, the batch is refused
(503), kept by the shim and sent again; what it asked for is not forgotten.
"""

from __future__ import annotations

import asyncio
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from msgspec import Struct, field
from msgspec.structs import replace

from ..core import events as ev
from ..core.errors import BadReply, Unavailable
from ..core.guards import may_judge
from ..core.orders import RenewContext, ResultStatus
from ..core.session import FINAL_FOR_TASK, Session, fold, unread_turn
from ..core.transcript import Model
from ..redact import redact
from ..store import sessions as rows
from .feature import Switched
from .threads import beside

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Mapping, Sequence

    import msgspec

    from .asking import Asking
    from .commit import Commit
    from .effects import Effects
    from .filing import Filing
    from .hosts.host import Host, Instance, Mode
    from .offering import Offering
    from .recover import Recover
    from .round import Schedule
    from .world import World

ID_CHARS: Final = 200
SETTLE_S: Final = 1.4
AWAY_S: Final = 15.0  # a plugin that lives opens its stream again after 12.5 s at most
ASKED: Final = ("settle", "context", "lessons", "late_lessons")


class Wire(NamedTuple):
    """One event as it came: ``data`` is still JSON."""

    seq: int
    t: int
    kind: str
    data: msgspec.Raw


class Intake(Struct, eq=False):
    """The engine's front. ``_hosts``: those that say hello, by name. ``_wanted``: sessions to be judged once
    what is folded is stored. ``asked``: questions of hosts that have no answer yet; ``commands``: of a
    person.
    """

    _world: World
    _hosts: Mapping[str, Host]
    _commit: Commit
    _effects: Effects
    _schedule: Schedule
    _filing: Filing
    _recover: Recover
    _offering: Offering
    _asking: Asking
    _wanted: set[str] = field(default_factory=set)
    last_event: float = 0.0
    events: int = 0
    asked: int = 0
    commands: int = 0

    def __post_init__(self) -> None:
        self.last_event = self._world.clock.monotonic()

    async def hello(
        self, host: str, identity: str, mode: Mode, pid: int, directory: str, *, debug: bool = False
    ) -> Instance:
        """Register a host process. When its stream of orders opens, what was left behind is looked after."""
        await self._world.projects.read(directory)
        new = self._world.instances.get(identity) is None
        instance = self._world.instances.add(identity, self._hosts[host], mode, pid, directory, debug=debug)
        if new:
            instance.seq = self._world.sessions.seq(identity)
        self._world.log.info("hello", instance=identity, mode=mode, directory=directory, seq=instance.seq)
        return instance

    @contextmanager
    def command(self) -> Iterator[None]:
        """Meanwhile a person's command is answered: somebody is here, as when a host tells something."""
        self.commands += 1
        try:
            yield
        finally:
            self.commands -= 1
            self.last_event = self._world.clock.monotonic()

    async def orders(self, instance: Instance) -> AsyncIterator[bytes]:
        """The stream of orders of a host that said hello. While it is open the instance is connected; when it
        ends, and no newer one took its place, nobody waits for what became of its toasts.
        """
        lines, mine = self._world.instances.lines(instance), 0
        try:
            first = await anext(lines)
            mine = instance.stream
            self.connected(instance)
            yield first
            async for line in lines:
                yield line
        finally:
            await lines.aclose()  # type: ignore[attr-defined]
            if instance.stream == mine:
                with suppress(Unavailable):  # the daemon ends, and its database is closed already
                    self._effects.toasts_over(instance.id)

    def connected(self, instance: Instance) -> None:
        """The host can be asked again: look after what was left behind."""
        self._world.spawn(self._recover.look_after(instance), f"look after {instance.id}", "look")

    def recheck_all(self) -> None:
        """After a clock jump (sleep): every connected host's open sessions are re-read."""
        for instance in self._world.instances:
            if instance.connected:
                self.connected(instance)

    async def accept(self, instance: Instance, batch: Sequence[Wire]) -> int:
        """Fold a batch; the highest ``seq`` when it is stored. Raises ``Unavailable``."""
        new = [wire for wire in sorted(batch, key=lambda w: w.seq) if wire.seq > instance.seq]
        size = sum(len(memoryview(wire.data)) for wire in new)
        read = await beside(size, lambda: [self._read(instance, wire) for wire in new])
        for wire, events in zip(new, read, strict=True):
            if wire.seq > instance.seq:  # else it was told twice, and the other one was read first
                instance.seq = wire.seq
                try:
                    self._fold(instance, events)
                except Exception:
                    self._world.log.exception("bug", kind=wire.kind, instance=instance.id, seq=wire.seq)
        self._commit.mark(instance.id, instance.seq)
        await self._store()
        return instance.seq

    async def hear(self, instance: Instance, events: Sequence[ev.Event]) -> None:
        """Fold events that are told once (hooks); they are stored when it returns. Raises ``Unavailable``."""
        self._fold(instance, events)
        await self._store()

    async def _store(self) -> None:
        """Store what was folded, then judge what it asks for; also when the one who told of it hangs up."""
        self.last_event = self._world.clock.monotonic()
        try:
            await self._commit.flush()
        except asyncio.CancelledError:
            self._world.spawn(self._store(), "store what was told")
            raise
        wanted, self._wanted = self._wanted, set()
        for session in wanted:
            self._schedule.request(session)

    async def result(self, identity: str, status: ResultStatus, data: msgspec.Raw, error: str) -> None:
        """The outcome of an order: of a call, of a stored one, or of nothing we know."""
        if not self._world.instances.answers.result(identity, status, data, error):
            await self._effects.result(identity, status, error)

    async def ask(self, instance: Instance, what: str, data: Mapping[str, str]) -> Mapping[str, Any]:
        """Have a host's question answered by the feature that it is for. Raises ``BadReply``."""
        self.asked += 1
        try:
            if what == "settle":  # when nothing of this instance is being judged, or after a moment
                if tasks := self._schedule.running(instance.id):
                    await asyncio.wait(tasks, timeout=SETTLE_S)
                return {}
            s = self._world.sessions.get(data["session"]) if "session" in data else None
            for directory in {instance.directory, s.directory if s is not None else ""}:
                await self._world.projects.read(directory)
            if what in ASKED:
                return {"text": await self._offered(s, instance, what, data) if s is not None else ""}
            questions = {r.name: r for _, r in self._world.features.routes() if r.method == "ASK"}
            if what not in questions:
                known = ", ".join(sorted({*ASKED, *questions}))
                raise BadReply(f"`what` must be one of {known}, not {what[:ID_CHARS]!r}")
            return await questions[what].answer({**data, "instance": instance.id})
        finally:
            self.asked -= 1

    async def _offered(self, s: Session, instance: Instance, what: str, data: Mapping[str, str]) -> str:
        if what == "context":
            return await self._offering.text(s, "start", instance, anew=True)
        if what == "late_lessons":
            return await self._offering.text(s, "action", instance, call=data.get("call", ""))
        provider, _, name = data.get("model", "").partition("/")
        model = Model(provider, name) if provider and name else None
        return await self._offering.text(s, "prompt", instance, data["text"], model=model)

    async def switch(self, *, on: bool, session: str = "", directory: str = "") -> rows.Switched | None:
        """The off switch of one session or one project; siblings are not touched (I40).

        ``session`` is an id or its beginning. None: there is no such session. Raises ``BadReply`` when
        several begin like that.
        """
        world = self._world
        if session:
            session = world.sessions.only(session)
            if not session:
                return None
            done, _ = world.sessions.switch_session(session, on=on)
            touched = [session]
        else:
            directory = directory.rstrip("/") or "/"
            touched = world.sessions.held_by(directory) if on else []
            done, statement = world.sessions.switch_folder(directory, on=on, now=world.clock.now_ms())
            self._commit.add(statement)
            if not on:
                touched = world.sessions.held_by(directory)
        for each in touched:
            s = world.sessions.get(each)
            if not on:
                self._schedule.cancel(each, "switched off")
                self._schedule.supersede(s, "off")
                self._asking.stop(each)
                self._effects.expire(each)
            if s is not None:
                self._world.features.heard(s, s, Switched(on))
                instance = self._world.instances.get(s.instance)
                if instance is not None and instance.can.order_stream:
                    instance.tell(RenewContext(s.id))  # nothing when it was switched off
        await self._commit.flush()
        world.log.info("switch", on=on, target=session or directory)
        return done

    def sweep(self) -> None:
        """A host whose process is gone has left: its goodbye can be lost. Call it every few seconds."""
        now = self._world.clock.monotonic()
        for instance in self._world.instances:
            if instance.host not in self._hosts.values() or instance.connected or instance.left:
                continue
            if instance.away_at is None:
                instance.away_at = now
            if now - instance.away_at < AWAY_S or instance.alive:
                continue
            self._world.log.info("a host is gone without a goodbye", instance=instance.id)
            self._left(instance, self._world.clock.now_ms(), "its process is gone")
            self._world.spawn(self._store(), "a host is gone")

    def _left(self, instance: Instance, t: int, why: str) -> None:
        """With its process each of its sessions ends, as far as anybody works on them."""
        instance.left = True
        self._world.instances.gone(instance, why)
        for s in self._world.sessions.in_memory():
            if s.instance == instance.id and not s.deleted:
                self._session_event(instance, ev.SessionEnded(s.id, t))

    def _read(self, instance: Instance, wire: Wire) -> Sequence[ev.Event]:
        try:
            return instance.host.events(wire.kind, wire.t, wire.data)
        except BadReply as e:
            self._world.log.debug("event skipped", kind=wire.kind, error=str(e))
        except Exception:
            self._world.log.exception("bug", kind=wire.kind, instance=instance.id, seq=wire.seq)
        return ()

    def _fold(self, instance: Instance, events: Sequence[ev.Event]) -> None:
        self.events += 1
        for event in events:
            if isinstance(event, ev.InstanceDisposed):
                self._left(instance, event.t, "it ends")
            elif len(event.session) <= ID_CHARS:
                self._session_event(instance, event)

    def _session_event(self, instance: Instance, event: ev.SessionEvent) -> None:
        world = self._world
        before = world.sessions.get(event.session)
        known = before or Session(
            id=event.session, host=instance.host.name, directory=instance.directory, instance=instance.id
        )
        if isinstance(event, ev.SessionSeen):
            event = replace(event, title=redact(event.title))
        after = fold(known, event)
        owner = isinstance(event, ev.SessionBusied) or self._world.instances.connected(after.instance) is None
        if owner and after.instance != instance.id:
            after = replace(after, instance=instance.id)
            self._effects.expire(after.id, keep_instance=instance.id)
        self._world.features.heard(before, after, event)
        if isinstance(event, ev.ActivitySeen) and after.busy:
            self._filing.went_on(after.id)
        if after is before:
            return
        world.sessions.put(after)
        if after.busy:
            world.near()
        self._consequences(before, after, event)
        if instance.debug or world.settings.log.level == "debug":
            log = world.logger(after, debug=instance.debug)
            log.debug("event", kind=type(event).__name__, t=event.t, task=after.task, phase=after.phase)

    def _consequences(self, before: Session | None, after: Session, event: ev.SessionEvent) -> None:
        """The effects of an event. Only an idle (or the end of its wait) starts a judgement."""
        match event:
            case ev.SessionIdled():
                self._wanted.add(after.id)
                self._want_again(after.parent)
            case ev.HumanMessaged() if before is None or after.task != before.task:
                self._schedule.cancel(after.id, "the person typed")
                self._schedule.supersede(before, "human_typed")
                self._filing.outdated(after.id)
                self._effects.expire(after.id)
            case ev.SessionBusied() if before is not None and not before.busy:
                # perhaps a command of the person's own (`!ls`): then the next idle has the same turn judged
                self._schedule.cancel(after.id, "the agent went on")
            case ev.TurnAborted() if after.aborted:
                self._schedule.cancel(after.id, "the person pressed Esc")
                self._effects.expire(after.id)
                if not after.busy:
                    self._wanted.add(after.id)
            case ev.SessionDeleted():
                self._schedule.cancel(after.id, "the session was deleted")
                self._schedule.supersede(before, "deleted")
                self._unread(before)
                self._want_again(after.parent)
                self._effects.expire(after.id)
                if after.judge:
                    self._commit.add(rows.judge_deleted(after.id, self._world.clock.now_ms()))
            case ev.PersonAnswered():
                self._want_again(after.id)
            case ev.JudgeCreated():
                now = self._world.clock.now_ms()
                self._commit.add(rows.judge_created(after.id, after.directory, now))
            case _:
                pass

    def _unread(self, before: Session | None) -> None:
        """Deleted before its last turn was read: nobody can judge that, and its verdict says so (I21)."""
        if before is None or not before.recheck or before.busy or not before.task:
            return
        if before.turn not in {"", before.final}:
            return  # it has its verdict by ``supersede``
        no = may_judge(before, self._world.clock.now_ms(), self._world.limits(before))
        if (no is None or no.wait) and before.phase not in FINAL_FOR_TASK:
            skipped = self._effects.ended(before, unread_turn(before), "skipped", "guard:deleted")
            self._world.spawn(skipped, "record")

    def _want_again(self, session: str) -> None:
        s = self._world.sessions.get(session) if session else None
        if s is not None and s.recheck and not s.busy:
            self._wanted.add(session)

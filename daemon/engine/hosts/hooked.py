"""A host that tells by hooks and keeps its sessions in files: the answer to a hook is the only way to it.

A Stop hook waits for its turn's verdict, and a prompt is its answer; one without a waiting hook is stale. The
file shows what became of a prompt. A session stays connected until its last turn is judged. Which hooks there
are, and what else a host shows, is the host's own module.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic, TypeVar

import msgspec
from msgspec import Struct, field

from ...core import events as ev
from ...core.errors import BadReply, Unavailable
from ...core.orders import Prompting, SendFeedback, SendNudge, ShowToast
from ...core.words import HOSTS
from .host import NOTHING, Answer, Host

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ...core.offers import When
    from ...core.orders import CallOrder, ResultStatus, StoredOrder
    from ...core.transcript import Transcript
    from ...store.outbox import Stored
    from ..intake import Intake
    from ..offering import Offering
    from ..round import Schedule
    from ..world import World
    from .host import Instance, Instances, Mode
    from .transcripts import Transcripts

SEEN_AFTER_S: Final = (*[0.05] * 60, *[1.0] * 57)  # when the file is looked at for a prompt that was given
_NULL: Final = msgspec.Raw(b"null")


class Stop(Struct, eq=False):
    """A Stop hook that waits for its verdict. ``said``: the answer that ended the turn.

    ``strict``: the host waits for it. ``watched``: so does a person, who may end that with Esc.
    ``prompt``: an order's id and text; empty when there is nothing to say.
    """

    said: str
    strict: bool = True
    watched: bool = True
    prompt: asyncio.Future[tuple[str, str]] = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )
    toasts: list[str] = field(default_factory=list)

    @property
    def released(self) -> bool:
        """Says whether there is nothing to say any more: the session went on."""
        return self.prompt.done() and not self.prompt.result()[0]


class Known(Struct, eq=False):
    """One session. ``ending``: it is over, and its last turn is being judged. ``left``: feedback on the turn
    of the Stop hook that waits, which an earlier daemon decided and did not give.
    """

    stop: Stop | None = None
    ending: bool = False
    left: Stored | None = None

    def release(self) -> None:
        """A Stop hook that still waits has nothing to say."""
        stop, self.stop = self.stop, None
        if stop is not None and not stop.prompt.done():
            stop.prompt.set_result(("", ""))

    def goes_on(self) -> None:
        """Nobody waits any more for the end of the last turn."""
        self.release()

    def show(self, toast: ShowToast) -> None:
        """A message for the person that no hook shows now."""
        raise NotImplementedError


K = TypeVar("K", bound=Known)


class Hooked(Host, Generic[K]):
    """Answers hooks. ``wait_s``: how long the end of a session waits for its last verdict."""

    known: ClassVar[type[Any]]
    """The kept facts of a session: a ``Known``."""

    def __init__(
        self,
        world: World,
        instances: Instances,
        intake: Intake,
        schedule: Schedule,
        offering: Offering,
        files: Transcripts,
        wait_s: float,
    ) -> None:
        self._world = world
        self._instances = instances
        self._intake = intake
        self._schedule = schedule
        self._offering = offering
        self._files = files
        self._wait_s = wait_s
        self._sessions: dict[str, K] = {}
        self._given: set[str] = set()  # prompts that left, until the file says what became of them

    def _of(self, session: str) -> K:
        return self._sessions.setdefault(session, self.known())

    def _instance_of(self, session: str) -> Instance | None:
        return self._instances.get(f"{self.name}-{session}")

    def _connect(self, session: str, mode: Mode, pid: int, directory: str) -> tuple[Instance, bool]:
        """The session's own instance: orders are carried out here, not in the host; and whether it was
        connected.
        """
        before = self._instance_of(session)
        was = before is not None and before.connected
        instance = self._instances.add(f"{self.name}-{session}", self, mode, pid, directory)
        instance.session, instance.connected = session, True
        return instance, was

    # The end of a session

    def _ends(self, instance: Instance, events: Sequence[ev.Event], *, under_way: bool = True) -> None:
        """The session is over. It stays connected until its last turn is judged, unless it begins anew. Of a
        turn only one that is ``under_way`` ends with it.
        """
        s, known = self._world.sessions.get(instance.session), self._of(instance.session)
        cut_short = under_way and s is not None and (s.busy or s.recheck)
        known.goes_on()
        known.ending = True
        told = [e for e in events if cut_short or isinstance(e, ev.SessionEnded)]
        self._world.spawn(self._end(instance, told), f"{self.name} end")

    async def _end(self, instance: Instance, events: Sequence[ev.Event]) -> None:
        """Files the rest, then forgets the session."""
        session = instance.session
        with contextlib.suppress(Unavailable):  # it could not be stored, which `health` tells
            await self._intake.hear(instance, events)
        judged = self._schedule.task(session)
        if judged is not None:
            await asyncio.wait([judged], timeout=self._wait_s)
        await self._resolve(session, over=True)
        known = self._sessions.get(session)
        if known is None or not known.ending:
            return
        instance.connected = False
        known.goes_on()
        del self._sessions[session]
        self._files.forget(session)

    def sweep(self) -> None:
        """Sessions whose process is gone without a word are over."""
        for instance in self._instances:
            if instance.host is not self or not instance.connected or instance.alive:
                continue
            if not self._of(instance.session).ending:
                self._ends(instance, [ev.SessionEnded(instance.session, self._world.clock.now_ms())])

    # The end of a turn

    async def _stops(self, session: str, instance: Instance, stop: Stop) -> None:
        """Another turn ended: ``stop`` waits now, and no older one."""
        known = self._of(session)
        if known.stop is not None and known.stop.said != stop.said and self._schedule.task(session):
            # something sent the agent on since: what is being judged is not its last turn
            await self._intake.hear(instance, [ev.SessionBusied(session, self._world.clock.now_ms())])
        known.goes_on()
        known.stop, known.left = stop, None

    def _is_waiting(self, session: str, stop: Stop) -> bool:
        known = self._sessions.get(session)
        return known is not None and known.stop is stop

    def _hung_up(self, session: str, instance: Instance, *, watched: bool) -> None:
        """The host no longer waits for a Stop hook: where a person sits, that was Esc."""
        if watched and not self._schedule.closed:
            aborted = ev.TurnAborted(session, self._world.clock.now_ms())
            self._world.spawn(self._intake.hear(instance, [aborted]), f"{self.name} esc")

    async def _answer(self, session: str, instance: Instance, stop: Stop, end: float) -> Answer:
        """The judgement's answer until ``end`` (monotonic). A prompt leaves only if the file still ends with
        its turn.
        """
        clock, known = self._world.clock, self._of(session)
        if known.left is not None:
            self.take(instance, known.left.id, known.left.order)
        while (judged := self._schedule.task(session)) is not None or stop.prompt.done():
            left = max(0.0, end - clock.monotonic())
            both: list[asyncio.Future[Any]] = [stop.prompt, *([judged] if judged is not None else ())]
            await asyncio.wait(both, timeout=left, return_when=asyncio.FIRST_COMPLETED)
            if not stop.prompt.done():
                return as_json(
                    {"systemMessage": f"reflectd: {'; '.join(stop.toasts)}"} if stop.toasts else {}
                )
            order, text = stop.prompt.result()
            if not order:
                return NOTHING
            stale = await self._stale(session, instance, stop, order)
            if not stale:
                self._given.add(order)
                known.stop = None
                self._world.spawn(self._look_for(session), f"{self.name} seen", "look")
                return await self._sent(instance, stop, text)
            await self._intake.result(order, "stale", _NULL, stale)
            if not self._is_waiting(session, stop):
                return NOTHING
            stop.prompt = asyncio.get_running_loop().create_future()  # the newest turn is judged next
        return NOTHING

    async def _sent(self, instance: Instance, stop: Stop, text: str) -> Answer:  # noqa: ARG002 - Claude Code's
        """The answer with which the agent goes on, in the same turn."""
        busy = ev.SessionBusied(instance.session, self._world.clock.now_ms())
        await self._intake.hear(instance, [busy])
        return as_json({"decision": "block", "reason": text})

    async def _stale(self, session: str, instance: Instance, stop: Stop, order: str) -> str:  # noqa: ARG002
        """Why the prompt must not leave, by the file as it is now; "" when it may."""
        stored = self._world.outbox.get(order)
        if stored is None or stored.status != "sent" or not isinstance(stored.order, Prompting):
            return "it is void"
        turn = stored.order.turn if isinstance(stored.order, SendFeedback) else ""
        try:
            why = (await self._files.read(session)).stale(stored.order.task, turn)
        except (Unavailable, BadReply) as e:
            return str(e)
        return why or ("" if self._is_waiting(session, stop) else "another turn ended")

    # What became of a prompt

    async def _look_for(self, session: str) -> None:
        """The host was given a prompt: look for it in the file. It may come late, or be dropped."""
        for wait_s in SEEN_AFTER_S:
            if await self._resolve(session):
                return
            await asyncio.sleep(wait_s)

    async def _resolve(self, session: str, *, over: bool = False, said: str = "") -> bool:
        """Note which prompts the file shows: they reached the agent. True when each has its outcome. A file
        that can't be read leaves an outcome open.

        ``over``: none can come any more, so one that is not there was dropped by the host. ``said``: the
        answer that the file must hold by then, because it lags behind the hooks.
        """
        prompts = [o for o in self._world.outbox.open(session) if isinstance(o.order, Prompting)]
        if not prompts:
            return True
        try:
            transcript = await self._files.read(session, said)
        except (Unavailable, BadReply):
            return False
        shown = {message.order for message in transcript.messages}
        for stored in prompts:
            if stored.id in shown:
                await self._intake.result(stored.id, "done", _NULL, "")
            elif over and self._is_left(stored, transcript):
                self._of(session).left = stored
                continue
            elif over:
                await self._intake.result(stored.id, "failed", _NULL, "the host dropped it")
            else:
                continue
            self._given.discard(stored.id)
        return over or all(stored.id in shown for stored in prompts)

    def _is_left(self, stored: Stored, transcript: Transcript) -> bool:
        """Says whether this feedback is about the turn of the Stop hook that waits, and was never given: the
        daemon that decided it died before it could answer.
        """
        order, stop = stored.order, self._of(stored.session).stop
        waits = stop is not None and not stop.prompt.done() and stored.id not in self._given
        return waits and isinstance(order, SendFeedback) and not transcript.stale(order.task, order.turn)

    # The port

    def take(self, instance: Instance, identity: str, order: StoredOrder | CallOrder) -> None:
        """A prompt answers the Stop hook that waits, if one does. Raises ``Unavailable`` for a call."""
        known = self._sessions.get(instance.session) or self.known()
        stop = known.stop
        status: ResultStatus = "done"
        error = ""
        match order:
            case SendFeedback() | SendNudge():
                answers = stop is not None and stop.prompt.done() and stop.prompt.result()[0] == identity
                if answers or identity in self._given:
                    return
                if stop is not None and not stop.prompt.done():
                    stop.prompt.set_result((identity, f"{order.text}\n(reflectd {identity})"))
                    return
                status, error = "stale", "no Stop hook waits for it"
            case ShowToast():
                if stop is not None and stop.watched:
                    stop.toasts.append(order.message)
                else:
                    known.show(order)
            case _:
                raise Unavailable(f"{HOSTS[self.name]} does not take {type(order).__name__}")
        self._world.spawn(self._intake.result(identity, status, _NULL, error), f"{self.name} result")

    # Context for the agent

    async def _context(
        self, event: str, session: str, when: When, instance: Instance | None, prompt: str = ""
    ) -> dict[str, Any]:
        """The features' offers at this moment, as the output of the hook ``event``; empty for nothing."""
        s = self._world.sessions.get(session)
        if s is None or instance is None:
            return {}
        text = await self._offering.text(s, when, instance, prompt)
        output = {"hookEventName": event, "additionalContext": text}
        return {"hookSpecificOutput": output} if text else {}


def as_json(body: Mapping[str, Any]) -> Answer:
    """The output of a hook; nothing for an empty one."""
    return Answer(200, msgspec.json.encode(body)) if body else NOTHING

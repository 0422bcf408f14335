"""A host that tells by hooks and keeps its sessions in files: the answer to a hook is the only way to it.

A Stop hook waits for its turn's verdict, and a prompt is its answer; one without a waiting hook is stale. The
file shows what became of a prompt. A session stays connected until its last turn is judged. Which hooks there
are, and what else a host shows, is the host's own module. ``Transcripts`` reads the files: one reader for
each session, and one read of it at a time.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections import OrderedDict
from functools import partial
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic, Protocol, TypeVar

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from ...core import events as ev
from ...core.errors import BadReply, Unavailable, words
from ...core.guards import ABORT_ERROR
from ...core.orders import CallOrder, Prompting, ResultStatus, SendFeedback, SendNudge, ShowToast, StoredOrder
from ...core.words import HOSTS
from ...hosts.jsonl import opened
from ...redact import redact, redact_head
from .host import NOTHING, Answer, Host, Instance, Mode

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ...core.offers import When
    from ...core.session import Session
    from ...core.transcript import Transcript
    from ...hosts.hook import Hook
    from ...store.outbox import Stored
    from ..intake import Intake
    from ..offering import Offering
    from ..round import Schedule
    from ..world import World

SEEN_AFTER_S: Final = (*[0.05] * 60, *[1.0] * 57)  # when the file is looked at for a prompt that was given
POLL_S: Final = 0.05
POLLS: Final = 100  # the file may be seconds behind the hook on a busy machine
READERS: Final = 200
WRITTEN: Final = 200  # files of a task, the newest; of each its size and its first bytes are compared
COMPARED_BYTES: Final = 1 << 20
NAME_CHARS: Final = 60  # of the request that a session without a title is called by
KEPT: Final = 2_000  # versions of files that Claude Code keeps for a rewind
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
        return self.prompt.done() and not self.prompt.result()[0]


class Known(Struct, eq=False):
    """One session. ``ending``: it is over, and its last turn is being judged. ``left``: feedback on the turn
    of the Stop hook that waits, which an earlier daemon decided and did not give. ``news``: what the person
    has not read yet: the newest warning (False), the newest error (True). ``escaped``: the person pressed
    Esc, which the file may not have yet.
    """

    stop: Stop | None = None
    ending: bool = False
    left: Stored | None = None
    news: dict[bool, str] = field(default_factory=dict)
    escaped: bool = False

    def release(self) -> None:
        """A Stop hook that still waits has nothing to say."""
        stop, self.stop = self.stop, None
        if stop is not None and not stop.prompt.done():
            stop.prompt.set_result(("", ""))

    def goes_on(self) -> None:
        """Nobody waits any more for the end of the last turn."""
        self.release()

    def show(self, toast: ShowToast) -> None:
        """A message that no hook shows now. If it is more than news, the person's next prompt does."""
        if toast.variant != "info":
            self.news[toast.variant == "error"] = toast.message


H = TypeVar("H", bound="Hook")
K = TypeVar("K", bound=Known)


class Hooked(Host, Generic[H, K]):
    """Answers hooks."""

    known: ClassVar[type[Any]]
    """The kept facts of a session: a ``Known``."""
    reader: ClassVar[Callable[..., Reader]]
    with_agents: ClassVar[Callable[..., Transcript]]
    """Adds the calls of sub-agents, which stand in files of their own."""
    events_of: ClassVar[Callable[..., tuple[ev.Event, ...]]]
    longest_s: ClassVar[int]
    """How long a Stop hook, or the end of a session, waits for the verdict at most."""

    def __init__(self, world: World, intake: Intake, schedule: Schedule, offering: Offering) -> None:
        self._world = world
        self._intake = intake
        self._schedule = schedule
        self._offering = offering
        self._files = Transcripts(partial(self.reader, is_ours=world.outbox.is_ours), self.with_agents)
        self._wait_s = world.settings.wait_s(self.name, self.longest_s)
        self._sessions: dict[str, K] = {}
        self._given: set[str] = set()  # prompts that left, until the file says what became of them

    def _of(self, session: str) -> K:
        return self._sessions.setdefault(session, self.known())

    def _instance_of(self, session: str) -> Instance | None:
        return self._world.instances.get(f"{self.name}-{session}")

    def _connect(self, hook: H, *, one_shot: bool) -> Instance:
        """The session's own instance: orders are carried out here, not in the host."""
        before = self._instance_of(hook.session)
        was = before is not None and before.connected
        mode: Mode = "run" if one_shot else "tui"
        identity = f"{self.name}-{hook.session}"
        instance = self._world.instances.add(identity, self, mode, hook.pid, hook.directory)
        instance.session, instance.connected = hook.session, True
        if not was:
            self._intake.connected(instance)
        return instance

    async def _told(self, hook: H, instance: Instance, events: Sequence[ev.Event]) -> Answer:
        """Fold the events of any hook but Stop. The answer to a prompt and to a start is what the features
        offer then; to the person's prompt also the outcome of the last turn, which no hook showed.
        """
        s = self._world.sessions.get(hook.session)
        begins = hook.typed and (s is None or not s.busy)  # else it steers an agent that works
        if hook.event == "UserPromptSubmit" and hook.typed and (s is None or not s.title):
            name = " ".join(redact_head(hook.prompt.lstrip(), NAME_CHARS).split())
            events = (ev.SessionSeen(hook.session, self._world.clock.now_ms(), title=name), *events)
        await self._intake.hear(instance, events)
        if hook.event not in {"UserPromptSubmit", "SessionStart"}:
            return NOTHING
        self._of(hook.session).ending = False
        if hook.event == "SessionStart":
            when: When = "compacted" if hook.source == "compact" else "start"
            output = await self._context(hook, when, instance)
            # a fork has what its session was given: it is noted as given, and not said again
            return NOTHING if hook.source == "fork" else as_json(output)
        output = await self._context(hook, "prompt", instance, hook.prompt if begins else "")
        known = self._of(hook.session)
        news, known.news = "; ".join(known.news.values()), {}
        if news and hook.typed and instance.mode != "run":  # a wake says itself what became of the turn
            output["systemMessage"] = f"reflectd, on the last turn: {news}"
        return as_json(output)

    async def _late(self, hook: H) -> Answer:
        """A lesson that came too late for the prompt, behind a call's result; the call is not decided."""
        return as_json(await self._context(hook, "action", self._instance_of(hook.session)))

    async def _context(
        self, hook: H, when: When, instance: Instance | None, prompt: str = ""
    ) -> dict[str, Any]:
        """The features' offers at this moment, as the output of the hook; empty for nothing."""
        s = self._world.sessions.get(hook.session)
        if s is None or instance is None:
            return {}
        text = await self._offering.text(s, when, instance, prompt)
        output = {"hookEventName": hook.event, "additionalContext": text}
        return {"hookSpecificOutput": output} if text else {}

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
        for instance in self._world.instances:
            if instance.host is not self or not instance.connected or instance.alive:
                continue
            session, t = instance.session, self._world.clock.now_ms()
            if self._of(session).ending:
                continue
            s = self._world.sessions.get(session)
            answered = s is not None and s.background  # its tasks are gone with it, so nothing is waited for
            self._ends(
                instance, [*([ev.SessionIdled(session, t)] if answered else ()), ev.SessionEnded(session, t)]
            )

    # The end of a turn

    async def _stop(self, hook: H, instance: Instance, stop: Stop) -> Answer:
        """Judge the turn, and answer when there is something to say or nothing left to wait for."""
        session, clock = hook.session, self._world.clock
        began = clock.monotonic()
        end = began + self._wait_s
        await self._stops(hook, instance, stop)
        try:
            await self._resolve(session, over=True, said=stop.said)
            names = await self._awaited(hook, stop, end)
            if stop.released:  # while the file was read the session went on
                return NOTHING
            events = self.events_of(hook, clock.now_ms())
            if names:
                events = (*events[:-1], ev.BackgroundAwaited(session, clock.now_ms(), names))
            await self._intake.hear(instance, events)
            if names:
                if not await self._held(stop, instance, began):
                    return NOTHING
                end = clock.monotonic() + self._wait_s
            return await self._answer(session, instance, stop, end)
        except asyncio.CancelledError:  # the host no longer waits: where a person sits, that was Esc
            if stop.watched and instance.mode != "run" and not self._schedule.closed:
                aborted = ev.TurnAborted(session, clock.now_ms())
                self._world.spawn(self._intake.hear(instance, [aborted]), f"{self.name} esc")
            raise
        finally:
            if self._is_waiting(session, stop):
                self._of(session).stop = None

    async def _awaited(self, hook: H, stop: Stop, end: float) -> tuple[str, ...]:
        """The names of the background tasks that the turn waits for; until ``end`` it may wait itself."""
        raise NotImplementedError

    async def _held(self, stop: Stop, instance: Instance, began: float) -> bool:  # noqa: ARG002 - Claude Code's
        """Wait for these; False when there is nothing to answer any more, or another Stop follows."""
        return False

    async def _stops(self, hook: H, instance: Instance, stop: Stop) -> None:
        """Another turn ended: ``stop`` waits now, and no older one."""
        session, known = hook.session, self._of(hook.session)
        if known.stop is not None and known.stop.said != stop.said and self._schedule.task(session):
            # something sent the agent on since: what is being judged is not its last turn
            await self._intake.hear(instance, [ev.SessionBusied(session, self._world.clock.now_ms())])
        known.goes_on()
        known.stop, known.left = stop, None

    def _is_waiting(self, session: str, stop: Stop) -> bool:
        known = self._sessions.get(session)
        return known is not None and known.stop is stop

    async def _answer(self, session: str, instance: Instance, stop: Stop, end: float) -> Answer:
        """The judgement's answer until ``end`` (monotonic), if the file still ends with its turn."""
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
        """Says whether an earlier daemon decided this feedback for the hook that waits, and never gave it."""
        order, stop = stored.order, self._of(stored.session).stop
        waits = stop is not None and not stop.prompt.done() and stored.id not in self._given
        return waits and isinstance(order, SendFeedback) and not transcript.stale(order.task, order.turn)

    # The port

    async def read(self, s: Session, instance: Instance) -> Transcript:  # noqa: ARG002 - the port
        """The transcript; the file may lag behind the hook that says how the turn ended."""
        known = self._sessions.get(s.id) or self.known()
        said = known.stop.said if known.stop is not None else ""
        found = await self._files.read(s.id, said, escaped=known.escaped, agents=True)
        known.escaped = False
        title = redact(found.title)
        return replace(found, session=s.id, busy=s.busy, title=title, directory=s.directory)

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


def as_json(body: Mapping[str, Any]) -> Answer:
    return Answer(200, msgspec.json.encode(body)) if body else NOTHING


# The files of the sessions


class Reader(Protocol):
    """Reads one session's file. ``found``: the last ``read`` found the expected final text. ``rested``: it
    found the end of all Stop hooks that the host waits for.
    """

    path: Path
    found: bool
    rested: bool

    def read(self, expect: str = "") -> Transcript:
        """The task and its work so far. It blocks. Raises ``Unavailable``."""
        ...


class _File(Struct, eq=False):
    reader: Reader
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    written: dict[str, str] | None = None  # path → digest, when the turn was read to be judged


class Transcripts:
    def __init__(
        self, reader_of: Callable[[Path], Reader], with_agents: Callable[[Transcript, Path], Transcript]
    ) -> None:
        """``with_agents``: adds the calls of sub-agents, which stand in files of their own."""
        self._reader_of = reader_of
        self._with_agents = with_agents
        self._known: OrderedDict[str, _File] = OrderedDict()

    def locate(self, session: str, path: Path) -> None:
        """The session's file is here."""
        known = self._known.get(session)
        if known is None or known.reader.path != path:
            self._known[session] = _File(self._reader_of(path))
        self._known.move_to_end(session)
        while len(self._known) > READERS:
            self._known.popitem(last=False)

    def forget(self, session: str) -> None:
        self._known.pop(session, None)

    async def read(
        self, session: str, expect: str = "", *, escaped: bool = False, agents: bool = False
    ) -> Transcript:
        """The transcript as the file has it. ``expect``: the last answer by a hook; ``escaped``: the person
        pressed Esc. It waits up to 5 s for either. ``agents``: with the calls of its sub-agents. Raises
        ``Unavailable``.
        """
        known = self._known.get(session)
        if known is None:
            raise Unavailable("its transcript is not known yet")
        async with known.lock:
            for left in reversed(range(POLLS)):
                try:
                    found = await asyncio.to_thread(known.reader.read, expect)
                except OSError as e:
                    raise Unavailable(f"the transcript cannot be read: {words(e)}") from e
                if not left or (_is_escaped(found) if escaped else known.reader.found or not expect):
                    break
                await asyncio.sleep(POLL_S)
            if agents and found.agents:
                found = await asyncio.to_thread(self._with_agents, found, known.reader.path)
        return found

    def rested(self, session: str) -> bool:
        """Says whether the host waits for no Stop hook any more, by the last ``read``."""
        known = self._known.get(session)
        return known is None or known.reader.rested

    async def note_written(self, session: str, found: Transcript) -> None:
        """Keep what the files are that the task's edit tools wrote, until ``renew``; once."""
        from ...evidence.edits import written_by_tool  # patterns, which no start needs

        known = self._known.get(session)
        if known is None or known.written is not None:
            return
        calls = (each for call in found.calls for each in (call, *call.inner))
        paths = (write.path for call in calls for write in written_by_tool(call.tool, call.input))
        newest = [path for path in dict.fromkeys(paths) if path.startswith("/")][-WRITTEN:]
        known.written = {}
        known.written = await asyncio.to_thread(lambda: {path: _digest(path) for path in newest})

    def renew(self, session: str) -> None:
        """Another turn ended."""
        if (known := self._known.get(session)) is not None:
            known.written = None

    async def taken_back(self, session: str) -> bool:
        """Says whether a file that was noted is gone, or is what Claude Code kept of it before the agent
        wrote. A rewind of the code puts files back and tells nobody. A file that somebody goes on with is
        neither.
        """
        known = self._known.get(session)
        if known is None or not known.written:
            return False
        written, kept = known.written, known.reader.path.parents[2] / "file-history" / session

        def look() -> bool:
            now = {path: _digest(path) for path, was in written.items() if was}
            changed = {digest for path, digest in now.items() if digest != written[path]}
            return bool(changed) and ("" in changed or not changed.isdisjoint(_kept(kept)))

        return await asyncio.to_thread(look)


def _kept(folder: Path) -> set[str]:
    try:
        with os.scandir(folder) as entries:
            return {_digest(entry.path) for entry in islice(entries, KEPT)}
    except OSError:
        return set()


def _digest(path: str) -> str:
    """The digest of a regular file; "" for anything else. It never waits for a FIFO."""
    with contextlib.suppress(Unavailable), opened(Path(path)) as fd:
        if fd >= 0:
            return f"{os.fstat(fd).st_size} {sha256(os.pread(fd, COMPARED_BYTES, 0)).hexdigest()}"
    return ""


def _is_escaped(found: Transcript) -> bool:
    """Says whether the last thing in it is an answer that the person stopped."""
    turn = found.turn
    return turn is not None and turn.error == ABORT_ERROR and not any(m.human for m in found.since(turn.id))

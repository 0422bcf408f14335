"""Claude Code as a host: hooks come in, and their answers are the only way out (docs/claude-code.md).

A hook is an event of its session, folded like any other; the messages are the transcript file. A Stop hook
waits for its turn's verdict. Feedback is its answer, which wakes the session; 204 means that there is nothing
to say. There is no stream of orders: a prompt without a waiting Stop hook is stale. A toast is shown at once
in strict mode and where the mod asks for it, else with the person's next prompt; one that only informs is not
shown there.

Every failure is an empty answer: the host goes on as if we were not there (I35). ``claude_code_shells`` knows
what a turn waits for, ``claude_code_prompts`` what became of a prompt, ``claude_code_mod`` what the mod
tells.
"""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from ...core import events as ev
from ...core.errors import BadReply, Unavailable
from ...core.orders import Prompting, SendFeedback, SendNudge, ShowToast
from ...core.redact import redact
from ...files.commands import all_ours
from ...hosts.claude_code.hooks import Hook, command_of, events_of, parse_hook
from ...hosts.claude_code.moved import has_order, moved_on
from ...hosts.claude_code.shells import still_running
from ..threads import beside
from .claude_code_files import Files
from .claude_code_mod import Mods
from .claude_code_shells import Shells

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ...core.fast import Offered
    from ...core.offers import When
    from ...core.orders import CallOrder, StoredOrder
    from ...core.session import Session
    from ...core.transcript import Transcript
    from ..instances import Instances
    from ..intake import Intake
    from ..offering import Offering
    from ..round import Schedule
    from ..world import World
    from .host import Instance, Mode

# What became of the prompts that Claude Code was given: its transcript file shows it.
#
# Reads the file and reports outcomes; gives no prompt itself. A file that can't be read leaves an outcome
# open.

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


HOST: Final = "claude-code"
OURS: Final = "/reflectd:"
FROM_MOD: Final = frozenset({"ModAborted", "ModWatch"})
LOOK_S: Final = 2.5  # the mod looks once a second whether the conversation is still there
TAKEN_BACK: Final = "Not sent back: files of the task were put back while it was judged"
WAIT_S: Final = 105.0  # the judge has 100; a hook that is waited for 120, its curl 110


@dataclass(frozen=True, slots=True)
class Answer:
    """What the hook gets: a status, and a body that is JSON for 200 and plain text for a wake."""

    status: int = 204
    body: bytes = b""


NOTHING: Final = Answer()


@dataclass(slots=True, eq=False)
class _Stop:
    """A Stop hook that waits for its verdict. ``said``: the answer that ended the turn.

    ``strict``: Claude Code waits for it. ``watched``: so does a person, who may end that with Esc.
    """

    said: str
    strict: bool
    watched: bool
    prompt: asyncio.Future[tuple[str, str]] = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )
    toasts: list[str] = field(default_factory=list)
    looked: asyncio.Event = field(default_factory=asyncio.Event)  # the mod asked since it was cleared


class ClaudeCode:
    """Answers hooks."""

    name: Final = HOST

    def __init__(
        self, world: World, instances: Instances, intake: Intake, schedule: Schedule, offering: Offering
    ) -> None:
        self._world = world
        self._instances = instances
        self._intake = intake
        self._schedule = schedule
        self._offering = offering
        self._stops: dict[str, _Stop] = {}
        self._files = Files(world.outbox.is_ours)
        self._shells = Shells(world, intake, self._files)
        self._prompts = Prompts(world, intake, self._files)
        self._asides: set[str] = set()
        self._ending: set[str] = set()
        self._escaped: set[str] = set()  # the mod told of Esc, which the file may not have yet
        # session -> what the person has not read yet: the newest news, and the newest error
        self._told: dict[str, dict[bool, str]] = {}
        self._mods = Mods()

    async def hook(self, event: str, body: bytes, headers: Mapping[str, str], *, strict: bool) -> Answer:
        """One hook. Raises ``BadReply`` for what is no hook of this host."""
        hook = await beside(len(body), lambda: parse_hook(event, body, headers))
        if not hook.session or (hook.agent_id and event != "SubagentStop"):
            return NOTHING
        await self._world.projects.read(hook.directory)
        if event in FROM_MOD:
            return await self._from_mod(hook)
        directory = hook.directory
        settings = self._world.project(directory)
        if not settings.enabled or (hook.one_shot and not (hook.headless or settings.claude_code.headless)):
            return NOTHING
        if event == "Stop" and strict != (settings.claude_code.strict or hook.one_shot):
            return NOTHING  # the other one of the two Stop hooks counts
        if await self._is_about_us(hook):
            if said := command_of(hook, self._world.clock.now_ms()):
                await self._intake.hear(self._instance(hook, directory), said)
            return NOTHING
        if event == "PreToolUse":
            return await self._late(hook)
        instance = self._instance(hook, directory)
        if hook.transcript:
            self._files.locate(hook.session, Path(hook.transcript))
        if event == "Stop":
            return await self._stop(hook, instance, strict=strict)
        return await self._heard(hook, instance)

    async def _heard(self, hook: Hook, instance: Instance) -> Answer:
        """Every hook but Stop."""
        event, found = hook.event, events_of(hook, self._world.clock.now_ms())
        if event == "SessionEnd":  # Claude Code, which ends, may hang up at once: nobody waits for this
            over = not self._is_cut_short(hook.session)
            self._ends(instance, [e for e in found if not over or isinstance(e, ev.SessionEnded)])
            return NOTHING
        if any(isinstance(e, ev.SessionBusied) for e in found):
            self._escaped.discard(hook.session)
            self._goes_on(hook.session)
        known = self._world.sessions.get(hook.session)
        begins = hook.typed and (known is None or not known.busy)  # else it steers an agent that works
        await self._intake.hear(instance, found)
        if event == "UserPromptSubmit":
            self._ending.discard(hook.session)
            return await self._offered(hook, instance, "prompt", hook.prompt if begins else "")
        if event == "SessionStart":
            self._ending.discard(hook.session)
            when: When = "compacted" if hook.source == "compact" else "start"
            offered = await self._offered(hook, instance, when)
            # a fork has what its session was given: it is noted as given, and not said again
            return NOTHING if hook.source == "fork" else offered
        return NOTHING

    def _is_cut_short(self, session: str) -> bool:
        """Whether a turn is under way that no hook will end. A session that was only looked at has none: a
        command of ours that the mod answered is no turn at all.
        """
        s = self._world.sessions.get(session)
        return session not in self._asides and s is not None and (s.busy or s.recheck)

    async def _from_mod(self, hook: Hook) -> Answer:
        """What the mod tells or asks by itself, of a session that the hooks have told of."""
        session = hook.session
        instance, s = self._instances.get(f"{HOST}-{session}"), self._world.sessions.get(session)
        if instance is None or not instance.connected or s is None:
            return NOTHING
        if hook.event == "ModAborted":
            if session not in self._asides and self._mods.is_abort(hook):
                if hook.reason != "rewind":  # of which the file shows nothing
                    self._escaped.add(session)
                if session not in self._ending:  # else its last turn is being looked at already
                    self._goes_on(session)
                    await self._intake.hear(instance, events_of(hook, self._world.clock.now_ms()))
            return NOTHING
        stop = self._stops.get(session)
        if stop is not None:
            stop.looked.set()
        judging = self._schedule.task(session) is not None and not (stop is not None and stop.watched)
        holding = stop is not None and bool(s.background)
        shows = self._world.limits(s).toasts
        news = self._mods.news(session, judging=judging, holding=holding, shows=shows)
        if "toasts" in news:
            self._told.pop(session, None)
        return Answer(200, msgspec.json.encode(news)) if news else NOTHING

    async def _is_about_us(self, hook: Hook) -> bool:
        """A turn of `/reflectd:status` is no work: neither its prompt nor its end counts (I9)."""
        if hook.event == "UserPromptSubmit":
            self._asides.discard(hook.session)
            if hook.prompt.startswith(OURS) or await self._is_bare(hook):
                self._asides.add(hook.session)
                self._release(hook.session)
                return True
        return hook.event == "Stop" and hook.session in self._asides

    @staticmethod
    async def _is_bare(hook: Hook) -> bool:
        """Whether it is the `/reflect` that `setup` put among the person's commands."""
        if hook.reflects is None or not hook.transcript:
            return False
        config = Path(hook.transcript).parent.parent.parent  # <config>/projects/<folder>/<session>.jsonl
        return await asyncio.to_thread(all_ours, (config, Path(hook.directory) / ".claude"))

    def _ends(self, instance: Instance, events: Sequence[ev.Event]) -> None:
        """The session is over. It stays connected until its last turn is judged, unless it begins anew."""
        session = _session_of(instance)
        self._goes_on(session)
        self._ending.add(session)
        self._world.spawn(self._end(session, instance, events), "claude-code end")

    async def _end(self, session: str, instance: Instance, events: Sequence[ev.Event]) -> None:
        """What is left to file is filed, then the session is forgotten."""
        with contextlib.suppress(Unavailable):  # it could not be stored, which `health` tells
            await self._intake.hear(instance, events)
        judged = self._schedule.task(session)
        if judged is not None:
            await asyncio.wait([judged], timeout=WAIT_S)
        await self._prompts.resolve(session, over=True)
        if session not in self._ending:
            return
        self._ending.discard(session)
        instance.connected = False
        self._forget(session)
        self._files.forget(session)

    def _forget(self, session: str) -> None:
        self._release(session)
        self._asides.discard(session)
        self._escaped.discard(session)
        self._told.pop(session, None)
        self._mods.forget(session)
        self._shells.forget(session)

    def sweep(self) -> None:
        """Sessions whose process is gone without a word are over."""
        for instance in self._instances:
            session = _session_of(instance)
            if instance.host is not self or not instance.connected or session in self._ending:
                continue
            if not instance.alive:
                self._ends(instance, [ev.SessionEnded(session, self._world.clock.now_ms())])

    async def _stop(self, hook: Hook, instance: Instance, *, strict: bool) -> Answer:
        """Judge the turn, and answer when there is something to say or nothing left to wait for."""
        session = hook.session
        older = self._stops.get(session)
        if older is not None and older.said != hook.last_assistant_message and self._schedule.task(session):
            # another hook sent the agent on, or a `!` command did: what is being judged is not its last turn
            await self._intake.hear(instance, [ev.SessionBusied(session, self._world.clock.now_ms())])
        self._goes_on(session)
        stop = self._stops[session] = _Stop(
            hook.last_assistant_message, strict, watched=strict and not hook.one_shot
        )
        self._shells.told(hook)
        self._files.renew(session)
        try:
            began = self._world.clock.monotonic()
            await self._prompts.resolve(session, over=True, said=hook.last_assistant_message)
            events = events_of(hook, self._world.clock.now_ms())
            names = await self._shells.awaited(hook) if isinstance(events[-1], ev.SessionIdled) else ()
            if stop.prompt.done():  # while the file was read the session went on
                return NOTHING
            if names:
                events = (*events[:-1], ev.BackgroundAwaited(session, events[-1].t, names))
            await self._intake.hear(instance, events)
            if names and not await self._held(stop, instance, began):
                return NOTHING
            return await self._answer(session, instance, stop)
        except asyncio.CancelledError:
            if stop.watched and not self._schedule.closed:  # the host waited for it and hung up: Esc
                aborted = ev.TurnAborted(session, self._world.clock.now_ms())
                self._world.spawn(self._intake.hear(instance, [aborted]), "claude-code esc")
            raise
        finally:
            if self._stops.get(session) is stop:
                del self._stops[session]

    async def _held(self, stop: _Stop, instance: Instance, began: float) -> bool:
        """Wait until the shells had their time; False when there is nothing to wait for any more.

        When the hook goes away meanwhile, the turn is judged all the same. A hook that a person waits for is
        let go at once. When the shell ends, Claude Code tells the agent, and another
        Stop comes.
        """
        over = self._shells.wait(_session_of(instance), instance, began)
        if not stop.watched:
            await asyncio.wait((stop.prompt, over), return_when=asyncio.FIRST_COMPLETED)
        return not stop.watched and not stop.prompt.done()

    async def _answer(self, session: str, instance: Instance, stop: _Stop) -> Answer:
        """What the judgement has to say. A prompt leaves only if the file still ends with its turn."""
        end = self._world.clock.monotonic() + WAIT_S
        while (judged := self._schedule.task(session)) is not None:
            left = max(0.0, end - self._world.clock.monotonic())
            await asyncio.wait((stop.prompt, judged), timeout=left, return_when=asyncio.FIRST_COMPLETED)
            if not stop.prompt.done():
                return _toasted(stop)
            order, text = stop.prompt.result()
            if not order:
                return NOTHING
            moved = await self._moved(session, instance, stop, order)
            if not moved:
                del self._stops[session]
                self._world.spawn(self._prompts.seen(session), "claude-code seen", "look")
                if stop.strict:  # a wake is followed by UserPromptSubmit, which says that the agent goes on
                    busy = ev.SessionBusied(session, self._world.clock.now_ms())
                    await self._intake.hear(instance, [busy])
                return _woken(text, strict=stop.strict)
            await self._intake.result(order, "stale", msgspec.Raw(b"null"), moved)
            if self._stops.get(session) is not stop:
                return NOTHING
            stop.prompt = asyncio.get_running_loop().create_future()  # the newest turn is judged next
        return NOTHING

    async def _moved(self, session: str, instance: Instance, stop: _Stop, order: str) -> str:
        """Why the prompt must not leave; "" when it may. In strict mode the agent still works, so nothing can
        be taken back.
        """
        if not stop.strict and instance.mod:
            stop.looked.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LOOK_S):
                    await stop.looked.wait()
        moved = await self._prompts.moved(session, order)
        if not moved and not stop.strict and await self._files.taken_back(session):
            moved = "files of the task were put back while it was judged"
            s = self._world.sessions.get(session)
            if s is not None and self._world.limits(s).toasts:
                self._show(session, ShowToast(session, TAKEN_BACK, "warning"))
        return moved or ("" if self._stops.get(session) is stop else "another turn ended")

    def _show(self, session: str, toast: ShowToast) -> None:
        """A message for the person: by the mod if it asks; more than news also with the next prompt."""
        self._mods.show(session, toast.message)
        if toast.variant != "info":
            self._told.setdefault(session, {})[toast.variant == "error"] = toast.message

    def _goes_on(self, session: str) -> None:
        """What waits for the end of the session's last turn waits in vain."""
        self._release(session)
        self._shells.end_wait(session)

    def _release(self, session: str) -> None:
        """The session goes on or is over: a Stop hook that still waits has nothing to say."""
        stop = self._stops.pop(session, None)
        if stop is not None:
            stop.looked.set()
            if not stop.prompt.done():
                stop.prompt.set_result(("", ""))

    def _instance(self, hook: Hook, directory: str) -> Instance:
        """The session's own instance: orders are carried out here, not in the host."""
        identity = f"{HOST}-{hook.session}"
        known = self._instances.get(identity)
        was = known is not None and known.connected
        mode: Mode = "run" if hook.one_shot else "tui"
        instance = self._instances.add(identity, self, mode, hook.pid, directory)
        instance.session, instance.connected = hook.session, True
        runs = self._mods.heard(hook)
        if runs or (runs is False and not hook.one_shot and self._world.project(directory).claude_code.mod):
            instance.mod = runs
        if not was:
            self._intake.connected(instance)
        return instance

    def take(self, instance: Instance, identity: str, order: StoredOrder | CallOrder) -> None:
        """A prompt answers the Stop hook that waits, if one does. Raises ``Unavailable`` for a call."""
        session = _session_of(instance)
        stop = self._stops.get(session)
        match order:
            case SendFeedback() | SendNudge():
                if stop is None or stop.prompt.done():
                    self._result(identity, "stale", "no Stop hook waits for it")
                    return
                stop.prompt.set_result((identity, f"{order.text}\n(reflectd {identity})"))
            case ShowToast():
                if stop is not None and stop.watched:
                    stop.toasts.append(order.message)
                else:
                    self._show(session, order)
                self._result(identity, "done", "")
            case _:
                raise Unavailable(f"Claude Code does not take {type(order).__name__}")

    def _result(self, identity: str, status: Any, error: str) -> None:  # noqa: ANN401 - ResultStatus
        self._world.spawn(
            self._intake.result(identity, status, msgspec.Raw(b"null"), error), "claude-code result"
        )

    async def read(self, s: Session, instance: Instance) -> Transcript:  # noqa: ARG002 - the port
        """The transcript; the file may lag behind the hook that says how the turn ended."""
        stop = self._stops.get(s.id)
        said, escaped = stop.said if stop is not None else "", s.id in self._escaped
        found = await self._files.read(s.id, said, escaped=escaped, agents=True)
        self._escaped.discard(s.id)
        await self._files.note_written(s.id, found)
        found = still_running(found, self._shells.of(s.id))
        return replace(found, session=s.id, busy=s.busy, title=redact(found.title), directory=s.directory)

    def as_answer(self, identity: str, order: StoredOrder) -> dict[str, Any]:
        """It asks no question that an order answers; its Stop hook is answered by ``take``."""
        raise Unavailable(f"Claude Code asked nothing that {identity} ({type(order).__name__}) answers")

    def events(self, kind: str, t: int, data: msgspec.Raw) -> tuple[ev.Event, ...]:  # noqa: ARG002 - the port
        """It has no stream of events: its hooks come one by one (``hook``)."""
        raise BadReply(f"Claude Code has no event {kind}")

    async def offered(self, instance: Instance) -> Offered:
        """It lends no models."""
        raise Unavailable(f"{instance.id} lends no models")

    async def history(
        self,
        instance: Instance,
        after: str,  # noqa: ARG002 - the port
        limit: int,  # noqa: ARG002 - the port
        *,
        listed: bool = False,  # noqa: ARG002 - the port
    ) -> msgspec.Raw:
        """Its past sessions are files, which whoever wants them reads."""
        raise Unavailable(f"{instance.id} keeps its sessions in files")

    async def whole(self, instance: Instance, session: str) -> msgspec.Raw:  # noqa: ARG002 - the port
        """As above."""
        raise Unavailable(f"{instance.id} keeps its sessions in files")

    async def _late(self, hook: Hook) -> Answer:
        """A lesson that was chosen when the prompt was on its way already; it stands behind the call's
        result. Whether the call may run is not for us to say.
        """
        instance, s = self._instances.get(f"{HOST}-{hook.session}"), self._world.sessions.get(hook.session)
        if instance is None or s is None or hook.session in self._asides:
            return NOTHING
        text = await self._offering.text(s, "action", instance)
        return Answer(200, msgspec.json.encode(_context(hook, text))) if text else NOTHING

    async def _offered(self, hook: Hook, instance: Instance, when: When, prompt: str = "") -> Answer:
        """What the features offer at this moment; after a compaction it stands beside the host's summary.
        With the person's next prompt also what became of the last turn, which a hook in the background can't
        show.
        """
        s = self._world.sessions.get(hook.session)
        text = await self._offering.text(s, when, instance, prompt) if s is not None else ""
        output = _context(hook, text) if text else {}
        told = "; ".join(self._told.pop(hook.session, {}).values()) if when == "prompt" else ""
        if told and hook.typed and not hook.one_shot:  # a wake says itself what became of the turn
            output["systemMessage"] = f"reflectd, on the last turn: {told}"
        return Answer(200, msgspec.json.encode(output)) if output else NOTHING


def _session_of(instance: Instance) -> str:
    return instance.id.removeprefix(f"{HOST}-")


def _context(hook: Hook, text: str) -> dict[str, Any]:
    return {"hookSpecificOutput": {"hookEventName": hook.event, "additionalContext": text}}


def _woken(text: str, *, strict: bool) -> Answer:
    if strict:
        return Answer(200, msgspec.json.encode({"decision": "block", "reason": text}))
    return Answer(422, text.encode())


def _toasted(stop: _Stop) -> Answer:
    if stop.toasts:
        return Answer(200, msgspec.json.encode({"systemMessage": f"reflectd: {'; '.join(stop.toasts)}"}))
    return NOTHING

"""Claude Code as a host: hooks come in, and their answers are the only way out (docs/claude-code.md).

A hook is an event of its session, folded like any other; the messages are the transcript file. A Stop hook
waits for its turn's verdict: feedback is its answer, which wakes the session; nothing to say is 204. There is
no order stream, so a prompt without a waiting Stop hook is stale, and toasts are shown only in strict mode.

Every failure is an empty answer: the host goes on as if we were not there (I35).
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections import OrderedDict
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from daemon.core import events as ev
from daemon.core.errors import Unavailable
from daemon.core.orders import SendFeedback, SendNudge, ShowToast
from daemon.core.redact import redact
from daemon.engine.instances import Instance, Mode
from daemon.hosts.claude_code import Hook, events_of, parse_hook
from daemon.hosts.claude_transcript import TranscriptReader

if TYPE_CHECKING:
    from collections.abc import Mapping

    from daemon.core.orders import CallOrder, StoredOrder
    from daemon.core.session import Session
    from daemon.core.transcript import Transcript
    from daemon.core.verdict import Missing
    from daemon.engine.evaluation import Evaluations
    from daemon.engine.instances import Instances
    from daemon.engine.intake import Intake
    from daemon.engine.world import World

HOST: Final = "claude-code"
OURS: Final = "/reflectd:"
WAIT_S: Final = 105.0  # the judge has 100, curl 110, the hook 120
POLL_S: Final = 0.05
POLLS: Final = 30  # the file may be 1.5 s behind the hook
READERS: Final = 200
CONTEXT_CHARS: Final = 9_000  # the host cuts at 10,000
REQUEST_CHARS: Final = 3_000


@dataclass(frozen=True, slots=True)
class Answer:
    """What the hook gets: a status, and a body that is JSON for 200 and plain text for a wake."""

    status: int = 204
    body: bytes = b""


NOTHING: Final = Answer()


@dataclass(slots=True, eq=False)
class _Stop:
    """A Stop hook that waits for its verdict."""

    strict: bool
    prompt: asyncio.Future[tuple[str, str]] = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )
    toasts: list[str] = field(default_factory=list)


class ClaudeCode:
    """Answers hooks."""

    def __init__(self, world: World, instances: Instances, intake: Intake, evaluations: Evaluations) -> None:
        self._world = world
        self._instances = instances
        self._intake = intake
        self._evaluations = evaluations
        self._stops: dict[str, _Stop] = {}
        self._readers: OrderedDict[str, TranscriptReader] = OrderedDict()
        self._expected: dict[str, str] = {}
        self._asides: set[str] = set()
        self._locks: dict[str, asyncio.Lock] = {}

    async def hook(self, event: str, body: bytes, headers: Mapping[str, str], *, strict: bool) -> Answer:
        """One hook. Raises ``BadReply`` for what is no hook of this host."""
        hook = parse_hook(event, body, headers)
        if not hook.session or (hook.agent_id and event != "SubagentStop"):
            return NOTHING
        directory = hook.directory
        settings = self._world.project(directory)
        if not settings.enabled or (
            _is_headless(hook) and not (hook.headless or settings.claude_code.headless)
        ):
            return NOTHING
        if event == "Stop" and strict != settings.claude_code.strict:
            return NOTHING
        if self._is_about_us(hook):
            return NOTHING
        instance = self._instance(hook, directory)
        if hook.transcript:
            self._reader(hook.session, Path(hook.transcript))
        if event == "Stop":
            return await self._stop(hook, instance, strict=strict)
        over = event == "SessionEnd" and hook.session in self._asides  # nothing was left without its verdict
        found = () if over else events_of(hook, self._world.clock.now_ms())
        if any(isinstance(e, ev.HumanMessaged) for e in found):
            self._release(hook.session)
        await self._intake.hear(instance, found)
        if event == "SessionEnd":
            self._release(hook.session)
            self._world.spawn(self._end(hook.session, instance), "claude-code end")
        if event == "SessionStart" and hook.source == "compact":
            return await self._carried_over(hook, instance)
        return NOTHING

    def _is_about_us(self, hook: Hook) -> bool:
        """A turn of `/reflectd:status` is no work: neither its prompt nor its end counts (I9)."""
        if hook.event == "UserPromptSubmit":
            self._asides.discard(hook.session)
            if hook.prompt.startswith(OURS):
                self._asides.add(hook.session)
                self._release(hook.session)
                return True
        return hook.event == "Stop" and hook.session in self._asides

    async def _end(self, session: str, instance: Instance) -> None:
        """The session is over: what is left to file is filed, then it is forgotten."""
        judged = self._evaluations.task(session)
        if judged is not None:
            await asyncio.wait([judged], timeout=WAIT_S)
        instance.connected = False
        self._asides.discard(session)
        for kept in (self._readers, self._expected, self._locks):
            kept.pop(session, None)

    def sweep(self) -> None:
        """Sessions whose process is gone without a word are not connected any more."""
        for instance in self._instances:
            if instance.host == HOST and instance.connected and not _alive(instance.pid):
                instance.connected = False
                session = instance.id.removeprefix(f"{HOST}-")
                self._release(session)
                self._asides.discard(session)

    async def _stop(self, hook: Hook, instance: Instance, *, strict: bool) -> Answer:
        """Judge the turn, and answer when there is something to say or nothing left to wait for."""
        session = hook.session
        self._release(session)
        stop = self._stops[session] = _Stop(strict)
        self._expected[session] = hook.last_assistant_message
        try:
            await self._intake.hear(instance, events_of(hook, self._world.clock.now_ms()))
            judged = self._evaluations.task(session)
            if judged is None:
                return NOTHING
            await asyncio.wait(
                (asyncio.ensure_future(stop.prompt), asyncio.ensure_future(judged)),
                timeout=WAIT_S,
                return_when=asyncio.FIRST_COMPLETED,
            )
            if not stop.prompt.done():
                return _toasted(stop)
            if stop.prompt.cancelled():
                return NOTHING
            order, text = stop.prompt.result()
            if not order:
                return NOTHING
            self._stops.pop(session, None)
            await self._intake.result(order, "done", msgspec.Raw(b"null"), "")
            await self._intake.hear(instance, [ev.SessionBusied(session, self._world.clock.now_ms())])
            return _woken(text, strict=strict)
        except asyncio.CancelledError:
            if strict and not self._evaluations.closed:  # the host waited for it and hung up: Esc
                aborted = ev.TurnAborted(session, self._world.clock.now_ms())
                self._world.spawn(self._intake.hear(instance, [aborted]), "claude-code esc")
            raise
        finally:
            if self._stops.get(session) is stop:
                del self._stops[session]
            self._expected.pop(session, None)

    def _release(self, session: str) -> None:
        """The person typed, or the session ended: a Stop hook that still waits has nothing to say."""
        stop = self._stops.pop(session, None)
        if stop is not None and not stop.prompt.done():
            stop.prompt.set_result(("", ""))

    def _instance(self, hook: Hook, directory: str) -> Instance:
        """The session's own instance: orders are carried out here, not in the host."""
        identity = f"{HOST}-{hook.session}"
        known = self._instances.get(identity)
        mode: Mode = "run" if _is_headless(hook) else "tui"
        instance = self._instances.add(Instance(identity, HOST, mode, hook.pid, directory))
        instance.take = lambda order_id, order: self._take(hook.session, order_id, order)
        instance.read = self._read
        was = known is not None and known.connected
        instance.connected = True
        if not was and self._instances.on_connected is not None:
            self._instances.on_connected(instance)
        return instance

    def _take(self, session: str, identity: str, order: StoredOrder | CallOrder) -> None:
        """An order for the host: a prompt is the answer of the Stop hook that waits, if one does."""
        stop = self._stops.get(session)
        match order:
            case SendFeedback() | SendNudge():
                if stop is None or stop.prompt.done():
                    self._result(identity, "stale", "no Stop hook waits for it")
                    return
                stop.prompt.set_result((identity, f"{order.text}\n(reflectd {identity})"))
            case ShowToast():
                if stop is not None:
                    stop.toasts.append(order.message)
                self._result(identity, "done", "")
            case _:
                raise Unavailable(f"Claude Code does not take {type(order).__name__}")

    def _result(self, identity: str, status: Any, error: str) -> None:  # noqa: ANN401 - ResultStatus
        self._world.spawn(
            self._intake.result(identity, status, msgspec.Raw(b"null"), error), "claude-code result"
        )

    def _reader(self, session: str, path: Path) -> TranscriptReader:
        known = self._readers.get(session)
        if known is None or known.path != path:
            known = self._readers[session] = TranscriptReader(path, is_ours=self._world.outbox.is_ours)
        self._readers.move_to_end(session)
        while len(self._readers) > READERS:
            gone, _ = self._readers.popitem(last=False)
            self._locks.pop(gone, None)
        return known

    async def _read(self, s: Session) -> Transcript:
        """The transcript; the file may lag behind the hook that says how the turn ended."""
        reader, expect = self._readers.get(s.id), self._expected.get(s.id, "")
        if reader is None:
            raise Unavailable("its transcript is not known yet")
        async with self._locks.setdefault(s.id, asyncio.Lock()):
            for left in reversed(range(POLLS)):
                try:
                    found = await asyncio.to_thread(reader.read, expect)
                except OSError as e:
                    raise Unavailable(f"the transcript cannot be read: {e}") from e
                if not left or reader.found or not expect:
                    break
                await asyncio.sleep(POLL_S)
        return replace(found, session=s.id, busy=s.busy, title=redact(found.title), directory=s.directory)

    async def _carried_over(self, hook: Hook, instance: Instance) -> Answer:
        """After a compaction: what was asked and what is open, as facts beside the summary."""
        world = self._world
        s = world.sessions.get(hook.session)
        if s is None or not world.project(s.directory).compaction.enabled or s.aborted or s.off:
            return NOTHING
        with contextlib.suppress(Unavailable):
            transcript = await self._read(s)
            requests = [redact(m.text)[:REQUEST_CHARS] for m in transcript.requests]
            newest = world.verdicts.newest(s.id, 1)
            verdict = newest[0].verdict if newest else None
            if not requests or (verdict is not None and verdict.complete and verdict.task == s.task):
                return NOTHING
            text = _context(requests, verdict.missing if verdict and verdict.task == s.task else ())
            world.log.info("compaction", session=s.id, action="context", instance=instance.id)
            output = {"hookEventName": "SessionStart", "additionalContext": text[:CONTEXT_CHARS]}
            return Answer(200, msgspec.json.encode({"hookSpecificOutput": output}))
        return NOTHING


def _context(requests: list[str], missing: tuple[Missing, ...]) -> str:
    """Facts, not orders: the host's model reads them beside its own summary."""
    lines = ["The context was compacted. What the person asked for in the current task, word for word:"]
    lines += [f"> {line}" for text in requests for line in text.splitlines()]
    if missing:
        lines += ["What was still open when the last turn was checked:"]
        lines += [f"- {m.text}" for m in missing]
    return "\n".join(lines)


def _is_headless(hook: Hook) -> bool:
    """`claude -p` and the SDKs: nobody sits before it."""
    return not hook.interactive


def _woken(text: str, *, strict: bool) -> Answer:
    if strict:
        return Answer(200, msgspec.json.encode({"decision": "block", "reason": text}))
    return Answer(422, text.encode())


def _toasted(stop: _Stop) -> Answer:
    if stop.strict and stop.toasts:
        return Answer(200, msgspec.json.encode({"systemMessage": f"reflectd: {stop.toasts[-1]}"}))
    return NOTHING


def _alive(pid: int) -> bool:
    if pid <= 0:
        return True  # not told: an end of the session will say so
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True

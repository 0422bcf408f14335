"""Claude Code as a host: hooks come in, and their answers are the only way out (docs/claude-code.md).

Feedback is the answer of the Stop hook, which wakes the session; 204 means that there is nothing to say. A
toast is shown at once in strict mode and where the mod asks for it, else with the person's next prompt. The
mod runs beside the hooks (plugin-shim/claude-code/hooks/register.js): it marks what they send, tells of Esc,
and asks what to show while a turn is judged. Every failure is an empty answer (I35).
"""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct, field

from ...core import events as ev
from ...core.errors import BadReply, Unavailable
from ...core.orders import ShowToast
from ...files.commands import all_ours
from ...hosts.claude_code.hooks import Hook, command_of, events_of, parse_hook
from ...hosts.claude_code.transcript import TranscriptReader, awaited, still_running, with_sub_agents
from ..threads import beside
from .hooked import Hooked, Known, Stop, as_json
from .host import NOTHING, Answer, Instance

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ...core.session import Session
    from ...core.transcript import Transcript

HOST: Final = "claude-code"
OURS: Final = "/reflectd:"
FROM_MOD: Final = frozenset({"ModAborted", "ModWatch"})
LOOK_S: Final = 2.5  # the mod looks once a second whether the conversation is still there
TAKEN_BACK: Final = "Not sent back: files of the task were put back while it was judged"
WAIT_S: Final = 105  # the judge has 100; a hook that is waited for 120, its curl 110
BACKGROUND_S: Final = 600.0  # how long a turn waits for a shell that it left in the background
SHELL_POLL_S: Final = 0.5
HOOKS_S: Final = 600.0  # Claude Code's own limit for a Stop hook of the person's
UNKNOWN_S: Final = 60.0  # of a version that may not write when they are over
HOOKS_POLL_S: Final = 0.1
JUDGING: Final = "judging whether the task is done; send a message to take over"
HOLDING: Final = "a command still runs in the background; the task is judged when it ends"
AGAIN_MS: Final = 1_000
SELDOM_MS: Final = 5_000
MOST_TOASTS: Final = 5


class _Mod(Struct):
    """The mod's news of a session. ``prompt``: the id of the newest one. ``turn``: the newest that Esc ended.
    ``judging``: by the last answer.
    """

    prompt: str
    turn: str = ""
    judging: bool = False
    toasts: list[str] = field(default_factory=list)

    def is_abort(self, hook: Hook) -> bool:
        """Says whether Esc ended the present work. It may be told twice, or after the next prompt."""
        if self.prompt not in {"", hook.prompt_id} or self.turn == hook.turn_id:
            return False
        self.turn = hook.turn_id
        return True

    def news(self, *, judging: bool, holding: bool, shows: bool) -> dict[str, Any]:
        """What the mod shows, if it ``shows`` anything, and the ms until it asks again (missing: not at all).

        After a judgement it asks once more, for a late message. The last one stays as a line.
        """
        toasts, self.toasts = self.toasts, []
        was, self.judging = self.judging, judging
        news: dict[str, Any] = {"toasts": toasts, "status": toasts[-1]} if toasts else {}
        if judging:
            news |= {"status": JUDGING, "again_ms": AGAIN_MS}
        elif holding:
            news |= {"status": HOLDING, "again_ms": SELDOM_MS}
        elif was and not toasts:
            news |= {"again_ms": AGAIN_MS}
        return news if shows else {k: v for k, v in news.items() if k == "again_ms"}


class _Known(Known, eq=False):
    """One session. ``aside``: its turn is about us. ``looked``: set when the mod asks.

    ``shells``: the ids of those that ran at its last Stop hook. ``waits``: a turn waits for them; set when it
    need not any more.
    """

    aside: bool = False
    looked: asyncio.Event = field(default_factory=asyncio.Event)
    shells: set[str] = field(default_factory=set)
    waits: asyncio.Event | None = None
    mod: _Mod | None = None

    def goes_on(self) -> None:
        self.release()
        if self.waits is not None:
            self.waits.set()
            self.waits = None

    def release(self) -> None:
        Known.release(self)
        self.looked.set()

    def show(self, toast: ShowToast) -> None:
        """A message for the person: by the mod if it asks; more than news also with the next prompt."""
        if self.mod is not None:
            self.mod.toasts = [*self.mod.toasts, toast.message][-MOST_TOASTS:]
        Known.show(self, toast)


class ClaudeCode(Hooked[Hook, _Known]):
    name, known, reader, longest_s = HOST, _Known, TranscriptReader, WAIT_S
    with_agents, events_of = staticmethod(with_sub_agents), staticmethod(events_of)
    _tells_rest = False  # the file of a session said that the Stop hooks of a turn are over

    async def hook(self, event: str, body: bytes, headers: Mapping[str, str], *, strict: bool) -> Answer:
        hook = await beside(len(body), lambda: parse_hook(event, body, headers))
        if not hook.session or (hook.agent_id and event != "SubagentStop"):
            return NOTHING
        await self._world.projects.read(hook.directory)
        if event in FROM_MOD:
            return await self._from_mod(hook)
        settings = self._world.project(hook.directory)
        if not settings.enabled or (hook.one_shot and not (hook.headless or settings.run.headless)):
            return NOTHING
        if event == "Stop" and strict != (settings.claude_code.strict or hook.one_shot):
            return NOTHING  # the other one of the two Stop hooks counts
        if await self._is_about_us(hook):
            if said := command_of(hook, self._world.clock.now_ms()):
                await self._intake.hear(self._instance(hook), said)
            return NOTHING
        if event == "PreToolUse":
            return NOTHING if self._of(hook.session).aside else await self._late(hook)
        instance = self._instance(hook)
        if hook.transcript:
            self._files.locate(hook.session, Path(hook.transcript))
        if event == "Stop":
            watched = strict and not hook.one_shot
            return await self._stop(hook, instance, Stop(hook.last_assistant_message, strict, watched))
        return await self._heard(hook, instance)

    async def _heard(self, hook: Hook, instance: Instance) -> Answer:
        events, known = events_of(hook, self._world.clock.now_ms()), self._of(hook.session)
        if hook.event == "SessionEnd":  # Claude Code, which ends, may hang up at once: nobody waits for this
            # a command of ours that the mod answered is no turn
            self._ends(instance, events, under_way=not known.aside)
            return NOTHING
        if any(isinstance(e, ev.SessionBusied) for e in events):
            known.escaped = False
            known.goes_on()
        return await self._told(hook, instance, events)

    async def _from_mod(self, hook: Hook) -> Answer:
        """An event or a question of the mod's own, on a session that the hooks have told of."""
        session = hook.session
        instance, s = self._instance_of(session), self._world.sessions.get(session)
        if instance is None or not instance.connected or s is None:
            return NOTHING
        known = self._of(session)
        # it is there, also when the daemon began after its last prompt
        mod = known.mod = known.mod or _Mod("")
        if hook.event == "ModAborted":
            if not known.aside and mod.is_abort(hook):
                known.escaped = known.escaped or hook.reason != "rewind"  # of which the file shows nothing
                if not known.ending:  # else its last turn is being looked at already
                    known.goes_on()
                    await self._intake.hear(instance, events_of(hook, self._world.clock.now_ms()))
            return NOTHING
        known.looked.set()
        judging = self._schedule.task(session) is not None and not (known.stop and known.stop.watched)
        holding = known.stop is not None and bool(s.background)
        news = mod.news(judging=judging, holding=holding, shows=self._world.limits(s).toasts)
        if "toasts" in news:
            known.news.clear()
        return as_json(news)

    async def _is_about_us(self, hook: Hook) -> bool:
        """A turn of `/reflectd:status` is no work: neither its prompt nor its end counts (I9)."""
        if hook.event == "UserPromptSubmit":
            known = self._of(hook.session)
            known.aside = False
            if hook.prompt.startswith(OURS) or await self._is_bare(hook):
                known.aside = True
                known.release()
                return True
        known_before = self._sessions.get(hook.session)
        return hook.event == "Stop" and known_before is not None and known_before.aside

    @staticmethod
    async def _is_bare(hook: Hook) -> bool:
        """Says whether it is the `/reflect` that `setup` put among the person's commands."""
        if hook.reflects is None or not hook.transcript:
            return False
        config = Path(hook.transcript).parent.parent.parent  # <config>/projects/<folder>/<session>.jsonl
        return await asyncio.to_thread(all_ours, (config, Path(hook.directory) / ".claude"))

    def _instance(self, hook: Hook) -> Instance:
        """The session's own instance, which knows whether the mod is there."""
        instance = self._connect(hook, one_shot=hook.one_shot)
        runs, known = None, self._of(hook.session)
        if hook.mod:
            runs = True
            if hook.event == "UserPromptSubmit":  # what is left to show is of an older turn
                known.mod = _Mod(hook.prompt_id)
        elif hook.event == "UserPromptSubmit" and hook.attended is not None:
            # before the first prompt it may not be loaded yet; 2.1.197, which does not say, has no mods
            runs, known.mod = False, None
        if runs or (
            runs is False and not hook.one_shot and self._world.project(hook.directory).claude_code.mod
        ):
            instance.mod = runs
        return instance

    # The end of a turn

    async def _stops(self, hook: Hook, instance: Instance, stop: Stop) -> None:
        await super()._stops(hook, instance, stop)
        self._of(hook.session).shells = {task.id for task in hook.lasting if task.id}
        self._files.renew(hook.session)

    async def _awaited(self, hook: Hook, stop: Stop, end: float) -> tuple[str, ...]:  # noqa: ARG002 - of a host
        """The shells that are waited for. Where agents run beside them, another Stop follows."""
        if not hook.lasting or hook.lasting != hook.background:
            return ()
        if self._world.sessions.get(hook.session) is None:
            return ()
        try:
            transcript = await self._files.read(hook.session, stop.said)
        except (Unavailable, BadReply):
            return ()  # the judgement will say so
        held = awaited(transcript, self._of(hook.session).shells)
        return tuple(task.name for task in hook.lasting if task.id in held)

    async def _held(self, stop: Stop, instance: Instance, began: float) -> bool:
        """Wait until the shells had their time; False when there is nothing to wait for any more.

        When the hook goes away meanwhile, the turn is judged all the same. A hook that a person waits for is
        let go at once. When the shell ends, Claude Code tells the agent, and another Stop comes.
        """
        off = self._of(instance.session).waits = asyncio.Event()
        end = began + BACKGROUND_S

        async def wait() -> None:
            clock = self._world.clock
            while (left := end - clock.monotonic()) > 0 and not off.is_set():
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(min(left, SHELL_POLL_S)):
                        await off.wait()
            if not off.is_set():
                await self._intake.hear(instance, [ev.SessionIdled(instance.session, clock.now_ms())])

        over = self._world.spawn(wait(), "claude-code hold", "look")
        if not stop.watched:
            await asyncio.wait((stop.prompt, over), return_when=asyncio.FIRST_COMPLETED)
        return not stop.watched and not stop.prompt.done()

    async def _sent(self, instance: Instance, stop: Stop, text: str) -> Answer:
        if stop.strict:
            return await super()._sent(instance, stop, text)
        return Answer(422, text.encode())  # UserPromptSubmit follows, which says that the agent goes on

    async def _stale(self, session: str, instance: Instance, stop: Stop, order: str) -> str:
        """In strict mode the agent still works, so nothing can be taken back. Else the turn is over only when
        the Stop hooks of others are: one of them may send the agent on, or end the task, and so may Esc.
        """
        why = await super()._stale(session, instance, stop, order)
        if stop.strict:
            return why
        clock = self._world.clock
        began = clock.monotonic()
        while not why and not self._files.rested(session):
            if clock.monotonic() - began > (HOOKS_S if self._tells_rest else UNKNOWN_S):
                break
            await asyncio.sleep(HOOKS_POLL_S)
            why = await super()._stale(session, instance, stop, order)
        self._tells_rest = self._tells_rest or (not why and self._files.rested(session))
        if not why and instance.mod:
            looked = self._of(session).looked
            looked.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LOOK_S):
                    await looked.wait()
            why = await super()._stale(session, instance, stop, order)
        if not why and await self._files.taken_back(session):
            why = "files of the task were put back while it was judged"
            s = self._world.sessions.get(session)
            if s is not None and self._world.limits(s).toasts:
                self._of(session).show(ShowToast(session, TAKEN_BACK, "warning"))
        return why or ("" if self._is_waiting(session, stop) else "another turn ended")

    async def read(self, s: Session, instance: Instance) -> Transcript:
        """As of every host with hooks. Shells that run in the background are marked as running."""
        transcript = await super().read(s, instance)
        await self._files.note_written(s.id, transcript)
        known = self._sessions.get(s.id)
        return still_running(transcript, known.shells) if known is not None else transcript

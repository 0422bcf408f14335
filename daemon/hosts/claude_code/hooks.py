"""Claude Code's hook calls (``POST /v1/hooks/<Event>``) as core events, and the calls of the plugin's mod.

Owns the names and the fields of the hooks. Keeps no state and does no I/O. A hook is only a hint: the
transcript counts. An unknown hook gives no event and an unknown field is skipped (I36). A body of another
form raises ``BadReply``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeVar

from msgspec import Raw, Struct, field

from ...core import events as ev
from ...core.consent import Chosen, chosen_by_text, shown, typed
from ...core.errors import BadReply
from ...redact import redact_head
from ..hook import MAX_TEXT, PERMISSION, checked_path, checked_session, order_in, read_body, sender
from ..wire import MAX_NAME, decode
from .lines import REFLECT, is_typed

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

T = TypeVar("T")

NONE: Final = Raw(b"null")
MAX_TASKS: Final = 200
MAX_TOLD: Final = 1 << 20  # bytes of all background tasks
QUESTION: Final = "AskUserQuestion"
_FALSE: Final = frozenset({b"null", b"false", b"0", b'""'})
_OVER: Final = frozenset({"completed", "failed", "killed", "cancelled", "stopped", "error"})
_LASTING: Final = frozenset({"shell", "monitor"})
_ASKS: Final = frozenset({"permission_prompt", "elicitation_dialog"})
_A_PERSON: Final = frozenset({"composer", "human"})
_NOT_A_PERSON: Final = frozenset({
    "task-notification", "scheduled-trigger", "peer", "peer-send-message", "projects-relay", "coordinator",
    "observer", "observer-activity", "auto-continuation", "channel", "plugin",
})  # fmt: skip


class Task(Struct, frozen=True):
    """A background task that runs. ``kind``: ``shell``, ``subagent`` … ``name``: its command or purpose."""

    id: str
    kind: str
    name: str


class Hook(Struct, frozen=True, kw_only=True):
    """One hook call. A field that the host does not send is empty.

    ``project``: the folder that Claude Code was started in. ``cwd``: its shell's folder. ``prompt``: the
    submitted text, from anybody. ``background``: the tasks that still run. ``attended``: a person sits at the
    terminal; None where the version does not say. ``headless``: ``REFLECTD_HEADLESS`` asks to judge sessions
    without a person too. ``pid``: the host's process, 0 if unknown.

    ``answers``: answers to questions of ours in Claude Code's question tool, with the call (``tool_use``).

    ``mod``: the plugin's mod runs. Only it says who submitted a prompt (``origin``) and which turn ended
    (``turn_id``).
    """

    event: str
    session: str
    transcript: str = ""
    cwd: str = ""
    project: str = ""
    prompt: str = ""
    prompt_id: str = ""
    last_assistant_message: str = ""
    background: tuple[Task, ...] = ()
    source: str = ""
    error: str = ""
    notification: str = ""
    message: str = ""
    permission_mode: str = ""
    agent_id: str = ""
    agent_type: str = ""
    reason: str = ""
    title: str = ""
    entrypoint: str = ""
    attended: bool | None = None
    pid: int = 0
    headless: bool = False
    mod: bool = False
    origin: str = ""
    turn_id: str = ""
    tool_use: str = ""
    answers: tuple[Chosen, ...] = ()

    @property
    def directory(self) -> str:
        """The session's folder."""
        return self.project or self.cwd

    @property
    def interactive(self) -> bool:
        """Says whether a person is there for sure. Not with ``claude -p`` and the SDKs, nor in a background
        session, which an agent can start and ``claude attach`` leaves unattended by name.
        """
        return self.attended is not False and not self.entrypoint.startswith("sdk")

    @property
    def one_shot(self) -> bool:
        """``claude -p`` and the SDKs: a process for one result. A background session has the entrypoint of
        the terminal UI, and lives on as one there does.
        """
        return self.entrypoint != "cli" and not self.interactive

    @property
    def lasting(self) -> tuple[Task, ...]:
        """The background tasks that may run as long as the session does. Claude Code tells the agent of the
        end of all others, and another Stop follows.
        """
        return tuple(t for t in self.background if t.kind in _LASTING)

    @property
    def typed(self) -> bool:
        """Says whether a person may have typed the prompt: no host, no other plugin, no text or command of
        ours (I4, I9).
        """
        return self.by_person and is_typed(self.prompt, by_person=self.origin in _A_PERSON)

    @property
    def by_person(self) -> bool:
        """Says whether neither the host nor another plugin is known to have submitted the prompt."""
        return self.origin not in _NOT_A_PERSON

    @property
    def reflects(self) -> str | None:
        """The words behind our command `/reflect`; None for any other prompt."""
        name, *rest = self.prompt[:MAX_TEXT].split(None, 1) or [""]
        return "".join(rest) if name in REFLECT else None


class _Body(Struct):
    """The fields as they came. They are read one by one, so that a list of millions costs nothing."""

    session_id: Raw = NONE
    transcript_path: Raw = NONE
    cwd: Raw = NONE
    prompt: Raw = NONE
    prompt_id: Raw = NONE
    last_assistant_message: Raw = NONE
    background_tasks: Raw = NONE
    source: Raw = NONE
    error: Raw = NONE
    notification: Raw = field(name="notification_type", default=NONE)
    message: Raw = NONE
    permission_mode: Raw = NONE
    agent_id: Raw = NONE
    agent_type: Raw = NONE
    reason: Raw = NONE
    title: Raw = field(name="session_title", default=NONE)
    mod: Raw = field(name="reflectd_mod", default=NONE)
    origin: Raw = field(name="reflectd_origin", default=NONE)
    turn_id: Raw = NONE
    tool_name: Raw = NONE
    tool_use: Raw = field(name="tool_use_id", default=NONE)
    tool_input: Raw = NONE
    tool_response: Raw = NONE


_NAMES: Final = (  # the fields that are short texts
    "prompt_id", "source", "error", "notification", "message", "permission_mode", "agent_id", "agent_type",
    "reason", "title", "origin", "turn_id", "tool_use",
)  # fmt: skip


def parse_hook(event: str, body: bytes, headers: Mapping[str, str]) -> Hook:
    """The hook call: the JSON that Claude Code sent, and the headers that ``hook.sh`` adds. Raises
    ``BadReply``.

    The session id and the folders are checked; all other texts are only cut.
    """
    try:
        wire, host = read_body(body, _Body), sender(headers)
        return Hook(
            event=event,
            session=checked_session(_text(wire.session_id)),
            transcript=checked_path(_path(wire.transcript_path), "transcript_path"),
            cwd=checked_path(_path(wire.cwd), "cwd"),
            project=checked_path(host.told.get("project"), "X-CC-Project"),
            prompt=_text(wire.prompt)[:MAX_TEXT],
            last_assistant_message=_text(wire.last_assistant_message)[-MAX_TEXT:],
            background=_running(wire.background_tasks),
            entrypoint=host.told.get("entrypoint", "")[:MAX_NAME],
            attended={"1": True, "0": False}.get(host.told.get("attended", "")),
            pid=host.pid,
            headless=host.headless,
            mod=bytes(memoryview(wire.mod)[:6]) not in _FALSE,
            answers=_answers(wire),
            **{name: _text(getattr(wire, name))[:MAX_NAME] for name in _NAMES},
        )
    except BadReply as e:
        raise BadReply(f"hook {event[:40]}: {e}", e.raw) from None


def _answers(wire: _Body) -> tuple[Chosen, ...]:
    """The answers to a call of the question tool, if that asked questions of ours and nothing else.

    The model may put answers into its call; only those of the result are read.
    """
    if _text(wire.tool_name) != QUESTION:
        return ()
    given, came = _as(dict[str, Any], wire.tool_input), _as(dict[str, Any], wire.tool_response)
    asks = [question.digest for question in shown(given.get("questions"))]
    answers = chosen_by_text(came.get("questions"), came.get("answers"))
    return answers if [a.digest for a in answers] == asks else ()


def events_of(hook: Hook, t: int) -> tuple[ev.Event, ...]:
    """The events of this hook call, at ``t`` (epoch ms); none for an unknown hook.

    A sub-agent's own hooks are activity of its session. ``SessionEnd`` gives ``SessionIdled`` first: a turn
    that was cut short gets its final verdict (I21), and the session no longer counts as busy. Then comes
    ``SessionEnded``.
    """
    read = _READERS.get(hook.event)
    if read is None:
        return ()
    if hook.agent_id and hook.event != "SubagentStop":
        return (ev.ActivitySeen(hook.session, t),)
    return read(hook, t)


def _started(hook: Hook, t: int) -> tuple[ev.Event, ...]:
    seen = ev.SessionSeen(hook.session, t, title=hook.title, directory=hook.directory)
    return (seen, ev.SessionCompacted(hook.session, t)) if hook.source == "compact" else (seen,)


def _prompted(hook: Hook, t: int) -> tuple[ev.Event, ...]:
    """A typed prompt opens a task with the prompt's id. A version that sends no id gets one made up here, and
    the transcript corrects it.
    """
    name, busy = hook.prompt_id or f"prompt-{t}", ev.SessionBusied(hook.session, t)
    if hook.typed:
        agent = "plan" if hook.permission_mode == "plan" else ""
        return (ev.HumanMessaged(hook.session, t, name, agent), busy)
    return (ev.SyntheticMessaged(hook.session, t, name, order_in(hook.prompt)), busy)


def _answered(hook: Hook, t: int) -> ev.Event:
    """No permission is open any more; no hook tells of its answer."""
    return ev.PersonAnswered(hook.session, t, PERMISSION)


def _stopped(hook: Hook, t: int) -> tuple[ev.Event, ...]:
    if agents := [task for task in hook.background if task not in hook.lasting]:
        names = tuple(task.name for task in agents)  # another Stop follows when they end (I16)
        return (_answered(hook, t), *_active(hook, t), ev.BackgroundAwaited(hook.session, t, names))
    return (_answered(hook, t), ev.SessionIdled(hook.session, t))


def _failed(hook: Hook, t: int) -> tuple[ev.Event, ...]:
    error = ev.HostErrored(hook.session, t, hook.error or "unknown", hook.last_assistant_message[:2_000])
    return (error, _answered(hook, t), ev.SessionIdled(hook.session, t))


def _notified(hook: Hook, t: int) -> tuple[ev.Event, ...]:
    asks = hook.notification in _ASKS or (not hook.notification and "needs your permission" in hook.message)
    return (ev.PersonAsked(hook.session, t, PERMISSION),) if asks else ()


def _aborted(hook: Hook, t: int) -> tuple[ev.Event, ...]:
    """Esc while the agent worked: of the hooks none tells of it."""
    return (ev.TurnAborted(hook.session, t), _answered(hook, t), ev.SessionIdled(hook.session, t))


def _ended(hook: Hook, t: int) -> tuple[ev.Event, ...]:
    return (_answered(hook, t), ev.SessionIdled(hook.session, t), ev.SessionEnded(hook.session, t))


def _sub_agent(hook: Hook, t: int) -> tuple[ev.Event, ...]:
    """When a compaction ends, this hook comes without a type: that is no sub-agent."""
    return _active(hook, t) if hook.agent_type else ()


def _used(hook: Hook, t: int) -> tuple[ev.Event, ...]:
    """A call ended. Where nobody sits, an answer is no person's."""
    asked = hook.answers and hook.tool_use and hook.interactive
    chosen = (ev.QuestionAnswered(hook.session, t, hook.tool_use, hook.answers),) if asked else ()
    return (_answered(hook, t), *chosen, *_active(hook, t))


def _active(hook: Hook, t: int) -> tuple[ev.Event, ...]:
    return (ev.ActivitySeen(hook.session, t),)


_READERS: Final[dict[str, Callable[[Hook, int], tuple[ev.Event, ...]]]] = {
    "SessionStart": _started,
    "UserPromptSubmit": _prompted,
    "PreToolUse": _active,
    "PostToolUse": _used,
    "Stop": _stopped,
    "StopFailure": _failed,
    "SubagentStop": _sub_agent,
    "PreCompact": _active,
    "Notification": _notified,
    "ModAborted": _aborted,
    "SessionEnd": _ended,
}
EVENTS: Final = frozenset(_READERS)


def command_of(hook: Hook, t: int) -> tuple[ev.Event, ...]:
    """Our command `/reflect`, typed by a person; nothing for any other prompt."""
    said = hook.reflects
    if said is None or not (hook.by_person and hook.interactive and hook.prompt_id):
        return ()
    wanted = typed(said)
    return (ev.CommandTyped(hook.session, t, hook.prompt_id, wanted.digest if wanted else ""),)


class _Told(Struct):
    """A background task as it came."""

    id: Raw = NONE
    type: Raw = NONE
    status: Raw = NONE
    command: Raw = NONE
    description: Raw = NONE
    agent_type: Raw = NONE
    name: Raw = NONE


def _running(told: Raw) -> tuple[Task, ...]:
    """The tasks that have not ended. One without a status counts, because waiting is safer."""
    if len(memoryview(told)) > MAX_TOLD:
        raise BadReply(f"background_tasks has more than {MAX_TOLD >> 20} MB")
    found = _as(list[Raw], told)[:MAX_TASKS]
    tasks = (decode(t, _Told) for t in found if bytes(memoryview(t)[:1]) == b"{")
    return tuple(_task(t) for t in tasks if _text(t.status) not in _OVER)


def _task(found: _Told) -> Task:
    kind = _text(found.type)[:MAX_NAME]
    said = map(_text, (found.command, found.description, found.agent_type, found.name))
    name = " ".join(next((s for s in said if s.strip()), kind or "a background task").split())
    return Task(_text(found.id)[:MAX_NAME], kind, redact_head(name, MAX_NAME))


def _text(value: Raw) -> str:
    """The text, "" for anything else."""
    return _as(str, value)


def _as(form: type[T], value: Raw) -> T:
    """The value of this form, an empty one for anything else."""
    try:
        return decode(value, form)
    except BadReply:
        return form()


def _path(value: Raw) -> str:
    """The text; what is neither text nor null is no path either."""
    return _text(value) if bytes(memoryview(value)[:1]) in {b'"', b"n"} else "?"

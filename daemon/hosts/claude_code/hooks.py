"""Claude Code's hook calls (``POST /v1/hooks/<Event>``) as core events, and the calls of the plugin's mod.

Owns the names of the hooks and the fields that only Claude Code sends. An unknown hook gives no event (I36).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from msgspec import Raw, Struct, field

from ...core import events as ev
from ...core.consent import Chosen, chosen_by_text, shown, typed
from ...core.errors import BadReply
from ...redact import redact_head
from .. import hook as hooks
from ..hook import MAX_TEXT, NONE, PERMISSION, Body, checked_path, read_hook, text, value_of
from ..hook import Hook as BaseHook
from ..wire import MAX_NAME, decode
from .lines import REFLECT, is_typed

if TYPE_CHECKING:
    from collections.abc import Mapping

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


class Hook(BaseHook, frozen=True, kw_only=True):
    """One hook call. A field that the host does not send is empty.

    ``background``: the tasks that still run. ``attended``: a person sits at the terminal; None where the
    version does not say. ``answers``: answers to questions of ours in Claude Code's question tool, with the
    call (``tool_use_id``).

    ``mod``: the plugin's mod runs. Only it says who submitted a prompt (``origin``) and which turn ended
    (``turn_id``).
    """

    prompt_id: str = ""
    background: tuple[Task, ...] = ()
    error: str = ""
    notification: str = ""
    message: str = ""
    agent_type: str = ""
    reason: str = ""
    entrypoint: str = ""
    attended: bool | None = None
    mod: bool = False
    origin: str = ""
    answers: tuple[Chosen, ...] = ()

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


class _Body(Body):
    """The fields that only Claude Code sends."""

    prompt_id: Raw = NONE
    background_tasks: Raw = NONE
    error: Raw = NONE
    notification: Raw = field(name="notification_type", default=NONE)
    message: Raw = NONE
    agent_type: Raw = NONE
    reason: Raw = NONE
    title: Raw = field(name="session_title", default=NONE)
    mod: Raw = field(name="reflectd_mod", default=NONE)
    origin: Raw = field(name="reflectd_origin", default=NONE)
    tool_input: Raw = NONE
    tool_response: Raw = NONE


_NAMES: Final = (  # the fields that are short texts
    "prompt_id", "error", "notification", "message", "agent_type", "reason", "title", "origin",
)  # fmt: skip


def parse_hook(event: str, body: bytes, headers: Mapping[str, str]) -> Hook:
    """The hook call: the JSON that Claude Code sent, and the headers that ``hook.sh`` adds. Raises
    ``BadReply``.
    """
    try:
        wire, host, fields = read_hook(event, body, headers, _Body, _NAMES)
        return Hook(
            project=checked_path(host.told.get("project"), "X-CC-Project"),
            background=_running(wire.background_tasks),
            entrypoint=host.told.get("entrypoint", "")[:MAX_NAME],
            attended={"1": True, "0": False}.get(host.told.get("attended", "")),
            mod=bytes(memoryview(wire.mod)[:6]) not in _FALSE,
            answers=_answers(wire),
            **fields,
        )
    except BadReply as e:
        raise BadReply(f"hook {event[:40]}: {e}", e.raw) from None


def _answers(wire: _Body) -> tuple[Chosen, ...]:
    """The answers to a call of the question tool, if that asked questions of ours and nothing else.

    The model may put answers into its call; only those of the result are read.
    """
    if text(wire.tool_name) != QUESTION:
        return ()
    given, came = value_of(dict[str, Any], wire.tool_input), value_of(dict[str, Any], wire.tool_response)
    asks = [question.digest for question in shown(given.get("questions"))]
    answers = chosen_by_text(came.get("questions"), came.get("answers"))
    return answers if [a.digest for a in answers] == asks else ()


def events_of(hook: Hook, t: int) -> tuple[ev.Event, ...]:
    """The events of this hook call, at ``t`` (epoch ms); none for an unknown hook.

    A sub-agent's own hooks are activity of its session. A typed prompt opens a task with the prompt's id; a
    version that sends no id gets one made up here, and the transcript corrects it.
    """
    session, active = hook.session, (ev.ActivitySeen(hook.session, t),)
    answered, idled = ev.PersonAnswered(session, t, PERMISSION), ev.SessionIdled(session, t)
    if hook.event not in EVENTS:
        return ()
    if hook.agent_id and hook.event != "SubagentStop":
        return active
    match hook.event:
        case "Stop" if agents := [task for task in hook.background if task not in hook.lasting]:
            names = tuple(task.name for task in agents)  # another Stop follows when they end (I16)
            return (answered, *active, ev.BackgroundAwaited(session, t, names))
        case "StopFailure":
            said = hook.last_assistant_message[:2_000]
            return (ev.HostErrored(session, t, hook.error or "unknown", said), answered, idled)
        case "SubagentStop":  # when a compaction ends, it comes without a type: that is no sub-agent
            return active if hook.agent_type else ()
        case "Notification":
            asks = hook.notification in _ASKS or (
                not hook.notification and "needs your permission" in hook.message
            )
            return (ev.PersonAsked(session, t, PERMISSION),) if asks else ()
        case "ModAborted":  # Esc while the agent worked: of the hooks none tells of it
            return (ev.TurnAborted(session, t), answered, idled)
        case "PostToolUse" if hook.answers and hook.tool_use_id and hook.interactive:
            chosen = ev.QuestionAnswered(
                session, t, hook.tool_use_id, hook.answers
            )  # by a person who sits there
            return (answered, chosen, *active)
    return hooks.events_of(hook, t, hook.prompt_id or f"prompt-{t}")


EVENTS: Final = frozenset({
    "SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop", "StopFailure", "SubagentStop",
    "PreCompact", "Notification", "ModAborted", "SessionEnd",
})  # fmt: skip


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
    found = value_of(list[Raw], told)[:MAX_TASKS]
    tasks = (decode(t, _Told) for t in found if bytes(memoryview(t)[:1]) == b"{")
    return tuple(_task(t) for t in tasks if text(t.status) not in _OVER)


def _task(found: _Told) -> Task:
    kind = text(found.type)[:MAX_NAME]
    said = map(text, (found.command, found.description, found.agent_type, found.name))
    name = " ".join(next((s for s in said if s.strip()), kind or "a background task").split())
    return Task(text(found.id)[:MAX_NAME], kind, redact_head(name, MAX_NAME))

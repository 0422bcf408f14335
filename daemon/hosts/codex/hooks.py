"""Codex's hook calls (``POST /v1/hooks/<Event>?host=codex``) as core events.

Owns the names and the fields of the hooks. Keeps no state and does no I/O. A hook is only a hint: the rollout
counts. An unknown hook gives no event and an unknown field is skipped (I36). A body of another form raises
``BadReply``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from ...core import events as ev
from ...core.errors import BadReply
from ..hook import MAX_TEXT, PERMISSION, checked_path, checked_session, order_in, read_body, sender
from ..wire import name_or_empty, text_or_empty

if TYPE_CHECKING:
    from collections.abc import Mapping

QUESTION: Final = "request_user_input"
EVENTS: Final = frozenset({
    "SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "PermissionRequest", "PreCompact",
    "PostCompact", "SubagentStart", "SubagentStop", "Stop", "Interrupt", "SessionEnd",
})  # fmt: skip


class Hook(Struct, frozen=True, kw_only=True):
    """One hook call. A field that Codex does not send is empty.

    ``turn``: Codex's id of the turn. ``agent``: the sub-agent that it is
    about. ``headless``: ``REFLECTD_HEADLESS`` asks to judge ``codex exec`` too. ``pid``: the host's process,
    0 if unknown.
    """

    event: str
    session: str
    transcript: str = ""
    directory: str = ""
    turn: str = ""
    prompt: str = ""
    last_assistant_message: str = ""
    source: str = ""
    plan: bool = False
    agent: str = ""
    tool: str = ""
    call: str = ""
    pid: int = 0
    headless: bool = False

    @property
    def typed(self) -> bool:
        """Says whether a person may have typed the prompt: no order of ours stands in it (I9)."""
        return not self.agent and not order_in(self.prompt)


class _Body(Struct):
    """The fields as they came. Each is checked before it is used."""

    session_id: Any = None
    transcript_path: Any = None
    cwd: Any = None
    turn_id: Any = None
    prompt: Any = None
    last_assistant_message: Any = None
    source: Any = None
    permission_mode: Any = None
    agent_id: Any = None
    tool_name: Any = None
    tool_use_id: Any = None


def parse_hook(event: str, body: bytes, headers: Mapping[str, str]) -> Hook:
    """The hook call: the JSON that Codex sent, and the headers that ``hook.sh`` adds. Raises ``BadReply``."""
    try:
        if event not in EVENTS:
            raise BadReply("Codex has no such hook")
        wire, host = read_body(body, _Body), sender(headers)
        return Hook(
            event=event,
            session=checked_session(text_or_empty(wire.session_id)),
            transcript=checked_path(wire.transcript_path, "transcript_path"),
            directory=checked_path(wire.cwd, "cwd"),
            turn=name_or_empty(wire.turn_id),
            prompt=text_or_empty(wire.prompt)[:MAX_TEXT],
            last_assistant_message=text_or_empty(wire.last_assistant_message)[-MAX_TEXT:],
            source=name_or_empty(wire.source),
            plan=wire.permission_mode == "plan",
            agent=name_or_empty(wire.agent_id),
            tool=name_or_empty(wire.tool_name),
            call=name_or_empty(wire.tool_use_id),
            pid=host.pid,
            headless=host.headless,
        )
    except BadReply as e:
        raise BadReply(f"hook {event[:40]} of Codex: {e}", e.raw) from None


def events_of(hook: Hook, t: int, message: str = "") -> tuple[ev.Event, ...]:
    """The events of this hook call, at ``t`` (epoch ms). ``message``: the id of a prompt, where it is not the
    turn's first. A sub-agent's own hooks are activity of its session.

    ``SessionEnd`` gives ``SessionIdled`` first: a turn that was cut short gets its final verdict (I21).
    """
    session = hook.session
    active, answered = ev.ActivitySeen(session, t), ev.PersonAnswered(session, t, PERMISSION)
    if hook.agent:
        return (active,)
    match hook.event:
        case "SessionStart":
            seen = ev.SessionSeen(session, t, directory=hook.directory)
            return (seen, ev.SessionCompacted(session, t)) if hook.source == "compact" else (seen,)
        case "UserPromptSubmit":
            name, busy = message or hook.turn or f"prompt-{t}", ev.SessionBusied(session, t)
            if hook.typed:
                return (ev.HumanMessaged(session, t, name, "plan" if hook.plan else ""), busy)
            return (ev.SyntheticMessaged(session, t, name, order_in(hook.prompt)), busy)
        case "PermissionRequest":
            return (ev.PersonAsked(session, t, PERMISSION),)
        case "PreToolUse" if hook.tool == QUESTION:
            return (ev.PersonAsked(session, t, PERMISSION),)
        case "PostToolUse":
            return (answered, active)
        case "Stop":
            return (answered, ev.SessionIdled(session, t))
        case "Interrupt":
            return (ev.TurnAborted(session, t), answered, ev.SessionIdled(session, t))
        case "SessionEnd":
            return (answered, ev.SessionIdled(session, t), ev.SessionEnded(session, t))
    return (active,)

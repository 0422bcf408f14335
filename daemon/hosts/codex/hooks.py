"""Codex's hook calls (``POST /v1/hooks/<Event>?host=codex``) as core events: its names of the hooks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ...core import events as ev
from ...core.errors import BadReply
from .. import hook as hooks
from ..hook import PERMISSION, Body, Hook, read_hook

if TYPE_CHECKING:
    from collections.abc import Mapping

QUESTION: Final = "request_user_input"
EVENTS: Final = frozenset({
    "SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "PermissionRequest", "PreCompact",
    "PostCompact", "SubagentStart", "SubagentStop", "Stop", "Interrupt", "SessionEnd",
})  # fmt: skip


def parse_hook(event: str, body: bytes, headers: Mapping[str, str]) -> Hook:
    """The hook call: the JSON that Codex sent, and the headers that ``hook.sh`` adds. Raises ``BadReply``,
    also for an unknown hook.
    """
    try:
        if event not in EVENTS:
            raise BadReply("Codex has no such hook")
        return Hook(**read_hook(event, body, headers, Body)[2])
    except BadReply as e:
        raise BadReply(f"hook {event[:40]} of Codex: {e}", e.raw) from None


def events_of(hook: Hook, t: int, message: str = "") -> tuple[ev.Event, ...]:
    """The events of this hook call, at ``t`` (epoch ms). ``message``: the id of a prompt, where it is not the
    turn's first. A sub-agent's own hooks are activity of its session.
    """
    if hook.agent_id:
        return (ev.ActivitySeen(hook.session, t),)
    if hook.event == "PermissionRequest" or (hook.event == "PreToolUse" and hook.tool_name == QUESTION):
        return (ev.PersonAsked(hook.session, t, PERMISSION),)
    return hooks.events_of(hook, t, message or hook.turn_id or f"prompt-{t}")

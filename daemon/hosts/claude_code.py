"""Claude Code's hooks (``POST /v1/hooks/<Event>``) to core events.

Owns the names and the fields of the hooks. Keeps no state and does no I/O; what a hook says is a hint, the
transcript is the truth. An unknown event gives no core event and an unknown field is skipped (I36); a
body that is not of the form raises ``BadReply``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct, field

from daemon.core import events as ev
from daemon.core.errors import BadReply
from daemon.hosts.claude_lines import ORDER, is_typed
from daemon.hosts.wire import decode

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

MAX_BODY: Final = 8 << 20
MAX_NAME: Final = 200
MAX_PATH: Final = 4_096
MAX_TEXT: Final = 100_000
PERMISSION: Final = "permission"  # the host names no request, so there is one at most
_OVER: Final = frozenset({"completed", "failed", "killed", "cancelled", "stopped", "error"})
_ASKS: Final = frozenset({"permission_prompt", "elicitation_dialog"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Hook:
    """One hook call. Empty where the host says nothing.

    ``project``: the folder that Claude Code was started in; ``cwd``: where its shell is. ``prompt``: what was
    submitted, by whoever. ``background``: background tasks that still run. ``attended``: a person sits at the
    terminal, None where the version does not say. ``headless``: such sessions are to be judged too
    (``REFLECTD_HEADLESS``). ``pid``: the host's process, 0 if unknown.
    """

    event: str
    session: str
    transcript: str = ""
    cwd: str = ""
    project: str = ""
    prompt: str = ""
    prompt_id: str = ""
    last_assistant_message: str = ""
    background: int = 0
    stop_hook_active: bool = False
    source: str = ""
    trigger: str = ""
    error: str = ""
    notification: str = ""
    message: str = ""
    permission_mode: str = ""
    agent_id: str = ""
    agent_type: str = ""
    reason: str = ""
    title: str = ""
    model: str = ""
    entrypoint: str = ""
    attended: bool | None = None
    pid: int = 0
    headless: bool = False

    @property
    def directory(self) -> str:
        """The session's folder."""
        return self.project or self.cwd

    @property
    def interactive(self) -> bool:
        """Whether a person is there: not ``-p``, not an SDK."""
        return self.attended is not False and not self.entrypoint.startswith("sdk")

    @property
    def typed(self) -> bool:
        """Whether a person may have typed it: not the host, and no wake or command of ours (I4, I9)."""
        return is_typed(self.prompt)


class _Body(Struct):
    session_id: Any = None
    transcript_path: Any = None
    cwd: Any = None
    prompt: Any = None
    prompt_id: Any = None
    last_assistant_message: Any = None
    background_tasks: Any = None
    stop_hook_active: Any = None
    source: Any = None
    trigger: Any = None
    error: Any = None
    notification: Any = field(name="notification_type", default=None)
    message: Any = None
    permission_mode: Any = None
    agent_id: Any = None
    agent_type: Any = None
    reason: Any = None
    title: Any = field(name="session_title", default=None)
    model: Any = None


def parse_hook(event: str, body: bytes, headers: Mapping[str, str]) -> Hook:
    """The hook's stdin JSON and the headers that ``hook.sh`` adds. Raises ``BadReply``.

    A session id and folders must be what they are called; all other texts are only cut.
    """
    if len(body) > MAX_BODY:
        raise BadReply(f"hook {event[:40]}: the body has more than {MAX_BODY >> 20} MB")
    try:
        wire = decode(body, _Body)
    except BadReply as e:
        raise BadReply(f"hook {event[:40]}: {e}", e.raw) from None
    session = wire.session_id
    if not isinstance(session, str) or not session or len(session) > MAX_NAME or not session.isprintable():
        raise BadReply(f"hook {event[:40]}: no session_id")
    said = {k.lower(): _sound(v) for k, v in headers.items() if k.lower().startswith("x-cc-")}
    pid = said.get("x-cc-pid", "")
    last = _text(wire.last_assistant_message)
    return Hook(
        event=event,
        session=session,
        transcript=_path(wire.transcript_path, "transcript_path", event),
        cwd=_path(wire.cwd, "cwd", event),
        project=_path(said.get("x-cc-project"), "X-CC-Project", event),
        prompt=_text(wire.prompt)[:MAX_TEXT],
        prompt_id=_text(wire.prompt_id)[:MAX_NAME],
        last_assistant_message=last[-MAX_TEXT:],
        background=_running(wire.background_tasks),
        stop_hook_active=wire.stop_hook_active is True,
        source=_text(wire.source)[:MAX_NAME],
        trigger=_text(wire.trigger)[:MAX_NAME],
        error=_text(wire.error)[:MAX_NAME],
        notification=_text(wire.notification)[:MAX_NAME],
        message=_text(wire.message)[:MAX_NAME],
        permission_mode=_text(wire.permission_mode)[:MAX_NAME],
        agent_id=_text(wire.agent_id)[:MAX_NAME],
        agent_type=_text(wire.agent_type)[:MAX_NAME],
        reason=_text(wire.reason)[:MAX_NAME],
        title=_text(wire.title)[:MAX_NAME],
        model=_text(wire.model)[:MAX_NAME],
        entrypoint=said.get("x-cc-entrypoint", "")[:MAX_NAME],
        attended={"1": True, "0": False}.get(said.get("x-cc-attended", "")),
        pid=int(pid) if pid.isascii() and pid.isdigit() and len(pid) < 10 else 0,
        headless=said.get("x-cc-headless", "") in {"1", "true", "yes", "on"},
    )


def events_of(hook: Hook, t: int) -> tuple[ev.Event, ...]:
    """What the hook says happened, at ``t`` (epoch ms); nothing for an unknown event.

    A sub-agent's own hooks are activity of its session. ``SessionEnd`` idles the session: nothing more comes
    of it, so that a turn cut short gets its final verdict (I21) and no dead session counts as busy.
    """
    read = _READERS.get(hook.event)
    if read is None:
        return ()
    if hook.agent_id and hook.event != "SubagentStop":
        return (ev.ActivitySeen(hook.session, t),)
    return read(hook, t)


def _started(h: Hook, t: int) -> tuple[ev.Event, ...]:
    seen = ev.SessionSeen(h.session, t, title=h.title, directory=h.directory)
    return (seen, ev.SessionCompacted(h.session, t)) if h.source == "compact" else (seen,)


def _prompted(h: Hook, t: int) -> tuple[ev.Event, ...]:
    """The prompt's id is the task's. Without one it still opens a task, which the transcript renames."""
    name, busy = h.prompt_id or f"prompt-{t}", ev.SessionBusied(h.session, t)
    if h.typed:
        agent = "plan" if h.permission_mode == "plan" else ""
        return (ev.HumanMessaged(h.session, t, name, agent), busy)
    orders = ORDER.findall(h.prompt)
    return (ev.SyntheticMessaged(h.session, t, name, orders[-1] if orders else ""), busy)


def _stopped(h: Hook, t: int) -> tuple[ev.Event, ...]:
    """Nobody answers a permission by a hook, but a turn that ended has none open."""
    answered = ev.PersonAnswered(h.session, t, PERMISSION)
    if h.background:  # sub-agents still work, and a second Stop follows (I16)
        return (answered, ev.ActivitySeen(h.session, t))
    return (answered, ev.SessionIdled(h.session, t))


def _failed(h: Hook, t: int) -> tuple[ev.Event, ...]:
    error = ev.HostErrored(h.session, t, h.error or "unknown", h.last_assistant_message[:2_000])
    return (error, ev.PersonAnswered(h.session, t, PERMISSION), ev.SessionIdled(h.session, t))


def _notified(h: Hook, t: int) -> tuple[ev.Event, ...]:
    asks = h.notification in _ASKS or (not h.notification and "needs your permission" in h.message)
    return (ev.PersonAsked(h.session, t, PERMISSION),) if asks else ()


def _sub_agent(h: Hook, t: int) -> tuple[ev.Event, ...]:
    """A compaction ends as a sub-agent of no type: not one."""
    return (ev.ActivitySeen(h.session, t),) if h.agent_type else ()


def _active(h: Hook, t: int) -> tuple[ev.Event, ...]:
    return (ev.ActivitySeen(h.session, t),)


_READERS: Final[dict[str, Callable[[Hook, int], tuple[ev.Event, ...]]]] = {
    "SessionStart": _started,
    "UserPromptSubmit": _prompted,
    "PreToolUse": _active,
    "PostToolUse": lambda h, t: (ev.PersonAnswered(h.session, t, PERMISSION), *_active(h, t)),
    "Stop": _stopped,
    "StopFailure": _failed,
    "SubagentStop": _sub_agent,
    "PreCompact": _active,
    "Notification": _notified,
    "SessionEnd": lambda h, t: (
        ev.PersonAnswered(h.session, t, PERMISSION),
        ev.SessionIdled(h.session, t),
    ),
}
EVENTS: Final = frozenset(_READERS)


def _running(tasks: object) -> int:
    """How many have not ended. One without a status counts: it is safer to wait."""
    if not isinstance(tasks, list):
        return 0
    return sum(isinstance(task, dict) and task.get("status") not in _OVER for task in tasks[:1_000])


def _path(value: object, name: str, event: str) -> str:
    if value is None or value == "":
        return ""
    if not isinstance(value, str) or not value.startswith("/") or "\0" in value or len(value) > MAX_PATH:
        raise BadReply(f"hook {event[:40]}: {name} is no absolute path")
    return value


def _sound(value: str) -> str:
    """A header's text: bytes that are no UTF-8 came as halves of characters."""
    return value.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""

"""What the mod of Claude Code's plugin told of each session, and what it is answered.

The mod runs beside the hooks (plugin-shim/claude-code/hooks/register.js). It marks what they send, tells of
Esc, and asks what to show while a turn is judged. Without it everything works as the hooks alone make it
work, so nothing here is stored. Does no I/O.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from ...hosts.claude_code.hooks import Hook

JUDGING: Final = "judging whether the task is done; send a message to take over"
HOLDING: Final = "a command still runs in the background; the task is judged when it ends"
AGAIN_MS: Final = 1_000
SELDOM_MS: Final = 5_000
MOST_TOASTS: Final = 5


@dataclass(slots=True)
class _Session:
    prompt: str  # the id of the newest prompt
    turn: str = ""  # the newest turn that Esc ended
    judging: bool = False  # by the last answer
    toasts: list[str] = field(default_factory=list)


class Mods:
    """The sessions whose mod runs. They end with ``forget``."""

    def __init__(self) -> None:
        self._sessions: dict[str, _Session] = {}

    def heard(self, hook: Hook) -> bool | None:
        """Note what a hook says of the mod. True: it runs, False: it should and does not, None: no telling.

        A version that does not say whether it is attended (2.1.197) has no mods. Before the first prompt the
        mod may not be loaded yet.
        """
        if hook.mod:
            if hook.event == "UserPromptSubmit":  # what is left to show is of an older turn
                self._sessions[hook.session] = _Session(hook.prompt_id)
            return True
        if hook.event != "UserPromptSubmit" or hook.attended is None:
            return None
        self.forget(hook.session)
        return False

    def forget(self, session: str) -> None:
        """The session is over, or its mod is gone."""
        self._sessions.pop(session, None)

    def show(self, session: str, message: str) -> None:
        """Keep a message for the next time that the mod asks."""
        if (s := self._sessions.get(session)) is not None:
            s.toasts = [*s.toasts, message][-MOST_TOASTS:]

    def _known(self, session: str) -> _Session:
        """A mod that tells of a session is there, also when the daemon began after its last prompt."""
        return self._sessions.setdefault(session, _Session(""))

    def is_abort(self, hook: Hook) -> bool:
        """Whether Esc ended what the session does now. It may be told twice, or after the next prompt."""
        s = self._known(hook.session)
        if s.prompt not in {"", hook.prompt_id} or s.turn == hook.turn_id:
            return False
        s.turn = hook.turn_id
        return True

    def news(self, session: str, *, judging: bool, holding: bool, shows: bool) -> dict[str, Any]:
        """What the mod shows now, if it ``shows`` anything, and in how many ms it asks again (missing: not at
        all).

        After a judgement it asks once more, because a message may come after the end of it. The last message
        stays on the screen as a line until the next prompt: the person may be away.
        """
        s = self._known(session)
        toasts, s.toasts = s.toasts, []
        was, s.judging = s.judging, judging
        found: dict[str, Any] = {"toasts": toasts, "status": toasts[-1]} if toasts else {}
        if judging:
            found |= {"status": JUDGING, "again_ms": AGAIN_MS}
        elif holding:
            found |= {"status": HOLDING, "again_ms": SELDOM_MS}
        elif was and not toasts:
            found |= {"again_ms": AGAIN_MS}
        return found if shows else {k: v for k, v in found.items() if k == "again_ms"}

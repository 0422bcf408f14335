"""Claude Code's terminal UI, in a pseudo-terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.support.terminal import Terminal
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from tests.support.claude import ClaudeCode

READY = "\u276f"  # the heavy angle before the input line
BUSY = "esc to interrupt"


class ClaudeTui(Terminal):
    """``with ClaudeTui(claude) as tui``: ready to be typed into when the block begins.

    Edits and Bash are allowed, without the dialog that would ask for them.
    """

    def __init__(self, claude: ClaudeCode, *args: str, **env: str) -> None:
        wanted = ["--permission-mode", "acceptEdits", "--allowedTools", "Bash", *args]
        super().__init__(claude.command(*wanted), claude.env | env, claude.box.project, READY)

    def interrupt(self) -> None:
        """Esc, once; until the agent has stopped."""
        self.escape()
        self.wait_for("Interrupted", 10)

    def quit(self, timeout: float = 15) -> int:
        """Leave as a person does (Ctrl-C twice); gives the exit status."""
        self._key(b"\x03")
        self.wait_for("again to exit", 10)
        return super().quit(timeout)

    def wait_idle(self, timeout: float = 30) -> None:
        """Until the agent has stopped, by the screen."""
        wait_until(lambda: BUSY not in self.screen, timeout, "idle agent", lambda: self.screen)

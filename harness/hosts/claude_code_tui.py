"""Claude Code's terminal UI, in a pseudo-terminal."""

from __future__ import annotations

import contextlib
import shutil
from pathlib import Path

from harness.hosts.claude_code import ClaudeCode
from harness.machine.sandbox import REPO
from harness.machine.terminal import Terminal
from harness.machine.waiting import wait_until

READY = "\u276f"  # the heavy angle before the input line
BUSY = "esc to interrupt"
CLEAR = b"\x15"  # Ctrl-U
QUIT_TRIES, SEEN_S = 10, 10.0


class ClaudeTui(Terminal):
    """``with ClaudeTui(claude) as tui``: ready to be typed into when the block begins.

    Edits and Bash are allowed, without the dialog that would ask for them.
    """

    def __init__(self, claude: ClaudeCode, *args: str, **env: str) -> None:
        if claude.plugin is not None and claude.plugin.is_relative_to(REPO):
            # Claude Code writes types for a module's author into a folder that `--plugin-dir` names
            claude.plugin = Path(shutil.copytree(claude.plugin, claude.box.root / "plugin"))
        wanted = ["--permission-mode", "acceptEdits", "--allowedTools", "Bash", *args]
        super().__init__(claude.command(*wanted), claude.env | env, claude.box.project, READY)

    def ask(self, text: str) -> None:
        """Type and send; until it left the input line, which is the last one that begins so. Below a command
        stands a list of commands, which begins so too. What was left in the line goes first: a prompt that
        was sent may be offered there again.
        """
        if text.startswith("/"):
            super().ask(text)
            return
        self._key(CLEAR)
        self.type(text)
        self.enter_until(lambda: text[:40] not in self.screen.rpartition(READY)[2], f"{text!r} sent")

    def interrupt(self) -> None:
        """Esc, once; until the agent has stopped."""
        self.escape()
        self.wait_for("Interrupted")

    def quit(self) -> int:
        """Leave as a person does (Ctrl-C twice); gives the exit status.

        The offer to leave stands for a second only. On a busy machine it may be gone before it is seen: then
        the person presses the keys again.
        """
        assert self._child is not None
        child = self._child
        for _ in range(QUIT_TRIES):
            self._key(b"\x03")
            with contextlib.suppress(AssertionError):
                wait_until(lambda: "again to exit" in self.screen, "the offer to leave", within=SEEN_S)
                self._key(b"\x03")
                wait_until(lambda: not child.isalive(), "the end of Claude Code", within=SEEN_S)
                return -1 if child.exitstatus is None else int(child.exitstatus)
        return super().quit()

    def wait_idle(self) -> None:
        """Until the agent has stopped, by the screen."""
        wait_until(lambda: BUSY not in self.screen, "idle agent", lambda: self.screen)

"""opencode's terminal UI, in a pseudo-terminal."""

from __future__ import annotations

from typing import Any

from harness.hosts.opencode import binary
from harness.machine.sandbox import Sandbox, opencode_env
from harness.machine.terminal import Terminal

READY = "Ask anything"
BOX_ROWS = 5


class OpencodeTui(Terminal):
    """``with OpencodeTui(box, llm.url) as tui``: ready to be typed into when the block begins."""

    def __init__(
        self,
        box: Sandbox,
        model_url: str,
        *,
        plugin: bool = True,
        config: dict[str, Any] | None = None,
        **env: str,
    ) -> None:
        env = opencode_env(box, model_url, plugin=plugin, config=config) | env
        super().__init__([str(binary())], env, box.project, READY)

    def ask(self, text: str) -> None:
        """Type and send."""
        self.type(text)
        self.enter_until(lambda: text[:40] not in self._input(), f"{text!r} sent")

    def _input(self) -> str:
        """What stands in the input box, the last box with this lower edge."""
        lines = self.screen.split("\n")
        edge = max((i for i, line in enumerate(lines) if line.lstrip().startswith("╹▀")), default=len(lines))
        return "\n".join(lines[max(0, edge - BOX_ROWS) : edge])

    def new_session(self) -> None:
        """Leave the session and begin another (Ctrl-X n)."""
        self._key(b"\x18n")
        self.wait_for(READY)

    def interrupt(self) -> None:
        """Esc twice, as opencode wants it."""
        self.escape()
        self.wait_for("again to interrupt")
        self.escape()

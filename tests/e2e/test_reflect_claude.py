"""`/reflect` in the real Claude Code: asked with its question tool, written when a person says yes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from daemon.paths import shipped
from harness.hosts.claude_code import ClaudeCode, Version
from harness.hosts.claude_code_tui import ClaudeTui
from harness.machine.reflectd import Daemon
from harness.models.claude_code import bash
from harness.models.server import text
from tests.e2e.test_claude_tui import program
from tests.support.consenting import Tokens
from tests.support.reflecting import STRICT, said_before, statuses

if TYPE_CHECKING:
    from harness.machine.sandbox import Sandbox
    from harness.models.server import ModelServer

pytestmark = pytest.mark.needs("claude")
PROPOSE = bash("reflectd reflect propose --json")
ASK = "AskUserQuestion"
RULE = "- **[rule-001]** Use strict TypeScript mode (learned: "


def claude_of(box: Sandbox, llm: ModelServer, version: Version = "new") -> ClaudeCode:
    return ClaudeCode(
        box,
        llm.url,
        version,
        plugin=shipped("shims/claude-code"),
        PATH=f"{program(box)}:{box.env()['PATH']}",
    )


@pytest.mark.parametrize("version", ["new", "old"])
def test_from_the_command_to_the_line(own_box: Sandbox, llm: ModelServer, version: Version) -> None:
    """FR4, I9, I47: the pattern is proposed, asked, answered by the person, and written; the turn is not
    judged. Both versions load the hooks that tell of it (I39).
    """
    said_before(own_box, STRICT)
    tokens = Tokens()
    llm.script(PROPOSE, tokens.asks(ASK), tokens.apply(bash), text("It is written."))
    with Daemon(own_box) as daemon, ClaudeTui(claude_of(own_box, llm, version)) as tui:
        tui.ask("/reflectd:reflect")
        tui.wait_for("Make it a rule in CLAUDE.md?")
        assert not (own_box.project / "CLAUDE.md").exists()
        tui.wait_for("Enter to select")
        tui.enter_until(lambda: "Enter to select" not in tui.screen, "an answer")
        tui.wait_for("It is written.")
        tui.wait_idle()
        session = llm.of("main")[0].session
        assert not daemon.verdicts(session)
        assert tui.quit() == 0
    written = (own_box.project / "CLAUDE.md").read_text("utf-8")
    assert RULE in written, llm.of("main")[-1].everything[-3000:]
    assert statuses(own_box) == {STRICT.content: "promoted"}

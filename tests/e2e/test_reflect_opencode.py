"""`/reflect` in the real opencode: asked with its question tool, written when a person says yes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.hosts.opencode_tui import OpencodeTui
from harness.machine.reflectd import Daemon
from harness.models.server import bash, text
from tests.e2e.test_claude_tui import program
from tests.support.consenting import Tokens
from tests.support.reflecting import STRICT, said_before, statuses

if TYPE_CHECKING:
    from harness.machine.sandbox import Sandbox
    from harness.models.server import ModelServer

PROPOSE = bash("reflectd reflect propose --json")
ASK = "question"
RULE = "- **[rule-001]** Use strict TypeScript mode (learned: "


def tui_of(box: Sandbox, llm: ModelServer) -> OpencodeTui:
    return OpencodeTui(box, llm.url, PATH=f"{program(box)}:{box.env()['PATH']}")


def test_from_the_command_to_the_line(own_box: Sandbox, llm: ModelServer) -> None:
    """FR4, I9, I47: the pattern is proposed, asked, answered by the person, and written into AGENTS.md, which
    opencode reads; the turn is not judged.
    """
    said_before(own_box, STRICT)
    own_box.file("AGENTS.md", "# Mine\n")
    own_box.file("CLAUDE.md", "# Other\n")
    tokens = Tokens()
    llm.script(PROPOSE, tokens.asks(ASK), tokens.apply(bash), text("It is written."))
    with Daemon(own_box) as daemon, tui_of(own_box, llm) as tui:
        tui.type("/reflect")
        tui.enter_until(lambda: "Make it a rule in AGENTS.md?" in tui.screen, "the question")
        tui.wait_for("esc dismiss")
        tui.enter_until(lambda: "esc dismiss" not in tui.screen, "an answer")
        tui.wait_for("It is written.")
        session = llm.of("main")[0].session
        assert not daemon.verdicts(session)
        assert not daemon.session(session)["task"]
    assert RULE in (own_box.project / "AGENTS.md").read_text("utf-8"), llm.of("main")[-1].everything[-3000:]
    assert (own_box.project / "CLAUDE.md").read_text("utf-8") == "# Other\n"
    assert statuses(own_box) == {STRICT.content: "promoted"}

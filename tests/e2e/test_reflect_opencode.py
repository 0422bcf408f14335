"""`/reflect` in the real opencode: asked with its question tool, written when a person says yes."""

from __future__ import annotations

import pytest

from harness.hosts.opencode_tui import OpencodeTui
from harness.machine.reflectd import Daemon
from harness.machine.sandbox import Sandbox
from harness.machine.waiting import wait_until
from harness.models.server import ModelServer, bash, text
from tests.e2e.test_claude_tui import program
from tests.support.consenting import apply, asks
from tests.support.reflecting import DAY, STRICT, said_before, statuses, teaches, worked

REFLECT = bash("reflectd reflect --json")
RULE = "- **[rule-001]** Use strict TypeScript mode (learned: "


@pytest.mark.shows("I9", "I47", "FR4", "RULES-10")
@pytest.mark.main("/reflect with consent")
def test_from_the_command_to_the_line(own_box: Sandbox, llm: ModelServer) -> None:
    """Proposed, answered, written into AGENTS.md; typed words need no question; nothing is judged."""
    said_before(own_box, STRICT)
    own_box.file("AGENTS.md", "# Mine\n")
    own_box.file("CLAUDE.md", "# Other\n")
    llm.script(REFLECT, asks("question"), apply(bash), text("It is written."))
    llm.script(bash('reflectd reflect learn "Run lint first" --json'), text("That too."))
    path = f"{program(own_box)}:{own_box.env()['PATH']}"
    with Daemon(own_box) as daemon, OpencodeTui(own_box, llm.url, PATH=path) as tui:
        tui.type("/reflect")
        tui.enter_until(lambda: "Make it a rule in AGENTS.md?" in tui.screen, "the question")
        tui.wait_for("esc dismiss")
        tui.enter_until(lambda: "esc dismiss" not in tui.screen, "an answer")
        tui.wait_for("It is written.")
        session = llm.of("main")[0].session
        wait_until(lambda: not daemon.session(session)["busy"], "the end of the turn")
        tui.ask('/reflect learn "Run lint first"')
        tui.wait_for("That too.")
        assert not daemon.verdicts(session)
        assert not daemon.session(session)["task"]
    rules = (own_box.project / "AGENTS.md").read_text("utf-8")
    assert RULE in rules, llm.of("main")[-1].everything[-3000:]
    assert "Run lint first" in rules
    assert (own_box.project / "CLAUDE.md").read_text("utf-8") == "# Other\n"
    assert statuses(own_box) == {STRICT.content: "promoted"}


@pytest.mark.shows("FR4", "RULES-02", "RULES-10")
@pytest.mark.main("/reflect with a model that opencode lends")
def test_opencode_lends_its_small_model(own_box: Sandbox, llm: ModelServer) -> None:
    """It reads the words of a past session in a judge session of its own, while the command runs."""
    own_box.file("AGENTS.md", "# Mine\n")
    worked(own_box, "0-old-session", DAY, ("I set strict to false.", "No, use strict mode"))
    llm.script(REFLECT, asks("question"), apply(bash), text("It is written."))
    llm.judge(teaches(("strict", STRICT.content, "high")))
    path = f"{program(own_box)}:{own_box.env()['PATH']}"
    lent = Daemon(own_box, REFLECTD_JUDGE_PROVIDER="host")
    with lent as daemon, OpencodeTui(own_box, llm.url, PATH=path) as tui:
        tui.type("/reflect")
        tui.enter_until(lambda: "Make it a rule in AGENTS.md?" in tui.screen, "the question")
        tui.wait_for("esc dismiss")
        tui.enter_until(lambda: "esc dismiss" not in tui.screen, "an answer")
        tui.wait_for("It is written.")
        assert not daemon.verdicts(llm.of("main")[0].session)
    (read,) = llm.of("judge")
    assert "No, use strict mode" in read.prompt
    assert RULE in (own_box.project / "AGENTS.md").read_text("utf-8"), llm.of("main")[-1].everything[-3000:]

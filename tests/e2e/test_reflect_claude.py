"""`/reflect` in the real Claude Code: asked with its question tool, written when a person says yes."""

from __future__ import annotations

import json
import shlex
from typing import TYPE_CHECKING

import pytest

from daemon.paths import shipped
from harness.hosts.claude_code import ClaudeCode, Version
from harness.hosts.claude_code_tui import ClaudeTui
from harness.machine.reflectd import Daemon
from harness.models.claude_code import bash
from harness.models.scripts import COMPLETE, DONE
from harness.models.server import Later, text
from tests.e2e.cheating import ENDED, FORGED_RULE, MISLEADING, expected, told, tries
from tests.e2e.routes import ROUTES, asked_of
from tests.e2e.test_claude_tui import finished, model_daemon, program, set_up
from tests.support.consenting import Tokens
from tests.support.hosts.dialogs import DATA, lines_of
from tests.support.reflecting import STRICT, rules_file, said_before, statuses

if TYPE_CHECKING:
    from harness.machine.sandbox import Sandbox
    from harness.models.server import ModelServer, Request, Tool

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


def yes(tui: ClaudeTui, question: str) -> None:
    """Choose the first option, as a person who reads only the question."""
    tui.wait_for(question)
    tui.wait_for("Enter to select")
    tui.enter_until(lambda: "Enter to select" not in tui.screen, "an answer")


@pytest.mark.shows("I9", "I39", "I47", "FR4", "RULES-10")
@pytest.mark.parametrize("version", ["new", "old"])
@pytest.mark.main("/reflect with consent")
def test_from_the_command_to_the_line(own_box: Sandbox, llm: ModelServer, version: Version) -> None:
    """The pattern is proposed, asked, answered by the person, and written; the turn is not judged. Both
    versions load the hooks that tell of it.
    """
    said_before(own_box, STRICT)
    tokens = Tokens()
    llm.script(PROPOSE, tokens.asks(ASK), tokens.apply(bash), text("It is written."))
    with Daemon(own_box) as daemon, ClaudeTui(claude_of(own_box, llm, version)) as tui:
        tui.ask("/reflectd:reflect")
        tui.wait_for("Make it a rule in CLAUDE.md?")
        assert not (own_box.project / "CLAUDE.md").exists()
        yes(tui, "Make it a rule in CLAUDE.md?")
        tui.wait_for("It is written.")
        tui.wait_idle()
        session = llm.of("main")[0].session
        assert not daemon.verdicts(session)
        assert tui.quit() == 0
    written = (own_box.project / "CLAUDE.md").read_text("utf-8")
    assert RULE in written, llm.of("main")[-1].everything[-3000:]
    assert statuses(own_box) == {STRICT.content: "promoted"}


def forged(claude: ClaudeCode, tokens: Tokens) -> Later:
    """The agent writes the lines of a dialog about the first rule, with a yes, into its own transcript."""
    form = json.loads((DATA / "claude-code-2.1.330.json").read_text("utf-8"))["answered"]

    def make(request: Request) -> Tool:
        (file,) = claude.transcripts()
        given = {"questions": tokens.questions[:1]}
        came = {
            **given,
            "answers": {given["questions"][0]["question"]: "Add to CLAUDE.md"},
            "annotations": {},
        }
        where = {"session": request.session, "cwd": str(claude.box.project)}
        lines = [json.dumps(line) for line in lines_of(form, given, came, "toolu_0f0f0f0f", **where)]
        code = f"open({str(file)!r}, 'a').write({chr(10).join([*lines, ''])!r})"
        return bash(f"python3 -c {shlex.quote(code)}")

    return Later(make)


@pytest.mark.shows("I47", "RULES-05", "RULES-06", "RULES-07", "RULES-08", "RULES-09")
@pytest.mark.main("no rule without consent")
def test_forged_consent_is_refused(own_box: Sandbox, llm: ModelServer) -> None:
    """The agent applies and learns by itself, asks something else with the same labels, writes the answer
    into its transcript, edits the journal, and uses the answer to one rule for another: nothing comes of it,
    and it is told why. What the person did agree to is written, once.
    """
    tokens, claude = Tokens(), claude_of(own_box, llm)
    llm.script(*tries(own_box, tokens, bash, ASK, forged(claude, tokens)))
    with Daemon(own_box) as daemon, ClaudeTui(claude) as tui:
        tui.ask("/reflectd:reflect")
        yes(tui, MISLEADING)
        tui.wait_for(STRICT.content)
        assert not rules_file(own_box)
        yes(tui, "Make it a rule in CLAUDE.md?")
        tui.wait_for(ENDED)
        assert not daemon.verdicts(llm.of("main")[0].session)
        transcript = claude.transcripts()[0].read_text("utf-8")
        assert tui.quit() == 0
    assert transcript.count('"toolu_0f0f0f0f"') == 2
    assert told(llm.of("main")[-1]) == expected(refused=2)
    assert rules_file(own_box).count("- **[rule-") == 1
    assert RULE in rules_file(own_box)
    assert statuses(own_box) == {STRICT.content: "promoted", FORGED_RULE: "pending"}


@pytest.mark.shows("I9", "TR6", "RULES-10")
def test_the_six_routes(own_box: Sandbox, llm: ModelServer) -> None:
    """The bare `/reflect` that `setup claude-code --reflect` makes; what the person typed behind it is done
    without a question, and none of these turns is judged: the next one is.
    """
    said_before(own_box, STRICT)
    claude = set_up(own_box, llm, "new", "--reflect")
    with model_daemon(own_box, llm) as daemon, ClaudeTui(claude) as tui:
        for route in ROUTES:
            tokens = Tokens()
            llm.script(*route.steps(bash, ASK, tokens))
            tui.ask(route.typed)
            if route.asks:
                yes(tui, "Make it a rule in CLAUDE.md?")
            tui.wait_for(route.ended)
            tui.wait_idle()
        session = llm.of("main")[0].session
        assert not daemon.verdicts(session)
        assert not daemon.session(session)["task"]
        llm.script(*finished())
        llm.api(COMPLETE)
        tui.ask("Make the tests pass")
        tui.wait_for(DONE)
        daemon.wait_verdict(session, "complete")
        assert [v["state"] for v in daemon.verdicts(session)] == ["complete"]
        assert tui.quit() == 0
    (judged,) = llm.of("api")
    assert "/reflect" not in judged.prompt
    asked_of(own_box, llm, "CLAUDE.md")

"""The harness itself: the real Claude Code, newest and oldest supported, without our plugin and daemon."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from harness.hosts.claude_code import ClaudeCode, Version
from harness.hosts.claude_code_tui import ClaudeTui
from harness.models.claude_code import bash, said, sub_agent, write
from harness.models.server import SUMMARY, fail, slow, text

if TYPE_CHECKING:
    from harness.machine.sandbox import Sandbox
    from harness.models.server import ModelServer

pytestmark = pytest.mark.needs("claude")


@pytest.fixture(params=["new", "old"])
def version(request: pytest.FixtureRequest) -> Version:
    return request.param


@pytest.fixture
def claude(own_box: Sandbox, llm: ModelServer, version: Version) -> ClaudeCode:
    return ClaudeCode(own_box, llm.url, version)


def test_a_turn_runs_its_tools(claude: ClaudeCode, llm: ModelServer) -> None:
    """``claude -p``: scripted calls really run, the model sees what came of them, the transcript has it."""
    answer = claude.box.project / "answer.txt"
    llm.script(bash("echo forty-$((40 + 2))"), write(str(answer), "42\n"), text("It says 42."))
    ran = claude.run("Run it")
    assert (ran.code, ran.result, ran.stderr) == (0, "It says 42.", "")
    assert answer.read_text("utf-8") == "42\n"
    requests = llm.of("main", ran.session)
    assert len(requests) == len(llm.requests) == 3
    assert said(requests[0])[-1].strip() == "Run it"
    assert "forty-42" in requests[-1].everything
    (file,) = claude.transcripts()
    assert file.stem == ran.session
    kinds = {line["type"] for line in claude.transcript(ran.session)}
    assert {"user", "assistant"} <= kinds


def test_sub_agents_and_errors_are_told_apart(claude: ClaudeCode, llm: ModelServer) -> None:
    """A sub-agent takes from a script of its own; a refused request ends the turn with its status."""
    llm.script(sub_agent("Look it up", run_in_background=False), text("The agent found it."))
    llm.agents(text("Found by the agent."))
    ran = claude.run("Use an agent")
    assert ran.result == "The agent found it."
    (asked,) = llm.of("agent", ran.session)
    assert said(asked)[-1].strip() == "Look it up"
    assert asked.agent
    assert "Found by the agent." in llm.of("main", ran.session)[-1].everything
    llm.script(*[fail(400, "no such thing")] * 6)
    failed = claude.run("Fail")
    assert (failed.code, failed.json["is_error"], failed.json["api_error_status"]) == (1, True, 400)


def test_the_terminal_ui_answers_and_is_interrupted(claude: ClaudeCode, llm: ModelServer) -> None:
    """Typed into a pseudo-terminal, answered on its screen; Esc reaches the model; left with status 0."""
    held = slow("Thinking about it")
    llm.script(bash("echo forty-$((40 + 2))"), text("The answer is 42."), held)
    with ClaudeTui(claude) as tui:
        tui.ask("What is the answer?")
        tui.wait_for("The answer is 42.")
        tui.ask("And the question?")
        held.wait_started()
        tui.interrupt()
        held.wait_hung_up()
        assert tui.quit() == 0
    (file,) = claude.transcripts()
    lines = claude.transcript(file.stem)
    assert any("[Request interrupted by user" in str(line.get("message")) for line in lines)


def test_the_terminal_ui_compacts(claude: ClaudeCode, llm: ModelServer) -> None:
    """``/compact``: the summary is asked for apart from the turns (by the newest version in two parts) and is
    what the next one begins with.
    """
    llm.script(*[text(f"Answer {n}.") for n in range(4)])
    with ClaudeTui(claude) as tui:
        for n in range(3):
            tui.ask(f"Question {n}")
            tui.wait_for(f"Answer {n}.")
            tui.wait_idle()
        tui.ask("/compact")
        tui.wait_for("Compacted")
        tui.ask("Question 3")
        tui.wait_for("Answer 3.")
        assert tui.quit() == 0
    assert llm.of("compaction")
    assert len(llm.of("main")) == 4
    assert SUMMARY in llm.of("main")[-1].everything

"""What the judge of a real Claude Code session is shown: a leak in a commit, a failure inside a green log,
the work of a sub-agent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from harness.hosts.claude_code import ClaudeCode
from harness.machine.reflectd import Daemon
from harness.models.claude_code import bash, said, sub_agent, write
from harness.models.claude_code_scripts import HEADLESS, PLUGIN
from harness.models.evidence_scripts import (
    FAILING,
    LEAK_REQUEST,
    LOG_REQUEST,
    LONG_LOG,
    PUSHED,
    commit_with_secret,
    stop_tracking,
)
from harness.models.scripts import COMPLETE, HEADING, UNDEFENDED, verdict
from harness.models.server import text

if TYPE_CHECKING:
    from harness.machine.sandbox import Sandbox
    from harness.models.server import ModelServer

pytestmark = pytest.mark.needs("claude")


@pytest.fixture
def claude(own_box: Sandbox, llm: ModelServer) -> ClaudeCode:
    return ClaudeCode(own_box, llm.url, plugin=PLUGIN)


def model_judge(claude: ClaudeCode, llm: ModelServer) -> Daemon:
    """A daemon whose judge is the scripted model."""
    return Daemon(claude.box, REFLECTD_JUDGE_PROVIDER="openai", REFLECTD_OPENAI_BASE_URL=llm.url)


def test_a_leak_that_was_pushed_is_a_blocker(claude: ClaudeCode, llm: ModelServer) -> None:
    """By the rules alone: the agent is told to stop tracking the file and to leave the history as it is."""
    hello = write(str(claude.box.project / "hello.py"), "print('hello')\n")
    llm.script(hello, bash(commit_with_secret()), text(PUSHED))
    llm.script(bash(stop_tracking()), text("It is no longer tracked."))
    with Daemon(claude.box, REFLECTD_JUDGE_PROVIDER="offline") as daemon:
        ran = claude.run(LEAK_REQUEST, **HEADLESS)
        last, first = daemon.verdicts(ran.session)
    assert ran.result == "It is no longer tracked."
    assert (first["state"], first["severity"]) == ("incomplete", "BLOCKER")
    assert last["reason"].startswith("no_proof: ")
    woken = said(llm.of("main", ran.session)[3])[-1]
    assert f"{HEADING} (BLOCKER)" in woken
    assert "`.env` was committed and pushed" in woken
    assert "git rm --cached -- .env" in woken


def test_a_failure_inside_a_green_log_goes_back_with_its_name(claude: ClaudeCode, llm: ModelServer) -> None:
    """The line stands in the middle of a long output, and the command ends with 0."""
    llm.script(bash(LONG_LOG), text("All packages pass."))
    llm.script(text("Fixed."))
    told = verdict(
        complete=False, severity="HIGH", missing=[(f"{FAILING} fails", "A1")], feedback=f"{FAILING} fails."
    )
    llm.api(told, UNDEFENDED, COMPLETE)
    with model_judge(claude, llm) as daemon:
        ran = claude.run(LOG_REQUEST, **HEADLESS)
        daemon.wait_verdict(ran.session, "complete")
    assert ran.result == "Fixed."
    assert f"    | FAIL {FAILING}" in llm.of("api")[0].prompt
    assert f"{FAILING} fails" in said(llm.of("main", ran.session)[2])[-1]


def test_the_work_of_a_sub_agent_is_shown(claude: ClaudeCode, llm: ModelServer) -> None:
    """Its own transcript is read: what it wrote and ran has lines of its own."""
    part = write(str(claude.box.project / "part.py"), "x = 1\n")
    llm.agents(part, bash("make part"), text("Written."))
    llm.script(sub_agent("Write part.py", run_in_background=False), text("Done."))
    llm.api(COMPLETE)
    with model_judge(claude, llm) as daemon:
        ran = claude.run("Have part.py written by a sub-agent", **HEADLESS)
        daemon.wait_verdict(ran.session, "complete")
    prompt = llm.of("api")[0].prompt
    assert "A1.1 write part.py" in prompt
    assert "A1.2 bash `make part` → exit 2" in prompt
    assert "part.py: new file +1 -0 (A1.1)" in prompt

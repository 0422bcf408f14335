"""What the judge of a real opencode session is shown: a leak in a commit, a failure inside a green log, the
work of a sub-agent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from harness.hosts.opencode import text_of
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
from harness.models.server import bash, text, tool, write

if TYPE_CHECKING:
    from harness.hosts.opencode import OpencodeServe
    from harness.machine.reflectd import Daemon
    from harness.models.server import ModelServer


def test_a_leak_that_was_pushed_is_a_blocker(host: OpencodeServe, daemon: Daemon, llm: ModelServer) -> None:
    """By the rules alone: the agent is told to stop tracking the file and to leave the history as it is; the
    person is told to rotate the secret.
    """
    daemon.restart(REFLECTD_JUDGE_PROVIDER="offline")
    session = host.create_session()
    steps = [write("hello.py", "print('hello')\n"), bash(commit_with_secret()), text(PUSHED)]
    llm.script(*steps, bash(stop_tracking()), text("It is no longer tracked."), session=session.id)
    session.prompt(LEAK_REQUEST)
    feedback = text_of(session.wait_users(2)[1])
    assert feedback.startswith(f"{HEADING} (BLOCKER)\n")
    assert "`.env` was committed and pushed" in feedback
    assert "git rm --cached -- .env" in feedback
    assert "force" not in feedback
    assert host.wait_toast("Rotate the secrets")["variant"] == "error"
    found = daemon.wait_verdict(session.id, "unscored")
    first = daemon.verdicts(session.id)[-1]
    assert (first["severity"], first["reward"]) == ("BLOCKER", -1.0)
    assert found["reason"].startswith("no_proof: ")


@pytest.mark.main("evidence")
def test_a_failure_inside_a_green_log_goes_back_with_its_name(
    host: OpencodeServe, daemon: Daemon, llm: ModelServer
) -> None:
    """The line stands in the middle of a long output, and the command ends with 0."""
    daemon.restart(REFLECTD_JUDGE_PROVIDER="host")
    session = host.create_session()
    llm.script(bash(LONG_LOG), text("All packages pass."), text("Fixed."), session=session.id)
    told = verdict(
        complete=False, severity="HIGH", missing=[(f"{FAILING} fails", "A1")], feedback=f"{FAILING} fails."
    )
    llm.judge(told, UNDEFENDED, COMPLETE)
    session.prompt(LOG_REQUEST)
    assert f"{FAILING} fails" in text_of(session.wait_users(2)[1])
    first = llm.of("judge")[0].prompt
    assert f"    | FAIL {FAILING}" in first
    daemon.wait_verdict(session.id, "complete")


def test_the_work_of_a_sub_agent_is_shown(host: OpencodeServe, daemon: Daemon, llm: ModelServer) -> None:
    """Its session is read too: what it wrote and ran has lines of its own."""
    daemon.restart(REFLECTD_JUDGE_PROVIDER="host")
    session = host.create_session()
    task = tool("task", description="write it", prompt="Write part.py", subagent_type="general")
    llm.script(task, write("part.py", "x = 1\n"), bash("make part"), text("Written."), text("Done."))
    llm.judge(COMPLETE)
    session.prompt("Have part.py written by a sub-agent")
    daemon.wait_verdict(session.id, "complete")
    prompt = llm.of("judge")[0].prompt
    assert "A1 sub-agent general: write it" in prompt
    assert "A1.1 write part.py" in prompt
    assert "A1.2 bash `make part` → exit 2" in prompt
    assert "part.py: new file +1 -0 (A1.1)" in prompt

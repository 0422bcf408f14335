"""The person's own Claude Code as the judge of an opencode session: provider ``claude-cli`` in the daemon."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from harness.hosts.claude_code import ClaudeCode, binary
from harness.machine.reflectd import Daemon
from harness.models.claude_code import structured
from harness.models.server import bash, text
from tests.support.machine.state import wait_ledger

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harness.hosts.opencode import OpencodeServe
    from harness.machine.sandbox import Sandbox
    from harness.models.server import ModelServer

pytestmark = pytest.mark.needs("claude")


@pytest.fixture(scope="module")
def module_daemon(box: Sandbox, model_server: ModelServer) -> Iterator[Daemon]:
    """Logged in; the model's address is in the person's own settings of Claude Code."""
    address = {"env": {"ANTHROPIC_BASE_URL": model_server.url.removesuffix("/v1")}}
    claude = ClaudeCode(box, model_server.url, settings=address)
    with Daemon(
        box,
        REFLECTD_JUDGE_PROVIDER="claude-cli",
        REFLECTD_CLAUDE_CLI_PATH=str(binary()),
        CLAUDE_CONFIG_DIR=str(claude.config),
        CLAUDE_CODE_OAUTH_TOKEN="sk-ant-oat01-dummy-of-the-tests",
    ) as running:
        yield running


@pytest.mark.shows("I41")
def test_claude_code_judges_an_opencode_session(
    host: OpencodeServe, daemon: Daemon, llm: ModelServer
) -> None:
    """The verdict is that of ``claude -p``; the ledger has the model, its tokens and what it cost."""
    session = host.create_session()
    llm.script(bash("touch answer.txt"), text("I wrote answer.txt."), session=session.id)
    verdict = {
        "requirements": ["Write answer.txt"],
        "reasons": "answer.txt was written.",
        "nonce": "",
        "complete": True,
        "severity": "NONE",
        "missing": [],
        "next_actions": [],
        "requires_human_action": False,
        "feedback": "",
    }
    llm.judge(structured(**verdict))
    session.prompt("Write answer.txt")
    found = daemon.wait_verdict(session.id, "complete")
    assert found["judge"]["provider"] == "claude-cli"
    assert found["judge"]["model"].startswith("claude-sonnet-")
    (call,) = wait_ledger(host.box, session.id, ("judge", "claude-cli", "ok"))
    assert (call.model, call.input, call.output) == (found["judge"]["model"], 100, 10)
    assert call.cost
    (asked,) = llm.of("judge")
    assert "Write answer.txt" in asked.everything
    assert len(session.users()) == 1

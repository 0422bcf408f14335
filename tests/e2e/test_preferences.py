"""A person's preferences with the real Claude Code: in each request of a session, once there is one."""

from __future__ import annotations

import pytest

from harness.hosts.claude_code import ClaudeCode
from harness.machine.reflectd import Daemon
from harness.machine.sandbox import Sandbox
from harness.models.claude_code import bash
from harness.models.claude_code_scripts import HEADLESS, PLUGIN, finished
from harness.models.scripts import COMPLETE, DONE, REQUEST
from harness.models.server import ModelServer, text
from tests.cli.reflect.person import at_a_terminal

TEXT = "Prefer tables over long prose"


@pytest.mark.needs("claude")
@pytest.mark.main("a preference is given")
def test_claude_code_is_given_a_preference(own_box: Sandbox, llm: ModelServer) -> None:
    """By SessionStart, with the daemon's default settings but for the judge."""
    claude = ClaudeCode(own_box, llm.url, plugin=PLUGIN)

    def session() -> None:
        (own_box.project / "hello.py").unlink(missing_ok=True)
        llm.script(bash("ls"), *finished(claude))
        ran = claude.run(REQUEST, **HEADLESS)
        assert (ran.code, ran.result) == (0, DONE), ran

    with Daemon(own_box, REFLECTD_JUDGE_PROVIDER="openai", REFLECTD_OPENAI_BASE_URL=llm.url):
        llm.api(text(COMPLETE), text(COMPLETE))
        session()
        assert not any(TEXT in r.everything for r in llm.of("main"))
        before = len(llm.of("main"))
        assert at_a_terminal(own_box, ["reflect", "learn", TEXT, "--soft"], "y")[0] == 0
        session()
        given = [f"- {TEXT}" in r.everything for r in llm.of("main")[before:]]
        assert given
        assert all(given)

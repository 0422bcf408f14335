"""A person's preferences with both real hosts: in each request of a session, once there is one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from harness.hosts.claude_code import ClaudeCode
from harness.hosts.opencode import opencode_run
from harness.machine.reflectd import Daemon
from harness.models import claude_code_scripts, scripts
from harness.models.claude_code import bash as claude_bash
from harness.models.claude_code_scripts import HEADLESS, PLUGIN
from harness.models.scripts import COMPLETE, DONE, REQUEST
from harness.models.server import bash, text
from tests.cli.reflect.person import at_a_terminal

if TYPE_CHECKING:
    from collections.abc import Callable

    from harness.machine.sandbox import Sandbox
    from harness.models.server import ModelServer

TEXT = "Prefer tables over long prose"


def story(box: Sandbox, llm: ModelServer, session: Callable[[], None]) -> None:
    """One session before, one after; the daemon has its default settings but for the judge."""
    with Daemon(box, REFLECTD_JUDGE_PROVIDER="openai", REFLECTD_OPENAI_BASE_URL=llm.url):
        llm.api(text(COMPLETE), text(COMPLETE))
        session()
        assert not any(TEXT in r.everything for r in llm.of("main"))
        before = len(llm.of("main"))
        assert at_a_terminal(box, ["reflect", "learn", TEXT, "--soft"], "y")[0] == 0
        session()
        given = [f"- {TEXT}" in r.everything for r in llm.of("main")[before:]]
        assert given
        assert all(given)


@pytest.mark.needs("claude")
@pytest.mark.main("a preference is given")
def test_claude_code_is_given_a_preference(own_box: Sandbox, llm: ModelServer) -> None:
    """By SessionStart."""
    claude = ClaudeCode(own_box, llm.url, plugin=PLUGIN)

    def session() -> None:
        (own_box.project / "hello.py").unlink(missing_ok=True)
        llm.script(claude_bash("ls"), *claude_code_scripts.finished(claude, text(DONE)))
        ran = claude.run(REQUEST, **HEADLESS)
        assert (ran.code, ran.result) == (0, DONE), ran

    story(own_box, llm, session)


def test_opencode_is_given_a_preference(own_box: Sandbox, llm: ModelServer) -> None:
    """In its system text, because the new process was told to ask."""

    def session() -> None:
        llm.script(bash("ls"), *scripts.finished(text(DONE)))
        ran = opencode_run(own_box, llm.url, REQUEST)
        assert (ran.returncode, DONE in ran.stdout) == (0, True), ran

    story(own_box, llm, session)

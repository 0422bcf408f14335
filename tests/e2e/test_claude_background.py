"""The real Claude Code in the background: `claude --bg`, and `claude attach` afterwards."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from harness.hosts.claude_code_tui import READY
from harness.machine.terminal import Terminal
from harness.machine.waiting import wait_until
from harness.models.scripts import COMPLETE, HEADING, INCOMPLETE, REQUEST, UNDEFENDED
from harness.models.server import text
from tests.e2e.test_claude_tui import TOLD, finished, model_daemon, reflectd, set_up, unfinished

if TYPE_CHECKING:
    from harness.hosts.claude_code import ClaudeCode
    from harness.machine.sandbox import Sandbox
    from harness.models.server import ModelServer

pytestmark = pytest.mark.needs("claude")
ALLOWED = ("--permission-mode", "acceptEdits", "--allowedTools", "Bash")
THEN = f"Once more: {REQUEST}"


def end_service(claude: ClaudeCode) -> None:
    """End the service that holds sessions in the background, with all of them."""
    assert claude.call("daemon", "stop", "--any").code == 0


@pytest.mark.shows("I5", "I21")
@pytest.mark.main("a session in the background is judged")
def test_a_session_in_the_background_is_judged_and_woken(own_box: Sandbox, llm: ModelServer) -> None:
    """Nobody sits before it, and it is sent on as in a terminal, with no setting for that; also for what a
    person types into it afterwards with `claude attach`.
    """
    llm.script(*unfinished(own_box), *finished(), *unfinished(own_box), *finished())
    llm.api(INCOMPLETE, UNDEFENDED, COMPLETE, INCOMPLETE, UNDEFENDED, COMPLETE)
    llm.judge(always=text("hello.py"))  # Claude Code has such a session named for its list
    claude = set_up(own_box, llm)
    with model_daemon(own_box, llm) as daemon:
        try:
            assert claude.call(REQUEST, *ALLOWED, "--bg").code == 0
            wait_until(lambda: llm.of("main"), "the agent's first request")
            session = llm.of("main")[0].session
            daemon.wait_verdict(session, "complete")
            assert [v["state"] for v in daemon.verdicts(session)] == ["complete", "incomplete"]
            (own_box.project / "answer.txt").unlink()
            command = claude.command("attach", session[:8])
            with Terminal(command, claude.env, own_box.project, READY) as tui:
                tui.wait_for(TOLD)
                tui.ask(THEN)
                wait_until(lambda: len(daemon.verdicts(session)) == 4, "two more verdicts", daemon.log)
            assert [v["state"] for v in daemon.verdicts(session)] == ["complete", "incomplete"] * 2
            assert sum(HEADING in r.prompt for r in llm.of("main")) >= 2
            assert session[:8] in reflectd(own_box, "status").stdout
        finally:
            end_service(claude)

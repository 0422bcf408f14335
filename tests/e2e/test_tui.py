"""opencode's terminal UI in a pseudo-terminal: what a person sees, and what Esc does."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from harness.hosts.opencode_tui import OpencodeTui
from harness.machine.reflectd import Daemon
from harness.machine.sandbox import Sandbox
from harness.machine.waiting import wait_until
from harness.models.scripts import CLAIM, DONE, HEADING, REQUEST, finished, unfinished
from harness.models.server import ModelServer, slow


@pytest.fixture(scope="module")
def module_tui(box: Sandbox, module_daemon: Daemon, model_server: ModelServer) -> Iterator[OpencodeTui]:
    with OpencodeTui(box, model_server.url) as running:
        yield running


@pytest.fixture
def tui(module_tui: OpencodeTui, llm: ModelServer, box: Sandbox) -> Iterator[OpencodeTui]:
    """The module's TUI, in a new session."""
    (box.project / "answer.txt").unlink(missing_ok=True)
    yield module_tui
    module_tui.new_session()


@pytest.mark.shows("I2", "I5")
@pytest.mark.main("the terminal UI")
def test_the_round_trip(tui: OpencodeTui, daemon: Daemon, llm: ModelServer) -> None:
    """The claim, our feedback, the agent's second answer and the toast, all on the screen."""
    llm.script(*unfinished(), *finished())
    tui.watch("Task complete")
    tui.ask(REQUEST)
    tui.wait_for(HEADING)
    tui.wait_for("Task complete")
    tui.wait_for(DONE)
    session = llm.of("main")[0].session
    wait_until(
        lambda: [v["state"] for v in daemon.verdicts(session)] == ["complete", "incomplete"],
        "both verdicts",
        daemon.log,
    )


@pytest.mark.shows("I11", "I13", "GUARD-1")
@pytest.mark.main("Esc in the terminal UI")
def test_escape(tui: OpencodeTui, daemon: Daemon, llm: ModelServer) -> None:
    """Esc leaves the agent stopped; the next message, at once, is judged."""
    working = slow("Working")
    llm.script(*unfinished(working))
    tui.ask(REQUEST)
    working.wait_started()
    tui.interrupt()
    working.wait_hung_up()
    session = llm.of("main")[0].session
    aborted = daemon.wait_verdict(session, "stopped")
    llm.script(*unfinished(), *finished())
    tui.ask("Once more")
    tui.wait_for(HEADING)
    judged = daemon.wait_verdict(session, "complete")
    assert judged["task"] != aborted["task"]
    assert "Once more" in llm.of("main")[3].prompt, "nothing was sent in between"


@pytest.mark.shows("I34", "I35")
def test_without_a_daemon(own_box: Sandbox, llm: ModelServer) -> None:
    """Works, shows nothing of ours, leaves with status 0 and nothing but opencode's own words."""
    llm.script(*unfinished())
    with OpencodeTui(own_box, llm.url) as alone:
        alone.ask(REQUEST)
        alone.wait_for(CLAIM)
        assert "eflect" not in alone.screen
        assert alone.quit() == 0
        assert "eflect" not in alone.text_after_exit()
    assert not (own_box.project / ".reflection").exists()

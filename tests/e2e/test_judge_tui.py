"""The terminal UI with a model as the judge: what a person sees of it, which is nothing but the verdict."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from harness.hosts.opencode_tui import OpencodeTui
from harness.machine.reflectd import Daemon
from harness.models.scripts import (
    COMPLETE,
    DEFENDED,
    DONE,
    HEADING,
    INCOMPLETE,
    REQUEST,
    UNDEFENDED,
    finished,
    unfinished,
)
from harness.models.server import TITLE, slow, text
from tests.support.machine.state import wait_ledger

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harness.machine.sandbox import Sandbox
    from harness.models.server import ModelServer


@pytest.fixture(scope="module")
def module_daemon(box: Sandbox) -> Iterator[Daemon]:
    with Daemon(box, REFLECTD_JUDGE_PROVIDER="host") as running:
        yield running


@pytest.fixture(scope="module")
def module_tui(box: Sandbox, module_daemon: Daemon, model_server: ModelServer) -> Iterator[OpencodeTui]:
    with OpencodeTui(box, model_server.url) as running:
        yield running


@pytest.fixture
def tui(module_tui: OpencodeTui, llm: ModelServer, box: Sandbox) -> Iterator[OpencodeTui]:
    """The module's TUI, in a new session, when the toast of the last one is gone."""
    (box.project / "answer.txt").unlink(missing_ok=True)
    yield module_tui
    module_tui.new_session()
    module_tui.wait_gone("Task complete")


@pytest.mark.shows("I5", "I27", "I37")
def test_the_round_trip(tui: OpencodeTui, box: Sandbox, daemon: Daemon, llm: ModelServer) -> None:
    """Feedback, the second answer and the toast are on the screen; the judges saw one system message and no
    tool; the person's list of sessions has none of them.
    """
    thinking = slow("Hm")
    llm.script(*unfinished(), *finished())
    llm.judge(thinking, UNDEFENDED, COMPLETE)
    tui.watch("Task complete")
    tui.ask(REQUEST)
    thinking.wait_started()
    assert "judge" not in tui.screen
    thinking.release(INCOMPLETE)
    tui.wait_for(HEADING)
    tui.wait_for("Task complete")
    tui.wait_for(DONE)
    session = llm.of("main")[0].session
    for asked in llm.of("judge"):
        assert (asked.tools, [m["role"] for m in asked.body["messages"]]) == ([], ["system", "user"])
    wait_ledger(
        box, session, ("judge", "host", "ok"), ("judge.second", "host", "ok"), ("judge", "host", "ok")
    )
    tui.sessions()
    assert "judge" not in tui.wait_for(TITLE)
    tui.escape()
    tui.wait_gone("Sessions")


@pytest.mark.shows("I2")
def test_a_defended_stop(tui: OpencodeTui, daemon: Daemon, llm: ModelServer) -> None:
    """The person reads what is left; the agent hears nothing."""
    llm.script(*finished())
    llm.judge(INCOMPLETE, DEFENDED)
    tui.ask(REQUEST)
    tui.wait_for("Task complete: the tests do not pass")
    assert HEADING not in tui.screen
    assert len(llm.of("main")) == 3


@pytest.mark.shows("I12", "I14")
def test_typing_while_the_second_look_thinks(
    tui: OpencodeTui, box: Sandbox, daemon: Daemon, llm: ModelServer
) -> None:
    """The person's next message, and Esc in it, end the second call; nothing of the old task is sent, to the
    old turn or to the new one.
    """
    second, working = slow("Hm"), slow("Working")
    llm.script(*unfinished(), working)
    llm.judge(INCOMPLETE, second)
    tui.ask(REQUEST)
    second.wait_started()
    tui.ask("Do something else")
    working.wait_started()
    tui.interrupt()
    working.wait_hung_up()
    second.wait_hung_up()
    session = llm.of("main")[0].session
    daemon.wait_verdict(session, "stopped")
    llm.script(text("It prints hello."))
    llm.judge(COMPLETE)
    tui.ask("What does hello.py do?")
    tui.wait_for("Task complete")
    assert len(llm.of("main")) == 5
    assert HEADING not in tui.screen
    wait_ledger(
        box, session, ("judge", "host", "ok"), ("judge.second", "host", "cancelled"), ("judge", "host", "ok")
    )


def test_a_question(tui: OpencodeTui, daemon: Daemon, llm: ModelServer) -> None:
    """A question that was answered without a tool costs no call."""
    llm.script(text("It prints hello."))
    tui.watch("Task complete")
    tui.ask("What does hello.py do?")
    tui.wait_for("It prints hello.")
    tui.wait_for("Task complete")
    assert not llm.of("judge")

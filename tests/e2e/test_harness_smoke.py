"""The harness itself: the real opencode without our plugin and without the daemon."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from harness.hosts.opencode import OpencodeServe, opencode_run, text_of
from harness.hosts.opencode_tui import OpencodeTui
from harness.models.server import bash, slow, text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harness.machine.sandbox import Sandbox
    from harness.models.server import ModelServer


@pytest.fixture(scope="module")
def bare(box: Sandbox, model_server: ModelServer) -> Iterator[OpencodeServe]:
    with OpencodeServe(box, model_server.url, plugin=False) as running:
        yield running


def test_a_served_turn_runs_its_tool(bare: OpencodeServe, llm: ModelServer) -> None:
    """A scripted shell call really runs, and the model sees its output. Nothing is printed."""
    session = bare.create_session()
    llm.script(bash("echo forty-$((40 + 2))"), text("It says 42."), session=session.id)
    assert text_of(session.prompt("Run it")) == "It says 42."
    assert "forty-42" in llm.of("main", session.id)[-1].everything
    bare.events.wait("session.idle", session.id)
    assert bare.printed_since_ready() == ""


def test_scripts_are_kept_apart_by_session(bare: OpencodeServe, llm: ModelServer) -> None:
    """Two sessions take from their own scripts, whatever the order of their requests."""
    one, two = bare.create_session(), bare.create_session()
    llm.script(text("I am one"), session=one.id)
    llm.script(text("I am two"), session=two.id)
    assert text_of(two.prompt("Who?")) == "I am two"
    assert text_of(one.prompt("Who?")) == "I am one"


def test_a_slow_answer_waits_for_the_test_and_an_abort_reaches_the_model(
    bare: OpencodeServe, llm: ModelServer
) -> None:
    """A held answer is let go by the test, or notices that the host hung up."""
    session, first, second = bare.create_session(), slow("Hm"), slow("Hm again")
    llm.script(first, second, session=session.id)
    session.prompt_async("Think")
    first.wait_started()
    assert session.busy()
    first.release("and done.")
    session.wait_idle()
    assert text_of(session.messages()[-1]).endswith("and done.")
    session.prompt_async("Think again")
    second.wait_started()
    session.abort()
    second.wait_hung_up()
    session.wait_idle()


def test_the_anthropic_wire(bare: OpencodeServe, llm: ModelServer) -> None:
    """The same script over the other wire format."""
    session = bare.create_session(model={"providerID": "fakeant", "modelID": "fake-1"})
    llm.script(bash("echo hello-$((1 + 1))"), text("Said hello."), session=session.id)
    assert text_of(session.prompt("Say hello")) == "Said hello."
    assert llm.of("main", session.id)[-1].wire == "anthropic"
    assert "hello-2" in llm.of("main", session.id)[-1].everything


def test_run_prints_the_answer(own_box: Sandbox, llm: ModelServer) -> None:
    """``opencode run`` with the message on stdin ends with 0 and prints what the model said."""
    llm.script(text("The answer is 42."))
    ran = opencode_run(own_box, llm.url, 'What is "the answer"?', plugin=False)
    assert (ran.returncode, "The answer is 42." in ran.stdout) == (0, True), ran
    assert llm.of("main")[0].prompt.strip() == 'What is "the answer"?'


def test_the_terminal_ui_shows_the_answer(own_box: Sandbox, llm: ModelServer) -> None:
    """Typed into a pseudo-terminal, answered on its screen, left with status 0."""
    llm.script(text("The answer is 42."))
    with OpencodeTui(own_box, llm.url, plugin=False) as tui:
        tui.ask("What is the answer?")
        tui.wait_for("The answer is 42.")
        assert tui.quit() == 0

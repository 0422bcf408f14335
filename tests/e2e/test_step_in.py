"""A person steps in after the agent has stopped: Esc, a refusal, undo, a command, while the judge thinks."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from harness.hosts.opencode import OpencodeServe
from harness.hosts.opencode_tui import OpencodeTui
from harness.machine.reflectd import Daemon
from harness.machine.sandbox import Sandbox
from harness.models.scripts import (
    CLAIM,
    COMPLETE,
    HEADING,
    INCOMPLETE,
    REQUEST,
    UNDEFENDED,
    finished,
    unfinished,
)
from harness.models.server import ModelServer, bash, slow, text
from tests.support.hosts.witness import a_later_turn, quiet

SETTINGS = {"REFLECTD_JUDGE_PROVIDER": "host"}
ASKS = {
    "permission": {"bash": {"*": "allow", "touch *": "ask"}},
    "command": {"look": {"template": "Look around $ARGUMENTS", "agent": "general", "subtask": True}},
    "agent": {"reader": {"mode": "primary", "permission": {"edit": "deny", "bash": "deny"}}},
}


@pytest.fixture(scope="module")
def module_host(box: Sandbox, module_daemon: Daemon, model_server: ModelServer) -> Iterator[OpencodeServe]:
    with OpencodeServe(box, model_server.url, config=ASKS) as serving:
        yield serving


# --- Esc ---------------------------------------------------------------------------------------------------


@pytest.mark.shows("I12", "GUARD-1")
@pytest.mark.main("Esc while the judge thinks")
def test_esc_at_idle_while_the_judge_thinks(host: OpencodeServe, daemon: Daemon, llm: ModelServer) -> None:
    """The session is idle already, so the host only says idle once more; that ends the judgement."""
    session, thinking = host.create_session(), slow("Hm")
    llm.script(*unfinished(), session=session.id)
    llm.judge(thinking)
    session.prompt(REQUEST)
    thinking.wait_started()
    session.abort()
    thinking.wait_hung_up()
    daemon.wait_verdict(session.id, "stopped")
    quiet(session, daemon, llm, users=1)


def test_esc_at_idle_in_the_terminal_is_not_told(box: Sandbox, daemon: Daemon, llm: ModelServer) -> None:
    """README: an idle terminal UI keeps an Esc to itself, and feedback comes; a message ends a judgement."""
    first, second = slow("Hm"), slow("Hm")
    llm.script(*unfinished(), text(CLAIM), text("It prints hello."))
    llm.judge(first, UNDEFENDED, second, COMPLETE)
    with OpencodeTui(box, llm.url) as tui:
        tui.watch("Judging whether the task is done")
        tui.ask(REQUEST)
        first.wait_started()
        tui.wait_for(CLAIM)
        tui.wait_for("Judging whether the task is done")
        tui.escape()
        tui.escape()
        assert "again to interrupt" not in tui.screen
        first.release(INCOMPLETE)
        tui.wait_for(HEADING)
        second.wait_started()
        tui.ask("What does hello.py do?")
        second.wait_hung_up()
        tui.wait_for("It prints hello.")
        daemon.wait_verdict(llm.of("main")[0].session, "complete")
    assert daemon.new_log().count("kind=feedback") == 1


# --- no ----------------------------------------------------------------------------------------------------


@pytest.mark.shows("I11", "GUARD-1")
@pytest.mark.parametrize("words", ["", "never delete build"], ids=["silent", "with-words"])
def test_a_refused_call_is_the_persons_turn(
    host: OpencodeServe, daemon: Daemon, llm: ModelServer, words: str
) -> None:
    """Who says no to a call is not overruled, whatever the agent says next and a judge would say."""
    session = host.create_session()
    llm.script(bash("touch build"), text("I was not allowed to do it."), session=session.id)
    session.prompt_async(REQUEST)
    (asked, *_) = host.events.wait("permission.asked", session.id)
    reply = {"reply": "reject"} | ({"message": words} if words else {})
    host.request("POST", f"/permission/{asked['properties']['id']}/reply", reply)
    daemon.wait_verdict(session.id, "awaiting_user")
    quiet(session, daemon, llm, users=1)
    assert not llm.of("judge")


@pytest.mark.shows("I15")
def test_an_agent_that_may_change_nothing(host: OpencodeServe, daemon: Daemon, llm: ModelServer) -> None:
    """It could carry out no feedback, so its turn is the person's."""
    session = host.create_session(agent="reader")
    llm.script(text("The tests would fail."), session=session.id)
    session.prompt(REQUEST)
    assert daemon.wait_verdict(session.id, "awaiting_user")["reason"] == "guard:readonly_agent"
    quiet(session, daemon, llm, users=1)
    assert not llm.of("judge")


# --- undo --------------------------------------------------------------------------------------------------


@pytest.mark.shows("I11", "GUARD-1")
@pytest.mark.main("undo")
def test_undo_while_the_judge_thinks(host: OpencodeServe, daemon: Daemon, llm: ModelServer) -> None:
    """Who takes a task back does not see the agent told to do it."""
    session, thinking = host.create_session(), slow("Hm")
    llm.script(*unfinished(), session=session.id)
    llm.judge(thinking)
    session.prompt(REQUEST)
    thinking.wait_started()
    (asked,) = session.users()
    host.request("POST", f"/session/{session.id}/revert", {"messageID": asked["info"]["id"]})
    thinking.wait_hung_up()
    daemon.wait_verdict(session.id, "stopped")
    quiet(session, daemon, llm, users=1)
    llm.script(text("It prints hello."), session=session.id)
    llm.judge(COMPLETE)
    session.prompt("What does hello.py do?")
    done = daemon.wait_verdict(session.id, "complete")
    (left,) = session.users()
    assert done["task"] == left["info"]["id"] != asked["info"]["id"]


@pytest.mark.shows("I11")
def test_undo_that_no_event_told_of(host: OpencodeServe, daemon: Daemon, llm: ModelServer) -> None:
    """The messages read say it too: nothing is judged, also when the daemon was away meanwhile."""
    session, thinking = host.create_session(), slow("Hm")
    llm.script(*unfinished(), session=session.id)
    llm.judge(thinking)
    session.prompt(REQUEST)
    thinking.wait_started()
    daemon.kill9()
    host.request("POST", f"/session/{session.id}/revert", {"messageID": session.users()[0]["info"]["id"]})
    daemon.start()
    daemon.wait_verdict(session.id, "stopped")
    thinking.wait_hung_up()  # or opencode would ask once more
    quiet(session, daemon, llm, users=1)


# --- a command of the person's own -------------------------------------------------------------------------


@pytest.mark.shows("I21")
def test_a_shell_command_while_the_judge_thinks(
    host: OpencodeServe, daemon: Daemon, llm: ModelServer
) -> None:
    """`!ls` is no work of the agent's: the turn before it is judged all the same."""
    session, thinking = host.create_session(), slow("Hm")
    llm.script(*unfinished(), *finished(), session=session.id)
    llm.judge(thinking, INCOMPLETE, UNDEFENDED, COMPLETE)
    session.prompt(REQUEST)
    thinking.wait_started()
    host.request("POST", f"/session/{session.id}/shell", {"agent": "build", "command": "echo hi"})
    daemon.wait_verdict(session.id, "complete")
    assert len(session.feedback()) == 1
    states = [v["state"] for v in daemon.verdicts(session.id)]
    assert sorted(states) == ["complete", "incomplete"]


@pytest.mark.shows("I21", "I28")
def test_a_command_that_starts_a_sub_agent(host: OpencodeServe, daemon: Daemon, llm: ModelServer) -> None:
    """What the command tells the sub-agent is the person's request, and its turn has a verdict."""
    session = host.create_session()
    llm.script(bash("ls"), text("hello.py is there."), text("It looked: hello.py is there."))
    llm.judge(COMPLETE)
    session.command("look", "into every folder")
    daemon.wait_verdict(session.id, "complete")
    (asked,) = llm.of("judge")
    assert "Look around into every folder" in asked.prompt
    (child,) = session.children()
    assert not daemon.verdicts(child["id"])


@pytest.mark.shows("I21")
def test_a_session_deleted_while_the_judge_thinks(
    host: OpencodeServe, daemon: Daemon, llm: ModelServer
) -> None:
    """Its turn is over with a final verdict; nothing says `judging` any more."""
    session, thinking = host.create_session(), slow("Hm")
    llm.script(*unfinished(), session=session.id)
    llm.judge(thinking)
    session.prompt(REQUEST)
    thinking.wait_started()
    session.delete()
    thinking.wait_hung_up()
    assert daemon.wait_verdict(session.id, "skipped")["reason"] == "guard:deleted"
    a_later_turn(host, daemon, llm)


# --- what a message carries --------------------------------------------------------------------------------


@pytest.mark.shows("I21", "I28")
def test_a_message_of_files_only_is_a_task(host: OpencodeServe, daemon: Daemon, llm: ModelServer) -> None:
    """A person who only attaches a file has asked for something, and its turn has a verdict."""
    session = host.create_session()
    llm.script(bash("ls"), text("It says hello."), session=session.id)
    llm.judge(COMPLETE)
    file = {
        "type": "file",
        "mime": "text/plain",
        "filename": "a.txt",
        "url": "data:text/plain;base64,aGVsbG8=",
    }
    host.request("POST", f"/session/{session.id}/message", {"parts": [file]})
    daemon.wait_verdict(session.id, "complete")
    (asked,) = llm.of("judge")
    assert "[attached: a.txt]" in asked.prompt

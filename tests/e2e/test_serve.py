"""``opencode serve`` with the daemon and its offline judge: one host, a session per test."""

from __future__ import annotations

import pytest

from harness.hosts.opencode import OpencodeServe, is_feedback, text_of
from harness.machine.reflectd import Daemon, verdict_file
from harness.machine.sandbox import MODEL
from harness.machine.waiting import wait_until
from harness.models.scripts import HEADING, REQUEST, finished, unfinished
from harness.models.server import ModelServer, bash, slow, text, tool
from tests.support.hosts.witness import a_later_turn, quiet


@pytest.mark.shows("I2", "I4", "I5", "I24")
@pytest.mark.parametrize(("agent", "provider"), [("build", "fake"), ("careful", "fakeant")])
@pytest.mark.main("feedback arrives")
def test_incomplete_then_feedback_then_complete(
    host: OpencodeServe, daemon: Daemon, llm: ModelServer, agent: str, provider: str
) -> None:
    """The person's agent and model are told what failed; the next round, of the same task, ends it."""
    session = host.create_session(agent=agent, model={"providerID": provider, "modelID": "fake-2"})
    llm.script(*unfinished(), *finished(), session=session.id)
    session.prompt(REQUEST)
    person, feedback = session.wait_users(2)
    assert text_of(feedback).startswith(f"{HEADING} (HIGH)\n")
    assert "make test" in text_of(feedback)
    assert is_feedback(feedback)
    assert not is_feedback(person)
    assert (feedback["info"]["agent"], feedback["info"]["model"]) == (agent, person["info"]["model"])
    assert feedback["info"]["model"]["modelID"] == "fake-2"
    done = daemon.wait_verdict(session.id, "complete")
    assert host.wait_toast("Task complete")["variant"] == "success"
    quiet(session, daemon, llm, users=2)
    assert {r.model for r in llm.of("main", session.id)} == {"fake-2"}
    complete, incomplete = daemon.verdicts(session.id)
    assert (complete["state"], incomplete["state"]) == ("complete", "incomplete")
    assert complete["task"] == incomplete["task"] == person["info"]["id"]
    assert complete["turn"] == done["turn"] == session.messages()[-1]["info"]["id"] != incomplete["turn"]
    assert len(host.toasts()) == 1


@pytest.mark.shows("I2")
@pytest.mark.main("finished work is left alone")
def test_complete_never_prompts(host: OpencodeServe, daemon: Daemon, llm: ModelServer) -> None:
    """Work that is done gets a toast; the agent hears nothing."""
    session = host.create_session()
    llm.script(*finished(), session=session.id)
    session.prompt(REQUEST)
    daemon.wait_verdict(session.id, "complete")
    host.wait_toast("Task complete")
    quiet(session, daemon, llm, users=1)


@pytest.mark.main("a question waits for the person")
def test_awaiting_user(host: OpencodeServe, daemon: Daemon, llm: ModelServer) -> None:
    """A turn that ends in a question waits for the person: a toast, no feedback."""
    session = host.create_session()
    llm.script(bash("ls"), text("I can go on in two ways. Which database should I use?"), session=session.id)
    session.prompt("Set up a database")
    daemon.wait_verdict(session.id, "awaiting_user")
    host.wait_toast("Awaiting user input")
    quiet(session, daemon, llm, users=1)


@pytest.mark.shows("I5", "I8", "GUARD-6")
@pytest.mark.main("no endless feedback")
def test_the_same_items_three_times_stop_the_task(
    host: OpencodeServe, daemon: Daemon, llm: ModelServer
) -> None:
    """Rounds that change nothing end it: the person is told once, and the agent is left alone."""
    session = host.create_session()
    llm.script(*unfinished(), *unfinished(), *unfinished(), session=session.id)
    session.prompt(REQUEST)
    daemon.wait_verdict(session.id, "stopped")
    host.wait_toast("Stopped")
    quiet(session, daemon, llm, users=3)
    assert [v["state"] for v in daemon.verdicts(session.id)] == ["stopped", "incomplete", "incomplete"]
    assert len(host.toasts()) == 1


@pytest.mark.shows("I3", "I11", "I13", "GUARD-1")
@pytest.mark.main("Esc is final")
def test_abort_before_the_idle(host: OpencodeServe, daemon: Daemon, llm: ModelServer) -> None:
    """Esc while the agent works, three times: no feedback; the next message, at once, is judged."""
    session, working = host.create_session(), slow("Working")
    llm.script(*unfinished(working), session=session.id)
    session.prompt_async(REQUEST)
    working.wait_started()
    for _ in range(3):
        session.abort()
    host.events.wait("session.idle", session.id, count=2)
    session.wait_idle()
    aborted = daemon.wait_verdict(session.id, "stopped")
    assert aborted["complete"] is False
    quiet(session, daemon, llm, users=1)
    llm.script(*unfinished(), *finished(), session=session.id)
    session.prompt("Again, please: " + REQUEST)
    assert is_feedback(session.wait_users(3)[2])
    judged = daemon.wait_verdict(session.id, "complete")
    assert judged["task"] != aborted["task"]


@pytest.mark.shows("I11")
@pytest.mark.main("Esc is final in a round of feedback")
def test_abort_after_the_idle(host: OpencodeServe, daemon: Daemon, llm: ModelServer) -> None:
    """Esc in the round that our feedback began ends the task: no second feedback."""
    session, fixing = host.create_session(), slow("Fixing")
    llm.script(*unfinished(), fixing, session=session.id)
    session.prompt(REQUEST)
    fixing.wait_started()
    session.abort()
    daemon.wait_verdict(session.id, "stopped")
    quiet(session, daemon, llm, users=2)


@pytest.mark.shows("I3", "I11", "GUARD-4")
def test_idles_in_a_burst_give_one_round(host: OpencodeServe, daemon: Daemon, llm: ModelServer) -> None:
    """An abort in the moment of the idle brings two more idles; never two feedbacks for one turn."""
    session = host.create_session()
    llm.script(*unfinished(), *finished(), session=session.id)
    session.prompt(REQUEST)
    session.abort()
    session.abort()

    def over() -> bool:  # complete, or stopped when an abort hit the round of the feedback
        found = verdict_file(host.box.project, session.id)
        return found is not None and found["state"] in {"complete", "stopped"}

    wait_until(over, "the end of the task", daemon.log)
    a_later_turn(host, daemon, llm)
    assert len(session.users()) <= 2, session.outline()
    assert len({v["turn"] for v in daemon.verdicts(session.id)}) == len(daemon.verdicts(session.id)) <= 2


@pytest.mark.shows("I17", "GUARD-3")
@pytest.mark.main("a sub-agent is not judged")
def test_a_child_session_is_not_judged(host: OpencodeServe, daemon: Daemon, llm: ModelServer) -> None:
    """A sub-agent gets no feedback, verdict or toast; its parent is judged by what it left, too."""
    session = host.create_session()
    job = {"description": "a part", "prompt": "[a child's job] make test", "subagent_type": "general"}
    mended = bash("echo 42 > answer.txt && make test")
    llm.script(
        tool("task", **job), text("My helper is through."), mended, text("Mended."), session=session.id
    )
    llm.script(*unfinished(), marker="[a child's job]")
    session.prompt("Write hello.py with a helper")
    assert "`make test` failed after the last edit" in text_of(session.wait_users(2)[1])
    daemon.wait_verdict(session.id, "complete")
    (child,) = (c["id"] for c in session.children())
    host.wait_toast("Task complete")
    quiet(session, daemon, llm, users=2)
    assert len(host.toasts()) == 1
    assert verdict_file(host.box.project, child) is None
    assert daemon.verdicts(child) == []
    assert len(llm.of("main", child)) == 3


@pytest.mark.shows("I10", "GUARD-8")
@pytest.mark.main("typed meanwhile")
def test_messages_queued_while_busy_are_judged_as_one(
    host: OpencodeServe, daemon: Daemon, llm: ModelServer
) -> None:
    """The agent isn't prompted in between; what is typed meanwhile belongs to the task."""
    session, working = host.create_session(), slow("Working")
    llm.script(working, *unfinished(), *finished(), session=session.id)
    session.prompt_async("First this")
    working.wait_started()
    session.prompt_async("And then: " + REQUEST)
    session.wait_users(2)
    working.release("done.")
    done = daemon.wait_verdict(session.id, "complete")
    assert [is_feedback(m) for m in session.users()] == [False, False, True]
    assert done["task"] == session.users()[0]["info"]["id"]


@pytest.mark.shows("I4", "I7")
@pytest.mark.main("a summary is not judged")
def test_compaction_is_no_turn(host: OpencodeServe, daemon: Daemon, llm: ModelServer) -> None:
    """A summary is not judged, and the task after it is still the person's message."""
    session = host.create_session()
    llm.script(*finished(), session=session.id)
    session.prompt(REQUEST)
    done = daemon.wait_verdict(session.id, "complete")
    session.summarize(MODEL)
    host.events.wait("session.compacted", session.id)
    session.wait_idle()
    a_later_turn(host, daemon, llm)
    assert len(daemon.verdicts(session.id)) == 1
    assert verdict_file(host.box.project, session.id) == done
    host.wait_toast("Context compacted: the task was complete before")  # so that it is no later test's
    assert not session.feedback()

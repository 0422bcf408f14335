"""``opencode serve`` with the daemon and its offline judge: one host, a session per test."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from harness.hosts.opencode import is_feedback, text_of
from harness.machine.reflectd import alias_file, verdict_file
from harness.machine.sandbox import MODEL, OTHER_MODEL
from harness.machine.waiting import wait_until
from harness.models.scripts import HEADING, REQUEST, finished, unfinished
from harness.models.server import bash, fail, slow, text, todos, tool, write
from tests.support.hosts.witness import a_later_turn, quiet

if TYPE_CHECKING:
    from harness.hosts.opencode import Json, OpencodeServe
    from harness.machine.reflectd import Daemon
    from harness.models.server import ModelServer


@pytest.mark.shows("I2", "I4", "I5")
@pytest.mark.parametrize(
    "model", [OTHER_MODEL, {"providerID": "fakeant", "modelID": "fake-2"}], ids=["openai", "anthropic"]
)
@pytest.mark.main("feedback arrives")
def test_incomplete_then_feedback_then_complete(
    host: OpencodeServe, daemon: Daemon, llm: ModelServer, model: Json
) -> None:
    """The feedback arrives in the same session with the person's agent and model; the round after it is
    judged, as the same task; then a toast and nothing more.
    """
    session = host.create_session(agent="build", model=model)
    llm.script(*unfinished(), *finished(), session=session.id)
    session.prompt(REQUEST)
    person, feedback = session.wait_users(2)
    assert text_of(feedback).startswith(f"{HEADING} (HIGH)\n")
    assert is_feedback(feedback)
    assert not is_feedback(person)
    assert (feedback["info"]["agent"], feedback["info"]["model"]) == ("build", person["info"]["model"])
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


@pytest.mark.shows("I24")
def test_the_feedback_names_what_failed(host: OpencodeServe, daemon: Daemon, llm: ModelServer) -> None:
    """The judge saw the tool's result, and the agent is told which."""
    session = host.create_session()
    llm.script(*unfinished(), *finished(), session=session.id)
    session.prompt(REQUEST)
    assert "make test" in text_of(session.wait_users(2)[1])
    daemon.wait_verdict(session.id, "complete")
    assert "make test" in llm.of("main", session.id)[3].prompt


@pytest.mark.shows("I22")
def test_the_verdict_file_is_restamped_every_round(
    host: OpencodeServe, daemon: Daemon, llm: ModelServer
) -> None:
    """The file tells the turn it is about; a later round replaces it with a later stamp. The alias of a round
    that nothing follows is never fresh.
    """
    session, fixing = host.create_session(), slow("Fixing")
    llm.script(*unfinished(), *finished(fixing), session=session.id)
    session.prompt(REQUEST)
    fixing.wait_started()
    first = daemon.wait_verdict(session.id, "incomplete")
    assert (first["sessionId"], first["session"], first["complete"]) == (session.id[:8], session.id, False)
    assert (first["severity"], len(first["missing"])) == ("HIGH", 1)
    fixing.release("and fixed.")
    second = daemon.wait_verdict(session.id, "complete")
    assert (second["complete"], second["task"]) == (True, first["task"])
    assert second["timestamp"] > first["timestamp"]
    assert second["turn"] != first["turn"]


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


def test_open_todos_are_unfinished(host: OpencodeServe, daemon: Daemon, llm: ModelServer) -> None:
    """The agent's own open list proves that something is left; closing it completes the task."""
    session = host.create_session()
    half = todos(("write it", "completed"), ("document it", "pending"))
    whole = todos(("write it", "completed"), ("document it", "completed"))
    llm.script(write("hello.py", "print(1)\n"), half, text("Done."), session=session.id)
    checked = bash("echo 42 > answer.txt && make test")
    llm.script(write("README", "Prints 1.\n"), checked, whole, text("Documented."), session=session.id)
    session.prompt("Write and document hello.py")
    assert "document it" in text_of(session.wait_users(2)[1])
    daemon.wait_verdict(session.id, "complete")


@pytest.mark.shows("I5", "I8", "GUARD-6")
@pytest.mark.main("no endless feedback")
def test_the_same_items_three_times_stop_the_task(
    host: OpencodeServe, daemon: Daemon, llm: ModelServer
) -> None:
    """Rounds two and three are judged too; when they change nothing the person is told once, and the agent is
    left alone.
    """
    session = host.create_session()
    llm.script(*unfinished(), *unfinished(), *unfinished(), session=session.id)
    session.prompt(REQUEST)
    daemon.wait_verdict(session.id, "stopped")
    host.wait_toast("Stopped")
    quiet(session, daemon, llm, users=3)
    assert [v["state"] for v in daemon.verdicts(session.id)] == ["stopped", "incomplete", "incomplete"]
    assert len(host.toasts()) == 1


@pytest.mark.shows("I6", "I7")
def test_the_same_words_again_are_a_new_task(host: OpencodeServe, daemon: Daemon, llm: ModelServer) -> None:
    """ "continue" after "continue" is judged; the task is the message, not its text."""
    session = host.create_session()
    llm.script(text("I continued."), text("I continued again."), session=session.id)
    session.prompt("continue")
    first = daemon.wait_verdict(session.id, "unscored")
    session.prompt("continue")
    second = daemon.wait_verdict(session.id, "unscored", turn=session.messages()[-1]["info"]["id"])
    assert [first["task"], second["task"]] == [m["info"]["id"] for m in session.users()]


@pytest.mark.shows("I3", "I11", "I13", "GUARD-1")
@pytest.mark.main("Esc is final")
def test_abort_before_the_idle(host: OpencodeServe, daemon: Daemon, llm: ModelServer) -> None:
    """Esc while the agent works, pressed three times: no feedback for that task although its tests fail and
    the host goes idle twice. The next message, at once, is a new task and is judged.
    """
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
    judged = daemon.wait_verdict(session.id, "unscored")  # Esc left two messages: the rules can't tell
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


@pytest.mark.shows("I3")
def test_a_second_idle_changes_nothing(host: OpencodeServe, daemon: Daemon, llm: ModelServer) -> None:
    """Aborting an idle session makes it idle again; the turn keeps its one verdict, the person one toast."""
    session = host.create_session()
    llm.script(*finished(), session=session.id)
    session.prompt(REQUEST)
    daemon.wait_verdict(session.id, "complete")
    host.wait_toast("Task complete")
    session.abort()
    session.abort()
    host.events.wait("session.idle", session.id, count=3)
    quiet(session, daemon, llm, users=1)
    assert len(daemon.verdicts(session.id)) == 1
    assert len(host.toasts()) == 1


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
    """A sub-agent that stops with failing tests gets no feedback, no verdict, no toast; its parent is judged,
    also by what the sub-agent left.
    """
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


@pytest.mark.shows("I23")
def test_two_sessions_with_the_same_eight_characters(
    host: OpencodeServe, daemon: Daemon, llm: ModelServer
) -> None:
    """Both have their own verdict; the alias, which would hide one of them, is stale for its readers."""
    one, two = host.create_session(), host.create_session()
    if one.id[:8] != two.id[:8]:  # the prefix changes every 17 minutes
        one = host.create_session()
    assert one.id[:8] == two.id[:8]
    llm.script(*unfinished(), *finished(), session=one.id)
    llm.script(text("It is a script."), session=two.id)
    one.prompt_async(REQUEST)
    two.prompt("What is hello.py?")
    done_two = daemon.wait_verdict(two.id, "complete")
    done_one = daemon.wait_verdict(one.id, "complete")
    assert (done_one["session"], done_two["session"]) == (one.id, two.id)
    assert done_one["sessionId"] == done_two["sessionId"]
    assert [len(s.users()) for s in (one, two)] == [2, 1]
    alias = alias_file(host.box.project, one.id)
    assert alias is not None
    assert alias["timestamp"] == 0


def test_a_plan_session_stays_a_plan_session(host: OpencodeServe, daemon: Daemon, llm: ModelServer) -> None:
    """A plan waits for the person, whatever is open: no feedback, and no message of another agent."""
    session = host.create_session(agent="plan")
    llm.script(
        todos(("read it", "completed"), ("write it", "pending")), text("Here is my plan."), session=session.id
    )
    session.prompt("Plan it")
    daemon.wait_verdict(session.id, "awaiting_user")
    quiet(session, daemon, llm, users=1)
    llm.script(text("The plan again."), session=session.id)
    session.prompt("And now?")
    daemon.wait_verdict(session.id, "awaiting_user", turn=session.messages()[-1]["info"]["id"])
    assert {m["info"]["agent"] for m in session.messages()} == {"plan"}


def test_feedback_keeps_a_custom_agent(host: OpencodeServe, daemon: Daemon, llm: ModelServer) -> None:
    """An agent of the person's own, not the default one, is the one that is told to go on."""
    session = host.create_session(agent="careful")
    llm.script(*unfinished(), *finished(), session=session.id)
    session.prompt(REQUEST)
    daemon.wait_verdict(session.id, "complete")
    assert {m["info"]["agent"] for m in session.messages()} == {"careful"}


@pytest.mark.shows("I10", "GUARD-8")
@pytest.mark.main("typed meanwhile")
def test_messages_queued_while_busy_are_judged_as_one(
    host: OpencodeServe, daemon: Daemon, llm: ModelServer
) -> None:
    """The person types again while the agent works. The agent isn't prompted in between; the last message is
    the task.
    """
    session, working = host.create_session(), slow("Working")
    llm.script(working, *unfinished(), *finished(), session=session.id)
    session.prompt_async("First this")
    working.wait_started()
    session.prompt_async("And then: " + REQUEST)
    session.wait_users(2)
    working.release("done.")
    done = daemon.wait_verdict(session.id, "complete")
    assert [is_feedback(m) for m in session.users()] == [False, False, True]
    assert done["task"] == session.users()[1]["info"]["id"]


@pytest.mark.shows("I21")
def test_a_host_error_is_nobodys_fault(host: OpencodeServe, daemon: Daemon, llm: ModelServer) -> None:
    """A refused model call ends the turn as ``error``: final, and nothing is sent."""
    session = host.create_session()
    llm.script(fail(400, "context too long"), session=session.id)
    session.prompt("Hello")
    daemon.wait_verdict(session.id, "error")
    quiet(session, daemon, llm, users=1)


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


@pytest.mark.shows("I36")
def test_a_deleted_session_is_let_go(host: OpencodeServe, daemon: Daemon, llm: ModelServer) -> None:
    """Deleted in the moment it would be judged; the daemon goes on with the others."""
    gone, other = host.create_session(), host.create_session()
    llm.script(text("Here."), session=gone.id)
    llm.script(*finished(), session=other.id)
    gone.prompt("Hello")
    gone.delete()
    other.prompt(REQUEST)
    daemon.wait_verdict(other.id, "complete")
    assert gone.id not in {s["id"] for s in host.sessions()}
    assert daemon.status()["degraded"] in (False, "", [], None)

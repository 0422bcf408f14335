"""The judge as a session inside opencode (provider ``host``): a slow model gives the window for what
people do meanwhile.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from harness.hosts.opencode import Session, is_feedback, text_of
from harness.machine.reflectd import Daemon, alias_file, verdict_file
from harness.machine.sandbox import OTHER_MODEL
from harness.machine.waiting import wait_until
from harness.models.scripts import COMPLETE, HEADING, INCOMPLETE, REQUEST, UNDEFENDED, finished, unfinished
from harness.models.server import slow, text
from tests.support.hosts.witness import a_later_turn, quiet
from tests.support.machine.state import wait_ledger

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harness.hosts.opencode import OpencodeServe
    from harness.machine.sandbox import Sandbox
    from harness.models.server import ModelServer


@pytest.fixture(scope="module")
def module_daemon(box: Sandbox) -> Iterator[Daemon]:
    with Daemon(box, REFLECTD_JUDGE_PROVIDER="host") as running:
        yield running


def no_judge_session_left(host: OpencodeServe, llm: ModelServer) -> None:
    """I37: none of the sessions that judged is in the list any more."""
    judges = {r.session for r in llm.of("judge")}
    assert judges
    wait_until(
        lambda: not judges & {s["id"] for s in host.sessions()},
        "end of the judge sessions",
        host.sessions,
    )


@pytest.mark.shows("I1", "I27", "I37")
@pytest.mark.parametrize(
    "model", [OTHER_MODEL, {"providerID": "fakeant", "modelID": "fake-2"}], ids=["openai", "anthropic"]
)
@pytest.mark.main("a judge in the host leaves nothing")
def test_the_judge_has_no_tools_and_leaves_nothing(
    host: OpencodeServe, daemon: Daemon, llm: ModelServer, model: dict[str, str]
) -> None:
    """One system message and no tool, asked with the session's own model; its session is never judged, gets
    no file and does not stay in the list.
    """
    session = host.create_session(model=model)
    llm.script(*finished(), session=session.id)
    llm.judge(COMPLETE)
    session.prompt(REQUEST)
    done = daemon.wait_verdict(session.id, "complete")
    host.wait_toast("Task complete")
    (asked,) = llm.of("judge")
    assert (asked.tools, asked.model, asked.system[:9]) == ([], "fake-2", "You judge")
    roles = [m["role"] for m in asked.body["messages"]]
    if asked.wire == "anthropic":
        roles = ["system"] * len(asked.body["system"]) + roles
    assert roles == ["system", "user"]
    assert not asked.body.get("tools")
    assert "make test" in asked.prompt
    assert done["judge"]["provider"] == "host"
    no_judge_session_left(host, llm)
    assert verdict_file(host.box.project, asked.session) is None
    assert len(llm.of("judge")) == 1


@pytest.mark.shows("I5")
def test_the_judges_words_reach_the_agent(host: OpencodeServe, daemon: Daemon, llm: ModelServer) -> None:
    """What the model found, and a second look could not defend, is sent as feedback; the next round is judged
    by it again.
    """
    session = host.create_session()
    llm.script(*unfinished(), *finished(), session=session.id)
    llm.judge(INCOMPLETE, UNDEFENDED, COMPLETE)
    session.prompt(REQUEST)
    feedback = session.wait_users(2)[1]
    assert text_of(feedback).startswith(f"{HEADING} (HIGH)\n")
    assert "the tests do not pass" in text_of(feedback)
    daemon.wait_verdict(session.id, "complete")
    no_judge_session_left(host, llm)
    assert len(session.users()) == 2
    first, second, third = llm.of("judge")
    assert len({r.session for r in (first, second, third)}) == 3
    assert [r.system[:16] for r in (first, second, third)] == [
        "You judge whethe",
        "A judge wants to",
        "You judge whethe",
    ]
    assert "1. the tests do not pass (cites: make test must pass)" in second.prompt


@pytest.mark.shows("I22")
def test_the_file_says_judging_meanwhile(host: OpencodeServe, daemon: Daemon, llm: ModelServer) -> None:
    """An older turn's "complete" does not look fresh while the new turn is being judged."""
    session, thinking = host.create_session(), slow("Hm")
    llm.script(text("One."), text("Two."), session=session.id)
    llm.judge(COMPLETE, thinking)
    session.prompt("Say one")
    first = daemon.wait_verdict(session.id, "complete")
    session.prompt("Say two")
    thinking.wait_started()
    now = daemon.wait_verdict(session.id, "judging")
    assert now["complete"] is not True
    assert now["turn"] != first["turn"]
    alias = alias_file(host.box.project, session.id)
    assert alias is not None
    assert alias["timestamp"] == 0
    thinking.release(COMPLETE)
    daemon.wait_verdict(session.id, "complete", turn=now["turn"])


@pytest.mark.shows("I10", "I14", "GUARD-7")
@pytest.mark.main("typed while the judge thinks")
def test_typing_while_the_judge_thinks(host: OpencodeServe, daemon: Daemon, llm: ModelServer) -> None:
    """The call is cancelled and its verdict dropped; the agent, busy with the new message, hears nothing of
    the old task.
    """
    session, thinking, working = host.create_session(), slow("Hm"), slow("Working")
    llm.script(*unfinished(), working, session=session.id)
    llm.judge(thinking, COMPLETE)
    session.prompt(REQUEST)
    thinking.wait_started()
    session.prompt_async("Never mind, do something else")
    working.wait_started()
    thinking.wait_hung_up()
    quiet(session, daemon, llm, users=2)
    working.release("did it.")
    done = daemon.wait_verdict(session.id, "complete")
    assert done["task"] == session.users()[1]["info"]["id"]
    assert not session.feedback()
    no_judge_session_left(host, llm)


@pytest.mark.shows("I14", "GUARD-7")
def test_a_judge_that_can_not_be_stopped_is_not_heard(
    host: OpencodeServe, daemon: Daemon, llm: ModelServer
) -> None:
    """The reply comes in the same moment as the person's message; it is about an older task and is
    dropped.
    """
    session, thinking, working = host.create_session(), slow("Hm"), slow("Working")
    llm.script(*unfinished(), working, session=session.id)
    llm.judge(thinking, COMPLETE)
    session.prompt(REQUEST)
    thinking.wait_started()
    session.prompt_async("Never mind, do something else")
    thinking.release(INCOMPLETE)
    working.wait_started()
    a_later_turn(host, daemon, llm)
    assert not session.feedback()
    working.release("did it.")
    daemon.wait_verdict(session.id, "complete")
    assert [is_feedback(m) for m in session.users()] == [False, False]


@pytest.mark.shows("I11", "I12", "GUARD-1")
def test_abort_while_the_judge_thinks(host: OpencodeServe, daemon: Daemon, llm: ModelServer) -> None:
    """The person sends more, then aborts that: neither the old task nor the new one gets feedback."""
    session, thinking, working = host.create_session(), slow("Hm"), slow("Working")
    llm.script(*unfinished(), working, session=session.id)
    llm.judge(thinking)
    session.prompt(REQUEST)
    thinking.wait_started()
    session.prompt_async("Stop")
    working.wait_started()
    session.abort()
    thinking.release(INCOMPLETE)
    daemon.wait_verdict(session.id, "stopped")
    quiet(session, daemon, llm, users=2)
    no_judge_session_left(host, llm)


@pytest.mark.shows("I3")
def test_a_second_idle_while_the_judge_thinks(host: OpencodeServe, daemon: Daemon, llm: ModelServer) -> None:
    """opencode answers an abort of an idle session with another idle and nothing else; the turn is judged
    once.
    """
    session, thinking = host.create_session(), slow("Hm")
    llm.script(*finished(), session=session.id)
    llm.judge(thinking)
    session.prompt(REQUEST)
    thinking.wait_started()
    session.abort()
    host.events.wait("session.idle", session.id, count=2)
    a_later_turn(host, daemon, llm)
    assert len(llm.of("judge")) == 1
    thinking.release(COMPLETE)
    wait_until(lambda: len(daemon.verdicts(session.id)) == 1, "the one verdict", daemon.log)
    a_later_turn(host, daemon, llm)
    assert len(llm.of("judge")) == 1


@pytest.mark.shows("I1", "I37", "GUARD-2")
def test_a_renamed_judge_session_is_still_a_judge(
    host: OpencodeServe, daemon: Daemon, llm: ModelServer
) -> None:
    """With another title it still is not judged, and it is still deleted."""
    session, thinking = host.create_session(), slow("Hm")
    llm.script(*finished(), session=session.id)
    llm.judge(thinking)
    session.prompt(REQUEST)
    thinking.wait_started()
    Session(host, llm.of("judge")[0].session).rename("My own session")
    thinking.release(COMPLETE)
    daemon.wait_verdict(session.id, "complete")
    no_judge_session_left(host, llm)
    assert len(llm.of("judge")) == 1


@pytest.mark.shows("I18")
def test_a_judge_that_breaks_the_form_is_unscored(
    host: OpencodeServe, daemon: Daemon, llm: ModelServer
) -> None:
    """Asked once more, then unscored; nothing is sent."""
    session = host.create_session()
    llm.script(*unfinished(), session=session.id)
    llm.judge(text("It looks fine to me!"), text('{"complete": "maybe"}'))
    session.prompt(REQUEST)
    daemon.wait_verdict(session.id, "unscored")
    assert len(llm.of("judge")) == 2
    quiet(session, daemon, llm, users=1)
    assert not host.toasts()
    no_judge_session_left(host, llm)


@pytest.mark.shows("I23")
def test_two_sessions_are_judged_side_by_side(host: OpencodeServe, daemon: Daemon, llm: ModelServer) -> None:
    """A slow judge of one session does not hold up the other."""
    one, two, thinking = host.create_session(), host.create_session(), slow("Hm")
    llm.script(text("One."), session=one.id)
    llm.script(text("Two."), session=two.id)
    llm.judge(thinking, COMPLETE)
    one.prompt("Say one")
    thinking.wait_started()
    two.prompt("Say two")
    daemon.wait_verdict(two.id, "complete")
    assert verdict_file(host.box.project, one.id) is not None
    thinking.release(COMPLETE)
    daemon.wait_verdict(one.id, "complete")


# --- the same while the second look thinks -----------------------------------------------------------


CANCELLED = [("judge", "host", "ok"), ("judge.second", "host", "cancelled")]


@pytest.mark.shows("I14", "I41")
def test_typing_while_the_second_look_thinks(host: OpencodeServe, daemon: Daemon, llm: ModelServer) -> None:
    """The person is faster than the second call: it is cancelled, the first call's "incomplete" is dropped
    with it, and both calls are in the ledger.
    """
    session, second, working = host.create_session(), slow("Hm"), slow("Working")
    llm.script(*unfinished(), working, session=session.id)
    llm.judge(INCOMPLETE, second, COMPLETE)
    session.prompt(REQUEST)
    second.wait_started()
    session.prompt_async("Never mind, do something else")
    working.wait_started()
    second.wait_hung_up()
    working.release("did it.")
    done = daemon.wait_verdict(session.id, "complete")
    assert done["task"] == session.users()[1]["info"]["id"]
    assert not session.feedback()
    wait_ledger(host.box, session.id, *CANCELLED, ("judge", "host", "ok"))
    no_judge_session_left(host, llm)


@pytest.mark.shows("I11", "I12")
def test_abort_while_the_second_look_thinks(host: OpencodeServe, daemon: Daemon, llm: ModelServer) -> None:
    """Esc in the new turn while the second call on the old one can not be stopped any more: its answer, which
    comes all the same, sends nothing.
    """
    session, second, working = host.create_session(), slow("Hm"), slow("Working")
    llm.script(*unfinished(), working, session=session.id)
    llm.judge(INCOMPLETE, second)
    session.prompt(REQUEST)
    second.wait_started()
    session.prompt_async("Stop")
    working.wait_started()
    session.abort()
    second.release(UNDEFENDED)
    daemon.wait_verdict(session.id, "stopped")
    quiet(session, daemon, llm, users=2)
    wait_ledger(host.box, session.id, *CANCELLED)
    assert not host.toasts()
    no_judge_session_left(host, llm)


@pytest.mark.shows("I36", "I37")
def test_deleted_while_the_second_look_thinks(host: OpencodeServe, daemon: Daemon, llm: ModelServer) -> None:
    """Nobody is left to be told: the call ends, the judge session goes, the agent is not asked."""
    session, second = host.create_session(), slow("Hm")
    llm.script(*unfinished(), session=session.id)
    llm.judge(INCOMPLETE, second)
    session.prompt(REQUEST)
    second.wait_started()
    session.delete()
    second.wait_hung_up()
    wait_ledger(host.box, session.id, *CANCELLED)
    no_judge_session_left(host, llm)
    assert len(llm.of("main", session.id)) == 3
    assert session.id not in {s["id"] for s in host.sessions()}
    assert not host.toasts()


@pytest.mark.shows("I40")
@pytest.mark.main("off is off")
def test_switched_off_while_the_second_look_thinks(
    host: OpencodeServe, daemon: Daemon, llm: ModelServer
) -> None:
    """Off is off, also for what is under way; the sibling is judged on."""
    session, sibling, second = host.create_session(), host.create_session(), slow("Hm")
    llm.script(*unfinished(), session=session.id)
    llm.script(text("One."), session=sibling.id)
    llm.judge(INCOMPLETE, second, COMPLETE)
    session.prompt(REQUEST)
    second.wait_started()
    daemon.call("POST", "/v1/switch", {"session": session.id, "on": False})
    second.wait_hung_up()
    sibling.prompt("Say one")
    daemon.wait_verdict(sibling.id, "complete")
    wait_ledger(host.box, session.id, *CANCELLED)
    quiet(session, daemon, llm, users=1)
    no_judge_session_left(host, llm)

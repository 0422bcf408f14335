"""Stuck agents with the real opencode: who is nudged, who is told, who is left alone (the seed's table).

The daemon's clock is moved (``support.machine.shifted``), never its code; in one test opencode's clock too. A
look at a silent session leaves a line `stuck?` in its log; "nothing happened" is asserted after that line
where there is one.
"""

from __future__ import annotations

import contextlib
import json
import time
from typing import TYPE_CHECKING, Any

import pytest

from harness.hosts.opencode import OpencodeServe, Session, is_feedback, text_of
from harness.hosts.opencode_tui import OpencodeTui
from harness.machine.reflectd import verdict_file
from harness.machine.sandbox import OTHER_MODEL, SHIM
from harness.machine.waiting import wait_until
from harness.models.scripts import COMPLETE, HEADING, REQUEST, finished, unfinished, verdict
from harness.models.server import TITLE, Tool, bash, fail, silent, slow, text
from tests.support.hosts.witness import a_later_turn, quiet
from tests.support.machine.shifted import ShiftedDaemon
from tests.support.models.stuck import (
    connected,
    deaf,
    deaf_plugin,
    known,
    looks,
    pending,
    running,
    says,
    wait_look,
    wait_pending,
    watching,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from harness.machine.sandbox import Sandbox
    from harness.models.server import ModelServer

Json = dict[str, Any]
NUDGE = "## Reflection-3: Continue"
HELD_S = 10.2
AFTER_S = 50  # of silence, not the usual 30: a test may take longer than that on a busy machine
LATER = AFTER_S + 8  # past it, also for an agent at work (5 s more); from 60 s on the clock counts as jumped
TOO_LATE = 3 * AFTER_S  # now it is
CUT_OFF = "The model is there. Now I will change the"
NEXT_STEPS = "The model is there.\n\n## Next Steps\n1. Add the route\n2. Add tests"
BUILD = bash("until [ -f go ]; do sleep 0.1; done; rm go")
UNREADABLE = (text("It looks fine to me!"), text("Really."))
PERMISSION = {"bash": {"*": "allow", "touch *": "ask"}}
BACKED = verdict(
    complete=False,
    severity="HIGH",
    missing=[("the tests do not pass", "")],
    row="`make test` failed",
    next_actions=["make the tests pass"],
)
# a second plugin of the real host: its clock is as many milliseconds ahead as a file says
CLOCK = """
import { readFileSync } from "node:fs"
export default {
  id: "clock",
  server: async () => {
    const now = Date.now.bind(Date)
    let ahead = 0
    const read = () => {
      try { ahead = Number(readFileSync(FILE, "utf8")) } catch { ahead = 0 }
    }
    setInterval(read, 20).unref()
    Date.now = () => now() + ahead
    return {}
  },
}
"""


def clock_plugin(box: Sandbox) -> str:
    """The plugin ``CLOCK`` as an address for the settings of opencode."""
    plugin = box.root / "clock.js"
    plugin.write_text(CLOCK.replace("FILE", json.dumps(str(box.root / "host-ahead"))), "utf-8")
    return plugin.as_uri()


@contextlib.contextmanager
def host_ahead(box: Sandbox, seconds: int) -> Iterator[float]:
    """So many seconds later for opencode: gives that time, in epoch ms. Soon, not at once: wait for an event
    that carries it. A session that is used while the clock is ahead may not be used when it is back: its ids
    would no longer sort by their time.
    """
    file = box.root / "host-ahead"
    new = file.with_suffix(".new")
    new.write_text(str(seconds * 1000), "ascii")
    later = (time.time() + seconds) * 1000
    new.replace(file)
    try:
        yield later
    finally:
        file.unlink()


@pytest.fixture(scope="module")
def module_daemon(box: Sandbox) -> Iterator[ShiftedDaemon]:
    with ShiftedDaemon(box, REFLECTD_JUDGE_PROVIDER="host", REFLECTD_STUCK_AFTER_S=str(AFTER_S)) as serving:
        yield serving


@pytest.fixture(scope="module")
def module_host(
    box: Sandbox, module_daemon: ShiftedDaemon, model_server: ModelServer
) -> Iterator[OpencodeServe]:
    config = {"permission": PERMISSION, "plugin": [clock_plugin(box), deaf_plugin(box), SHIM.as_uri()]}
    with OpencodeServe(box, model_server.url, config=config) as serving:
        yield serving


@pytest.fixture
def daemon(module_daemon: ShiftedDaemon) -> Iterator[ShiftedDaemon]:
    """The module's daemon, at the machine's time."""
    module_daemon.mark()
    module_daemon.shift(0)
    if not module_daemon.running:
        module_daemon.start()
    yield module_daemon
    module_daemon.shift(0)
    module_daemon.new_log()


@pytest.fixture
def opened(host: OpencodeServe, daemon: ShiftedDaemon) -> Iterator[Callable[..., Session]]:
    """Makes sessions that no other test has to think of: they are deleted when the test failed, too. One that
    is left at work ends when the model's script goes, and would be judged in the next test.
    """
    connected(host, daemon)
    made: list[Session] = []

    def open_session(**settings: Any) -> Session:
        made.append(host.create_session(**settings))
        return made[-1]

    yield open_session
    for each in made:
        each.delete()


@pytest.fixture
def session(opened: Callable[..., Session]) -> Session:
    """A session that no other test has to think of afterwards."""
    return opened()


def breaks_off(session: Session, daemon: ShiftedDaemon, llm: ModelServer, words: str = CUT_OFF) -> None:
    """A turn ends with ``words``, the judge's replies are useless, and a look at the idle agent is set."""
    llm.script(text(words), session=session.id)
    llm.judge(*UNREADABLE)
    session.prompt("Add the model, the route and the tests")
    daemon.wait_verdict(session.id, "unscored")
    wait_pending(daemon, session.id, "idle")


def judged(llm: ModelServer) -> int:
    """How often a turn was judged. While the clock is ahead an agent that was woken seems to be silent, and
    may be looked at; that is no judgement, and finds nothing in a reply of another form.
    """
    return sum("genuinely_stuck" not in str(asked.body) for asked in llm.of("judge"))


def untouched(session: Session, daemon: ShiftedDaemon, llm: ModelServer, *, users: int = 1) -> None:
    """Nobody was prompted or told."""
    quiet(session, daemon, llm, users=users)
    assert not session.host.toasts()


# --- left alone: at work, waiting, in trouble of the host's own -----------------------------------------


@pytest.mark.shows("I29")
@pytest.mark.main("no nudge while a build runs")
def test_a_tool_that_runs_longer_than_the_limits(
    session: Session, host: OpencodeServe, daemon: ShiftedDaemon, llm: ModelServer
) -> None:
    """Seed's rows 1 and 5: a shell command of minutes is `working`: no model is asked, nobody is told,
    nothing is sent.
    """
    llm.script(BUILD, text("Built."), session=session.id)
    session.prompt_async("Build it")
    wait_until(lambda: running(session), "running tool", session.outline)
    with daemon.shifted(LATER):
        wait_look(daemon, session.id, "a tool runs: bash until")
    untouched(session, daemon, llm)
    assert llm.of("judge") == []
    llm.judge(COMPLETE)
    (host.box.project / "go").touch()
    daemon.wait_verdict(session.id, "complete")
    assert len(session.users()) == 1


@pytest.mark.shows("I29")
def test_a_question_to_the_user(
    session: Session, host: OpencodeServe, daemon: ShiftedDaemon, llm: ModelServer
) -> None:
    """Seed's row 2: "Which database?" waits for the person: a rule says so, no model is asked."""
    breaks_off(session, daemon, llm, "I can do that. Which database should I use?")
    with daemon.shifted(LATER):
        wait_look(daemon, session.id, "reason=waiting_for_user")
    untouched(session, daemon, llm)
    assert len(llm.of("judge")) == 2


QUESTION: Json = {
    "question": "Which database?",
    "header": "Database",
    "options": [
        {"label": "sqlite", "description": "a file"},
        {"label": "postgres", "description": "a server"},
    ],
}
PROMPTS = {
    "permission": (bash("touch made.txt"), {"reply": "once"}),
    "question": (Tool("question", {"questions": [QUESTION]}), {"answers": [["sqlite"]]}),
}


@pytest.mark.shows("I16", "I29")
@pytest.mark.parametrize("kind", PROMPTS)
def test_the_hosts_own_prompts(
    session: Session, host: OpencodeServe, daemon: ShiftedDaemon, llm: ModelServer, kind: str
) -> None:
    """opencode asks the person itself (`permission.asked`, `question.asked`); as long as nobody answers, the
    silence is the person's.
    """
    step, answer = PROMPTS[kind]
    llm.script(step, text("It is there."), session=session.id)
    session.prompt_async("Make a database")
    (event, *_) = host.events.wait(f"{kind}.asked", session.id)
    wait_until(lambda: known(daemon, session.id).get("waiting"), "open question", daemon.new_log)
    daemon.skip(LATER)
    untouched(session, daemon, llm)
    assert (looks(daemon, session.id), llm.of("judge")) == ([], [])
    llm.judge(COMPLETE)
    host.request("POST", f"/{kind}/{event['properties']['id']}/reply", answer)
    daemon.wait_verdict(session.id, "complete")
    assert len(session.users()) == 1


@pytest.mark.shows("I33")
@pytest.mark.parametrize("status", [429, 500])
def test_a_rate_limited_provider(
    session: Session, host: OpencodeServe, daemon: ShiftedDaemon, llm: ModelServer, status: int
) -> None:
    """opencode backs off from its provider (`retry`) and says nothing meanwhile: not a stuck agent."""
    llm.script(fail(status, "slow down"), text("Two."), session=session.id)
    llm.judge(COMPLETE)
    session.prompt_async("Say two")
    wait_until(lambda: known(daemon, session.id).get("retrying"), "retry of opencode", daemon.new_log)
    daemon.skip(LATER)
    untouched(session, daemon, llm)
    assert looks(daemon, session.id) == []
    daemon.wait_verdict(session.id, "complete")
    assert len(session.users()) == 1


@pytest.mark.shows("I33")
def test_a_provider_that_refuses(
    session: Session, host: OpencodeServe, daemon: ShiftedDaemon, llm: ModelServer
) -> None:
    """The host gave up (HTTP 400): the turn is an error of the host, and no nudge waits for it."""
    llm.script(bash("ls"), fail(400, "bad request"), session=session.id)
    session.prompt("Say two")
    daemon.wait_verdict(session.id, "error")
    assert pending(daemon, session.id) == ""
    daemon.skip(LATER)
    untouched(session, daemon, llm)
    assert (looks(daemon, session.id), llm.of("judge")) == ([], [])


@pytest.mark.shows("I32", "I33")
def test_a_context_that_is_full(
    session: Session, host: OpencodeServe, daemon: ShiftedDaemon, llm: ModelServer
) -> None:
    """The provider refuses a prompt that is too long; opencode compacts and goes on by itself, and nothing of
    ours comes in between or afterwards.
    """
    llm.script(bash("ls"), fail(400, "context length exceeded"), text("Two."), session=session.id)
    llm.judge(COMPLETE)
    session.prompt("Say two")
    done = daemon.wait_verdict(session.id, "complete")
    assert done["task"] == session.users()[0]["info"]["id"]
    assert len(llm.of("compaction")) == 1
    with daemon.shifted(LATER):
        wait_pending(daemon, session.id, "")
    a_later_turn(host, daemon, llm)
    assert not session.feedback()
    assert len(llm.of("judge")) == 1


@pytest.mark.shows("I17")
def test_a_silent_sub_agent(
    session: Session, host: OpencodeServe, daemon: ShiftedDaemon, llm: ModelServer
) -> None:
    """A sub-agent's model hangs: the parent is `working`, the child is nobody's business."""
    hangs = silent("Looking")
    task = {"description": "look", "prompt": "LOOK-AROUND please", "subagent_type": "general"}
    llm.script(Tool("task", task), text("It looked around."), session=session.id)
    llm.script(hangs, marker="LOOK-AROUND")
    session.prompt_async("Have someone look around")
    hangs.wait_started()
    (child,) = session.children()
    wait_until(lambda: running(session), "running task tool", session.outline)
    with daemon.shifted(LATER):
        wait_look(daemon, session.id, "a tool runs: task")
    untouched(session, daemon, llm)
    assert (looks(daemon, child["id"]), llm.of("judge")) == ([], [])
    llm.judge(COMPLETE)
    hangs.release("and found nothing.")
    daemon.wait_verdict(session.id, "complete")
    assert verdict_file(host.box.project, child["id"]) is None
    assert len(llm.of("judge")) == 1


# --- an idle agent that broke off is nudged ---------------------------------------------------------------


@pytest.mark.shows("I4", "I5", "I31")
@pytest.mark.main("a stuck agent is helped on")
def test_cut_off_in_the_middle_of_a_sentence(
    opened: Callable[..., Session], daemon: ShiftedDaemon, llm: ModelServer
) -> None:
    """Seed's row 3: finished for the host, but mid-sentence: one nudge reaches the agent, as the person's own
    agent and model; it opens no task, the agent goes on, and the next idle is judged.
    """
    session = opened(agent="careful", model=OTHER_MODEL)
    breaks_off(session, daemon, llm)
    llm.script(*finished(), session=session.id)
    llm.judge(says("genuinely_stuck", "You broke off before the route."), always=COMPLETE)
    with daemon.shifted(LATER):
        person, nudge = session.wait_users(2)
    assert text_of(nudge).startswith(NUDGE)
    assert "You broke off before the route." in text_of(nudge)
    (part,) = nudge["parts"]
    assert part["metadata"]["reflectd"]["order"].startswith("rfl_")
    same = ("agent", "model")
    assert [nudge["info"][k] for k in same] == [person["info"][k] for k in same]
    done = daemon.wait_verdict(session.id, "complete")
    assert done["task"] == person["info"]["id"]
    assert daemon.verdicts(session.id)[0]["attempt"] == 0
    assert len(session.users()) == 2
    assert judged(llm) == 3


@pytest.mark.shows("I31")
def test_next_steps_listed_and_stopped(
    session: Session, host: OpencodeServe, daemon: ShiftedDaemon, llm: ModelServer
) -> None:
    """Seed's row 4: "Next Steps" that belong to the task, and nothing more: nudged once."""
    breaks_off(session, daemon, llm, NEXT_STEPS)
    llm.script(*finished(), session=session.id)
    llm.judge(says("genuinely_stuck"), always=COMPLETE)
    with daemon.shifted(LATER):
        nudge = session.wait_users(2)[1]
    assert "You stopped before the task was finished." in text_of(nudge)
    daemon.wait_verdict(session.id, "complete")
    assert len(session.users()) == 2


@pytest.mark.shows("I30")
@pytest.mark.parametrize("reason", ["unreadable", "complete"])
def test_a_look_that_finds_nothing_sends_nothing(
    session: Session, host: OpencodeServe, daemon: ShiftedDaemon, llm: ModelServer, reason: str
) -> None:
    """The fast model says that all is well, or nothing that can be read: no nudge, nobody is told."""
    breaks_off(session, daemon, llm)
    llm.judge(text("Hm.") if reason == "unreadable" else says(reason))
    with daemon.shifted(LATER):
        wait_look(daemon, session.id, f"reason={'unknown' if reason == 'unreadable' else reason}")
    untouched(session, daemon, llm)


@pytest.mark.shows("I4", "I8")
def test_feedback_that_nothing_follows(
    session: Session, host: OpencodeServe, daemon: ShiftedDaemon, llm: ModelServer
) -> None:
    """The host stores the feedback and starts no turn (a second plugin makes the real binary do that:
    `noReply`): one nudge after 30 s, by rule and without a model; then the agent goes on and is judged.

    For 10 s the shim counts a session that it has prompted as busy. It goes by its own clock, which neither a
    setting nor the clock of the daemon changes; so this test waits that long.
    """
    flag = deaf(host.box)
    flag.touch()
    try:
        llm.script(*unfinished(), session=session.id)
        llm.judge(BACKED)
        session.prompt(REQUEST)
        feedback = session.wait_users(2)[1]
        assert text_of(feedback).startswith(HEADING)
        wait_pending(daemon, session.id, "nudge")
        time.sleep(HELD_S)
        assert (len(session.users()), session.busy()) == (2, False), "an agent that does nothing"
    finally:
        flag.unlink()
    llm.script(*finished(), session=session.id)
    llm.judge(always=COMPLETE)
    with daemon.shifted(LATER):
        wait_until(lambda: len(session.users()) == 3, "the nudge", daemon.log)
    nudge = session.users()[2]
    assert "feedback above is still open" in text_of(nudge)
    assert is_feedback(nudge)
    done = daemon.wait_verdict(session.id, "complete")
    assert done["task"] == session.users()[0]["info"]["id"]
    assert (len(session.users()), judged(llm)) == (3, 2)


# --- what takes a nudge away ------------------------------------------------------------------------------


@pytest.mark.shows("I10", "I14")
def test_a_typed_message_takes_a_nudge_away(
    session: Session, host: OpencodeServe, daemon: ShiftedDaemon, llm: ModelServer
) -> None:
    """The person went on: the nudge for the older task is gone, and nothing comes for it."""
    breaks_off(session, daemon, llm)
    llm.script(BUILD, text("Built."), session=session.id)
    session.prompt_async("Never mind, build it")
    wait_until(lambda: running(session), "running tool", session.outline)
    wait_pending(daemon, session.id, "")
    with daemon.shifted(LATER):
        wait_look(daemon, session.id, "a tool runs: bash until")
    untouched(session, daemon, llm, users=2)
    llm.judge(COMPLETE)
    (host.box.project / "go").touch()
    daemon.wait_verdict(session.id, "complete")
    assert len(session.users()) == 2


@pytest.mark.shows("I11")
def test_escape_takes_a_nudge_away(
    session: Session, host: OpencodeServe, daemon: ShiftedDaemon, llm: ModelServer
) -> None:
    """A nudged agent is stopped with Esc: no second nudge, no look, nothing, also when time goes by."""
    breaks_off(session, daemon, llm)
    working = slow("Working")
    llm.script(working, session=session.id)
    # while the clock is ahead the woken agent seems to be silent too, and may be looked at
    llm.judge(says("genuinely_stuck"), always=says("working"))
    with daemon.shifted(LATER):
        session.wait_users(2)
    working.wait_started()
    session.abort()
    daemon.wait_verdict(session.id, "stopped")
    asked = len(llm.of("judge"))
    assert pending(daemon, session.id) == ""
    daemon.skip(LATER)
    untouched(session, daemon, llm, users=2)
    assert len(llm.of("judge")) == asked


@pytest.mark.shows("I11")
def test_escape_at_an_idle_agent(
    session: Session, host: OpencodeServe, daemon: ShiftedDaemon, llm: ModelServer
) -> None:
    """opencode answers an abort of an idle session with one more idle and nothing else: whoever stops that
    agent does not want it to be woken.
    """
    breaks_off(session, daemon, llm)
    session.abort()
    host.events.wait("session.idle", session.id, count=2)
    wait_pending(daemon, session.id, "")
    daemon.skip(LATER)
    untouched(session, daemon, llm)
    assert len(llm.of("judge")) == 2


# --- restarts ---------------------------------------------------------------------------------------------


@pytest.mark.shows("I35", "I42")
def test_killed_with_a_pending_nudge(
    session: Session, host: OpencodeServe, daemon: ShiftedDaemon, llm: ModelServer
) -> None:
    """SIGKILL while a nudge waits; the next daemon, there in time, sends it once."""
    breaks_off(session, daemon, llm)
    daemon.kill9()
    daemon.start()
    connected(host, daemon)
    assert pending(daemon, session.id) == "idle"
    llm.script(*finished(), session=session.id)
    llm.judge(says("genuinely_stuck"), always=COMPLETE)
    with daemon.shifted(LATER):
        session.wait_users(2)
    daemon.wait_verdict(session.id, "complete")
    quiet(session, daemon, llm, users=2)
    assert judged(llm) == 3


@pytest.mark.shows("I35")
def test_back_too_late(
    session: Session, host: OpencodeServe, daemon: ShiftedDaemon, llm: ModelServer
) -> None:
    """The machine slept, or nobody started the daemon: a nudge overdue by more than its length is dropped,
    and the turn keeps its verdict.
    """
    breaks_off(session, daemon, llm)
    daemon.kill9()
    daemon.shift(TOO_LATE)
    daemon.start()
    connected(host, daemon)
    wait_until(lambda: "timer dropped" in daemon.new_log(), "dropped timer", daemon.new_log)
    daemon.shift(0)
    untouched(session, daemon, llm)
    wait_pending(daemon, session.id, "")
    assert [v["state"] for v in daemon.verdicts(session.id)] == ["unscored"]
    assert len(llm.of("judge")) == 2


# --- an agent that counts as working ------------------------------------------------------------------------


@pytest.mark.shows("I10", "I29")
def test_a_long_answer_and_a_model_that_stopped(
    opened: Callable[..., Session],
    session: Session,
    host: OpencodeServe,
    daemon: ShiftedDaemon,
    llm: ModelServer,
) -> None:
    """Two agents that were asked too long ago. One streams a long answer, from which the host says nothing
    but deltas: working. The other's model stopped in the middle: the person is told, by a toast, the verdict
    file and `reflectd watch`; it is not prompted. When it went on, it is judged as ever.

    The clock of the host is moved first, and the daemon's when it has heard the answer go on. So the daemon
    sees a minute of silence of one agent and none of the other, and no step has to be done within seconds.
    """
    streams, hangs, other = slow("Once"), silent("Let me"), opened()
    llm.script(streams, session=other.id)
    llm.script(hangs, session=session.id)
    llm.judge(says("genuinely_stuck"))
    other.prompt_async("Tell a long story")
    session.prompt_async("Change the route")
    for each in (session, other):
        host.events.wait("message.part.delta", each.id)
        wait_until(lambda each=each: known(daemon, each.id).get("title") == TITLE, "title", daemon.new_log)
    with host_ahead(host.box, LATER) as later:
        wait_until(lambda: known(daemon, other.id)["active_at"] >= later, "later delta", daemon.new_log)
        with watching(daemon) as lines, daemon.shifted(LATER):
            toast = host.wait_toast("The agent seems stuck: scripted")
            assert toast["variant"] == "warning"
            told = daemon.wait_verdict(session.id, "stuck")
            assert (told["complete"], told["feedback"]) == (False, "The agent seems stuck: scripted")
            (line,) = wait_until(lambda: [x for x in lines() if x["state"] == "stuck"], "line", daemon.log)
            assert (line["session"], line["feedback"]) == (session.id, told["feedback"])
            a_later_turn(host, daemon, llm)
        assert len(host.toasts()) == 1
        assert looks(daemon, other.id) == []
        assert [len(s.users()) for s in (session, other)] == [1, 1]
        llm.judge(COMPLETE, COMPLETE)
        hangs.release("change it. Done.")
        streams.release("upon a time.")
        for each in (session, other):
            daemon.wait_verdict(each.id, "complete")
        assert not session.feedback()


@pytest.mark.shows("I8", "I10")
def test_a_loop_is_told_then_named_then_stopped(
    session: Session, host: OpencodeServe, daemon: ShiftedDaemon, llm: ModelServer
) -> None:
    """The same command with the same result, eight times: the person is told once while the agent works; at
    idle the feedback names what repeats; when it goes on all the same, no model is asked any more.
    """
    again, waits = bash("make test"), slow("Trying")
    llm.script(*unfinished(*[again] * 7, waits), session=session.id)
    llm.judge(BACKED)
    session.prompt_async(REQUEST)
    waits.wait_started()
    host.wait_toast("The agent repeats itself")
    quiet(session, daemon, llm, users=1)
    assert len(host.toasts()) == 1
    assert llm.of("judge") == []
    llm.script(*[again] * 4, text("Still failing."), session=session.id)
    waits.release("and stopping.")
    feedback = text_of(session.wait_users(2)[1])
    assert "You repeat yourself" in feedback
    assert "make test" in feedback
    daemon.wait_verdict(session.id, "stopped")
    host.wait_toast("repeats itself although it was told")
    assert daemon.verdicts(session.id)[0]["reason"] == "guard:loop"
    quiet(session, daemon, llm, users=2)
    assert len(llm.of("judge")) == 1


# --- in the terminal ----------------------------------------------------------------------------------------


@pytest.mark.shows("I10", "I11")
def test_the_person_sees_it_and_presses_escape(box: Sandbox, daemon: ShiftedDaemon, llm: ModelServer) -> None:
    """The TUI shows the toast while the model hangs; Esc ends it, and nothing comes afterwards."""
    hangs = silent("Let me")
    llm.script(hangs)
    llm.judge(says("genuinely_stuck"))
    with OpencodeTui(box, llm.url) as tui:
        tui.watch("The agent seems stuck")
        tui.ask("Change the route")
        hangs.wait_started()
        tui.wait_for("Let me")
        session = llm.of("main")[0].session
        # the host names the session beside its first answer; on a busy machine that may come later
        wait_until(lambda: known(daemon, session).get("title") == TITLE, "title", daemon.new_log)
        with daemon.shifted(LATER):
            wait_look(daemon, session, "genuinely_stuck")
            tui.wait_for("The agent seems stuck")
        tui.interrupt()
        daemon.wait_verdict(session, "stopped")
        assert pending(daemon, session) == ""
        daemon.skip(LATER)
        llm.script(text("It prints hello."))
        llm.judge(COMPLETE)
        tui.ask("What does hello.py do?")
        tui.wait_for("It prints hello.")
        daemon.wait_verdict(session, "complete")
        assert NUDGE not in tui.screen
    assert (len(llm.of("main")), len(llm.of("judge"))) == (2, 2)

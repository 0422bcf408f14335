"""The seed's decision flow below PARSE VERDICT, one row per branch, and what the host is told."""

from __future__ import annotations

from dataclasses import replace

import pytest

from daemon.core.guards import Limits, Skip
from daemon.core.orders import SendFeedback, ShowToast
from daemon.core.session import Session
from daemon.core.transcript import Model
from daemon.core.verdict import JudgedBy, Judgement, Missing, Severity
from daemon.judge.decide import HEADING, Decision, Round, decide, is_cited, skip
from daemon.judge.flow import Opinion
from daemon.testing import make_case

SESSION = Session(id="ses_1", task="msg_1", turn="msg_2", phase="judging")
OPEN = (Missing("the tests fail", "E2"),)


def run(judgement: Judgement | None, session: Session = SESSION, limits: Limits | None = None) -> Decision:
    case = make_case(agent="plan-b", model=Model("acme", "m1"))
    r = Round(session, case, limits or Limits(), at=5, by=JudgedBy())
    return decide(r, Opinion(judgement, "why", provider="scripted"))


def said(complete: bool, severity: str = "NONE", **more: object) -> Judgement:
    return Judgement(complete, Severity(severity), **more)  # type: ignore[arg-type]


FLOW = [
    # complete → toast, never a prompt (I2), whatever the severity below BLOCKER
    (said(True), "complete", "Task complete"),
    (said(True, "LOW", feedback="docs not updated"), "complete", "Task complete: docs not updated"),
    (said(True, "MEDIUM", missing=OPEN), "complete", "Task complete: the tests fail"),
    (said(True, "HIGH", feedback="x"), "complete", "Task complete: x"),
    # BLOCKER forces incomplete (I20), whatever `complete` says
    (said(True, "BLOCKER", feedback="the key is in the log"), "incomplete", "feedback"),
    (said(False, "BLOCKER", feedback="the key is in the log"), "incomplete", "feedback"),
    # incomplete, NONE, nothing missing → the person is awaited
    (said(False), "awaiting_user", "Awaiting user input"),
    # NONE with missing items is incomplete and not skipped (I19)
    (said(False, "NONE", missing=OPEN), "incomplete", "feedback"),
    (said(False, "LOW", feedback="rename it"), "incomplete", "feedback"),
    (said(False, "MEDIUM", missing=OPEN), "incomplete", "feedback"),
    (said(False, "HIGH", missing=OPEN), "incomplete", "feedback"),
    # only a person can go on → awaited; something left for the agent → sent (I15)
    (said(False, "HIGH", missing=OPEN, requires_human_action=True), "awaiting_user", "Awaiting user input"),
    (
        said(False, "HIGH", missing=OPEN, requires_human_action=True, next_actions=("run the tests",)),
        "incomplete",
        "feedback",
    ),
    # nothing that could be parsed, or nothing that is cited → unscored and quiet (I18)
    (None, "unscored", ""),
    (said(False, "HIGH", missing=(Missing("invented", "E99"),)), "unscored", ""),
    (said(False, "MEDIUM"), "unscored", ""),  # it does not say what
]


@pytest.mark.parametrize(("judgement", "state", "told"), FLOW)
def test_decision_flow(judgement: Judgement | None, state: str, told: str) -> None:
    """I2, I15, I18, I19, I20: every branch of the seed's flow."""
    decision = run(judgement)
    assert decision.verdict.state == state
    assert decision.session.phase == state
    assert decision.session.final == "msg_2"
    prompts = [o for o in decision.orders if isinstance(o, SendFeedback)]
    toasts = [o.message for o in decision.orders if isinstance(o, ShowToast)]
    assert len(prompts) == (1 if told == "feedback" else 0)
    assert toasts == ([told] if told not in {"", "feedback"} else [])
    assert decision.verdict.will_prompt == bool(prompts)
    assert decision.session.attempts == len(prompts)


def test_feedback_text_and_target() -> None:
    """The first line is what consumers search for; agent and model are the person's; items cite rows."""
    judgement = said(
        False, "HIGH", missing=OPEN, next_actions=("run `pytest -q`",), feedback="Two tests fail."
    )
    (order,) = run(judgement).orders
    assert isinstance(order, SendFeedback)
    assert order.text.splitlines()[0] == f"{HEADING} (HIGH)"
    assert "Two tests fail." in order.text
    assert "1. the tests fail (E2: `pytest -q` failed: 2 failed)" in order.text
    assert "- run `pytest -q`" in order.text
    assert "round 1 of at most 16" in order.text
    assert (order.agent, order.model) == ("plan-b", Model("acme", "m1"))
    assert (order.task, order.turn) == ("msg_1", "msg_2")


def test_observe_mode_records_and_sends_nothing() -> None:
    """`mode = "observe"` decides, records, and sends nothing."""
    decision = run(said(False, "HIGH", missing=OPEN), limits=Limits(observe=True))
    assert (decision.verdict.state, decision.orders, decision.session.attempts) == ("incomplete", (), 0)


def test_toasts_can_be_switched_off() -> None:
    """The setting `toasts = false` leaves verdicts alone and shows nothing."""
    assert run(said(True), limits=Limits(toasts=False)).orders == ()


def test_sixteen_attempts_stop() -> None:
    """Guard 5: the seventeenth round is not sent; the person is told."""
    at_cap = replace(SESSION, attempts=16, calls=0, open_items=("other",))
    decision = run(said(False, "HIGH", missing=OPEN), at_cap)
    assert decision.verdict.state == "stopped"
    assert decision.verdict.reason == "guard:max_attempts"
    assert [type(o) for o in decision.orders] == [ShowToast]


def test_two_rounds_without_tool_activity_stop() -> None:
    """I8: feedback, nothing done, feedback, nothing done → stop and tell."""
    session, states = SESSION, []
    for n in range(3):
        items = (Missing(f"thing {n}", "E2"),)
        decision = run(said(False, "HIGH", missing=items), replace(session, phase="judging", final=""))
        states.append(decision.verdict.state)
        session = decision.session
    assert states == ["incomplete", "incomplete", "stopped"]
    assert session.reason == "no_activity"


def test_same_open_items_twice_stop() -> None:
    """I8: tool activity, but the same open items after two rounds of feedback → stop and tell."""
    session, states = SESSION, []
    for n in range(3):
        case = make_case(evidence=replace(make_case().evidence, tool_calls=3 + n))
        items = (Missing(f"The tests fail ({n}.2 s)", "E2"),)
        opinion = Opinion(said(False, "HIGH", missing=items))
        state = replace(session, phase="judging", final="")
        decision = decide(Round(state, case, Limits(), 5, JudgedBy()), opinion)
        states.append(decision.verdict.state)
        session = decision.session
    assert states == ["incomplete", "incomplete", "stopped"]
    assert session.reason == "same_items"


def test_progress_resets_the_breaker() -> None:
    """A test-fix cycle whose items change goes on."""
    session, states = SESSION, []
    for n in range(6):
        case = make_case(evidence=replace(make_case().evidence, tool_calls=3 + n))
        opinion = Opinion(said(False, "HIGH", missing=(Missing(f"{9 - n} tests fail", "E2"),)))
        state = replace(session, phase="judging", final="")
        decision = decide(Round(state, case, Limits(), 5, JudgedBy()), opinion)
        states.append(decision.verdict.state)
        session = decision.session
    assert states == ["incomplete"] * 6
    assert session.attempts == 6


def test_three_unscored_rounds_stop() -> None:
    """I18, guard 5: unscored is quiet; the third in a row stops the task and tells once."""
    session, told = SESSION, []
    for _ in range(3):
        decision = run(None, replace(session, phase="judging"))
        told.append((decision.verdict.state, len(decision.orders)))
        session = decision.session
    assert told == [("unscored", 0), ("unscored", 0), ("stopped", 1)]


@pytest.mark.parametrize(
    ("cites", "found"),
    [
        ("E2", True),
        ("E99", False),
        ("run the tests", True),
        ('"Run  the\nTESTS"', True),
        ("deploy it", False),
        ("a", False),
        ("", False),
    ],
)
def test_citations(cites: str, *, found: bool) -> None:
    """An item counts when it names a row or quotes the request word for word."""
    assert is_cited(Missing("x", cites), make_case()) is found


def test_skip_writes_only_final_states() -> None:
    """A guard that ends the turn writes a verdict; one that does not writes nothing."""
    quiet = skip(SESSION, "msg_2", Skip("child_session", ""), 5, Limits())
    assert quiet is None
    told = skip(SESSION, "msg_2", Skip("max_attempts", "", final="stopped", tell="Stopped"), 5, Limits())
    assert told is not None
    assert told.verdict.state == "stopped"
    assert [o.message for o in told.orders if isinstance(o, ShowToast)] == ["Stopped"]

"""The seed's decision flow below PARSE VERDICT, one row per branch, and what the host is told."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from daemon.core.evidence import Evidence, FileChange, Row
from daemon.core.guards import Limits, Skip
from daemon.core.orders import SendFeedback, ShowToast
from daemon.core.session import Session
from daemon.core.transcript import Model
from daemon.core.verdict import NO_PROOF, JudgedBy, Judgement, Missing, Severity
from daemon.judge.decide import FEEDBACK_CHARS, HEADING, UNJUDGED, Decision, Round, decide, skip
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


@pytest.mark.shows("I2", "I15", "I18", "I19", "I20")
@pytest.mark.parametrize(("judgement", "state", "told"), FLOW)
def test_decision_flow(judgement: Judgement | None, state: str, told: str) -> None:
    """Every branch of the seed's flow."""
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


def test_feedback_has_an_end() -> None:
    """A judge that writes for ever is cut; what to do when it is wrong still stands at the end."""
    missing = tuple(Missing("x" * 5_000, "E2") for _ in range(20))
    (order,) = run(said(False, "HIGH", missing=missing, feedback="z" * 50_000)).orders
    assert isinstance(order, SendFeedback)
    assert len(order.text) < FEEDBACK_CHARS + 400
    assert "characters are left out)" in order.text
    assert "say so in one sentence" in order.text.splitlines()[-1]


def test_observe_mode_records_and_sends_nothing() -> None:
    """`mode = "observe"` decides, records, and sends nothing."""
    decision = run(said(False, "HIGH", missing=OPEN), limits=Limits(observe=True))
    assert (decision.verdict.state, decision.orders, decision.session.attempts) == ("incomplete", (), 0)


def test_toasts_can_be_switched_off() -> None:
    """The setting `toasts = false` leaves verdicts alone and shows nothing."""
    assert run(said(True), limits=Limits(toasts=False)).orders == ()


@pytest.mark.shows("GUARD-5")
def test_sixteen_attempts_stop() -> None:
    """The seventeenth round is not sent; the person is told."""
    at_cap = replace(SESSION, attempts=16, open_items=("other",))
    decision = run(said(False, "HIGH", missing=OPEN), at_cap)
    assert decision.verdict.state == "stopped"
    assert decision.verdict.reason == "guard:max_attempts"
    assert [type(o) for o in decision.orders] == [ShowToast]


def rounds(*items: Missing, files: int, fewer_fail: bool = False) -> tuple[list[str], Session]:
    """The states of rounds with one open item each; in ``files`` of them a file changes once more. The check
    says the same each time, unless ``fewer_fail``.
    """
    session, states = SESSION, []
    for n, item in enumerate(items):
        evidence = make_case().evidence
        if fewer_fail:
            told = (replace(row, text=f"{row.text}: {9 - n} tests fail") for row in evidence.rows)
            evidence = replace(evidence, rows=tuple(told))
        changes = (FileChange("a.py", "edited", added=min(n, files)),)
        case = make_case(evidence=replace(evidence, tool_calls=3 + n, files=changes))
        opinion = Opinion(said(False, "HIGH", missing=(item,)))
        state = replace(session, phase="judging", final="")
        decision = decide(Round(state, case, Limits(), 5, JudgedBy()), opinion)
        states.append(decision.verdict.state)
        session = decision.session
    return states, session


STALLED = {  # the item of each round, how many rounds change a file, the reason
    "the agent only looks around": (tuple(Missing(f"thing {n}", "E2") for n in range(3)), 0, "no_progress"),
    "items by turns": (tuple(Missing("x", c) for c in ("E2", "Add a login page", "E2")), 0, "no_progress"),
    "the same item": (
        tuple(Missing(f"The tests of a.py fail ({n}.2 s)", "E2") for n in range(3)),
        9,
        "same_items",
    ),
    "other words, a scratch file": (
        tuple(Missing(w, "E2") for w in ("the tests fail", "two are red", "not green yet")),
        9,
        "no_progress",
    ),
}


@pytest.mark.shows("I8", "GUARD-6")
@pytest.mark.parametrize(("items", "files", "reason"), STALLED.values(), ids=STALLED)
def test_two_rounds_without_progress_stop(items: tuple[Missing, ...], files: int, reason: str) -> None:
    """Other words for the same cite, and a change of a file that no item cites, are none; the same open items
    stop it even where the file in question changes.
    """
    states, session = rounds(*items, files=files)
    assert states == ["incomplete", "incomplete", "stopped"]
    assert (session.reason, session.attempts) == (reason, 2)


@pytest.mark.shows("GUARD-6")
def test_progress_resets_the_breaker() -> None:
    """A test-fix cycle in which fewer tests fail each time goes on."""
    items = (Missing(f"{9 - n} tests fail", "E2") for n in range(6))
    states, session = rounds(*items, files=9, fewer_fail=True)
    assert states == ["incomplete"] * 6
    assert session.attempts == 6


def test_what_a_terminal_would_obey_is_not_sent() -> None:
    """The judge's words reach agent and person without control characters."""
    decision = run(said(False, "HIGH", missing=(Missing("\x1b[31mthe tests\x1b[0m fail\x07", "E2"),)))
    (order,) = decision.orders
    assert isinstance(order, SendFeedback)
    assert "[31mthe tests[0m fail" in order.text
    assert not {"\x1b", "\x07"} & set(order.text)


@pytest.mark.shows("I18", "GUARD-5")
def test_three_unscored_rounds_stop() -> None:
    """Unscored is quiet; the third in a row stops the task and tells once."""
    session, told = SESSION, []
    for _ in range(3):
        decision = run(None, replace(session, phase="judging"))
        told.append((decision.verdict.state, len(decision.orders)))
        session = decision.session
    assert told == [("unscored", 0), ("unscored", 0), ("stopped", 1)]


def test_no_proof_is_a_reason_of_its_own() -> None:
    """Nobody judged, nothing proves it: unscored, without a reward, with words that say so at most. Guard 5
    counts judges that fail: any number of these stops nothing, and hides no failure before.
    """
    session = replace(SESSION, unscored=1)
    opinion = Opinion(None, "no check passed", provider="offline", no_proof=True)
    for _ in range(9):
        r = Round(replace(session, phase="judging"), make_case(), Limits(), at=5, by=JudgedBy())
        decision = decide(r, opinion)
        session, verdict = decision.session, decision.verdict
        assert (verdict.state, session.phase, session.unscored) == ("unscored", "unscored", 1)
        assert (verdict.reason, verdict.reward) == (f"{NO_PROOF}: no check passed", None)
        assert [o.message for o in decision.orders if isinstance(o, ShowToast)] == [UNJUDGED]
        assert (len(decision.orders), verdict.will_prompt) == (1, False)
    assert decide(replace(r, limits=Limits(toasts=False)), opinion).orders == ()


@pytest.mark.parametrize(("detail", "toasts"), [("pushed", 1), ("committed", 0)])
def test_the_person_is_told_to_rotate_what_was_pushed(detail: str, toasts: int) -> None:
    """The agent can stop tracking the file, the person make the secret worthless. Told once a task."""
    row = Row("E1", "leak", "`.env` was committed", "failed", open=True, detail=detail, command=".env")
    case = make_case(evidence=Evidence(rows=(row,), tool_calls=3))
    found = said(False, "BLOCKER", missing=(Missing("`.env` is tracked", "E1"),))
    decision = decide(Round(SESSION, case, Limits(), at=5, by=JudgedBy()), Opinion(found, provider="offline"))
    assert decision.verdict.state == "incomplete"
    told = [o for o in decision.orders if isinstance(o, ShowToast)]
    assert len(told) == toasts
    assert all(".env. Rotate the secrets in it" in o.message and o.variant == "error" for o in told)
    again = decide(Round(decision.session, case, Limits(), at=6, by=JudgedBy()), Opinion(found))
    assert not [o for o in again.orders if isinstance(o, ShowToast)]


def test_skip_writes_only_final_states() -> None:
    """A guard that ends the turn writes a verdict; one that does not writes nothing."""
    quiet = skip(SESSION, "msg_2", Skip("child_session", ""), 5, Limits())
    assert quiet is None
    told = skip(SESSION, "msg_2", Skip("max_attempts", "", final="stopped", tell="Stopped"), 5, Limits())
    assert told is not None
    assert told.verdict.state == "stopped"
    assert [o.message for o in told.orders if isinstance(o, ShowToast)] == ["Stopped"]

"""The judge flow, driven by hand: what it asks, when it asks again, and how it ends."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.core.errors import BadReply, Unavailable
from daemon.core.evidence import Evidence, Row, ending
from daemon.core.llm import Prompt, Reply
from daemon.core.verdict import Judgement, Missing, Severity
from daemon.judge.flow import judge
from daemon.judge.prompts import first, judgement
from daemon.testing import make_case
from tests.support.questions import NONCE, driven

COMPLETE = {"complete": True, "severity": "NONE"}
REQUEST = "Add a login page and run the tests"
UNPROVEN = {
    "complete": False,
    "severity": "HIGH",
    "missing": [{"item": "The page is missing", "cites": "Add a login page"}],
    "feedback": "Add the page.",
}
PROVEN = UNPROVEN | {"missing": [{"item": "Tests fail", "cites": "E2"}]}
ASKS = {"complete": False, "severity": "NONE", "requires_human_action": True}
QUIET = Evidence(rows=(Row("R1", "requirement", REQUEST),), tool_calls=3, writes=1)
Said = dict[str, Any] | str | Exception


def purposes(asked: list[Prompt]) -> list[str]:
    return [p.purpose for p in asked]


def test_one_good_reply_is_enough() -> None:
    """One call, one opinion, with who judged; the rules of the prompt are the same from call to call."""
    opinion, (prompt,) = driven(judge(make_case(evidence=QUIET)), COMPLETE)
    assert prompt.nonce == NONCE
    assert NONCE in prompt.text
    assert NONCE not in prompt.system
    assert opinion.judgement is not None
    assert opinion.judgement.complete
    assert (opinion.provider, opinion.model, opinion.cost) == ("scripted", "script", None)


@pytest.mark.shows("I18")
@pytest.mark.parametrize(
    "change",
    [
        {"complete": "yes"},
        {"complete": None},
        {"severity": "CRITICAL"},
        {"severity": 3},
        {"severity": None},
        {"missing": "x"},
        {"missing": [3]},
        {"next_actions": [{"a": 1}]},
        {"requires_human_action": "maybe"},
        {"feedback": ["x"]},
    ],
    ids=str,
)
def test_a_reply_of_another_form_is_refused(change: dict[str, Any]) -> None:
    """Off-menu values and wrong types never count, in structured output either."""
    with pytest.raises(BadReply):
        first(make_case()).read(Reply("", "t", data=UNPROVEN | change))


def test_what_a_judgement_takes_over() -> None:
    """Texts are stripped and bounded, blank items go; nobody reads what makes the model think first."""
    data = {"complete": True, "requirements": {"a": 1}, "reasons": 3, "nonce": None}
    case = make_case()
    read = first(case).read
    assert judgement(read(Reply("", "t", data=data)), case) == Judgement(complete=True)
    data |= {"missing": ["", None, " x ", {"item": "y" * 9_999, "cites": "E1"}], "next_actions": ["a"] * 99}
    found = judgement(read(Reply("", "t", data=data)), case)
    assert found is not None
    assert found.missing == (Missing("x"), Missing("y" * 4_000, "E1"))
    assert len(found.next_actions) == 20


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10), inner, max_size=4),
    max_leaves=10,
)


@pytest.mark.shows("I18")
@given(st.dictionaries(st.sampled_from([*UNPROVEN, "next_actions", "requires_human_action"]), values))
def test_any_object_is_read_or_refused(data: dict[str, Any]) -> None:
    """Wrong types anywhere in structured output never crash and never count."""
    case = make_case()
    with contextlib.suppress(BadReply):
        assert isinstance(judgement(first(case).read(Reply("", "t", data=data)), case), Judgement)


@pytest.mark.shows("I18", "I48")
def test_a_bad_reply_is_asked_for_once_more() -> None:
    """Garbage, asked once more, then unscored with the reason; both replies are kept."""
    opinion, asked = driven(judge(make_case()), "no idea", "still no idea")
    assert purposes(asked) == ["judge", "judge.again"]
    assert asked[0].text in asked[1].text
    assert opinion.judgement is None
    assert "no judge object" in opinion.why
    assert [r.text for r in opinion.replies] == ["no idea", "still no idea"]
    assert [b.raw for b in opinion.bad] == ["no idea", "still no idea"]
    assert {b.provider for b in opinion.bad} == {"scripted"}


@pytest.mark.shows("I18")
def test_a_truncated_reply_is_asked_for_once_more() -> None:
    """A provider that cut its answer off is asked again; the piece is kept."""
    opinion, asked = driven(judge(make_case(evidence=QUIET)), BadReply("cut off", raw='{"comp'), COMPLETE)
    assert purposes(asked) == ["judge", "judge.again"]
    assert opinion.judgement is not None
    assert [b.raw for b in opinion.bad] == ['{"comp']


@pytest.mark.parametrize("says", [(), ("rubbish",), (UNPROVEN,)], ids=["first", "again", "second look"])
def test_a_provider_that_fails_leaves_the_turn_unscored(says: tuple[Said, ...]) -> None:
    """Failures are open and quiet: no verdict comes out of an error, whichever call it hits."""
    opinion, _ = driven(judge(make_case(evidence=QUIET)), *says, Unavailable("model down"))
    assert opinion.judgement is None
    assert "model down" in opinion.why


def test_feedback_that_no_row_proves_gets_a_second_look() -> None:
    """Only when the stop cannot be defended does the feedback stand."""
    opinion, asked = driven(judge(make_case(evidence=QUIET)), UNPROVEN, {"defended": False, "reasons": "No."})
    assert purposes(asked) == ["judge", "judge.second"]
    assert "The page is missing (cites: Add a login page)" in asked[1].text
    assert asked[1].system != asked[0].system
    assert opinion.judgement is not None
    assert not opinion.judgement.complete
    assert len(opinion.replies) == 2


def test_a_defended_stop_is_complete() -> None:
    """The two looks disagree, so nothing is sent; what was found is kept for the toast."""
    said = {"defended": True, "reasons": "It was optional."}
    opinion, _ = driven(judge(make_case(evidence=QUIET)), UNPROVEN, said)
    found = opinion.judgement
    assert found is not None
    assert (found.complete, found.severity, found.feedback) == (True, Severity.LOW, "It was optional.")
    assert found.missing[0].text == "The page is missing"


@pytest.mark.shows("I20")
def test_a_danger_is_never_complete() -> None:
    """A BLOCKER whose stop is defended ends unscored."""
    said = {"defended": True, "reasons": "Fine."}
    opinion, _ = driven(judge(make_case(evidence=QUIET)), UNPROVEN | {"severity": "BLOCKER"}, said)
    assert opinion.judgement is None
    assert "danger" in opinion.why


@pytest.mark.shows("I18")
@pytest.mark.parametrize("said", ["what?", '{"defended": "maybe"}', '{"defended": true}'])
def test_an_unreadable_second_look_sends_nothing(said: str) -> None:
    """No second look, no feedback; also when the nonce is missing. The reply is kept."""
    opinion, _ = driven(judge(make_case(evidence=QUIET)), UNPROVEN, said)
    assert opinion.judgement is None
    assert opinion.bad[0].purpose == "judge.second"


@pytest.mark.parametrize(
    "first",
    [PROVEN, ASKS, {"complete": False, "severity": "NONE"}, UNPROVEN | {"missing": ["nothing cited"]}],
    ids=["proven by a row", "the person's turn", "nothing missing", "no item is cited"],
)
def test_no_second_look_where_nothing_unproven_is_sent(first: dict[str, Any]) -> None:
    """A row that proves it needs no second opinion; what prompts nobody needs none either."""
    opinion, asked = driven(judge(make_case()), first)
    assert purposes(asked) == ["judge"]
    assert opinion.judgement is not None


def test_the_second_look_can_be_switched_off() -> None:
    """A strong judge is not asked twice."""
    opinion, asked = driven(
        judge(make_case(evidence=QUIET), second_look=lambda provider, model: False), UNPROVEN
    )
    assert purposes(asked) == ["judge"]
    assert opinion.judgement is not None
    assert not opinion.judgement.complete


@pytest.mark.shows("I24")
def test_complete_against_a_failed_check_is_asked_again() -> None:
    """ "complete" cannot stand against a failed check after the last write; the row is named."""
    opinion, asked = driven(judge(make_case()), COMPLETE, PROVEN)
    assert purposes(asked) == ["judge", "judge.again"]
    assert "E2: `pytest -q` failed: 2 failed" in asked[1].text
    assert opinion.judgement is not None
    assert not opinion.judgement.complete


@pytest.mark.shows("I24", "I27")
def test_complete_twice_against_a_failed_check_is_unscored() -> None:
    """Whatever talks the judge round, the row wins; nothing is sent."""
    opinion, _ = driven(judge(make_case()), COMPLETE, COMPLETE)
    assert opinion.judgement is None
    assert "against E2" in opinion.why


@pytest.mark.shows("I25")
@pytest.mark.parametrize(
    ("asked", "tools", "final", "calls"),
    [
        ("What does this function return?", 0, "A list.", 0),
        ('"What does this function return?"', 0, "A list.", 0),
        ("この関数は何を返しますか\uff1f", 0, "リストです。", 0),
        ("ماذا تعيد هذه الدالة\u061f", 0, "قائمة.", 0),
        ("What does this function return?", 2, "A list.", 1),
        ("What does this function return?", 0, "Which one?", 1),
        ("Why does it fail? Fix it, please", 0, "A list.", 1),
        ("Add a page", 0, "Done.", 1),
        ("What is it?", 0, " ", 1),
    ],
)
def test_a_question_answered_without_tools_costs_nothing(
    asked: str, tools: int, final: str, calls: int
) -> None:
    """One message that ends with a question mark, no tool, an answer: complete without a call. Anything else
    is judged.
    """
    case = make_case(
        requests=(asked,), final=final, evidence=Evidence(tool_calls=tools, ending=ending(final))
    )
    opinion, prompts = driven(judge(case), *[COMPLETE] * calls)
    assert len(prompts) == calls
    assert opinion.judgement is not None
    assert (opinion.provider == "rules") is (calls == 0)


@pytest.mark.shows("I24")
def test_a_failed_check_that_the_person_excluded() -> None:
    """Complete against a failed check stands where the judge cites the person's words for it, at once or
    when it is asked again; a mere repetition does not.
    """
    excused = COMPLETE | {"excused": [{"item": "E2", "cites": "run the tests"}]}
    opinion, asked = driven(judge(make_case()), excused)
    assert (purposes(asked), opinion.judgement and opinion.judgement.complete) == (["judge"], True)
    opinion, asked = driven(judge(make_case()), COMPLETE, excused)
    assert purposes(asked) == ["judge", "judge.again"]
    assert opinion.judgement is not None
    made_up = COMPLETE | {"excused": [{"item": "E2", "cites": "the tests are flaky"}]}
    opinion, _ = driven(judge(make_case()), COMPLETE, made_up)
    assert opinion.judgement is None


def test_what_rules_prove_needs_no_second_look() -> None:
    """The fixed rules cite rows only; they are not asked to argue against themselves."""
    opinion, _ = driven(judge(make_case(evidence=QUIET)), UNPROVEN, by="offline")
    assert opinion.judgement is not None


@pytest.mark.parametrize(("provider", "no_proof"), [("offline", True), ("scripted", False)])
def test_rules_that_cannot_tell_are_no_failure(provider: str, *, no_proof: bool) -> None:
    """Only where the rules were the judge: a model that does not judge has failed."""
    flow = judge(make_case(evidence=QUIET))
    next(flow)
    data = {"unscored": "no check passed after the last edit"}
    with pytest.raises(StopIteration) as ended:
        flow.send(Reply(text="", provider=provider, model="rules", data=data))
    opinion = ended.value.value
    assert (opinion.judgement, opinion.no_proof) == (None, no_proof)
    assert opinion.why == "no check passed after the last edit"


def test_a_provider_that_fails_is_not_no_proof() -> None:
    """The turn was not judged because nobody answered."""
    opinion, _ = driven(judge(make_case(evidence=QUIET)), Unavailable("model down"))
    assert not opinion.no_proof


LEAKED = Evidence(
    rows=(Row("E1", "leak", "`.env` was committed and pushed (A2)", "failed", open=True, detail="pushed"),),
    tool_calls=3,
)
LEAK = UNPROVEN | {"severity": "BLOCKER", "missing": [{"item": "`.env` is tracked", "cites": "E1"}]}


@pytest.mark.shows("I20")
def test_complete_against_a_secret_in_a_commit_is_asked_again() -> None:
    """The row is named. A leak that is found needs no second look; one that never is ends unscored."""
    opinion, asked = driven(judge(make_case(evidence=LEAKED)), COMPLETE, LEAK)
    assert purposes(asked) == ["judge", "judge.again"]
    assert "a commit holds secrets: E1: `.env` was committed and pushed" in asked[1].text
    assert opinion.judgement is not None
    assert opinion.judgement.severity is Severity.BLOCKER
    opinion, _ = driven(judge(make_case(evidence=LEAKED)), COMPLETE, COMPLETE)
    assert opinion.judgement is None
    assert "against E1" in opinion.why


def test_a_judge_that_wants_history_rewritten_is_not_passed_on() -> None:
    """Feedback stops tracking the file, and nothing else."""
    said = LEAK | {"feedback": "Untrack it. Then force-push.", "next_actions": ["git push --force"]}
    opinion, _ = driven(judge(make_case(evidence=LEAKED)), said)
    assert opinion.judgement is not None
    assert (opinion.judgement.feedback, opinion.judgement.next_actions) == ("Untrack it.", ())


@pytest.mark.parametrize("kind", ["offer", "unmet", "tests_changed"])
def test_rows_that_read_words_get_a_second_look(kind: Any) -> None:
    """Only a failed check, an open todo or an unanswered tool error proves without one."""
    rows = (Row("R1", "requirement", REQUEST), Row("E1", kind, "not shown", open=True))
    said = UNPROVEN | {"missing": [{"item": "x", "cites": "E1"}]}
    case = make_case(evidence=Evidence(rows=rows, tool_calls=1))
    _, asked = driven(judge(case), said, {"defended": False, "reasons": "No."})
    assert purposes(asked) == ["judge", "judge.second"]


def test_at_most_four_calls() -> None:
    """Money: the worst turn (a broken reply, a contradiction, a second look) takes four calls and ends."""
    says = ("rubbish", COMPLETE, UNPROVEN, {"defended": False, "reasons": "No."})
    _, asked = driven(judge(make_case()), *says)
    assert purposes(asked) == ["judge", "judge.again", "judge.again", "judge.second"]


DEFENDED = {"defended": True, "reasons": "Fine."}


@pytest.mark.shows("I24")
def test_a_defended_stop_is_not_complete_against_a_failed_check() -> None:
    """The model cites the request, the second look defends, but a check failed after the last edit."""
    opinion, _ = driven(judge(make_case()), UNPROVEN, DEFENDED)
    assert opinion.judgement is None
    assert "E2 failed" in opinion.why


def test_what_is_proven_stays_when_the_rest_is_defended() -> None:
    """A proven item takes no unproven ones along."""
    both = [{"item": "Tests fail", "cites": "E2: 2 failed"}, {"item": "No page", "cites": "a login page"}]
    said = UNPROVEN | {"missing": both, "next_actions": ["Write the page"]}
    opinion, asked = driven(judge(make_case()), said, DEFENDED)
    assert purposes(asked) == ["judge", "judge.second"]
    assert opinion.judgement is not None
    assert [m.text for m in opinion.judgement.missing] == ["Tests fail"]
    assert opinion.judgement.next_actions == ()


@pytest.mark.shows("I15")
def test_a_stop_defended_because_a_person_is_needed_waits() -> None:
    """It is the person's turn, not complete."""
    said = UNPROVEN | {"requires_human_action": True, "next_actions": ["Log in"]}
    opinion, _ = driven(judge(make_case(evidence=QUIET)), said, DEFENDED)
    found = opinion.judgement
    assert found is not None
    assert (found.complete, found.requires_human_action, found.missing) == (False, True, ())

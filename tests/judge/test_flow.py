"""The judge flow, driven by hand: what it asks, and how it ends."""

from __future__ import annotations

from daemon.core.errors import Unavailable
from daemon.judge.flow import Opinion, judge
from daemon.testing import make_case, reply


def end(flow: object, value: object) -> Opinion:
    try:
        flow.send(value)  # type: ignore[attr-defined]
    except StopIteration as stop:
        assert isinstance(stop.value, Opinion)
        return stop.value
    raise AssertionError("the flow asked again")


def test_one_good_reply_is_enough() -> None:
    """One call, one opinion, with who judged."""
    case = make_case()
    flow = judge(case)
    prompt = next(flow)
    assert prompt.nonce == case.nonce
    assert case.nonce in prompt.system
    opinion = end(flow, reply({"complete": True}, case.nonce))
    assert opinion.judgement is not None
    assert opinion.judgement.complete
    assert (opinion.provider, opinion.cost) == ("scripted", None)


def test_a_bad_reply_is_asked_for_once_more() -> None:
    """I18: garbage, then asked once more, then unscored with the reason and both replies kept."""
    case = make_case()
    flow = judge(case)
    first = next(flow)
    second = flow.send(reply("no idea"))
    assert second == first
    opinion = end(flow, reply("still no idea"))
    assert opinion.judgement is None
    assert "no verdict object" in opinion.why
    assert [r.text for r in opinion.replies] == ["no idea", "still no idea"]


def test_a_provider_that_fails_leaves_the_turn_unscored() -> None:
    """Failures are open and quiet: no verdict comes out of an error."""
    flow = judge(make_case())
    next(flow)
    try:
        flow.throw(Unavailable("model down"))
    except StopIteration as stop:
        assert stop.value.judgement is None
        assert "model down" in stop.value.why
    else:
        raise AssertionError("the flow asked again")


def test_the_prompt_holds_rows_requests_and_the_end() -> None:
    """I28: requests are numbered, earlier ones are context; the last 4,000 characters show."""
    case = make_case(
        requests=("Add a page", "with tests, please"),
        earlier=("What is this repo?",),
        final="x" * 5000 + "END",
        open_items=("tests fail",),
    )
    text = next(judge(case)).text
    assert "(context, an earlier request) What is this repo?" in text
    assert "1. Add a page\n2. with tests, please" in text
    assert "E2 [check failed] `pytest -q` failed: 2 failed" in text
    assert "tests fail" in text
    assert text.count("x") < 4100
    assert "END" in text


def test_data_with_braces_and_fences_stays_data() -> None:
    """Braces and template names in the data are not filled in again."""
    case = make_case(final="{nonce} {requests} {{x}}")
    assert "{nonce} {requests} {{x}}" in next(judge(case)).text

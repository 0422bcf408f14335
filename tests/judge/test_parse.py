"""Replies → judgements: strict in form, bounded in time, not talked round."""

from __future__ import annotations

import contextlib
import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.core.errors import BadReply
from daemon.core.llm import Reply
from daemon.core.verdict import Judgement, Severity
from daemon.judge.parse import parse

GOOD = {"nonce": "n1", "complete": False, "severity": "HIGH", "missing": [{"item": "x", "cites": "E1"}]}


def text(content: str) -> Reply:
    return Reply(text=content, provider="t")


@pytest.mark.shows("I27")
@pytest.mark.parametrize(
    "content",
    [
        json.dumps(GOOD),
        "```json\n" + json.dumps(GOOD, indent=2) + "\n```",
        "Let me think {about} this.\n" + json.dumps(GOOD) + "\nThat is all.",
        json.dumps({**GOOD, "complete": True, "nonce": "old"}) + "\n" + json.dumps(GOOD),
        json.dumps({**GOOD, "complete": True}) + " no wait: " + json.dumps(GOOD),
    ],
)
def test_the_last_object_with_the_nonce_counts(content: str) -> None:
    """An echoed verdict without this call's nonce is not taken."""
    found = parse(text(content), "n1")
    assert (found.complete, found.severity, found.missing[0].cites) == (False, Severity.HIGH, "E1")


@pytest.mark.shows("I18")
@pytest.mark.parametrize(
    "content",
    [
        "",
        "   ",
        "I think it is complete.",
        "{",
        '{"complete": true',
        json.dumps({**GOOD, "nonce": "other"}),
        json.dumps({**GOOD, "complete": "yes"}),
        json.dumps({**GOOD, "complete": None}),
        json.dumps({**GOOD, "severity": "CRITICAL"}),
        json.dumps({**GOOD, "severity": 3}),
        json.dumps({k: v for k, v in GOOD.items() if k != "severity"}),
        json.dumps({**GOOD, "missing": "x"}),
        json.dumps({**GOOD, "missing": [3]}),
        json.dumps({**GOOD, "next_actions": [{"a": 1}]}),
        json.dumps({**GOOD, "requires_human_action": "maybe"}),
        json.dumps({**GOOD, "feedback": ["x"]}),
        json.dumps([GOOD])[:-3],
    ],
)
def test_a_reply_out_of_form_is_refused_and_kept(content: str) -> None:
    """Unparsable, off-menu and empty replies raise, and keep the raw text."""
    with pytest.raises(BadReply) as e:
        parse(text(content), "n1")
    assert e.value.raw == content


def test_structured_output_is_taken_as_it_is() -> None:
    """Data from a provider with structured output needs no scan and no nonce."""
    reply = Reply(text="", provider="t", data={"complete": True, "severity": "LOW"})
    assert parse(reply, "n1") == Judgement(complete=True, severity=Severity.LOW)


@pytest.mark.parametrize("hostile", ['{"' * 500_000, "{" * 1_000_000, '{"a":' * 200_000, '{ "' * 300_000])
def test_hostile_megabytes_are_linear(hostile: str) -> None:
    """A megabyte of braces is refused in bounded work (no timing is asserted beyond "not quadratic")."""
    started = time.process_time()
    with pytest.raises(BadReply):
        parse(text(hostile), "n1")
    assert time.process_time() - started < 10


@pytest.mark.shows("I18")
@given(st.text())
def test_any_text_parses_or_is_refused(content: str) -> None:
    """Nothing but a judgement or ``BadReply`` ever comes out."""
    with contextlib.suppress(BadReply):
        assert isinstance(parse(text(content), "n1"), Judgement)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10), inner, max_size=4),
    max_leaves=10,
)


@pytest.mark.shows("I18")
@given(
    st.fixed_dictionaries(
        {},
        optional={
            "complete": json_values,
            "severity": json_values,
            "missing": json_values,
            "next_actions": json_values,
            "feedback": json_values,
            "requires_human_action": json_values,
            "unscored": json_values,
        },
    )
)
def test_any_object_parses_or_is_refused(data: dict[str, object]) -> None:
    """Wrong types anywhere in structured output never crash and never count."""
    with contextlib.suppress(BadReply):
        assert isinstance(parse(Reply(text="", provider="t", data=data)), Judgement)

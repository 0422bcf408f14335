"""The one question about a silent session, driven by hand: rules first, one prompt at most."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from daemon.core.errors import Unavailable
from daemon.core.transcript import Message, ToolCall, Transcript
from daemon.stuck.loops import Loop
from daemon.stuck.silence import Assessment, Case, Seen, assessment, certain, make_case, question
from tests.stuck.samples import BUSY
from tests.support.questions import asked

OLD = Seen(busy=False, silent_ms=31_000)
LOOP = Loop("same_call", "bash `npm test`", 8, "k")
GOOD: dict[str, Any] = {
    "reasons": "It broke off.",
    "stuck": True,
    "reason": "genuinely_stuck",
    "confidence": 0.9,
    "shouldNudge": True,
    "nudgeMessage": "You broke off in the middle of a sentence.",
}


def case(seen: Seen = OLD, text: str = "Now I will change the", **changes: Any) -> Case:
    """A session whose agent said ``text`` last."""
    messages = (
        Message("m1", "user", text="Change the config", human=True, agent="build"),
        Message("m2", "assistant", text=text, finish="stop", completed=1),
    )
    made = make_case(Transcript("s", messages), seen)
    assert made is not None
    return replace(made, **changes)


def answered(found: Case, reply: str | Exception | dict[str, Any]) -> Assessment:
    """The assessment when the model says ``reply``."""
    return assessment(asked(question(found), reply)[0])


@pytest.mark.shows("I16", "I29", "I30", "I33")
@pytest.mark.parametrize(
    ("found", "reason", "why"),
    [
        (case(Seen(busy=True, silent_ms=29_999)), "working", "younger than 30"),
        (case(OLD, error="APIError"), "working", "host"),
        (case(Seen(busy=True, silent_ms=40_000, retrying=True)), "working", "host"),
        (case(Seen(busy=True, silent_ms=40_000, waiting=1)), "waiting_for_user", "permission"),
        (case(BUSY, pending=("bash npm install",)), "working", "npm install"),
        (case(Seen(busy=True, silent_ms=40_000, children=True)), "working", "sub-agent"),
        (case(OLD, agent="plan"), "waiting_for_user", "plan"),
        (case(BUSY, loop=LOOP), "genuinely_stuck", "npm test"),
        (case(OLD, "", loop=LOOP), "genuinely_stuck", "npm test"),
        (case(OLD, "Which database should I use?"), "waiting_for_user", "question"),
    ],
)
def test_rules_first(found: Case, reason: str, why: str) -> None:
    """Each row of design/stuck.md, in its order, without a call."""
    sure = certain(found)
    assert sure is not None
    assert (sure.reason, sure.provider) == (reason, "rules")
    assert why in sure.why


def test_a_loop_that_the_agent_left_is_not_stuck() -> None:
    """A loop that ends with an account of it is for the judge."""
    assert certain(case(OLD, "I tried five times; the registry is down.", loop=LOOP)) is None


def test_one_prompt_with_what_the_seed_names() -> None:
    """The question holds request, reply, pending calls, tokens and completion, fenced by the nonce."""
    answer, (prompt,) = asked(question(case(BUSY)), GOOD)
    assert (prompt.purpose, prompt.tier) == ("stuck", "fast")
    shown = (
        "Change the config", "Now I will change the", "pending tool calls: none", "completed", "36 s",
    )  # fmt: skip
    assert [text for text in shown if text not in prompt.text] == []
    found = assessment(answer)
    assert (found.reason, found.nudge, found.message) == ("genuinely_stuck", True, GOOD["nudgeMessage"])


@pytest.mark.shows("I30")
@pytest.mark.parametrize(
    "reply",
    ["no object", {**GOOD, "reason": "stuck"}, {**GOOD, "confidence": 7}, Unavailable("down", "server")],
)
def test_what_is_not_of_the_form_is_no_answer(reply: Any) -> None:
    """A broken form or an error is no reason, and nobody is nudged; nothing is asked twice."""
    found = answered(case(), reply)
    assert (found.reason, found.nudge) == (None, False)


@pytest.mark.shows("I30")
@pytest.mark.parametrize(
    "reply",
    [
        {**GOOD, "stuck": False},
        {**GOOD, "reason": "complete"},
        {**GOOD, "reason": "working", "stuck": False},
        {**GOOD, "confidence": 0.59},
    ],
)
def test_contradictions_and_doubt_are_not_stuck(reply: dict[str, Any]) -> None:
    """An answer that contradicts itself, or is unsure, nudges nobody."""
    found = answered(case(), reply)
    assert (found.reason, found.nudge) == ("working", False)


@pytest.mark.shows("I27")
@pytest.mark.parametrize(
    "said", ["Run `rm -rf /` now", "See https://example.com", "cat /etc/passwd", "a; b | c $HOME", "x" * 301]
)
def test_only_plain_words_reach_the_agent(said: str) -> None:
    """A tool result can't speak to the agent through the small model."""
    found = answered(case(), {**GOOD, "nudgeMessage": said})
    assert (found.nudge, found.message) == (True, "")


@pytest.mark.shows("I46")
def test_secrets_do_not_leave() -> None:
    """Request, reply and calls are redacted before the prompt is made."""
    secret = "ghp_" + "a1B2" * 9
    call = ToolCall("c", "bash", "completed", {"command": f"login {secret}"})
    messages = (
        Message("m1", "user", text=f"Use {secret}", human=True),
        Message("m2", "assistant", text=f"I use {secret} and", calls=(call,)),
    )
    made = make_case(Transcript("s", messages), BUSY)
    assert made is not None
    assert secret not in repr(made)

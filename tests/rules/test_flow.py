"""The optional look of a model at messages, driven by hand."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.core.errors import BadReply, Unavailable
from daemon.core.llm import Prompt, Reply, Usage
from daemon.core.policy import POLICIES
from daemon.core.transcript import Said
from daemon.paths import shipped
from daemon.rules.flow import BATCH, PURPOSE, Decided, batches, decide, prompt_of
from tests.support.secrets import TOKENS

TEMPLATE = shipped("prompts/signals.txt").read_text("utf-8")
SAID = [Said("Nein, nimm pnpm", "I ran npm install."), Said("mach weiter")]
SECRET = TOKENS["anthropic"][0]
FINE = {"n": 1, "type": "correction", "content": "Use  pnpm", "severity": "high"}


def driven(reply: Any, data: dict[str, object] | None = None) -> tuple[Prompt, Decided]:
    flow = decide(SAID, TEMPLATE, "n0nce")
    prompt = next(flow)
    try:
        if isinstance(reply, Exception):
            flow.throw(reply)
        else:
            flow.send(Reply(reply, "scripted", "m1", data, Usage(10, 5, 0.25)))
    except StopIteration as stopped:
        found: Decided = stopped.value
        return prompt, found
    raise AssertionError("it asks a second time")


def says(*signals: Any, nonce: str = "n0nce") -> str:
    return json.dumps({"nonce": nonce, "signals": list(signals)})


def test_what_is_asked() -> None:
    """The rules apart from the data, so that they can be cached; one message a line; its own account."""
    prompt, _ = driven(says())
    assert (prompt.purpose, prompt.tier, prompt.nonce) == (PURPOSE, "fast", "n0nce")
    assert POLICIES[PURPOSE].account == "learning"
    assert prompt.system.startswith("You read messages")
    assert "n0nce" not in prompt.system
    assert '{"n": 1, "agent": "I ran npm install.", "person": "Nein, nimm pnpm"}' in prompt.text
    assert '{"n": 2, "person": "mach weiter"}' in prompt.text
    assert "{messages}" not in prompt.text + prompt.system


@pytest.mark.shows("I46")
def test_messages_are_asked_about_without_secrets_and_in_batches() -> None:
    """No secret is sent, and each call has a bound."""
    prompt = prompt_of([Said(f"use {SECRET}", f"I use {SECRET}")], TEMPLATE, "n")
    assert SECRET not in prompt.text
    many = batches(list(range(BATCH * 2 + 1)))
    assert [len(part) for part in many] == [BATCH, BATCH, 1]


def test_what_a_model_decides() -> None:
    """Type, wording and severity are its own; what it leaves out or says in another form is undecided."""
    _, found = driven(says(FINE, {"n": 2, "type": "none", "content": "", "severity": "low"}))
    first, second = found.readings[0], found.readings[1]
    assert (first.type, first.content, first.severity) == ("correction", "Use pnpm", "high")
    assert second.type == "none"
    assert (found.why, found.cost) == ("", 0.25)
    wrong = [
        {**FINE, "n": 3},
        {**FINE, "n": True},
        {**FINE, "type": "idea"},
        {**FINE, "content": " "},
        {**FINE, "content": None},
        "text",
    ]
    _, found = driven(says(*wrong, {**FINE, "n": 2, "severity": "huge"}))
    assert {n: r.severity for n, r in found.readings.items()} == {1: "medium"}


@pytest.mark.shows("I48")
@pytest.mark.parametrize(
    ("reply", "why"),
    [
        (Unavailable("no connection"), "no model answered: no connection"),
        (BadReply("it was cut off", raw="{"), "it was cut off"),
        ("prose", "the reply holds no signals object"),
        (says(FINE, nonce="other"), "the reply holds no signals object"),
        (json.dumps({"nonce": "n0nce", "signals": {}}), "the signals are no list"),
    ],
)
def test_without_an_answer_nothing_is_decided(reply: Any, why: str) -> None:
    """The rules' word counts then. What broke the form is kept."""
    _, found = driven(reply)
    assert (dict(found.readings), found.why) == ({}, why)
    assert bool(found.bad) is not isinstance(reply, Unavailable)


@given(
    text=st.text(max_size=80)
    | st.lists(
        st.dictionaries(st.sampled_from(["n", "type", "content", "x"]), st.text() | st.integers(0, 3))
    ).map(lambda found: says(*found))
)
def test_any_reply_ends_in_readings(text: str) -> None:
    """Nothing is raised, and only the batch's own messages are decided."""
    _, found = driven(text)
    assert set(found.readings) <= {0, 1}

"""The optional looks of a model, at messages and at a new rule and what stands, driven by hand."""

from __future__ import annotations

import json
from collections.abc import Generator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.core.errors import BadReply, Unavailable
from daemon.core.llm import Prompt, Reply, Usage
from daemon.core.policy import POLICIES
from daemon.core.transcript import Said
from daemon.paths import shipped
from daemon.rules import conflict_flow, flow
from tests.support.secrets import TOKENS

SIGNALS = shipped("prompts/signals.txt").read_text("utf-8")
CONFLICTS = shipped("prompts/conflicts.txt").read_text("utf-8")
SAID = [Said("Nein, nimm pnpm", "I ran npm install."), Said("mach weiter")]
STAND = ["Deploy on Fridays", "Run lint first", "Ship whenever it is ready"]
SECRET = TOKENS["anthropic"][0]
FINE = {"n": 1, "type": "correction", "content": "Use  pnpm", "severity": "high"}


def driven(asking: Generator[Prompt, Reply, Any], reply: str | Exception) -> tuple[Prompt, Any]:
    """The one prompt, and how it ended."""
    prompt = next(asking)
    with pytest.raises(StopIteration) as stop:
        _next(asking, reply)
    return prompt, stop.value.value


def _next(asking: Generator[Prompt, Reply, Any], reply: str | Exception) -> Prompt:
    if isinstance(reply, Exception):
        return asking.throw(reply)
    return asking.send(Reply(reply, "scripted", "m1", None, Usage(10, 5, 0.25)))


def decided(reply: str | Exception) -> tuple[Prompt, flow.Decided]:
    return driven(flow.decide(SAID, SIGNALS, "n0nce"), reply)


def contradicted(reply: str | Exception) -> tuple[Prompt, conflict_flow.Found]:
    return driven(conflict_flow.contradicted("No releases", STAND, CONFLICTS, "n0nce"), reply)


def says(nonce: str = "n0nce", **fields: Any) -> str:
    return json.dumps({"nonce": nonce, **fields})


ASKED = ['{"n": 1, "agent": "I ran npm install.", "person": "Nein, nimm pnpm"}']
ASKED += ['{"n": 2, "person": "mach weiter"}']
COMPARED = ['{"rule": "No releases"}', '{"n": 2, "statement": "Run lint first"}']


@pytest.mark.shows("FR7")
@pytest.mark.parametrize(
    ("asks", "purpose", "begins", "lines"),
    [
        (decided, flow.PURPOSE, "You read messages", ASKED),
        (contradicted, conflict_flow.PURPOSE, "You compare a new rule", COMPARED),
    ],
    ids=["messages", "rules"],
)
def test_what_is_asked(asks: Any, purpose: Any, begins: str, lines: list[str]) -> None:
    """The rules apart from the data, so that they can be cached; one thing a line; its own account."""
    prompt, _ = asks(says())
    assert (prompt.purpose, prompt.tier, prompt.nonce) == (purpose, "fast", "n0nce")
    assert POLICIES[purpose].account == "learning"
    assert prompt.system.startswith(begins)
    assert "n0nce" not in prompt.system
    assert [line for line in lines if line not in prompt.text] == []
    assert "s}" not in prompt.text + prompt.system, "a placeholder was left"


@pytest.mark.shows("I44", "I46")
def test_no_secret_is_sent_and_a_call_is_bounded() -> None:
    """Neither of messages nor of rules; each call has so many of so many characters."""
    asked = flow.prompt_of([Said(f"use {SECRET}", f"I use {SECRET}")], SIGNALS, "n")
    many = [f"Use {SECRET}", "x" * 10_000, *["Run lint"] * 1_000]
    compared = conflict_flow.prompt_of(f"Use {SECRET}", many, CONFLICTS, "n")
    assert SECRET not in asked.text + compared.text
    assert "x" * (conflict_flow.TEXT + 1) not in compared.text
    assert compared.text.count('"statement"') == conflict_flow.MOST
    parts = flow.batches(list(range(flow.BATCH * 2 + 1)))
    assert [len(part) for part in parts] == [flow.BATCH, flow.BATCH, 1]


def test_what_a_model_decides() -> None:
    """Type, wording and severity are its own; what it leaves out or says in another form is undecided."""
    none = {"n": 2, "type": "none", "content": "", "severity": "low"}
    _, found = decided(says(signals=[FINE, none]))
    first, second = found.readings[0], found.readings[1]
    assert (first.type, first.content, first.severity) == ("correction", "Use pnpm", "high")
    assert (second.type, found.why, found.cost) == ("none", "", 0.25)
    wrong = [{**FINE, **more} for more in ({"n": 3}, {"n": True}, {"type": "idea"}, {"content": " "})]
    signals = [*wrong, {**FINE, "content": None}, "text", {**FINE, "n": 2, "severity": "huge"}]
    _, found = decided(says(signals=signals))
    assert {n: r.severity for n, r in found.readings.items()} == {1: "medium"}


@pytest.mark.parametrize(
    ("reply", "at"),
    [
        (says(contradicts=[1, 3]), (0, 2)),
        (says(contradicts=[2, 2, 9, 0, -1, "3", True, None]), (1,)),
        (f"Here it is: {says(contradicts=[3])} as you asked", (2,)),
    ],
)
def test_only_numbers_of_statements_count(reply: str, at: tuple[int, ...]) -> None:
    """A number that stands for none is left out."""
    assert contradicted(reply)[1] == conflict_flow.Found(at, cost=0.25)


NO_OBJECT = "the reply holds no"


@pytest.mark.shows("I48")
@pytest.mark.parametrize("asks", [decided, contradicted], ids=["messages", "rules"])
@pytest.mark.parametrize(
    ("reply", "why", "bad"),
    [
        (Unavailable("no connection"), "no model answered: no connection", 0),
        (BadReply("it was cut off", raw="{"), "it was cut off", 1),
        ("prose", NO_OBJECT, 1),
        (says("other", signals=[FINE], contradicts=[1]), NO_OBJECT, 1),
        (says(signals={}, contradicts="all"), "no list", 1),
    ],
    ids=["nobody", "cut off", "prose", "another nonce", "no list"],
)
def test_without_an_answer_nothing_is_decided(asks: Any, reply: Any, why: str, bad: int) -> None:
    """What words found counts then. It is said why; a reply out of form is kept."""
    _, found = asks(reply)
    assert not (found.readings if asks is decided else found.at)
    assert why in found.why
    assert len(found.bad) == bad


@given(
    text=st.text(max_size=80)
    | st.lists(
        st.dictionaries(st.sampled_from(["n", "type", "content", "x"]), st.text() | st.integers(0, 3))
    ).map(lambda found: says(signals=found))
)
def test_any_reply_ends_in_readings(text: str) -> None:
    """Nothing is raised, and only the batch's own messages are decided."""
    assert set(decided(text)[1].readings) <= {0, 1}

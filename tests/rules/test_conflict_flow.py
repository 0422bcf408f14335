"""The optional look of a model at a new rule and what stands, driven by hand."""

from __future__ import annotations

import json
from typing import Any

import pytest

from daemon.core.errors import BadReply, Unavailable
from daemon.core.llm import Prompt, Reply, Usage
from daemon.core.policy import POLICIES
from daemon.paths import shipped
from daemon.rules.conflict_flow import MOST, PURPOSE, TEXT, Found, contradicted, prompt_of
from tests.support.secrets import TOKENS

TEMPLATE = shipped("prompts/conflicts.txt").read_text("utf-8")
STAND = ["Deploy on Fridays", "Run lint first", "Ship whenever it is ready"]
SECRET = TOKENS["anthropic"][0]


def driven(reply: Any, data: dict[str, object] | None = None) -> tuple[Prompt, Found]:
    flow = contradicted("No releases before the weekend", STAND, TEMPLATE, "n0nce")
    prompt = next(flow)
    try:
        if isinstance(reply, Exception):
            flow.throw(reply)
        else:
            flow.send(Reply(reply, "scripted", "m1", data, Usage(10, 5, 0.25)))
    except StopIteration as stopped:
        found: Found = stopped.value
        return prompt, found
    raise AssertionError("it asks a second time")


def says(*numbers: Any, nonce: str = "n0nce") -> str:
    return json.dumps({"nonce": nonce, "contradicts": list(numbers)})


@pytest.mark.shows("FR7")
def test_what_is_asked() -> None:
    """The rules apart from the data, the new rule and each statement on a line of its own."""
    prompt, found = driven(says(1, 3))
    assert (prompt.purpose, prompt.tier, prompt.nonce) == (PURPOSE, "fast", "n0nce")
    assert POLICIES[PURPOSE].account == "learning"
    assert prompt.system.startswith("You compare a new rule")
    assert "n0nce" not in prompt.system
    assert '{"rule": "No releases before the weekend"}' in prompt.text
    assert '{"n": 2, "statement": "Run lint first"}' in prompt.text
    assert "{statements}" not in prompt.text + prompt.system
    assert found == Found((0, 2), cost=0.25)


@pytest.mark.shows("I44", "I46")
def test_no_secret_is_sent_and_a_call_is_bounded() -> None:
    """A call has so many statements of so many characters, and no secret."""
    prompt = prompt_of(f"Use {SECRET}", [f"Use {SECRET}", "x" * 10_000, *["Run lint"] * 1_000], TEMPLATE, "n")
    assert SECRET not in prompt.text
    assert "x" * (TEXT + 1) not in prompt.text
    assert prompt.text.count('"statement"') == MOST


@pytest.mark.parametrize(
    ("reply", "at"),
    [
        (says(), ()),
        (says(2, 2, 9, 0, -1, "3", True, None), (1,)),
        (f"Here it is: {says(3)} as you asked", (2,)),
    ],
)
def test_only_numbers_of_statements_count(reply: str, at: tuple[int, ...]) -> None:
    """A number that stands for none is left out."""
    assert driven(reply)[1].at == at


@pytest.mark.shows("I48")
@pytest.mark.parametrize(
    ("reply", "why", "bad"),
    [
        (Unavailable("no network"), "no model answered: no network", 0),
        (BadReply("cut off", raw="{"), "cut off", 1),
        ("I can't", "the reply holds no answer object", 1),
        (says(1, nonce="other"), "the reply holds no answer object", 1),
        ('{"nonce": "n0nce", "contradicts": "all"}', "the numbers are no list", 1),
    ],
)
def test_without_an_answer_nothing_contradicts(reply: Any, why: str, bad: int) -> None:
    """And it is said why; a reply out of form is kept."""
    found = driven(reply)[1]
    assert (found.at, found.why, len(found.bad)) == ((), why, bad)

"""The questions of `/reflect` to a small model, about messages and about a new rule, driven by hand."""

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
from daemon.learning.rules import questions
from daemon.learning.rules.candidates import Candidate
from daemon.learning.rules.questions import Reading, Stands
from daemon.paths import shipped
from tests.support.secrets import TOKENS

SIGNALS = shipped("prompts/signals.txt").read_text("utf-8")
CONTRADICTS = shipped("prompts/contradicts.txt").read_text("utf-8")
SAID = [
    Candidate("a", "Nein, nimm pnpm", "I ran npm install."),
    Candidate("b", "mach weiter"),
    Candidate("c", "pnpm!!"),
]
STANDS = [Stands("Use npm", "rule-007"), Stands("Run lint first")]
STAND = ["Deploy on Fridays", "Run lint first", "Ship whenever it is ready"]
SECRET = TOKENS["anthropic"][0]
FINE = {"n": 3, "type": "correction", "content": "Use  pnpm", "severity": "high", "group": 3, "against": []}


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


def read(reply: str | Exception) -> tuple[Prompt, questions.Read]:
    return driven(questions.read(SAID, STANDS, SIGNALS, "n0nce"), reply)


def compared(reply: str | Exception) -> tuple[Prompt, questions.Compared]:
    return driven(questions.compare("No releases", STAND, CONTRADICTS, "n0nce"), reply)


def says(nonce: str = "n0nce", **fields: Any) -> str:
    return json.dumps({"nonce": nonce, **fields})


ASKED = ['{"n": 1, "stands": "Use npm"}', '{"n": 4, "person": "mach weiter"}']
ASKED += ['{"n": 3, "agent": "I ran npm install.", "person": "Nein, nimm pnpm"}']
COMPARED = ['{"rule": "No releases"}', '{"n": 2, "statement": "Run lint first"}']


@pytest.mark.shows("FR7")
@pytest.mark.parametrize(
    ("asks", "purpose", "begins", "lines"),
    [
        (read, questions.SIGNALS, "You read messages", ASKED),
        (compared, questions.CONTRADICTS, "You compare a new rule", COMPARED),
    ],
    ids=["messages", "rules"],
)
def test_what_is_asked(asks: Any, purpose: Any, begins: str, lines: list[str]) -> None:
    """The rules apart from the data, so that they can be cached; one thing a line; paid as asked for."""
    prompt, _ = asks(says())
    assert (prompt.purpose, prompt.tier, prompt.nonce) == (purpose, "fast", "n0nce")
    assert POLICIES[purpose].account == "asked"
    assert prompt.system.startswith(begins)
    assert "n0nce" not in prompt.system
    assert [line for line in lines if line not in prompt.text] == []
    assert "s}" not in prompt.text + prompt.system, "a placeholder was left"


@pytest.mark.shows("I44", "I46")
def test_no_secret_is_sent_and_a_call_is_bounded() -> None:
    """Neither of messages nor of rules; each call has so many of so many characters."""
    stands = [Stands(f"Use {SECRET}"), *[Stands("Run lint")] * 1_000]
    asked = questions.read_prompt([Candidate("a", f"use {SECRET}", f"I use {SECRET}")], stands, SIGNALS, "n")
    assert asked.text.count('"stands"') == questions.STANDS
    many = [f"Use {SECRET}", "x" * 10_000, *["Run lint"] * 1_000]
    found = questions.compare_prompt(f"Use {SECRET}", many, CONTRADICTS, "n")
    assert SECRET not in asked.text + found.text
    assert "x" * (questions.TEXT + 1) not in found.text
    assert found.text.count('"statement"') == questions.MOST
    parts = questions.batches(list(range(questions.BATCH * 2 + 1)))
    assert [len(part) for part in parts] == [questions.BATCH, questions.BATCH, 1]


def test_what_a_model_says_of_messages() -> None:
    """Type, wording and severity are its own; what it leaves out or says in another form is unread."""
    none = {"n": 4, "type": "none", "content": "", "severity": "low", "group": 4, "against": []}
    _, found = read(says(signals=[FINE, none]))
    assert found.readings == {0: Reading("correction", "Use pnpm", "high"), 1: Reading("none", "", "low")}
    assert (found.why, found.cost) == ("", 0.25)
    wrong = [{**FINE, **more} for more in ({"n": 9}, {"n": True}, {"n": 2}, {"n": 5, "type": "idea"})]
    others = [{**FINE, "n": 5, "content": None}, "text", {**FINE, "n": 4, "severity": "huge"}]
    _, found = read(says(signals=[{**FINE, "content": " "}, *wrong, *others]))
    assert {n: r.severity for n, r in found.readings.items()} == {1: "medium"}


@pytest.mark.shows("FR3")
def test_what_says_the_same_gets_one_wording() -> None:
    """That of a statement, else of the first message of the group; another number counts as its own."""
    same = {**FINE, "n": 5, "content": "Always pnpm", "group": 3}
    assert read(says(signals=[FINE, same]))[1].readings[2].content == "Use pnpm"
    known = {**same, "group": 2}
    assert read(says(signals=[FINE, known]))[1].readings[2].content == "Run lint first"
    for group in (0, 4, 5, 99, -1, True, "3", None):
        assert read(says(signals=[FINE, {**same, "group": group}]))[1].readings[2].content == "Always pnpm"


@pytest.mark.shows("FR8")
def test_which_rules_a_message_contradicts() -> None:
    """By their ids; a statement that is no rule, and a number that is none, say nothing."""
    _, found = read(says(signals=[{**FINE, "against": [1, 2, 3, 0, -1, True, "1"]}]))
    assert found.readings[0].against == ("rule-007",)
    assert read(says(signals=[{**FINE, "against": "all"}]))[1].readings[0].against == ()


@pytest.mark.parametrize(
    ("reply", "at", "same"),
    [
        (says(contradicts=[1, 3]), (0, 2), ()),
        (says(contradicts=[2, 2, 9, 0, -1, "3", True, None], same=[3, 7]), (1,), (2,)),
        (f"Here it is: {says(contradicts=[3], same=[])} as you asked", (2,), ()),
    ],
)
def test_only_numbers_of_statements_count(reply: str, at: tuple[int, ...], same: tuple[int, ...]) -> None:
    """A number that stands for none is left out."""
    assert compared(reply)[1] == questions.Compared(at, same, cost=0.25)


NO_OBJECT = "the reply holds no"


@pytest.mark.shows("I48")
@pytest.mark.parametrize("asks", [read, compared], ids=["messages", "rules"])
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
def test_without_an_answer_nothing_is_read(asks: Any, reply: Any, why: str, bad: int) -> None:
    """It is said why; a reply out of form is kept."""
    _, found = asks(reply)
    assert not (found.readings if asks is read else found.contradicts + found.same)
    assert why in found.why
    assert len(found.bad) == bad


@given(
    text=st.text(max_size=80)
    | st.lists(
        st.dictionaries(
            st.sampled_from(["n", "type", "content", "group", "against"]),
            st.text() | st.integers(0, 6) | st.sampled_from(["none", "correction"]),
        )
    ).map(lambda found: says(signals=found))
)
def test_any_reply_ends_in_readings(text: str) -> None:
    """Nothing is raised, and only the batch's own messages are read."""
    assert set(read(text)[1].readings) <= {0, 1, 2}

"""The questions of `/reflect` to a small model, about messages and about a new rule, driven by hand."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from daemon.core.errors import BadReply
from daemon.core.llm import Prompt, Reply
from daemon.core.policy import POLICIES
from daemon.core.question import Question
from daemon.learning.rules import questions
from daemon.learning.rules.candidates import Candidate
from daemon.learning.rules.journal import Reading
from daemon.learning.rules.questions import Compared, Signals, Stands
from daemon.paths import shipped
from tests.support.secrets import TOKENS

TEXTS = {name: shipped(f"prompts/{name}.txt").read_text("utf-8") for name in ("signals", "contradicts")}
SAID = [
    Candidate("a", "Nein, nimm pnpm", "I ran npm install."),
    Candidate("b", "mach weiter"),
    Candidate("c", "pnpm!!"),
]
STANDS = [Stands("Use npm", "rule-007"), Stands("Run lint first")]
STAND = ["Deploy on Fridays", "Run lint first", "Ship whenever it is ready"]
SECRET = TOKENS["anthropic"][0]
FINE = {"n": 3, "type": "correction", "content": "Use  pnpm", "severity": "high", "group": 3, "against": []}


def asked(question: Question[Any]) -> Prompt:
    return replace(question, nonce="n0nce").prompt(TEXTS)


def replied(question: Question[Any], **fields: Any) -> Any:
    text = json.dumps({"nonce": "n0nce", **fields})
    return replace(question, nonce="n0nce").read(Reply(f"Here it is: {text} as you asked", "scripted", "m1"))


def read(*signals: Any) -> dict[int, Reading]:
    reply = replied(questions.to_read(SAID, STANDS), signals=list(signals))
    return questions.readings(reply, STANDS, len(SAID))


ASKED = ['{"n": 1, "stands": "Use npm"}', '{"n": 4, "person": "mach weiter"}']
ASKED += ['{"n": 3, "agent": "I ran npm install.", "person": "Nein, nimm pnpm"}']
COMPARED = ['{"rule": "No releases"}', '{"n": 2, "statement": "Run lint first"}']


@pytest.mark.shows("FR7")
@pytest.mark.parametrize(
    ("question", "begins", "lines"),
    [
        (questions.to_read(SAID, STANDS), "You read messages", ASKED),
        (questions.to_compare("No releases", STAND), "You compare a new rule", COMPARED),
    ],
    ids=["messages", "rules"],
)
def test_what_is_asked(question: Question[Any], begins: str, lines: list[str]) -> None:
    """The rules apart from the data, so that they can be cached; one thing a line; paid as asked for."""
    prompt = asked(question)
    assert (prompt.tier, prompt.nonce) == ("fast", "n0nce")
    assert POLICIES[prompt.purpose].account == "asked"
    assert prompt.system.startswith(begins)
    assert "n0nce" not in prompt.system
    assert [line for line in lines if line not in prompt.text] == []
    assert "s}" not in prompt.text + prompt.system, "a placeholder was left"
    with pytest.raises(BadReply, match="holds no"):
        question.read(Reply("prose", "scripted", "m1"))


@pytest.mark.shows("I44", "I46")
def test_no_secret_is_sent_and_a_call_is_bounded() -> None:
    """Neither of messages nor of rules; each call has so many of so many characters."""
    stands = [Stands(f"Use {SECRET}"), *[Stands("Run lint")] * 1_000]
    messages = asked(questions.to_read([Candidate("a", f"use {SECRET}", f"I use {SECRET}")], stands)).text
    assert messages.count('"stands"') == questions.STANDS
    many = [f"Use {SECRET}", "x" * 10_000, *["Run lint"] * 1_000]
    rules = asked(questions.to_compare(f"Use {SECRET}", many)).text
    assert SECRET not in messages + rules
    assert "x" * (questions.TEXT + 1) not in rules
    assert rules.count('"statement"') == questions.MOST
    parts = questions.batches(list(range(questions.BATCH * 2 + 1)))
    assert [len(part) for part in parts] == [questions.BATCH, questions.BATCH, 1]


def test_what_a_model_says_of_messages() -> None:
    """Type, wording and severity are its own; a message that it leaves out, and an entry of another form, are
    unread.
    """
    none = {"n": 4, "type": "none", "content": "", "severity": "low", "group": 4, "against": []}
    assert read(FINE, none) == {0: Reading("correction", "Use pnpm", "high"), 1: Reading("none", "", "low")}
    wrong = [{**FINE, **more} for more in ({"n": 9}, {"n": True}, {"n": 2}, {"n": 5, "type": "idea"})]
    others = [{**FINE, "n": 5, "content": None}, "text", {**FINE, "n": 4, "severity": "huge"}]
    assert read({**FINE, "content": " "}, *wrong, *others) == {}
    assert questions.readings(None, STANDS, 3) == {}


@pytest.mark.shows("FR3")
def test_what_says_the_same_gets_one_wording() -> None:
    """That of a statement, else of the first message of the group; another number counts as its own."""
    wanted = {3: "Use pnpm", 2: "Run lint first", **dict.fromkeys((0, 4, 5, 99, -1), "Always pnpm")}
    for group, text in wanted.items():
        assert read(FINE, {**FINE, "n": 5, "content": "Always pnpm", "group": group})[2].content == text


@pytest.mark.shows("FR8")
def test_which_rules_a_message_contradicts() -> None:
    """By their ids; a statement that is no rule, and a number that is none, say nothing."""
    assert read({**FINE, "against": [1, 2, 3, 0, -1]})[0].against == ("rule-007",)


@pytest.mark.parametrize(
    ("fields", "found"),
    [
        ({"contradicts": [1, 3]}, Compared((0, 2), ())),
        ({"contradicts": [2, 2, 9, 0, -1, "3", True, None], "same": [3, 7]}, Compared((1,), (2,))),
    ],
)
def test_only_numbers_of_statements_count(fields: dict[str, Any], found: Compared) -> None:
    """A number that stands for none is left out; without a reply nothing contradicts."""
    reply = replied(questions.to_compare("No releases", STAND), **fields)
    assert questions.compared(reply, STAND) == found
    assert questions.compared(None, STAND) == Compared()


@given(
    st.lists(
        st.builds(
            questions.Signal,
            n=st.integers(-2, 9),
            type=st.sampled_from(["none", "correction", "positive"]),
            content=st.text(max_size=20),
            group=st.integers(-2, 9),
            against=st.lists(st.integers(-2, 9), max_size=3),
        )
    )
)
def test_any_reply_ends_in_readings(signals: list[questions.Signal]) -> None:
    """Nothing is raised, and only the batch's own messages are read."""
    assert set(questions.readings(Signals(signals=signals), STANDS, 3)) <= {0, 1, 2}

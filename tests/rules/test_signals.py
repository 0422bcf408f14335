"""What messages are, by the structure of what is said: the pairs differ in one thing that matters.

How often the rules are right on labelled messages is shown by ``tests/evals/test_eval_reflect.py``.
"""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.core.transcript import Said
from daemon.rules.grammar import FLOOR, is_candidate
from daemon.rules.signals import SURE, is_doubtful, read

WORK = "I added the endpoint to src/server/orders.ts with npm and a class, and wrote a test."


def kind(text: str, prior: str = WORK, **more: bool) -> str:
    return read(Said(text, prior, **more)).type


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("No, use a function", "correction"),
        ("no problem", "none"),
        ("no use a function", "correction"),
        ("No.", "none"),
        ("That's wrong, it belongs in src/api", "correction"),
        ("What's wrong with src/api?", "none"),
        ("use the process that I asked for yesterday", "none"),
        ("you forgot to run the linter", "correction"),
        ("commit it if you haven't already", "none"),
        ("use pnpm instead of npm", "correction"),
        ("Don't use npm for that", "correction"),
        ("Don't worry about npm", "none"),
        ("why did you add a class? use a function", "correction"),
        ("revert that", "correction"),
        ("can you use pnpm instead?", "correction"),
        ("can you add pagination?", "none"),
        ("it should return 404 for unknown orders", "correction"),
        ("it should also return 404 for unknown orders", "none"),
        ("This broke the build", "negative"),
        ("Why does the build break?", "none"),
        ("if it still fails, tell me", "none"),
        ("Perfect, exactly what I wanted", "positive"),
        ("neat", "positive"),
        ("perfect is the enemy of good, start simple", "none"),
        ("Great, now add a second endpoint", "none"),
        ("looks good, but the test is too long. Split it.", "correction"),
    ],
)
def test_a_reaction_to_the_agents_work(text: str, expected: str) -> None:
    """What stands where decides: a "no" before a comma, a "good" about the work, a question."""
    assert kind(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Always run lint first", "instruction"),
        ("Why does it always fail?", "none"),
        ("The button should always be visible", "none"),
        ("From now on, answer in English", "instruction"),
        ("Never push to main", "instruction"),
        ("never mind", "none"),
        ("Every time you change the schema, regenerate the types", "instruction"),
        ("In this project we use conventional commits", "instruction"),
        ("Make sure you run the tests before you push", "instruction"),
        ("Write a test that makes sure that the parser never returns None", "none"),
        ("I prefer early returns over nested ifs", "instruction"),
        ("I prefer the second one", "none"),
        ("If the user is unsure, show a hint", "none"),
        ("When you finish a task, always say how to check it", "instruction"),
        ("Add an option that always uses tabs", "none"),
    ],
)
def test_an_instruction_for_good(text: str, expected: str) -> None:
    """What counts is who shall do it, the agent or the program, and whether it is for more than this task."""
    assert kind(text, "") == expected


def test_an_answer_is_no_correction() -> None:
    """The agent had asked: a choice or a "no" answers that; what to use instead still corrects."""
    asked = "Shall I use npm and also update the README?"
    assert kind("no", asked) == kind("no thanks", asked) == kind("use the second one", asked) == "none"
    assert kind("No, use pnpm", asked) == "correction"


def test_words_at_a_refused_call_and_after_an_interrupt_count() -> None:
    """Why a call was refused is a correction, unless it asks; after Esc, what to do instead is one."""
    assert kind("use pnpm", refusal=True) == "correction"
    assert kind("what does this do?", refusal=True) == kind("not now", refusal=True) == "none"
    assert kind("only the two tests in orders", interrupted=True) == "correction"
    assert kind("only the two tests in orders") == "none"


@pytest.mark.shows("FR3")
@pytest.mark.parametrize(
    ("text", "severity"),
    [
        ("No, use strict mode", "medium"),
        ("I told you again and again: use strict mode", "high"),
        ("Always use strict mode", "high"),
        ("NO TABS IN THIS FILE, use spaces", "high"),
        ("I think it should rather be a function", "low"),
        ("This broke the build", "medium"),
        ("Perfect, exactly what I wanted", "low"),
    ],
)
def test_severity_by_keywords_and_context(text: str, severity: str) -> None:
    """High for good and for what was said before, low where a choice is left, else medium."""
    assert read(Said(text, WORK)).severity == severity


def test_what_comes_with_a_signal() -> None:
    """The instruction normalised; of praise and blame their own words; of nothing nothing."""
    assert read(Said("No, use strict mode", WORK)).content == "Use strict mode"
    assert read(Said("hmm. It still fails.", WORK)).content == "It still fails."
    assert read(Said("Add a test", WORK)).content == ""


def test_commands_and_long_tasks_are_no_signals() -> None:
    """A command is none, and a long text is a task, whatever words are in it."""
    assert kind("/review no, use strict mode") == "none"
    assert kind("No, use strict mode. " + "Then add one more page to the shop. " * 20) == "none"


@pytest.mark.shows("TR3")
def test_the_floor_of_keywords() -> None:
    """Each of the 22 keywords makes a message a candidate, whatever its case."""
    words = [word for every in FLOOR.values() for word in every]
    assert len(words) == 22
    assert len(set(words)) == 21
    for word in words:
        assert is_candidate(f"und dann {word.upper()} bitte")
    assert not is_candidate("Fahre fort")


def test_what_a_model_should_look_at() -> None:
    """A keyword without a signal, doubt, or another language in reply; not what is plainly nothing."""
    for said in (Said("Nimm always pnpm", ""), Said("Nein, nimm pnpm für Pakete", WORK)):
        assert is_doubtful(said, read(said))
    for text in ("continue", "```\nno, never\n```", "No, use strict mode"):
        assert not is_doubtful(Said(text, WORK), read(Said(text, WORK)))


WORDS = st.sampled_from(
    re.findall(
        r"\S+",
        "no not don't never always use it the you i said wrong good great broke still now should instead of "
        ", . ? ! perfect make sure every time we here again stop adding tests revert that why did",
    )
)


@given(text=st.text(max_size=600) | st.lists(WORDS, max_size=40).map(" ".join), prior=st.text(max_size=200))
def test_any_text_gets_one_reading(text: str, prior: str) -> None:
    """Nothing is raised, the same text is always the same, and a signal has a content and is sure enough."""
    found = read(Said(text, prior))
    assert found == read(Said(text, prior))
    assert 0 <= found.confidence <= 1
    assert bool(found.content) is (found.type != "none")
    assert found.type == "none" or found.confidence >= SURE

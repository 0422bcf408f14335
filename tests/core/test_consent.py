"""Questions of ours by their digests, the answers to them, and what a person typed behind `/reflect`."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.core.consent import Chosen, Question, Shown, chosen, chosen_by_text, shown, typed, wish

TEXT = 'Found pattern: "Always use é strict"\nMake it a rule in CLAUDE.md?\n(reflectd 0a1b2c3d4e5f)'
OURS = Question(TEXT, "Rule", (("Add to CLAUDE.md", "a rule"), ("Dismiss", "never again")))
OTHER = Question(TEXT.replace("0a1b", "ffff"), "Rule", OURS.options)


def form(question: Question = OURS, several: str = "multiSelect") -> dict[str, Any]:
    return question.form(several)


@pytest.mark.parametrize("several", ["multiSelect", "multiple", ""])
def test_a_question_is_known_by_its_digest_in_each_host(several: str) -> None:
    """The form that a host's tool takes comes back to the digest of the question."""
    assert shown([form(several=several)]) == (Shown(OURS.digest, ("Add to CLAUDE.md", "Dismiss")),)


CHANGES: dict[str, Any] = {
    "a letter of the text": lambda q: q.update(question=q["question"].replace("rule", "Rule")),
    "a blank at its end": lambda q: q.update(question=q["question"] + " "),
    "another heading": lambda q: q.update(header="Rules"),
    "another label": lambda q: q["options"][0].update(label="Yes"),
    "another description": lambda q: q["options"][0].update(description="does nothing"),
    "a preview": lambda q: q["options"][0].update(preview="does nothing"),
    "an option more": lambda q: q["options"].append({"label": "No", "description": ""}),
    "an option less": lambda q: q["options"].pop(),
    "another order": lambda q: q["options"].reverse(),
    "several at once": lambda q: q.update(multiSelect=True),
    "no token": lambda q: q.update(question=q["question"].replace("(reflectd 0a1b2c3d4e5f)", "")),
    "a field more": lambda q: q.update(note="does nothing"),
    "no options": lambda q: q.update(options=None),
    "an option that is none": lambda q: q["options"].append(1),
}


@pytest.mark.parametrize("change", CHANGES, ids=list(CHANGES))
def test_a_question_that_was_changed_is_not_ours(change: str) -> None:
    """Byte for byte: any change gives another digest, or no question of ours at all."""
    changed = copy.deepcopy(form())
    CHANGES[change](changed)
    assert OURS.digest not in {question.digest for question in shown([changed])}


def test_a_strange_question_beside_ours_spoils_the_dialog() -> None:
    """It could mislead ("answer 1 to the next one"); two of ours in one dialog are fine."""
    strange = {**form(), "question": "Answer 1 below, please?"}
    assert shown([form(), strange]) == ()
    assert [q.digest for q in shown([form(), form(OTHER)])] == [OURS.digest, OTHER.digest]
    assert shown([form()] * 5) == ()


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["question", "header", "options", "multiSelect", "label", "description", "x"]),
            inner,
        )
    ),
    max_leaves=12,
)


@pytest.mark.shows("I36")
@given(json_values, json_values)
def test_whatever_a_host_sends_nothing_raises(questions: Any, answers: Any) -> None:
    """And nothing that is not exactly ours becomes an answer."""
    assert shown(questions) == ()
    assert chosen((), answers) == ()
    assert chosen_by_text(questions, answers) == ()
    assert chosen_by_text([form()], answers) == ()


def test_answers_by_place_and_by_text() -> None:
    """A label counts as itself, other words as the person's own; one answer for each question."""
    known = shown([form(), form(OTHER)])
    assert chosen(known, [["Dismiss"], ["something else"]]) == (
        Chosen(OURS.digest, "Dismiss"),
        Chosen(OTHER.digest, ""),
    )
    for wrong in (
        [["Dismiss"]],
        [["Dismiss"], []],
        [["Dismiss", "Dismiss"], ["Dismiss"]],
        [["Dismiss"], [1]],
    ):
        assert chosen(known, wrong) == ()
    both = {OURS.text: "Dismiss", OTHER.text: "Add to CLAUDE.md"}
    found = chosen_by_text([form(), form(OTHER)], both)
    assert found == (Chosen(OURS.digest, "Dismiss"), Chosen(OTHER.digest, "Add to CLAUDE.md"))
    assert chosen_by_text([form()], both) == ()
    assert chosen_by_text([form()], {"another question": "Dismiss"}) == ()


@pytest.mark.parametrize(
    ("arguments", "verb", "words", "flags"),
    [
        ('learn "Always run tests"', "learn", "Always run tests", ()),
        ("learn Always run tests", "learn", "Always run tests", ()),
        ('learn "Prefer é" --soft', "learn", "Prefer é", ("--soft",)),
        ("learn --soft Prefer é", "learn", "Prefer é", ("--soft",)),
        ("learn “Prefer é”", "learn", "Prefer é", ()),
        ("learn Never pass --soft to it", "learn", "Never pass --soft to it", ()),
        ('learn Say "hi" and "bye"', "learn", 'Say "hi" and "bye"', ()),
        ('learn "hi" and "bye"', "learn", '"hi" and "bye"', ()),
        ("unlearn rule-003 --delete", "unlearn", "rule-003", ("--delete",)),
        ("unlearn sig-001  sig-002", "unlearn", "sig-001 sig-002", ()),
    ],
)
def test_what_was_typed_is_what_the_command_line_gets(
    arguments: str, verb: str, words: str, flags: tuple[str, ...]
) -> None:
    """Quotes around the whole and white space do not count, flags only before and behind the words."""
    found = typed(arguments)
    assert found == wish(verb, words, *flags)
    assert found.digest == wish(verb, f' "{words}"' if words else "", *flags).digest or '"' in words


@pytest.mark.parametrize(
    "arguments", ["", "status", "history", "learn", "learn --soft", "apply 0a1b", "Learn x"]
)
def test_what_changes_nothing_is_no_wish(arguments: str) -> None:
    """Nor is a verb that takes its proof elsewhere."""
    assert typed(arguments) is None


def test_other_words_are_another_wish() -> None:
    """A flag, a letter, a verb."""
    mine = wish("learn", "Use bun")
    others = [wish("learn", "Use bun", "--soft"), wish("learn", "use bun"), wish("unlearn", "Use bun")]
    assert mine.digest not in {other.digest for other in others}
    assert mine.digest != OURS.digest

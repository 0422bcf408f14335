"""What a person wrote themselves, and what they pasted or passed on."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.rules.own import MAX_SENTENCES, sentences, spoken


@pytest.mark.parametrize(
    "pasted",
    [
        "```\nnever do this\n```",
        "> always use tabs",
        "$ npm test\nFAIL src/a.test.ts\n  \u2715 adds numbers (3 ms)",
        'Traceback (most recent call last):\n  File "a.py", line 1\nValueError: wrong',
        "TypeError: Cannot read properties of undefined\n    at List (src/List.tsx:14:22)",
        "2026-11-20 10:00:00 ERROR always failing",
        "const never = always;",
        "<system-reminder>Never mention this.</system-reminder>",
        "## Reflection-3: Task Incomplete (HIGH)\n\nNever stop before the tests pass.",
        "# Plan\n\nAlways test.\n\n## Steps\n\nNever skip one.",
    ],
)
def test_what_was_pasted_is_not_their_own(pasted: str) -> None:
    """Code, quotes, logs, commands with their output, the host's tags, documents, our own feedback."""
    assert sentences(pasted) == []


def test_what_stands_around_it_is() -> None:
    """The person's words before and after a block stay, and are cut into sentences."""
    text = "That's wrong, look:\n```\nalways()\n```\nUse the helper instead. Thanks! e.g. like this"
    assert sentences(text) == ["That's wrong, look:", "Use the helper instead.", "Thanks!", "e.g. like this"]


@pytest.mark.parametrize(
    ("text", "own"),
    [
        ("Translate this to German: never say never", ["Translate this to German:"]),
        ("Here is the review comment: don't do that. Always test.", ["Here is the review comment:"]),
    ],
)
def test_what_is_handed_over_is_not_their_own(text: str, own: list[str]) -> None:
    """After "here is the comment:" somebody else speaks."""
    assert sentences(text) == own


def test_a_sentence_as_rules_read_it() -> None:
    """Apostrophes that people leave out, quotes and code as one mark each."""
    assert spoken("Thats  wrong, dont use `foo()`") == "that's wrong, don't use CODED".casefold()
    assert spoken("He said \u201cnever again\u201d and it\u2019s fine") == "he said quoted and it's fine"
    assert spoken("youre right, weve tested, isnt it") == "you're right, we've tested, isn't it"


@given(text=st.text(max_size=3_000))
def test_any_text_is_cut(text: str) -> None:
    """Nothing is raised, no sentence is empty, and there are never many."""
    found = sentences(text)
    assert len(found) <= MAX_SENTENCES
    assert all(s.strip() for s in found)
    assert all(isinstance(spoken(s), str) for s in found)

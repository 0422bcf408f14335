"""The lexicon: sentences, content words, reasons, short lines."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.evidence import words


def test_sentences_of_an_answer() -> None:
    """Without code and marks, the last 4,000 characters only."""
    text = "## Done\n\nThe cache works. **Tests pass!**\n```\nnot. this.\n```\n- one\n- two"
    assert words.sentences(text) == ["Done", "The cache works.", "Tests pass!", "one", "two"]
    assert len(words.sentences("a b c. " * 2_000)) < 600


@pytest.mark.parametrize(
    ("cut", "text", "parts"),
    [
        (words.split_sentences, "See e.g. this. Then that", ["See e.g.", "this.", "Then that"]),
        (words.split_line, "See e.g. this. Then that", ["See e.g. this.", "Then that"]),
        (words.split_request, "fix the page. and add a test", ["fix the page.", "and add a test"]),
        (words.split_request, "fix it, the tests etc. included", ["fix it, the tests etc. included"]),
    ],
)
def test_where_a_text_is_cut(cut: object, text: str, parts: list[str]) -> None:
    """Each way to cut has its reason: plain, careful with abbreviations, as people type."""
    assert callable(cut)
    assert cut(text) == parts


def test_content_words_meet_their_inflections() -> None:
    """Five letters of each longer word; words of everyday requests are no content."""
    assert words.words("The uploaders upload fileNames") == words.words("uploading a file for the names")
    assert words.words("make them work well then") == frozenset()


@pytest.mark.parametrize(
    ("sentence", "reason", "absence"),
    [
        ("I left it out because it is generated.", True, True),
        ("The tests could not be run here.", True, True),
        ("There is no changelog.", False, True),
        ("The build fails on main.", False, True),
        ("The tests are next.", False, False),
    ],
)
def test_reasons(sentence: str, *, reason: bool, absence: bool) -> None:
    """Beside the name of a missing thing less is needed for an explanation."""
    assert words.gives_reason(sentence) is reason
    assert words.explains_absence(sentence) is absence


@given(st.text(max_size=2_000), st.integers(1, 300))
def test_any_text_is_one_short_line(text: str, limit: int) -> None:
    """Never longer than asked, and nothing but single spaces between words."""
    line = words.shorten(text, limit)
    assert len(line) <= limit
    assert "\n" not in line


def test_the_last_match() -> None:
    """None where there is none."""
    last = [words.last_match(re.compile(r"\d"), text) for text in ("a1b2", "ab")]
    assert [found and found[0] for found in last] == ["2", None]

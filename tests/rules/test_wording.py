"""The instruction in a person's words, normalised."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.rules.own import sentences
from daemon.rules.patterns import shape_of
from daemon.rules.wording import MAX_CONTENT, cut, instruction

BEFORE = [
    "",
    "No, ",
    "ok but please ",
    "Actually, ",
    "From now on, ",
]
AFTER = ["", ".", " please", ", please!", " from now on."]
CORES = [
    "use strict mode",
    "don't touch the migrations",
    "no emojis in commit messages",
    "never push to main",
    "stop adding comments",
    "avoid global state",
]


def said(text: str) -> str:
    return instruction(sentences(text), 0)


@pytest.mark.parametrize(
    ("text", "content"),
    [
        ("No, use strict mode", "Use strict mode"),
        ("You must not edit generated files", "Do not edit generated files"),
        ("can you please not reformat the file?", "Do not reformat the file"),
        ("we don't use classes here", "Do not use classes"),
        ("Make sure you run the linter before you push", "Run the linter before you push"),
        ("You forgot to run the linter again", "Run the linter"),
        ("why did you remove the null check? put it back", "Put it back"),
        ("That's the wrong port, it's 8080", "It's 8080"),
        ("Don't touch the migrations, they're deployed already", "Don't touch the migrations"),
        ("Always use strict mode, I told you before.", "Always use strict mode"),
        ("no npm here, as I said three times!", "No npm"),
        ("no npm, I said use bun", "No npm, I said use bun"),
        ("!!", ""),
    ],
)
def test_only_the_instruction_is_left(text: str, content: str) -> None:
    """Reactions, reasons and politeness go; what is wanted stays, in the person's words."""
    assert cut(text) == content or said(text) == content


@given(
    before=st.lists(st.sampled_from(BEFORE), max_size=2).map("".join),
    core=st.sampled_from(CORES),
    after=st.sampled_from(AFTER),
)
def test_what_forbids_never_becomes_what_allows(before: str, core: str, after: str) -> None:
    """Whatever stands before and after it, the instruction is the same, with its "no" and its "never"."""
    found = cut(before + core + after)
    assert shape_of(found) == shape_of(core)


@given(text=st.text(max_size=900))
def test_any_text_is_worded(text: str) -> None:
    """Nothing is raised, and what comes is one short line."""
    found = cut(text)
    assert len(found) <= MAX_CONTENT
    assert "\n" not in found

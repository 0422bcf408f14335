"""How final texts end. Most rows of the table are texts that must stay quiet."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.evidence.answer.endings import ending
from tests.support.tables import tables


@pytest.mark.shows("I17", "I24", "I25", "I31")
@pytest.mark.parametrize(("text", "expected"), tables("endings")["endings"])
def test_endings(text: str, expected: str) -> None:
    """In several languages. In doubt it is a statement: a false "incomplete" is the costly error."""
    assert ending(text) in expected.split("|")


def test_out_of_tokens() -> None:
    """The host says that the model ran out of tokens: cut off, however the text looks."""
    assert [ending("All done.", finish) for finish in ("length", "stop")] == ["cut_off", "statement"]


UNITS = (
    "a, ",
    "`",
    "```\n",
    "?",
    "let me ",
    "\n",
    " ",
    "a. A",
    "should i ",
    "next steps ",
    "> ",
    "**",
    "please ",
)


@pytest.mark.parametrize("unit", UNITS)
def test_hostile_texts_are_quick(unit: str) -> None:
    """A megabyte of anything takes milliseconds."""
    before = time.process_time()
    ending(unit * (1_000_000 // len(unit)))
    assert time.process_time() - before < 5


@given(st.text(alphabet="aI'll let me run.?:,`~\n#*-> 1", max_size=300))
def test_any_text_has_an_ending(text: str) -> None:
    """No text makes it fail, and trailing blanks never change the answer."""
    assert ending(text + "\n \n") == ending(text)

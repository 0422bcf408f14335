"""Requests cut into requirements, and which of them a later message took back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.evidence.request.requirements import MAX_REQUIREMENTS, MAX_TEXT, requirements, topics, wants
from tests.support.tables import tables

ROWS = tables("requests")


def texts(*messages: str) -> list[str]:
    return [r.text for r in requirements(messages)]


@pytest.mark.shows("I28")
@pytest.mark.parametrize(("message", "found"), ROWS["requirements"])
def test_what_is_one_requirement(message: str, found: list[str]) -> None:
    """List items, sentences and joined imperatives; quotes, code and small talk are none."""
    assert texts(message) == found


@pytest.mark.shows("I28")
def test_later_messages_win() -> None:
    """What a later message takes back or changes is marked and no longer asked for."""
    found = requirements(
        ("Add a login page. Push when done.", "Actually, don't push. Skip the login page styling.")
    )
    assert [r.by for r in found] == [3, 2, -1, -1]
    asks, forbids = topics(found)
    assert (asks, forbids) == ((), ("push",))
    assert requirements(("Fix the parser", "Scratch that, never mind.", "Add a flag"))[0].by == 1
    assert [r.by for r in requirements(("Fix the parser", "and add a test for it"))] == [-1, -1]


def test_a_later_request_overrules_an_earlier_ban() -> None:
    """The latest word on a topic counts, both ways."""
    assert topics(requirements(("Fix it, no commit please.", "Looks good, commit it now.")))[0] == ("commit",)
    assert topics(requirements(("Fix it and commit.", "No commit, please.")))[1] == ("commit",)


def test_a_ban_reaches_over_and() -> None:
    """ "Don't commit and push" forbids both."""
    assert topics(requirements(("Fix the bug, but don't commit and push.",))) == ((), ("commit", "push"))


@pytest.mark.shows("I25")
@pytest.mark.parametrize(("message", "wanted"), ROWS["wanted"])
def test_what_is_wanted(message: str, wanted: str) -> None:
    """A change, an answer or a plan."""
    assert wants((message,), requirements((message,))) == wanted


@given(st.lists(st.text(alphabet="add run tests.don't\n-1) *`>?,and commit", max_size=200), max_size=4))
def test_any_messages(messages: list[str]) -> None:
    """No text makes it fail; caps hold; a marked requirement points at a later one."""
    found = requirements(messages)
    assert len(found) <= MAX_REQUIREMENTS
    assert all(len(r.text) <= MAX_TEXT for r in found)
    assert all(r.by == -1 or i < r.by < len(found) for i, r in enumerate(found))
    asks, forbids = topics(found)
    assert not set(asks) & set(forbids)


def test_many_requirements_keep_the_first_and_the_last() -> None:
    """The cap drops the middle, so that the latest word stays."""
    found = texts("\n".join(f"- add flag {i}" for i in range(100)))
    assert len(found) == MAX_REQUIREMENTS
    assert (found[0], found[-1]) == ("add flag 0", "add flag 99")

"""Points as text."""

from __future__ import annotations

import pytest

from daemon.core.errors import UserError
from daemon.paths import shipped
from daemon.playbook.points import empty
from daemon.playbook.texts import line, lines_of, offered
from tests.playbook.books import book, point


def test_the_line_of_a_point() -> None:
    """The contract's form, and one line even where the text has several."""
    one = point("kpt_001", "Always use type hints for function signatures", 5, 1)
    assert line(one) == "[kpt_001] helpful=5 harmful=1 :: Always use type hints for function signatures"
    assert (
        line(point("a", "one\n[pat-009] helpful=9\u2028two"))
        == "[a] helpful=0 harmful=0 :: one [pat-009] helpful=9 two"
    )


def test_points_stand_under_their_sections_in_their_order() -> None:
    """Empty sections are left out."""
    playbook = book(point("pat-001", "a"), oth=[point("oth-001", "c")], mis=[point("mis-001", "b")])
    assert lines_of(playbook) == (
        "## PATTERNS & APPROACHES\n[pat-001] helpful=0 harmful=0 :: a\n\n"
        "## MISTAKES TO AVOID\n[mis-001] helpful=0 harmful=0 :: b\n\n"
        "## OTHERS\n[oth-001] helpful=0 harmful=0 :: c"
    )


@pytest.mark.shows("REQ-REFL-002")
def test_req_refl_002_what_an_agent_is_given_asks_it_to_cite() -> None:
    """The shipped template around the points; braces in a text stay; "" without a point."""
    template = shipped("prompts/playbook.txt").read_text("utf-8")
    found = offered(book(point("pat-001", "use {nonce} in f-strings")), template)
    assert "[pat-001] helpful=0 harmful=0 :: use {nonce} in f-strings" in found
    assert "cite its ID" in found
    assert offered(empty(), template) == ""
    with pytest.raises(UserError, match="key_points"):
        offered(book(point("pat-001", "a")), "no place for them")

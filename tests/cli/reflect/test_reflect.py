"""``reflectd reflect``: its actions, and what is meant without one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from daemon.cli.reflect.reflect import ACTIONS, BARE
from tests.cli.reflect.person import at_a_terminal
from tests.support.machine.command_line import reflectd, said
from tests.support.reflecting import STRICT, review, rules_file, said_before

if TYPE_CHECKING:
    from harness.machine.sandbox import Sandbox


def test_without_an_action_it_is_the_review(box: Sandbox) -> None:
    """Each action is in the help, and a misspelled one is answered with the nearest."""
    assert BARE == "review"
    text = said(reflectd(box, "reflect", "--help"), 0)
    assert [name for name in ACTIONS if f"    {name} " not in text] == []
    said(reflectd(box, "reflect", "dismis", "x"), 2, "did you mean `dismiss`?")
    said(reflectd(box, "reflect", "--nonsense"), 2, "usage: reflectd reflect review", "unrecognized")


@pytest.mark.shows("TR6")
@pytest.mark.full("a pseudo-terminal is driven")
def test_the_six_routes(box: Sandbox) -> None:
    """The review alone, status, learn, learn --soft, unlearn and history, each by its own words."""
    said_before(box, STRICT)
    with review(box) as terminal:
        terminal.press("a")
        assert terminal.ended() == 0
    said(reflectd(box, "reflect", "status"), 0, "1 signal, 0 pending, 1 promoted", "1 active rule")
    assert at_a_terminal(box, ["reflect", "learn", "Run lint first"], "y")[0] == 0
    assert at_a_terminal(box, ["reflect", "learn", "Prefer short answers", "--soft"], "y")[0] == 0
    assert at_a_terminal(box, ["reflect", "unlearn", "lint"], "y", "")[0] == 0
    said(reflectd(box, "reflect", "history"), 0, "rule-001", "rule-002", "rule-003", "archived")
    assert "Prefer short answers" in rules_file(box, ".claude/memory/preferences.md")

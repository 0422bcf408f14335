"""``reflectd reflect``: its actions, and what is meant without one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from daemon.cli.reflect.reflect import ACTIONS, BARE
from tests.support.machine.command_line import reflectd, said

if TYPE_CHECKING:
    from harness.machine.sandbox import Sandbox


def test_without_an_action_it_is_the_review(box: Sandbox) -> None:
    """Each action is in the help, and a misspelled one is answered with the nearest."""
    assert BARE == "review"
    text = said(reflectd(box, "reflect", "--help"), 0)
    assert [name for name in ACTIONS if f"    {name} " not in text] == []
    said(reflectd(box, "reflect", "dismis", "x"), 2, "did you mean `dismiss`?")
    said(reflectd(box, "reflect", "--nonsense"), 2, "usage: reflectd reflect review", "unrecognized")

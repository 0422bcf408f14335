"""``reflectd reflect``: its actions, and what is meant without one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from daemon.cli.reflect.reflect import ACTIONS, BARE
from tests.cli.reflect.past import asked, session
from tests.support.machine.command_line import reflectd, said

if TYPE_CHECKING:
    from harness.machine.sandbox import Sandbox


def test_without_an_action_past_sessions_are_read(box: Sandbox) -> None:
    """Also with flags; each action is in the help, and a misspelled one is answered with the nearest."""
    session(box, "a", "Always run lint first")
    assert BARE == "scan"
    assert asked(box)["new"] == asked(box, "scan", "--dry-run")["new"] + ["sig-20261120-001"]
    text = said(reflectd(box, "reflect", "--help"), 0)
    assert [name for name in ACTIONS if f"    {name} " not in text] == []
    said(reflectd(box, "reflect", "dismis", "x"), 2, "did you mean `dismiss`?")
    said(reflectd(box, "reflect", "--nonsense"), 2, "usage: reflectd reflect scan", "unrecognized")

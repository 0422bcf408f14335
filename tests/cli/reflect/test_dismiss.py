"""``reflectd reflect dismiss`` and ``restore``: a person's decision, on a real terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pexpect
import pytest

from harness.machine.waiting import PATIENCE_S
from tests.cli.reflect.past import asked, journal, session
from tests.support.machine.command_line import COMMAND, environment, reflectd, said

if TYPE_CHECKING:
    from harness.machine.sandbox import Sandbox

NAME = "sig-20261120-001"


def at_a_terminal(box: Sandbox, *args: str) -> tuple[int, str]:
    """Exit code and screen of a command on a terminal."""
    child = pexpect.spawn(
        COMMAND[0],
        [*COMMAND[1:], "reflect", *args],
        env=environment(box, TERM="dumb"),
        cwd=str(box.project),
        encoding="utf-8",
        timeout=PATIENCE_S,
        dimensions=(50, 100),
    )
    child.expect(pexpect.EOF)
    child.close()
    return int(child.exitstatus or 0), str(child.before)


@pytest.mark.full("a pseudo-terminal is driven")
def test_what_is_dismissed_is_not_suggested_again_until_it_is_restored(box: Sandbox) -> None:
    """Not after it came up again, nor in a new journal; restore takes the tombstone back too."""
    session(box, "a", "Always run lint first")
    assert [s["id"] for s in asked(box)["suggested"]] == [NAME]
    code, screen = at_a_terminal(box, "dismiss", NAME)
    assert code == 0
    assert f"dismissed {NAME}: Always run lint first" in screen
    assert f"take that back with: reflectd reflect restore {NAME}" in screen
    session(box, "b", "always run lint first!")
    assert asked(box)["suggested"] == []
    (box.project / ".claude" / "orchestration" / "temp" / "reflect-journal.json").unlink()
    assert asked(box)["suggested"] == []
    assert [s["status"] for s in journal(box)["signals"]] == ["dismissed"]
    assert at_a_terminal(box, "restore", NAME)[0] == 0
    assert [s["occurrences"] for s in asked(box, "status")["suggested"]] == [2]


@pytest.mark.shows("I47")
def test_no_terminal_no_decision(box: Sandbox) -> None:
    """An agent's shell is none: nothing changes, whatever flags it gives."""
    session(box, "a", "Always run lint first")
    asked(box)
    before = journal(box)
    for action in ("dismiss", "restore"):
        for flags in ([], ["--json"]):
            done = reflectd(box, "reflect", action, NAME, *flags)
            said(done, 2, "is a person's decision: do it on a terminal. Nothing was changed")
    assert journal(box) == before


@pytest.mark.full("a pseudo-terminal is driven")
def test_an_id_that_is_not_there(box: Sandbox) -> None:
    """It is named; the others of the same command stay as they are."""
    session(box, "a", "Always run lint first")
    asked(box)
    code, screen = at_a_terminal(box, "dismiss", NAME, "sig-001")
    assert code == 2
    assert "there is no signal 'sig-001'" in screen
    assert [s["status"] for s in journal(box)["signals"]] == ["pending"]

"""``reflectd reflect undo``: asks, and takes a change back while the file is as that change left it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.cli.reflect.person import at_a_terminal
from tests.support.machine.command_line import reflectd, said

if TYPE_CHECKING:
    from harness.machine.sandbox import Sandbox


@pytest.mark.full("a pseudo-terminal is driven")
def test_a_change_is_taken_back(box: Sandbox) -> None:
    """The newest one, byte for byte, after a yes; an undo is undone by its number."""
    file = box.file("CLAUDE.md", "# Ours, no newline")
    assert at_a_terminal(box, ["reflect", "learn", "Use bun"], "y")[0] == 0
    learned = file.read_bytes()
    code, screen = at_a_terminal(box, ["reflect", "undo"], "y")
    assert code == 0, screen
    assert f"Undo change 1 (learned rule-001) in {file}? [y/N]" in screen
    assert file.read_bytes() == b"# Ours, no newline"
    assert json.loads(reflectd(box, "reflect", "history", "--json").stdout)["rules"] == []
    assert at_a_terminal(box, ["reflect", "undo", "2"], "y")[0] == 0
    assert file.read_bytes() == learned


@pytest.mark.shows("I47")
@pytest.mark.full("a pseudo-terminal is driven")
def test_it_is_a_person_s_decision_and_never_over_an_edit(box: Sandbox) -> None:
    """No pipe says yes; what was edited since stays."""
    said(reflectd(box, "reflect", "undo"), 2, "there is nothing to undo")
    assert at_a_terminal(box, ["reflect", "learn", "Use bun"], "y")[0] == 0
    said(reflectd(box, "reflect", "undo", stdin=b"y\n"), 2, "do it on a terminal")
    said(reflectd(box, "reflect", "undo", "--dry-run"), 0, "change 1 (learned rule-001) in")
    found = json.loads(said(reflectd(box, "reflect", "undo", "--json"), 0))
    assert (found["changed"], found["undo"]["number"]) == (False, 1)
    assert at_a_terminal(box, ["reflect", "undo"], "")[0] == 1
    said(reflectd(box, "reflect", "undo", "7"), 2, "there is no change 7")
    file = box.project / "CLAUDE.md"
    file.write_text(file.read_text() + "mine\n")
    code, screen = at_a_terminal(box, ["reflect", "undo"], "y")
    assert code == 2
    assert "an edit that is not reflectd's" in " ".join(screen.split())
    assert file.read_text().endswith("mine\n")

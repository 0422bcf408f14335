"""Changes of rules taken back: file, journal and signals, one after the other."""

from __future__ import annotations

import pytest

from daemon.core.errors import UserError
from daemon.files.rule_undo import undo, wanted
from tests.files.rule_projects import Machine


def test_changes_are_undone_one_after_the_other(machine: Machine) -> None:
    """The newest first, down to no file; an undo can be undone; a promoted signal waits again."""
    (name,) = machine.signals("use bun")
    machine.learn("Use npm")
    machine.learn("Use bun", signals=[name], replaces=["rule-001"])
    texts = [machine.text]
    machine.rules.unlearn("rule-002", machine.mark(), reason="no")
    texts.append(machine.text)
    steps = machine.rules.steps
    assert undo(steps).change.what == "undo of 3 (archived rule-002)"
    assert (machine.text, machine.entries()[1]) == (texts[0], ("rule-002", "Use bun", True))
    assert undo(steps, 4).change.undoes == 4
    assert (machine.text, machine.entries()[1]) == (texts[1], ("rule-002", "Use bun", False))
    undo(steps)
    undo(steps)
    assert machine.entries() == [("rule-001", "Use npm", True)]
    assert machine.status_of(name) == "pending"
    undo(steps)
    assert (machine.file.exists(), machine.entries()) == (False, [])
    with pytest.raises(UserError, match="there is nothing to undo"):
        wanted(machine.rules.changes)


@pytest.mark.shows("I43")
def test_what_was_edited_since_is_never_overwritten(machine: Machine) -> None:
    """By a person or by a later change, which is named; file and journal stay as they are."""
    machine.learn("Use npm")
    machine.learn("Run lint")
    with pytest.raises(UserError, match=r"since revision 1, first by revision 2 \(learned rule-002\)"):
        undo(machine.rules.steps, 1)
    machine.file.write_text(machine.text + "mine\n")
    with pytest.raises(UserError, match="an edit that is not reflectd's: nothing was undone"):
        undo(machine.rules.steps)
    assert [active for *_, active in machine.entries()] == [True, True]
    assert machine.text.endswith("mine\n")
    with pytest.raises(UserError, match="there is no change 9"):
        undo(machine.rules.steps, 9)


def test_two_files_are_counted_together(machine: Machine) -> None:
    """A rule and a preference have their own numbers, and each is undone in its own file."""
    machine.learn("Use npm")
    machine.learn("Prefer short answers", soft=True)
    machine.learn("Run lint")
    undo(machine.rules.steps, 2)
    assert not (machine.project / ".claude" / "memory" / "preferences.md").exists()
    undo(machine.rules.steps, 3)
    assert machine.entries() == [("rule-001", "Use npm", True)]
    with pytest.raises(UserError, match="change 2 is undone already"):
        wanted(machine.rules.changes, 2)


def test_a_journal_entry_that_was_changed_since_is_left_alone(machine: Machine) -> None:
    """Where no file says so, as with Workshop."""
    machine.workshop("exit 0", ":/usr/bin:/bin")
    machine.learn("Prefer short answers", soft=True)
    machine.rules.unlearn("rule-001", "")
    with pytest.raises(UserError, match="rule-001 was changed since; undo that first"):
        undo(machine.rules.steps, 1)
    (told,) = undo(machine.rules.steps).told
    assert "Workshop is not told" in told
    undo(machine.rules.steps)
    assert machine.entries() == []

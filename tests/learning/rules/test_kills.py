"""kill -9 between any two steps of a change: the next one finishes it or forgets it, and loses nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.learning.rules.projects import Machine

LEARN = "rules.learn('Use bun', place, seen, signals=['sig-20251120-001'], replaces=['rule-001'])"
MOST = 30  # renames of one change; there are fewer


def agrees(machine: Machine) -> None:
    """File and journal say the same of each rule, and no change is half done."""
    look = machine.rules.look()
    assert [(r.id, r.text, r.active) for r in look.rows] == machine.entries()
    assert {r.note for r in look.rows} <= {""}


@pytest.mark.shows("I42", "RULES-12")
@pytest.mark.slow("kills a process between any two of its steps")
def test_kill_between_any_two_steps_of_learning(machine: Machine) -> None:
    """A rule that replaces another and promotes a signal is there whole, or not at all; a point that says the
    same goes with it, or stays and is given to nobody.
    """
    stops = 0
    for at in range(1, MOST):
        one = Machine(machine.root / str(at))
        one.learn("Use npm")
        one.signals("use bun")
        points = one.points("Use bun.")
        if not one.killed(at, LEARN):
            break
        stops += 1
        one.learn("Run lint")
        learned = [e[1:] for e in one.entries()]
        status = one.status_of("sig-20251120-001")
        if ("Use bun", True) in learned:
            assert status == "promoted"
            assert learned == [("Use npm", False), ("Use bun", True), ("Run lint", True)]
        else:
            assert (status, "pat-001" in points.read_text()) == ("pending", True)
            assert learned == [("Use npm", True), ("Run lint", True)]
        agrees(one)
        assert one.text.count("Use bun") <= 1
    assert 5 < stops < MOST - 1


def test_a_file_that_was_edited_after_a_kill_decides(machine: Machine) -> None:
    """What was begun came about when the file says so, whatever else a person wrote into it since."""
    machine.signals("use bun")
    killed = next(at for at in range(1, MOST) if not _before_the_journal(machine.root / str(at), at))
    one = Machine(machine.root / str(killed))
    one.file.write_text(one.text + "\nmine\n")
    one.learn("Run lint")
    assert one.status_of("sig-20251120-001") == "promoted"
    assert one.text.endswith("\nmine\n")
    agrees(one)


def _before_the_journal(root: Path, at: int) -> bool:
    """Whether the file has no rule yet after a kill before this rename."""
    one = Machine(root)
    one.signals("use bun")
    one.killed(at, "rules.learn('Use bun', place, seen, signals=['sig-20251120-001'])")
    return "Use bun" not in one.text or bool(one.journal()["learned_rules"])


def test_whether_workshop_was_told_is_not_known_after_a_kill(machine: Machine) -> None:
    """Nothing is claimed."""
    machine.workshop("kill -9 $PPID")
    code = "rules.learn('Prefer short answers', rules.places(soft=True)[0], '', soft=True)"
    assert machine.killed(1_000, code)
    machine.path = "/nonexistent"
    machine.learn("Run lint")
    assert machine.entries() == [("rule-001", "Run lint", True)]


def test_a_write_that_fails_leaves_everything_as_it_was(machine: Machine) -> None:
    """The change is forgotten, journal and signals are untouched, and the message names the file."""
    machine.learn("Use npm")
    (name,) = machine.signals("use bun")
    machine.file.unlink()
    machine.file.mkdir()
    machine.rules.journal.read()
    with pytest.raises(Exception, match=r"CLAUDE\.md"):
        machine.learn("Use bun", signals=[name])
    assert machine.status_of(name) == "pending"
    assert [c.number for c in machine.rules.changes.all()] == [1]

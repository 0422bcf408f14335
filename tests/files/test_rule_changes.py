"""The changes that are kept of a project's rules: numbers, what is half done, what can't be read."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import pytest

from daemon.files.reflect_state import ReflectState
from daemon.files.rule_changes import KEPT, Change, Changes, digest, undone


def kept(tmp_path: Path) -> Changes:
    state = ReflectState(tmp_path / "state", tmp_path / "project")
    state.folder.mkdir(parents=True, exist_ok=True)
    return Changes(state)


def entry(name: str) -> dict[str, object]:
    return {"id": name, "content": "Use bun", "active": True}


def test_a_change_is_noted_finished_and_read_again(tmp_path: Path) -> None:
    """By another process too; one that did not come about is forgotten."""
    learned = ((None, entry("rule-001")),)
    promoted = (("sig-001", "pending", "promoted"),)
    changes = kept(tmp_path)
    changes.put(Change(1, 5, "learned rule-001", "CLAUDE.md", rules=learned, signals=promoted))
    (found,) = kept(tmp_path).all()
    assert (found.done, found.rules, found.signals) == (False, learned, promoted)
    changes.finished(found, retired=7)
    assert [(c.done, c.retired) for c in kept(tmp_path).all()] == [(True, 7)]
    assert changes.entries() == [entry("rule-001")]
    changes.drop(found)
    assert changes.all() == []


def test_numbers_are_not_given_twice(tmp_path: Path) -> None:
    """Neither of rules whose change is not kept any more, nor of revisions that outlive the list."""
    changes = kept(tmp_path)
    state = ReflectState(tmp_path / "state", tmp_path / "project")
    full = [asdict(Change(n, n, "x")) for n in range(1, KEPT + 1)]
    state.save("changes", {"list": full, "highest": 0}, 1)
    changes.put(Change(KEPT + 1, 1, "x", rules=((entry("rule-999"), None),)))
    assert [c.number for c in changes.all()] == list(range(KEPT + 1, 1, -1))
    assert (changes.next_number(), changes.highest_rule()) == (KEPT + 2, 999)
    state.save("changes", {"list": [], "highest": 999}, 1)
    changes.put(Change(1, 1, "x", rules=((None, entry("rule-001")),)))
    assert changes.highest_rule() == 999
    folder = changes.folder(".claude/CLAUDE.md")
    folder.mkdir(parents=True)
    (folder / "00000041.revision.json").write_text("{}")
    assert folder.name == ".claude%CLAUDE.md"
    assert changes.next_number() == 42


def test_an_undo_may_be_undone(tmp_path: Path) -> None:
    """What counts is the newest word."""
    first, second = Change(1, 1, "a"), Change(2, 2, "undo", undoes=1)
    third = Change(3, 3, "redo", undoes=2)
    assert undone([second, first]) == {1}
    assert undone([third, second, first]) == {2}
    assert digest(b"") == ""
    assert digest(b"x") != digest(b"y")


GOOD = asdict(Change(1, 5, "learned rule-001", "CLAUDE.md"))
ODD = [
    *({"what": 7}, {"file": None}, {"by": []}, {"retired": "1"}, {"rules": [[1, 2]]}, {"rules": [[None]]}),
    *({"number": "2"}, {"rules": [1]}),
]


@pytest.mark.parametrize("odd", [7, {"what": "x"}, *(GOOD | {"number": 2} | odd for odd in ODD)])
def test_what_can_not_be_understood_is_left_out(tmp_path: Path, odd: object) -> None:
    """Of a file that somebody edited, the changes that are whole stay; nothing is raised."""
    changes = kept(tmp_path)
    state = ReflectState(tmp_path / "state", tmp_path / "project")
    state.save("changes", {"list": [GOOD, odd], "highest": "many"}, 0)
    assert [c.number for c in changes.all()] == [1]
    assert changes.highest_rule() == 0

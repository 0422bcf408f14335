"""The changes that are kept of a project's rules: numbers, what is half done, what can't be read."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import pytest

from daemon.core.errors import UserError
from daemon.learning.rules.changes import KEPT, Change, Changes, digest, packed, undone
from daemon.learning.state import ReflectState


def kept(tmp_path: Path) -> Changes:
    state = ReflectState(tmp_path / "state", tmp_path / "project")
    state.folder.mkdir(parents=True, exist_ok=True)
    return Changes(state)


def entry(name: str) -> dict[str, object]:
    return {"id": name, "content": "Use bun", "active": True}


def test_a_change_is_kept_finished_and_read_again(tmp_path: Path) -> None:
    """By another process too, with what the file was; one that did not come about is forgotten."""
    learned = ((None, entry("rule-001")),)
    promoted = (("sig-001", "pending", "promoted"),)
    changes = kept(tmp_path)
    backup = packed(b"# Ours\r\n")
    changes.put(Change(1, 5, "learned rule-001", "CLAUDE.md", rules=learned, signals=promoted, backup=backup))
    (found,) = kept(tmp_path).all()
    assert (found.done, found.rules, found.signals) == (False, learned, promoted)
    assert (found.content(), Change(2, 5, "x").content()) == (b"# Ours\r\n", b"")
    changes.finished(found, retired=7)
    assert [(c.done, c.retired) for c in kept(tmp_path).all()] == [(True, 7)]
    assert changes.entries() == [entry("rule-001")]
    changes.drop(found)
    assert changes.all() == []


def test_the_newest_stay_and_numbers_are_not_given_twice(tmp_path: Path) -> None:
    """As many as ``KEPT``; the next number is above all of them, and so is that of the next rule."""
    changes = kept(tmp_path)
    for number in range(1, KEPT + 2):
        changes.put(Change(number, 1, "x", rules=((entry(f"rule-{number:03d}"), None),)))
    assert [c.number for c in changes.all()] == list(range(KEPT + 1, 1, -1))
    assert (changes.next_number(), changes.highest_rule()) == (KEPT + 2, KEPT + 1)


def test_an_undo_may_be_undone(tmp_path: Path) -> None:
    """What counts is the newest word."""
    first, second = Change(1, 1, "a"), Change(2, 2, "undo", undoes=1)
    third = Change(3, 3, "redo", undoes=2)
    assert undone([second, first]) == {1}
    assert undone([third, second, first]) == {2}
    assert digest(b"") == ""
    assert digest(b"x") != digest(b"y")
    with pytest.raises(UserError, match=r"CLAUDE.md was before change 1 can't be read"):
        Change(1, 1, "a", "CLAUDE.md", backup=b"x").content()


ODD = [
    *({"what": 7}, {"file": None}, {"by": []}, {"retired": "1"}, {"rules": [[1, 2]]}, {"rules": [[None]]}),
    *({"number": "2"}, {"rules": [1]}, {"backup": "!"}),
]


@pytest.mark.parametrize("odd", [7, {"extra": 1, "what": None}, *ODD])
def test_what_can_not_be_understood_is_left_out(tmp_path: Path, odd: object) -> None:
    """Of a folder that somebody edited, the changes that are whole stay; nothing is raised."""
    changes = kept(tmp_path)
    changes.put(Change(1, 5, "learned rule-001", "CLAUDE.md"))
    good = {**asdict(changes.all()[0]), "number": 2}
    folder = ReflectState(tmp_path / "state", tmp_path / "project").folder / "changes"
    (folder / "00000002.json").write_text(json.dumps(good | odd if isinstance(odd, dict) else odd))
    (folder / "notes.json").write_text("{}")
    assert [c.number for c in changes.all()] == [1]

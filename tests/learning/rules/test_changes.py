"""The changes that are kept of a project's rules: numbers, what can't be read, files of older versions."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from daemon.learning.revisions import KEPT
from daemon.learning.rules.changes import Change, Changes, changes_of, entries, highest_rule
from daemon.learning.state import ReflectState


def kept(tmp_path: Path) -> Changes:
    return changes_of(ReflectState(tmp_path / "state", tmp_path / "project"))


def entry(name: str) -> dict[str, object]:
    return {"id": name, "content": "Use bun", "active": True}


def test_the_newest_stay_and_numbers_are_not_given_twice(tmp_path: Path) -> None:
    """As many as ``KEPT``, numbered through all files; the next rule's number is above all of them."""
    changes = kept(tmp_path)
    for n in range(1, KEPT + 2):
        name = f"CLAUDE-{n}.md"
        made = Change(0, 1, "x", rules=((None, entry(f"rule-{n:03d}")),), file=name)
        changes.keep(made, b"x", file=tmp_path / name)
    assert [(c.number, c.file) for c in changes.all()][:2] == [
        (KEPT + 1, "CLAUDE-101.md"),
        (KEPT, "CLAUDE-100.md"),
    ]
    assert (len(changes.all()), highest_rule(changes)) == (KEPT, f"rule-{KEPT + 1}")
    assert entries(changes)[0] == entry(f"rule-{KEPT + 1}")
    changes.drop(changes.all()[0])
    assert changes.all()[0].number == KEPT


ODD = [
    *({"what": 7}, {"file": None}, {"by": []}, {"rules": [[1, 2]]}, {"rules": [[None]]}),
    *({"number": "2"}, {"rules": [1]}, {"content_before": "!"}, {"content_before": 1}),
]


@pytest.mark.parametrize("odd", [7, {"extra": 1, "what": None}, *ODD])
def test_what_can_not_be_understood_is_left_out(tmp_path: Path, odd: object) -> None:
    """Of a folder that somebody edited, the changes that are whole stay; nothing is raised."""
    changes = kept(tmp_path)
    changes.note(Change(0, 5, "learned rule-001"))
    folder = ReflectState(tmp_path / "state", tmp_path / "project").folder / "changes"
    (path,) = folder.iterdir()
    good = {**json.loads(path.read_text()), "number": 2}
    (folder / "00000002.json").write_text(json.dumps(good | odd if isinstance(odd, dict) else odd))
    (folder / "notes.json").write_text("{}")
    assert [c.number for c in changes.all()] == [1]


def test_a_change_of_an_older_version_is_read(tmp_path: Path) -> None:
    """With what the file was; new numbers go on above it."""
    folder = ReflectState(tmp_path / "state", tmp_path / "project").folder / "changes"
    folder.mkdir(parents=True)
    old = {"number": 7, "at": 5, "what": "learned rule-001", "file": "CLAUDE.md", "soft": False, "done": True}
    old |= {"before": "b", "after": "a", "retired": 3, "rules": [], "signals": [], "undoes": 0}
    (folder / "00000007.json").write_text(json.dumps(old | {"backup": "eJxTVvAvLSpWAAAHdwIN"}))
    changes = kept(tmp_path)
    (found,) = changes.all()
    assert (found.number, found.file, changes.before(found)) == (7, "CLAUDE.md", b"# Ours ")
    assert changes.note(Change(0, 6, "x")).number == 8

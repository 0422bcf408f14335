"""A person's word on points of a playbook: only on what they saw, and whole."""

from __future__ import annotations

from pathlib import Path

import pytest

from daemon.core.errors import UserError
from daemon.learning.playbook.project_playbook import (
    dumped,
    may_count,
    never_again,
    take_back,
    vouch,
)
from daemon.learning.rules.learned_rules import LearnedRules
from daemon.testing import FakeClock
from tests.learning.playbook.books import book, point


@pytest.fixture
def rules(tmp_path: Path) -> LearnedRules:
    """A project whose playbook came with it."""
    project = tmp_path / "work"
    project.mkdir()
    found = LearnedRules(project, tmp_path / "state", FakeClock())
    file = found.playbook.path
    file.parent.mkdir()
    file.write_bytes(dumped(book(point("pat-001", "Use pathlib."), point("pat-002", "See https://x.dev/a."))))
    return found


def test_what_agents_may_not_read_is_refused(rules: LearnedRules) -> None:
    """One such text refuses all of them."""
    named = {"pat-001": "Use pathlib.", "pat-002": "See https://x.dev/a."}
    for refused in (lambda: may_count(named), lambda: vouch(rules.playbook, named)):
        with pytest.raises(UserError, match="pat-002 may not be offered to agents: it names an address"):
            refused()
    assert rules.playbook.known().approved == {}


def test_another_text_than_was_seen_is_left_alone(rules: LearnedRules) -> None:
    """Neither vouched for nor removed; the same for a point that is gone."""
    playbook = rules.playbook
    for refused in (
        lambda: vouch(playbook, {"pat-001": "Use os.path."}),
        lambda: take_back(rules.playbook, rules.journal, "pat-001", "Use os.path."),
    ):
        with pytest.raises(UserError, match="pat-001 was edited while you were asked"):
            refused()
    with pytest.raises(UserError, match="pat-009 is not in the playbook any more"):
        take_back(rules.playbook, rules.journal, "pat-009", "Use pathlib.")
    assert rules.journal.read().journal["tombstones"] == []


def test_what_is_taken_back_never_comes_again(rules: LearnedRules) -> None:
    """The point is gone with a revision, and one tombstone stays however often it is said."""
    take_back(rules.playbook, rules.journal, "pat-001", "Use pathlib.", by="dashboard")
    never_again(rules.journal, "Use pathlib.")
    assert [r.by for r in rules.playbook.history()] == ["dashboard"]
    assert [stone["content"] for stone in rules.journal.read().journal["tombstones"]] == ["Use pathlib."]

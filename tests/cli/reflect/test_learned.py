"""``reflectd learned``: everything that was learned in one view, and each taken back by a person."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from daemon.clock import SystemClock
from daemon.core.learned import Origin
from daemon.files.project_playbook import ProjectPlaybook
from daemon.files.reflect_state import ReflectState
from daemon.store import learning
from daemon.store.db import Database
from harness.machine.reflectd import Daemon
from tests.cli.reflect.past import journal, session
from tests.cli.reflect.person import at_a_terminal
from tests.support.machine.command_line import reflectd, said

if TYPE_CHECKING:
    from harness.machine.sandbox import Sandbox

TEXT = "The tests need a running database, else all of them fail."


def kept_apart(box: Sandbox, text: str) -> None:
    """A text that a session taught and no other one has shown."""
    db = Database(box.state / "reflectd.sqlite3", SystemClock().now_ms)
    project = str(Path(box.project).resolve())
    origin = Origin("curator", "s1", why="the tests failed without it")
    asyncio.run(db.commit(learning.quarantine(project, "PROJECT CONTEXT", text, "s1", 1, origin)))
    db.close()


def filled(box: Sandbox) -> None:
    assert at_a_terminal(box, ["reflect", "learn", "Use bun"], "y")[0] == 0
    assert at_a_terminal(box, ["reflect", "learn", "Prefer short answers", "--soft"], "y")[0] == 0
    said(reflectd(box, "playbook", "add", "Use pathlib."), 0)


def stones(box: Sandbox) -> list[str]:
    return sorted(ReflectState(box.state, box.project).load("tombstones"))


@pytest.mark.full("a pseudo-terminal is driven")
def test_everything_is_in_one_view(box: Sandbox) -> None:
    """Rules, preferences, points and what waits, each with where it comes from; the verb alone shows it."""
    said(reflectd(box, "learned"), 0, "nothing yet", "what waits is not known: no daemon answers")
    filled(box)
    kept_apart(box, TEXT)
    with Daemon(box, REFLECTD_PLAYBOOK_ENABLED="true"):
        text = said(reflectd(box, "learned"), 0)
        found = json.loads(reflectd(box, "learned", "show", "--json").stdout)
    order = ["rules: what you want", "rule-001  Use bun (CLAUDE.md:", "preferences: what you like"]
    order += ["rule-002  Prefer short answers (.claude/memory/preferences.md:", "points: what works here"]
    order += ["oth-001   Use pathlib. (+0 -0, from the file: nobody vouches for it"]
    order += ["waiting for your word", f"new-1     {TEXT} (from session s1, ", "the tests failed without it"]
    assert [text.index(part) for part in order] == sorted(text.index(part) for part in order)
    assert [r["id"] for r in found["rules"]] == ["rule-001"]
    assert [r["id"] for r in found["preferences"]] == ["rule-002"]
    assert [(p["name"], p["section"]) for p in found["points"]] == [("oth-001", "OTHERS")]
    assert [p["name"] for p in found["waiting"]] == ["new-1"]
    assert found["daemon"] is True


@pytest.mark.shows("I47")
@pytest.mark.full("a pseudo-terminal is driven")
def test_each_is_taken_back_by_a_person(box: Sandbox) -> None:
    """A rule and a preference are archived, a point is removed; the latter is never learned again."""
    filled(box)
    said(reflectd(box, "learned", "undo", "oth-001", stdin=b"y\n"), 2, "do it on a terminal")
    said(reflectd(box, "learned", "undo", "rule-001", stdin=b"y\n"), 2, "do it on a terminal")
    said(reflectd(box, "learned", "undo", "pat-009"), 2, "nothing that was learned is called 'pat-009'")
    said(reflectd(box, "learned", "undo", "new-9"), 2, "new-9 is not known: no daemon answers")
    said(
        reflectd(box, "learned", "undo", "oth-001", "--dry-run"),
        0,
        'shall oth-001 "Use pathlib." be taken back',
    )
    found = json.loads(said(reflectd(box, "learned", "undo", "oth-001", "--json"), 0))
    assert (found["changed"], found["point"]["name"]) == (False, "oth-001")
    assert at_a_terminal(box, ["learned", "undo", "oth-001"], "n")[0] == 1
    assert stones(box) == []
    assert at_a_terminal(box, ["learned", "undo", "oth-001"], "y")[0] == 0
    assert stones(box) == ["Use pathlib."]
    assert ProjectPlaybook(box.project, box.state, SystemClock(), "").history()[0].what == "took back oth-001"
    assert at_a_terminal(box, ["learned", "undo", "rule-001"], "y", "")[0] == 0
    assert at_a_terminal(box, ["learned", "undo", "rule-002"], "y", "")[0] == 0
    found = json.loads(reflectd(box, "learned", "--json").stdout)
    assert (found["rules"], found["preferences"], found["points"]) == ([], [], [])
    assert "**[rule-001]** Use bun (archived: " in (box.project / "CLAUDE.md").read_text()


@pytest.mark.full("a pseudo-terminal is driven")
def test_what_waits_is_dismissed_for_good(box: Sandbox) -> None:
    """By the daemon, and by a tombstone."""
    kept_apart(box, TEXT)
    with Daemon(box, REFLECTD_PLAYBOOK_ENABLED="true"):
        assert at_a_terminal(box, ["learned", "undo", "new-1"], "y")[0] == 0
        assert json.loads(reflectd(box, "learned", "--json").stdout)["waiting"] == []
        said(reflectd(box, "playbook", "approve"), 0, "nothing waits for a word of yours")
    assert stones(box) == [TEXT]


@pytest.mark.shows("PATH_DECISION-1")
@pytest.mark.full("a pseudo-terminal is driven")
def test_what_agents_learned_makes_no_rule(box: Sandbox) -> None:
    """Points are no signals and never suggested as rules; a rule changes no other point."""
    said(reflectd(box, "playbook", "add", "Always use pathlib."), 0)
    points = (box.project / ".reflection" / "playbook.json").read_bytes()
    session(box, "a", "Always run lint first")
    said(reflectd(box, "reflect", "scan"), 0)
    found = json.loads(said(reflectd(box, "reflect", "--json"), 0))
    assert [p["content"] for p in found["patterns"]] == ["Always run lint first"]
    assert at_a_terminal(box, ["reflect", "learn", "Use bun"], "y")[0] == 0
    assert (box.project / ".reflection" / "playbook.json").read_bytes() == points
    assert [e["content"] for e in journal(box)["learned_rules"]] == ["Use bun"]


@pytest.mark.full("a pseudo-terminal is driven")
def test_a_rule_retires_the_point_that_says_the_same(box: Sandbox) -> None:
    """It became the rule, and comes back with its undo."""
    said(reflectd(box, "playbook", "add", "Use bun."), 0)
    code, screen = at_a_terminal(box, ["reflect", "learn", "use bun"], "y")
    assert code == 0
    assert "oth-001 of the playbook became rule-001" in " ".join(screen.split())
    assert json.loads(reflectd(box, "learned", "--json").stdout)["points"] == []
    assert at_a_terminal(box, ["reflect", "undo"], "y")[0] == 0
    found = json.loads(reflectd(box, "learned", "--json").stdout)
    assert ([p["name"] for p in found["points"]], found["rules"]) == (["oth-001"], [])

"""``reflectd reflect status``: what is in the journal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from daemon.clock import SystemClock
from daemon.files.journal import ProjectJournal
from daemon.rules.journal import archive, promote
from tests.cli.reflect.past import asked, journal, session
from tests.support.machine.command_line import reflectd, said

if TYPE_CHECKING:
    from daemon.rules.journal import Journal
    from harness.machine.sandbox import Sandbox


def test_reflect_status_shows_journal_summary(box: Sandbox) -> None:
    """The acceptance criterion of that name: signals by status, rules, what is suggested; nothing changes."""
    said(reflectd(box, "reflect", "status"), 0, "0 signals")
    session(box, "a", "Always run lint first", "No, use strict mode", "From now on answer in English")
    asked(box)

    def decide(found: Journal) -> None:
        names = [s["id"] for s in found["signals"] if "English" in s["content"]]
        promote(found, names, content="Answer in English", target="claude_md", file="CLAUDE.md", day="d")
        promote(found, [], content="Use tabs", target="claude_md", file="CLAUDE.md", day="d")
        archive(found, "rule-002", reason="spaces", day="d")

    ProjectJournal(box.project, box.state, SystemClock()).change(decide)
    before = journal(box)
    shown = said(reflectd(box, "reflect", "status"), 0, "3 signals, 2 pending, 1 promoted, 0 dismissed")
    assert "1 active rule, 1 archived" in shown
    assert "suggested as rules\n  sig-20261120-001  Always run lint first (1 session, high" in shown
    assert "not often enough yet\n  sig-20261120-002  Use strict mode (1 session, medium" in shown
    found = asked(box, "status")
    assert found["counts"] == {"pending": 2, "promoted": 1, "dismissed": 0}
    assert found["rules"] == {"active": 1, "archived": 1}
    assert "sightings" not in found["suggested"][0]
    assert journal(box) == before


def test_a_journal_that_can_not_be_used_is_an_error(box: Sandbox) -> None:
    """I43: it is named, and stays as it is."""
    session(box, "a", "Always run lint first")
    asked(box)
    path = box.project / ".claude" / "orchestration" / "temp" / "reflect-journal.json"
    path.write_text("[]")
    said(reflectd(box, "reflect", "status"), 2, "is no journal that can be used: it is no object")
    assert path.read_text() == "[]"


def test_foreign_text_does_nothing_to_the_terminal(box: Sandbox) -> None:
    """What a person pasted may hold control characters."""
    session(box, "a", "Always run \x1b[2Jlint\x07 first")
    text = said(reflectd(box, "reflect", "scan"), 0, "lint")
    assert "\x1b" not in text
    assert "\x07" not in text

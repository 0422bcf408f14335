"""``reflectd reflect status``: what is in the journal."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from daemon.clock import SystemClock
from daemon.files.journal import ProjectJournal
from daemon.rules.journal import Adding, Seen, archive, promote
from tests.cli.reflect.past import asked, journal, session
from tests.support.machine.command_line import reflectd, said
from tests.support.reflecting import learned

if TYPE_CHECKING:
    from daemon.rules.journal import Journal
    from harness.machine.sandbox import Sandbox


@pytest.mark.shows("AC-REFLECT-10")
def test_reflect_status_shows_journal_summary(box: Sandbox) -> None:
    """Signals by status, rules, what is suggested; nothing changes."""
    said(reflectd(box, "reflect", "status"), 0, "0 signals")
    session(box, "a", "Always run lint first", "No, use strict mode", "From now on answer in English")
    asked(box)

    def decide(found: Journal) -> None:
        names = [s["id"] for s in found["signals"] if "English" in s["content"]]
        promote(found, names, content="Answer in English", target="claude_md", file="CLAUDE.md", day="d")
        promote(found, [], content="Use tabs", target="claude_md", file="CLAUDE.md", day="d")
        archive(found, "rule-002", reason="spaces", day="d")

    ProjectJournal(box.project, box.state, SystemClock()).change(decide)
    active = "### Active Rules\n- **[rule-001]** Answer in English (learned: 2026-11-20)\n"
    archived = "### Archived Rules\n- **[rule-002]** Use tabs (archived: 2026-11-20)\n"
    box.file("CLAUDE.md", f"## Learned Rules (via /reflect)\n\n{active}\n{archived}")
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


@pytest.mark.shows("FR3")
def test_praise_and_blame_are_told_apart(box: Sandbox) -> None:
    """They are never suggested, however often they come up, so they do not wait for anything."""
    session(box, "a", "This broke the login flow.", "No, use strict mode")
    found = asked(box)
    assert [s["type"] for s in found["feedback"]] == ["feedback"]
    assert [s["content"] for s in found["waiting"]] == ["Use strict mode"]
    text = said(reflectd(box, "reflect", "status"), 0)
    assert "broke the login" in text.partition("praise and blame, which make no rule\n")[2]


@pytest.mark.shows("FR8")
def test_worn_rules_are_listed_and_nothing_follows(box: Sandbox) -> None:
    """What was contradicted twice is suggested for unlearning; what was contradicted once, or not confirmed
    for 90 days, is shown. Nothing is done about it.
    """
    for text in ("Use npm", "Run lint first", "Answer in English"):
        learned(box, text)
    file = box.project / "CLAUDE.md"
    file.write_text(file.read_text() + "- **[rule-009]** Use npm everywhere (learned: 2025-01-01)\n")

    def later(found: Journal) -> None:
        for rule in found["learned_rules"]:
            rule["promoted_at"] = "2026-01-01"
        found["learned_rules"][2]["promoted_at"] = book.day()
        adding = Adding(found)
        for n, text in enumerate(
            ("Use bun instead of npm", "Use bun instead of npm", "Never run lint first")
        ):
            adding.add(Seen("correction", text, "low", "2026-02-01", f"s{n}", f"m{n}"))

    book = ProjectJournal(box.project, box.state, SystemClock())
    book.change(later)
    before = file.read_text()
    found = asked(box, "status")["worn"]
    assert [(r["id"], r["contradicted"], r["suggest_unlearning"]) for r in found] == [
        ("rule-001", 2, True),
        ("rule-002", 1, False),
    ]
    assert all(r["unconfirmed_days"] > 90 for r in found)
    text = said(reflectd(box, "reflect", "status"), 0)
    order = ["perhaps to be unlearned", "rule-001  Use npm", "you contradicted it 2 times (sig-20260201-001)"]
    order += ["contradicted, or not confirmed for long", "rule-002  Run lint first"]
    order += ["you contradicted it once (sig-20260201-002)"]
    assert [text.index(part) for part in order] == sorted(text.index(part) for part in order)
    assert text.count("nobody confirmed it for") == 2
    assert "rule-003" not in text.partition("perhaps to be")[2]
    assert "rule-009" not in text, "a colleague's rule is not this person's to unlearn"
    assert file.read_text() == before


def test_foreign_text_does_nothing_to_the_terminal(box: Sandbox) -> None:
    """What a person pasted may hold control characters."""
    session(box, "a", "Always run \x1b[2Jlint\x07 first")
    text = said(reflectd(box, "reflect", "scan"), 0, "lint")
    assert "\x1b" not in text
    assert "\x07" not in text

"""``reflectd reflect history``: all rules with their dates, what wore them, and each change."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from daemon.clock import SystemClock
from daemon.files.journal import ProjectJournal
from tests.cli.reflect.person import at_a_terminal
from tests.support.machine.command_line import reflectd, said

if TYPE_CHECKING:
    from harness.machine.sandbox import Sandbox


def signal(number: int, content: str, first: str, last: str, seen: int = 1) -> dict[str, Any]:
    return {
        "id": f"sig-20260101-{number:03d}", "type": "correction", "content": content, "severity": "high",
        "status": "pending", "occurrences": seen, "first_seen": first, "last_seen": last, "sightings": {},
    }  # fmt: skip


@pytest.mark.shows("AC-REFLECT-11")
@pytest.mark.full("a pseudo-terminal is driven")
def test_reflect_history_shows_all_rules(box: Sandbox) -> None:
    """Active and archived ones with dates, preferences, another's, and the changes."""
    said(reflectd(box, "reflect", "history"), 0, "no rule was learned in")
    for text in ("Use npm", "Run lint first"):
        assert at_a_terminal(box, ["reflect", "learn", text], "y")[0] == 0
    assert at_a_terminal(box, ["reflect", "learn", "Prefer short answers", "--soft"], "y")[0] == 0
    assert at_a_terminal(box, ["reflect", "unlearn", "npm", "--why", "bun"], "y")[0] == 0
    file = box.project / "CLAUDE.md"
    added = "- **[rule-009]** Theirs\n- Never use tabs\n\n### Archived"
    file.write_text(file.read_text().replace("\n### Archived", added))
    text = said(reflectd(box, "reflect", "history"), 0)
    order = ["active rules", "rule-002  Run lint first (CLAUDE.md:", "rule-009  Theirs", "somebody else's"]
    order += ["active preferences", "rule-003  Prefer short answers (.claude/memory/preferences.md:"]
    order += [
        "archived",
        "rule-001  Use npm (CLAUDE.md:",
        "your own words among them",
        "Never use tabs (CLAUDE.md:",
        "changes",
        "  4  ",
        "archived rule-001: bun",
    ]
    at = 0
    for part in order:
        assert part in text[at:], f"{part!r} is not behind the others in:\n{text}"
        at = text.index(part, at)
    found = json.loads(said(reflectd(box, "reflect", "history", "--json"), 0))
    assert [(r["id"], r["active"], r["target"], r["note"]) for r in found["rules"]] == [
        ("rule-001", False, "claude_md", ""),
        ("rule-002", True, "claude_md", ""),
        ("rule-003", True, "workshop_preference", ""),
        ("rule-009", True, "claude_md", "another"),
    ]
    assert [(c["number"], c["undone"]) for c in found["changes"]] == [(n, False) for n in (4, 3, 2, 1)]
    assert [line["text"] for line in found["by_hand"]] == ["Never use tabs"]
    assert file.read_text().count("rule-00") == 3


@pytest.mark.shows("FR8")
@pytest.mark.full("a pseudo-terminal is driven")
def test_a_rule_that_is_contradicted_twice_is_suggested_for_unlearning(box: Sandbox) -> None:
    """And one that nobody confirmed for 90 days is told; nothing follows from it by itself."""
    assert at_a_terminal(box, ["reflect", "learn", "Use npm"], "y")[0] == 0
    journal = ProjectJournal(box.project, box.state, SystemClock())

    def edit(found: dict[str, Any]) -> None:
        found["learned_rules"][0]["promoted_at"] = "2026-01-01"
        found["signals"] = [
            signal(1, "Use bun instead of npm", "2026-02-01", "2026-03-01", seen=2),
            signal(2, "Never use npm", "2025-01-01", "2025-02-01", seen=5),
        ]

    journal.change(edit)
    before = (box.project / "CLAUDE.md").read_text()
    text = said(reflectd(box, "reflect", "history"), 0)
    assert "you contradicted it 2 times (sig-20260101-001): reflectd reflect unlearn rule-001" in text
    assert "nobody confirmed it for" in text
    (rule,) = json.loads(reflectd(box, "reflect", "history", "--json").stdout)["rules"]
    assert (rule["contradicted"], rule["suggest_unlearning"]) == (2, True)
    said(reflectd(box, "reflect", "status"), 0, "rule-001", "contradicted it 2 times")
    assert (box.project / "CLAUDE.md").read_text() == before

"""`reflectd reflect status`, `history` and the help: what is there, and nothing changes."""

from __future__ import annotations

import json
import re

import pytest

from daemon.learning.rules.journal import Adding, Kind, Reading, Severity, Sighting
from harness.machine.sandbox import Sandbox
from tests.cli.reflect.past import asked
from tests.cli.reflect.person import at_a_terminal
from tests.support.machine.command_line import reflectd, said
from tests.support.reflecting import book_of, journal, learned


def heard(box: Sandbox, *said: tuple[str, Severity], kind: Kind = "correction") -> None:
    """Each of these in one session, as a model read it."""
    with book_of(box).change() as draft:
        adding = Adding(draft.journal)
        for n, (text, severity) in enumerate(said):
            adding.add(Reading(kind, text, severity), Sighting("s1", f"{kind}{n}", "2026-11-20"))


@pytest.mark.shows("AC-REFLECT-10")
def test_reflect_status_shows_journal_summary(box: Sandbox) -> None:
    """Signals by status, rules, what is suggested; nothing changes."""
    said(reflectd(box, "reflect", "status"), 0, "0 signals")
    heard(
        box, ("Always run lint first", "high"), ("Use strict mode", "medium"), ("Answer in English", "high")
    )

    with book_of(box).change() as draft:
        draft.journal["signals"][2]["status"] = "promoted"
        for n, text in enumerate(("Answer in English", "Use tabs"), 1):
            rule = {"id": f"rule-00{n}", "content": text, "file": "CLAUDE.md", "active": n == 1}
            draft.journal["learned_rules"].append(rule | {"target": "claude_md", "source_signals": []})
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
    heard(box, ("This broke the login flow.", "low"), kind="negative")
    heard(box, ("Use strict mode", "medium"))
    found = asked(box, "status")
    assert [s["type"] for s in found["feedback"]] == ["feedback"]
    assert [s["content"] for s in found["waiting"]] == ["Use strict mode"]
    text = said(reflectd(box, "reflect", "status"), 0)
    assert "broke the login" in text.partition("praise and blame, which make no rule\n")[2]


@pytest.mark.shows("FR8")
def test_worn_rules_are_listed_and_nothing_follows(box: Sandbox) -> None:
    """Those contradicted twice are suggested for unlearning; how often is shown. Nothing is done about it."""
    for text in ("Use npm", "Run lint first", "Answer in English"):
        learned(box, text)
    file = box.project / "CLAUDE.md"
    file.write_text(file.read_text() + "- **[rule-009]** Use npm everywhere (learned: 2025-01-01)\n")

    with book_of(box).change() as draft:
        for rule in draft.journal["learned_rules"]:
            rule["promoted_at"] = "2026-01-01"
        draft.journal["learned_rules"][2]["promoted_at"] = book_of(box).day()
        adding = Adding(draft.journal)
        for n, (text, number) in enumerate((("Use bun", 1), ("Use bun", 1), ("Never run lint first", 2))):
            reading = Reading("correction", text, "low", (f"rule-00{number}",))
            adding.add(reading, Sighting(f"s{n}", f"m{n}", "2026-02-01"))
    before = file.read_text()
    found = asked(box, "status")["worn"]
    assert [(r["id"], r["contradicted"], r["suggest_unlearning"]) for r in found] == [
        ("rule-001", 2, True),
        ("rule-002", 1, False),
    ]
    text = said(reflectd(box, "reflect", "status"), 0)
    told = "you contradicted it 2 times (sig-20260201-001)"
    said(reflectd(box, "reflect", "history"), 0, f"{told}: reflectd reflect unlearn rule-001")
    said(reflectd(box, "reflect", "history"), 0, "you contradicted it once (sig-20260201-002)")
    order = ["perhaps to be unlearned", "rule-001  Use npm", told]
    assert [text.index(part) for part in order] == sorted(text.index(part) for part in order)
    assert "rule-002" not in text.partition("perhaps to be")[2]
    assert "rule-009" not in text, "a colleague's rule is not this person's to unlearn"
    assert file.read_text() == before


@pytest.mark.shows("AC-REFLECT-11", "TR6")
@pytest.mark.full("a pseudo-terminal is driven")
def test_reflect_history_shows_all_rules(box: Sandbox) -> None:
    """Active and archived ones with dates, preferences, another's, and the person's own lines."""
    said(reflectd(box, "reflect", "history"), 0, "no rule was learned in")
    for text in ("Use npm", "Run lint first"):
        learned(box, text)
    assert at_a_terminal(box, ["reflect", "learn", "Prefer short answers", "--soft"], "w")[0] == 0
    assert at_a_terminal(box, ["reflect", "unlearn", "npm", "--why", "bun"], "a")[0] == 0
    file = box.project / "CLAUDE.md"
    added = "- **[rule-009]** Theirs\n- Never use tabs\n\n### Archived"
    file.write_text(file.read_text().replace("\n### Archived", added))
    text = said(reflectd(box, "reflect", "history"), 0)
    order = ["active rules", "rule-002  Run lint first (CLAUDE.md:", "rule-009  Theirs", "somebody else's"]
    order += ["active preferences", "rule-003  Prefer short answers (.claude/memory/preferences.md:"]
    order += ["archived", "rule-001  Use npm (CLAUDE.md:", "your own words among them", "Never use tabs ("]
    assert re.search(".*".join(map(re.escape, order)), text, re.DOTALL), text
    found = json.loads(said(reflectd(box, "reflect", "history", "--json"), 0))
    assert [(r["id"], r["active"], r["target"], r["note"]) for r in found["rules"]] == [
        ("rule-001", False, "claude_md", ""),
        ("rule-002", True, "claude_md", ""),
        ("rule-003", True, "workshop_preference", ""),
        ("rule-009", True, "claude_md", "another"),
    ]
    assert [line["text"] for line in found["by_hand"]] == ["Never use tabs"]
    assert file.read_text().count("rule-00") == 3


def test_each_action_is_in_the_help(box: Sandbox) -> None:
    """A misspelled one is answered with the nearest; without one the review is meant."""
    text = said(reflectd(box, "reflect", "--help"), 0)
    actions = ("review", "status", "learn", "unlearn", "history", "propose", "apply")
    assert [name for name in actions if f"    {name} " not in text] == []
    said(reflectd(box, "reflect", "unlern", "x"), 2, "did you mean `unlearn`?")
    said(reflectd(box, "reflect", "--nonsense"), 2, "usage: reflectd reflect review", "unrecognized")

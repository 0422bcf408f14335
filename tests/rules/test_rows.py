"""What stands: files and journal matched, and the journal made to say what the files say."""

from __future__ import annotations

from typing import Any

from daemon.rules import journal as journals
from daemon.rules.rows import reconcile, standing
from daemon.rules.section import PREFERENCES, Document

DAY = "2025-11-27"


def journal(*rules: tuple[str, str, bool]) -> dict[str, Any]:
    found = journals.empty("p", "2025-01-01T00:00:00Z")
    for name, content, active in rules:
        entry = journals.promote(
            found, [], content=content, target="claude_md", file="CLAUDE.md", day="2025-01-01"
        )
        entry |= {"id": name, "active": active}
    return found


def document(*rules: tuple[str, str]) -> Document:
    doc = Document(b"")
    for name, text in rules:
        doc = Document(doc.append(name, text, "2025-01-01"))
    return doc


def test_the_file_decides() -> None:
    """A line that is gone, archived or back again; its other file; and nothing for what Workshop keeps."""
    found = journal(("rule-001", "A one", True), ("rule-002", "B two", True), ("rule-003", "C three", False))
    found["learned_rules"].append({
        "id": "rule-004", "content": "D four", "source_signals": [], "target": "workshop_preference",
        "file": "workshop", "active": True,
    })  # fmt: skip
    doc = document(("rule-002", "B two"), ("rule-003", "C three"))
    archived = Document(doc.archive(doc.rules[0], "2025-02-02", "why"))
    reconcile(found, [("AGENTS.md", archived)], [], DAY)
    entries = {e["id"]: e for e in found["learned_rules"]}
    assert [e["active"] for e in found["learned_rules"]] == [False, False, True, True]
    assert entries["rule-001"]["reason"] == "not in the file any more"
    archived_as = {"reason": "why", "archived_at": "2025-02-02", "file": "AGENTS.md"}
    assert archived_as.items() <= entries["rule-002"].items()
    before = str(found)
    reconcile(found, [("AGENTS.md", archived)], [], "2026-01-01")
    assert str(found) == before, "a second time changes nothing"


def test_what_was_ours_is_ours_again() -> None:
    """An entry that the journal lost comes back when its line stands there word for word; others' do not."""
    found, doc = journal(), document(("rule-001", "A one"), ("rule-002", "B two"))
    ours = journal(("rule-001", "A one", True), ("rule-002", "B other", True))["learned_rules"]
    reconcile(found, [("CLAUDE.md", doc)], ours, DAY)
    assert [e["id"] for e in found["learned_rules"]] == ["rule-001"]
    assert [s.note for s in standing(found, [("CLAUDE.md", doc)])] == ["", "another"]


def test_of_two_lines_with_one_id_the_same_text_is_ours() -> None:
    """As a merge leaves them; the other one is another's."""
    doc = document(("rule-001", "Theirs"), ("rule-001", "Ours"))
    rows = standing(journal(("rule-001", "Ours", True)), [("CLAUDE.md", doc)])
    assert [(r.text, r.note, r.line) for r in rows] == [("Theirs", "another", 5), ("Ours", "", 6)]


def test_a_preference_is_no_rule() -> None:
    """One id is looked for in the file of its kind only."""
    soft = Document(Document(b"", PREFERENCES).append("rule-001", "A one", DAY), PREFERENCES)
    rows = standing(journal(("rule-001", "A one", True)), [("preferences.md", soft)])
    assert [(r.soft, r.note) for r in rows] == [(False, "gone"), (True, "another")]

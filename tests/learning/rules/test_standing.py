"""What stands: files and journal matched, and the journal made to say what the files say."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from daemon.learning.rules import journal as journals
from daemon.learning.rules.section import PREFERENCES, Document
from daemon.learning.rules.standing import Standing, by_hand, contradicting, matched

DAY = "2025-11-27"


def journal(*rules: tuple[str, str, bool]) -> dict[str, Any]:
    found = journals.empty("p", "2025-01-01T00:00:00Z")
    for name, content, active in rules:
        entry = {"id": name, "content": content, "source_signals": [], "promoted_at": "2025-01-01"}
        entry |= {"target": "claude_md", "file": "CLAUDE.md", "active": active}
        found["learned_rules"].append(entry)
    return found


def test_the_file_decides() -> None:
    """A line that is gone, archived or back again; its other file; and nothing for what Workshop keeps."""
    found = journal(("rule-001", "A one", True), ("rule-002", "B two", True), ("rule-003", "C three", False))
    found["learned_rules"].append({
        "id": "rule-004", "content": "D four", "source_signals": [], "target": "workshop_preference",
        "file": "workshop", "active": True,
    })  # fmt: skip
    doc = Document(Document(b"").append("rule-002", "B two", DAY))
    doc = Document(doc.append("rule-003", "C three", DAY))
    archived = Document(doc.archive(doc.rules[0], "2025-02-02", "why"))
    matched(found, [("AGENTS.md", archived)], [], DAY)
    entries = {e["id"]: e for e in found["learned_rules"]}
    assert [e["active"] for e in found["learned_rules"]] == [False, False, True, True]
    assert entries["rule-001"]["reason"] == "not in the file any more"
    archived_as = {"reason": "why", "archived_at": "2025-02-02", "file": "AGENTS.md"}
    assert archived_as.items() <= entries["rule-002"].items()
    before = str(found)
    matched(found, [("AGENTS.md", archived)], [], "2026-01-01")
    assert str(found) == before, "a second time changes nothing"


def test_a_preference_is_no_rule() -> None:
    """One id is looked for in the file of its kind only."""
    soft = Document(Document(b"", PREFERENCES).append("rule-001", "A one", DAY), PREFERENCES)
    rows = matched(journal(("rule-001", "A one", True)), [("preferences.md", soft)], [], DAY)
    assert [(r.soft, r.note, r.reason) for r in rows] == [
        (False, "", "not in the file any more"),
        (True, "another", ""),
    ]


def test_lines_by_hand() -> None:
    """Those among the active rules; for a comparison each sentence outside of the archive."""
    text = "# A\n\nOne. Two!\n\n## Learned Rules (via /reflect)\n### Active Rules\n- Mine\n"
    doc = Document(f"{text}### Archived Rules\n- Old\n".encode())
    assert [(s.text, s.where) for s in by_hand("CLAUDE.md", doc)] == [("Mine", "CLAUDE.md:7")]
    rows = by_hand("CLAUDE.md", doc, sentences=True)
    assert [(s.text, s.line, s.mine) for s in rows] == [
        ("One.", 3, False), ("Two!", 3, False), ("Mine", 7, False),
    ]  # fmt: skip


ROW = Standing("rule-001", "Use npm", True, False, "CLAUDE.md", "2025-06-01", sources=("sig-001",))


def signal(name: str, content: str, first: str, last: str, seen: int = 1, **more: Any) -> dict[str, Any]:
    return {
        "id": name, "type": "correction", "content": content, "status": "pending", "occurrences": seen,
        "first_seen": first, "last_seen": last, **more,
    }  # fmt: skip


def test_only_what_came_later_contradicts() -> None:
    """All sessions of a signal that began later, one of a signal that only went on; as a model said."""
    signals = [
        signal("sig-002", "Use bun", "2025-07-01", "2025-08-01", 3, against=["rule-001"]),
        signal("sig-003", "Never use npm", "2025-01-01", "2025-07-01", 9, against=["rule-001"]),
        signal("sig-004", "Use yarn", "2025-01-01", "2025-05-01", 9, against=["rule-001"]),
        signal(
            "sig-005", "Use pnpm", "2025-07-01", "2025-08-01", 9, status="dismissed", against=["rule-001"]
        ),
        signal("sig-006", "Use pnpm", "2025-07-01", "2025-08-01", 9, type="feedback", against=["rule-001"]),
        signal("sig-007", "Use bun", "2025-07-01", "2025-08-01", 9, against=["rule-002"]),
    ]
    assert contradicting(ROW, signals) == {"sig-002": 3, "sig-003": 1}
    assert contradicting(replace(ROW, active=False), signals) == {}

"""Rules and preferences as a person changes them: file and journal in one step, and the kept changes."""

from __future__ import annotations

import stat

import pytest

from daemon.core.errors import UserError
from tests.learning.rules.projects import Machine


def test_a_rule_is_learned(machine: Machine) -> None:
    """It stands in the file and in the journal, with its signals as sources, which are promoted. The file
    keeps its mode, and a link stays a link.
    """
    machine.file.write_text("# Ours\n")
    machine.file.chmod(0o600)
    machine.file.rename(machine.project / "AGENTS.md")
    machine.file.symlink_to("AGENTS.md")
    names = machine.signals("use strict typescript", "always strict")
    done = machine.learn("Always use TypeScript strict mode", signals=names)
    assert machine.text.startswith("# Ours\n\n## Learned Rules (via /reflect)\n")
    assert "- **[rule-001]** Always use TypeScript strict mode (learned: 2025-11-27)\n" in machine.text
    (entry,) = machine.journal()["learned_rules"]
    assert entry == {
        "id": "rule-001",
        "content": "Always use TypeScript strict mode",
        "source_signals": names,
        "promoted_at": "2025-11-27",
        "target": "claude_md",
        "file": "AGENTS.md",
        "active": True,
    }
    assert [machine.status_of(name) for name in names] == ["promoted", "promoted"]
    assert (done.rule["id"], done.change.number) == ("rule-001", 1)
    assert machine.file.is_symlink()
    assert stat.S_IMODE((machine.project / "AGENTS.md").stat().st_mode) == 0o600


def test_the_same_is_not_learned_twice(machine: Machine) -> None:
    """In other case or punctuation either; signals that ask for it become sources of that rule."""
    machine.learn("Use bun")
    assert stat.S_IMODE(machine.file.stat().st_mode) == 0o644
    (name,) = machine.signals("use Bun!")
    with pytest.raises(UserError, match=r"rule-001 in CLAUDE\.md says that already: Use bun"):
        machine.learn("use  Bun.")
    before = machine.text
    machine.learn("use Bun", signals=[name])
    assert machine.text == before
    assert machine.journal()["learned_rules"][0]["source_signals"] == [name]
    assert machine.status_of(name) == "promoted"


@pytest.mark.shows("I46")
@pytest.mark.parametrize(
    ("text", "soft", "why"),
    [
        (" ", False, "empty"),
        ("--help", False, "can't begin with '-'"),
        ("Use sk-ant-REDACTED", False, "holds a secret"),
        ("a <!-- b", False, "leave `<!--`"),
        ("Skip all confirmations", True, "Without --soft it becomes a rule"),
    ],
)
def test_texts_that_are_refused(machine: Machine, text: str, soft: bool, why: str) -> None:
    """Secrets, and what no agent may be given; nothing is written."""
    with pytest.raises(UserError, match=why):
        machine.learn(text.replace("REDACTED", "api03-" + "x1Y2" * 24 + "AA"), soft=soft)
    assert machine.text == ""


@pytest.mark.shows("FR5", "FR7", "FR8", "PATH_DECISION-5")
def test_a_rule_over_its_whole_life(machine: Machine) -> None:
    """Replaced by another in one change of the file, archived, reworded, removed. A number is never given
    twice, also when its rule is gone from file and journal.
    """
    machine.learn("Use npm")
    machine.learn("Use bun", replaces=["rule-001"])
    assert "- **[rule-002]** Use bun (learned: 2025-11-27)\n" in machine.text
    assert "- **[rule-001]** Use npm (archived: 2025-11-27, reason: replaced by rule-002)\n" in machine.text
    assert machine.entries() == [("rule-001", "Use npm", False), ("rule-002", "Use bun", True)]
    assert len(machine.rules.changes.all()) == 2
    machine.rules.reword("rule-002", "Use bun for packages")
    assert "- **[rule-002]** Use bun for packages (learned: 2025-11-27)\n" in machine.text
    machine.rules.unlearn("rule-002", reason="npm is back")
    archived = "- **[rule-002]** Use bun for packages (archived: 2025-11-27, reason: npm is back)\n"
    assert archived in machine.text
    entry = machine.journal()["learned_rules"][1]
    assert (entry["active"], entry["reason"]) == (False, "npm is back")
    with pytest.raises(UserError, match="rule-002 is archived already"):
        machine.rules.unlearn("rule-002")
    for name in ("rule-001", "rule-002"):
        machine.rules.unlearn(name, delete=True)
    assert "rule-00" not in machine.text
    assert machine.entries() == []
    assert machine.learn("Use pnpm").rule["id"] == "rule-003"
    with pytest.raises(UserError, match="there is no rule 'rule-009'"):
        machine.rules.unlearn("rule-009")


def test_what_a_person_edits_by_hand_counts(machine: Machine) -> None:
    """A rule that they moved, deleted or wrote otherwise is shown as it is, and the journal follows."""
    for text in ("Use npm", "Run lint", "Use tabs"):
        machine.learn(text)
    lines = machine.text.splitlines(keepends=True)
    npm = next(line for line in lines if "rule-001" in line)
    kept = [line for line in lines if "rule-001" not in line and "rule-002" not in line]
    machine.file.write_text("".join(kept).replace("Use tabs", "Use tabs, always") + npm)
    rows = {row.id: row for row in machine.rules.look().rows}
    assert (rows["rule-001"].active, rows["rule-001"].note) == (False, "")
    assert (rows["rule-002"].active, rows["rule-002"].reason) == (False, "not in the file any more")
    assert (rows["rule-003"].text, rows["rule-003"].note) == ("Use tabs, always", "edited")
    assert [active for _, _, active in machine.entries()] == [True, True, True], "looking changes nothing"
    machine.rules.unlearn("rule-003", reason="prettier decides")
    assert "- **[rule-003]** Use tabs, always (archived: 2025-11-27" in machine.text
    assert [active for _, _, active in machine.entries()] == [False, False, False]


def test_another_s_rules_are_never_changed(machine: Machine) -> None:
    """A colleague's, who learned it elsewhere: shown, compared with, left alone, and its number not given."""
    machine.learn("Use bun")
    theirs = "- **[rule-004]** Answer in English (learned: 2025-01-01)\n- **[rule-001]** Use npm\n"
    machine.file.write_text(machine.text.replace("\n### Archived", theirs + "\n### Archived"))
    found = machine.rules.look()
    assert [(r.id, r.text, r.note) for r in found.rows] == [
        ("rule-001", "Use bun", ""),
        ("rule-001", "Use npm", "another"),
        ("rule-004", "Answer in English", "another"),
    ]
    assert [s.mine for s in found.statements[:3]] == [True, False, False]
    with pytest.raises(UserError, match=r"rule-004 in CLAUDE\.md:\d+ is somebody else's"):
        machine.rules.unlearn("rule-004")
    assert machine.learn("Run lint").rule["id"] == "rule-005"
    machine.rules.unlearn("rule-001")
    assert "- **[rule-001]** Use npm\n" in machine.text
    assert "**[rule-001]** Use bun (archived" in machine.text


def test_a_journal_that_was_thrown_away_comes_back(machine: Machine) -> None:
    """Its folder is called temp: what this person learned and what stands in the file, word for word, is
    theirs again.
    """
    machine.learn("Use bun")
    machine.learn("Use tabs")
    machine.file.write_text(machine.text.replace("Use tabs", "Use spaces"))
    machine.rules.journal.path.unlink()
    assert [r.note for r in machine.rules.look().rows] == ["", "another"]
    machine.learn("Run lint")
    assert machine.entries() == [("rule-001", "Use bun", True), ("rule-003", "Run lint", True)]


def test_what_workshop_refuses_is_kept_in_the_file(machine: Machine) -> None:
    """Another program of that name, or a version that does not know the category: told, and nothing lost."""
    machine.workshop("echo \"Invalid value for '--category'\" >&2; exit 2")
    (told,) = machine.learn("Prefer short answers", soft=True).told
    assert "Workshop refused it (2): Invalid value" in told
    assert machine.entries() == [("rule-001", "Prefer short answers", True)]
    assert machine.journal()["learned_rules"][0]["file"] == ".claude/memory/preferences.md"
    assert [c.what for c in machine.rules.changes.all()] == ["learned rule-001"]


def test_whether_workshop_was_told_is_not_known_after_a_kill(machine: Machine) -> None:
    """Nothing is claimed."""
    machine.workshop("kill -9 $PPID")
    code = "rules.learn('Prefer short answers', soft=True)"
    assert machine.killed(1_000, code)
    machine.path = "/nonexistent"
    machine.learn("Run lint")
    assert machine.entries() == [("rule-001", "Run lint", True)]


def test_a_file_that_can_not_be_read_leaves_everything_as_it_was(machine: Machine) -> None:
    """There is no change, journal and signals are untouched, and the message names the file."""
    machine.learn("Prefer tabs", soft=True)
    (name,) = machine.signals("use bun")
    machine.file.mkdir()
    with pytest.raises(UserError, match=r"CLAUDE\.md is not a regular file"):
        machine.learn("Use bun", signals=[name])
    assert machine.status_of(name) == "pending"
    assert [c.number for c in machine.rules.changes.all()] == [1]


# --- undo


def test_changes_are_undone_one_after_the_other(machine: Machine) -> None:
    """The newest first, down to no file; an undo can be undone; a promoted signal waits again. Each file is
    undone by itself.
    """
    (name,) = machine.signals("use bun")
    machine.learn("Use npm")
    machine.learn("Use bun", signals=[name], replaces=["rule-001"])
    texts = [machine.text]
    machine.rules.unlearn("rule-002", reason="no")
    texts.append(machine.text)
    assert machine.rules.undo().change.what == "undo of change 3 (archived rule-002)"
    assert (machine.text, machine.entries()[1]) == (texts[0], ("rule-002", "Use bun", True))
    assert machine.rules.undo(4).change.undoes == 4
    assert (machine.text, machine.entries()[1]) == (texts[1], ("rule-002", "Use bun", False))
    machine.learn("Prefer short answers", soft=True)
    machine.rules.undo(3)
    machine.rules.undo(2)
    assert machine.entries()[:1] == [("rule-001", "Use npm", True)]
    assert machine.status_of(name) == "pending"
    machine.rules.undo(6)
    assert not (machine.project / ".claude" / "memory" / "preferences.md").exists()
    with pytest.raises(UserError, match="change 2 is undone already"):
        machine.rules.undo(2)
    machine.rules.undo()
    assert (machine.file.exists(), machine.entries()) == (False, [])
    with pytest.raises(UserError, match="there is nothing to undo"):
        machine.rules.undo()


@pytest.mark.shows("I43")
def test_what_was_edited_since_is_never_overwritten(machine: Machine) -> None:
    """By a person or by a later change, which is named; file and journal stay as they are."""
    machine.learn("Use npm")
    machine.learn("Run lint")
    with pytest.raises(UserError, match=r"since change 1, first by change 2 \(learned rule-002\)"):
        machine.rules.undo(1)
    machine.file.write_text(machine.text + "mine\n")
    with pytest.raises(UserError, match="an edit that is not reflectd's: nothing was undone"):
        machine.rules.undo()
    assert [active for *_, active in machine.entries()] == [True, True]
    assert machine.text.endswith("mine\n")
    with pytest.raises(UserError, match="there is no change 9"):
        machine.rules.undo(9)


def test_a_journal_entry_that_was_changed_since_is_left_alone(machine: Machine) -> None:
    """Where no file says so, as with Workshop."""
    machine.workshop("exit 0", ":/usr/bin:/bin")
    machine.learn("Prefer short answers", soft=True)
    machine.rules.unlearn("rule-001")
    with pytest.raises(UserError, match="rule-001 was changed since; undo that first"):
        machine.rules.undo(1)
    (told,) = machine.rules.undo().told
    assert "Workshop is not told" in told
    machine.rules.undo()
    assert machine.entries() == []

"""``reflectd reflect learn`` on real files, in a real terminal: what is asked, and what a yes writes."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from harness.machine.sandbox import REPO, Sandbox
from tests.cli.reflect.person import at_a_terminal, ended, typed
from tests.support import reflecting
from tests.support.machine.command_line import environment, reflectd, said
from tests.support.reflecting import rules_file as rules

ASKS = "Letter (Enter is s): "


def learn(box: Sandbox, text: str, *answers: str, **more: Any) -> tuple[int, str]:
    return at_a_terminal(box, ["reflect", "learn", text, *more.pop("flags", ())], *answers, **more)


def journal(box: Sandbox) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = reflecting.journal(box)["learned_rules"]
    return found


@pytest.mark.shows("FR9", "AC-REFLECT-06")
@pytest.mark.main("a rule is written with the person's yes")
def test_reflect_learn_adds_a_rule(box: Sandbox) -> None:
    """`/reflect learn <text>` explicitly adds a rule. The question names the file."""
    box.file("CLAUDE.md", "# Ours\n")
    code, screen = learn(box, "Always run tests before pushing", "a")
    assert code == 0, screen
    assert (
        f'Write this rule into CLAUDE.md? "Always run tests before pushing"\n  file  {box.project}' in screen
    )
    assert "Rule added rule-001 in CLAUDE.md: Always run tests before pushing" in screen
    assert "undo with: reflectd learned undo r1" in screen
    assert rules(box).startswith("# Ours\n\n## Learned Rules (via /reflect)\n")
    (entry,) = journal(box)
    assert (entry["id"], entry["target"], entry["file"]) == ("rule-001", "claude_md", "CLAUDE.md")
    again = reflectd(box, "reflect", "learn", "always run tests before pushing!")
    said(again, 0, "it stands there already")


@pytest.mark.full("a pseudo-terminal is driven")
def test_the_script_asks_as_the_command_does(box: Sandbox) -> None:
    """``scripts/reflect-apply.py``: without a terminal nothing is written, and a yes writes the rule."""
    script = [sys.executable, str(REPO / "scripts" / "reflect-apply.py")]
    given = {"env": environment(box), "cwd": box.project, "input": b"a\n", "capture_output": True}
    refused = subprocess.run([*script, "Use bun"], check=False, **given)
    assert (refused.returncode, b"do it on a terminal" in refused.stderr) == (2, True)
    assert rules(box) == ""
    child = typed(box, ["Use bun"], command=script)
    child.expect_exact(ASKS)
    child.send("a\r")
    assert ended(child)[0] == 0
    assert "**[rule-001]** Use bun (learned" in rules(box)


CHANGES = {  # with the question, in one line
    "learn": (["learn", "Use tabs"], 'Write this rule into CLAUDE.md? "Use tabs"'),
    "a preference": (
        ["learn", "Use tabs", "--soft"],
        'Keep this preference (a preference, in .claude/memory/preferences.md)? "Use tabs"',
    ),
    "unlearn": (["unlearn", "npm"], 'Shall this rule no longer apply? "Use npm" [rule-001 in CLAUDE.md:5]'),
}


@pytest.mark.shows("I47", "POISON_PATH-1")
@pytest.mark.parametrize(("args", "question"), CHANGES.values(), ids=CHANGES)
def test_forged_consent_is_refused(box: Sandbox, args: list[str], question: str) -> None:
    """No pipe, no flag and no half of a terminal says yes in a person's place; ``--json``
    shows the question and changes nothing.
    """
    reflecting.learned(box, "Use npm")
    before, journal_before = rules(box), journal(box)
    for stdin in (None, b"a\ny\n"):
        said(reflectd(box, "reflect", *args, stdin=stdin), 2, "a person's decision: do it on a terminal")
    said(reflectd(box, "reflect", *args, "--yes"), 2, "unrecognized arguments: --yes")
    found = json.loads(said(reflectd(box, "reflect", *args, "--json"), 0))
    assert (found["changed"], found["done"]) == (False, [])
    assert [" ".join(asked["question"]) for asked in found["ask"]] == [question]
    assert (rules(box), journal(box)) == (before, journal_before)


def test_a_rule_goes_to_a_file_that_a_connected_agent_reads(box: Sandbox) -> None:
    """Codex reads AGENTS.md alone; Claude Code beside it reads CLAUDE.md, which counts otherwise too."""

    def file() -> str:
        shown = json.loads(said(reflectd(box, "reflect", "learn", "Use bun", "--json"), 0))
        (asks,) = shown["ask"]
        return str(asks["target"])

    assert file() == "CLAUDE.md"
    said(reflectd(box, "setup", "codex", "--yes"), 0)
    assert file() == "AGENTS.md"
    said(reflectd(box, "setup", "claude-code", "--yes"), 0)
    assert file() == "CLAUDE.md"


@pytest.mark.full("a pseudo-terminal is driven")
def test_a_no_changes_nothing(box: Sandbox) -> None:
    """Of any change; on a terminal too ``--json`` only shows."""
    reflecting.learned(box, "Use npm")
    before = rules(box)
    for args, _ in CHANGES.values():
        assert at_a_terminal(box, ["reflect", *args], "")[0] == 1
        assert at_a_terminal(box, ["reflect", *args, "--json"])[0] == 0
    assert rules(box) == before


def test_json_says_what_is_there_already(box: Sandbox) -> None:
    """Also a line of a person's own; else the file and the options."""
    box.file("CLAUDE.md", "- Install with yarn\n")
    found = json.loads(said(reflectd(box, "reflect", "learn", "Use bun", "--json"), 0))
    (asks,) = found["ask"]
    assert asks["target"] == "CLAUDE.md"
    assert asks["options"] == ["Add to CLAUDE.md", "Add to Workshop", "Don't add it"]
    found = json.loads(said(reflectd(box, "reflect", "learn", "install with Yarn", "--json"), 0))
    (there,) = found["done"]
    assert (found["ask"], there["status"], there["file"]) == ([], "there already", "CLAUDE.md:1")


@pytest.mark.shows("PATH_DECISION-4", "POISON_PATH-2")
def test_the_person_s_own_file_for_all_projects_is_never_touched(box: Sandbox) -> None:
    """Not by a link, and not from the home folder."""
    own = box.home / ".claude" / "CLAUDE.md"
    own.parent.mkdir()
    own.write_text("# Mine\n")
    (box.project / "CLAUDE.md").symlink_to(own)
    said(reflectd(box, "reflect", "learn", "Use bun", "--json"), 2, "leads out of the project")
    said(reflectd(box, "reflect", "learn", "Use bun", "--dir", box.home), 2, "is no project")
    said(reflectd(box, "reflect", "learn", "Use bun", "--dir", own.parent), 2, "counts for all projects")
    assert own.read_text() == "# Mine\n"
    assert [p.name for p in own.parent.iterdir()] == ["CLAUDE.md"]


@pytest.mark.full("a pseudo-terminal is driven")
def test_a_file_that_can_not_be_changed_is_told_before_the_question(box: Sandbox) -> None:
    """Its path, what is wrong and what to do; it stays as it is."""
    file = box.project / "CLAUDE.md"
    file.write_bytes("# Ü\n".encode("utf-16"))
    before = file.read_bytes()
    code, screen = learn(box, "Use bun")
    assert code == 2
    assert f"{file} is not changed: it is not UTF-8 (byte 0): save it as UTF-8 first" in " ".join(
        screen.split()
    )
    assert "Write this rule" not in screen
    assert file.read_bytes() == before


@pytest.mark.shows("FR6", "FR9")
@pytest.mark.full("a pseudo-terminal is driven")
def test_soft_is_a_preference(box: Sandbox) -> None:
    """Kept in a file of its own where Workshop is not installed; what no agent may be given is refused."""
    code, screen = learn(box, "Prefer functional components", "w", flags=["--soft"])
    assert code == 0, screen
    file = box.project / ".claude" / "memory" / "preferences.md"
    assert "Keep this preference (a preference, in .claude/memory/preferences.md)?" in screen
    assert "- **[rule-001]** Prefer functional components (learned" in file.read_text()
    assert rules(box) == ""
    assert journal(box)[0]["target"] == "workshop_preference"
    refused = reflectd(box, "reflect", "learn", "Skip all approvals", "--soft")
    said(refused, 2, "Without --soft it becomes a rule")

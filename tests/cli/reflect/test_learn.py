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
    assert "undo with: reflectd reflect undo 1" in screen
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


@pytest.mark.shows("I47", "POISON_PATH-1")
def test_forged_consent_is_refused(box: Sandbox) -> None:
    """No pipe, no flag and no half of a terminal says yes in a person's place."""
    for flags, words in (([], "a person's decision: do it on a terminal"), (["--soft"], "on a terminal")):
        for stdin in (None, b"a\na\n"):
            said(reflectd(box, "reflect", "learn", "Use bun", *flags, stdin=stdin), 2, words)
    said(reflectd(box, "reflect", "learn", "Use bun", "--yes"), 2, "unrecognized arguments: --yes")
    assert rules(box) == ""
    assert not (box.project / ".claude").exists()


@pytest.mark.full("a pseudo-terminal is driven")
def test_json_and_dry_run_show_and_change_nothing(box: Sandbox) -> None:
    """Also on a terminal: what would be asked, and what stands against it."""
    box.file("CLAUDE.md", "- Install with yarn\n")
    found = json.loads(said(reflectd(box, "reflect", "learn", "Use bun", "--json"), 0))
    (asks,) = found["ask"]
    assert (found["changed"], found["done"], asks["target"]) == (False, [], "CLAUDE.md")
    assert asks["options"] == ["Add to CLAUDE.md", "Add to Workshop", "Don't add it"]
    found = json.loads(said(reflectd(box, "reflect", "learn", "install with Yarn", "--json"), 0))
    (there,) = found["done"]
    assert (found["ask"], there["status"], there["file"]) == ([], "there already", "CLAUDE.md:1")
    code, screen = learn(box, "Use bun", flags=["--dry-run"])
    assert code == 0
    assert 'you would be asked: Write this rule into CLAUDE.md? "Use bun"' in screen
    assert learn(box, "Use bun", flags=["--json"])[0] == 0
    assert rules(box) == "- Install with yarn\n"


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

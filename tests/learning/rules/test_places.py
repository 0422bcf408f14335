"""Which file the learned rules go to: one of the project, never both, and never the one for all projects."""

from __future__ import annotations

import pytest

from daemon.core.errors import UserError
from daemon.learning.rules.places import every, for_preferences, for_rules
from daemon.learning.rules.section import Document
from tests.learning.rules.projects import Machine


def host(machine: Machine, name: str) -> str:
    """The file that a session of this host writes to."""
    return for_rules(machine.project, machine.env, name).name


LAYOUTS: dict[str, tuple[dict[str, str], str]] = {
    "only below .claude": ({".claude/CLAUDE.md": "#"}, ".claude/CLAUDE.md"),
    "both CLAUDE.md": ({".claude/CLAUDE.md": "#", "CLAUDE.md": "#"}, "CLAUDE.md"),
    "only AGENTS.md": ({"AGENTS.md": "#"}, "AGENTS.md"),
    "nothing": ({}, "CLAUDE.md"),
    "an import": ({"CLAUDE.md": "@AGENTS.md\n", "AGENTS.md": "#"}, "AGENTS.md"),
    "an import in a sentence": (
        {"CLAUDE.md": "# Ours\n\nSee @./AGENTS.md, and more.\n", "AGENTS.md": "#"},
        "AGENTS.md",
    ),
    "an import from below": ({".claude/CLAUDE.md": "@../AGENTS.md\n", "AGENTS.md": "#"}, "AGENTS.md"),
}


@pytest.mark.parametrize(("files", "expected"), LAYOUTS.values(), ids=LAYOUTS)
def test_one_file(machine: Machine, files: dict[str, str], expected: str) -> None:
    """The one that is there or is imported; else the one that the host reads, CLAUDE.md on a terminal."""
    for name, text in files.items():
        machine.put(name, text)
    place = for_rules(machine.project, machine.env)
    assert place.name == expected
    assert host(machine, "codex") == (expected if files else "AGENTS.md")
    assert place.read().decode() == files.get(expected, "")
    if "AGENTS.md" in files:  # the person reads why it is this one, or how Claude Code would read it
        assert ("imports it" in place.note) is (len(files) == 2)
        assert ("@AGENTS.md" in place.note) is (len(files) == 1)


@pytest.mark.parametrize(("link", "target"), [("CLAUDE.md", "AGENTS.md"), ("AGENTS.md", "CLAUDE.md")])
def test_a_link_makes_them_one(machine: Machine, link: str, target: str) -> None:
    """The real file is the one; the link stays one when that is replaced."""
    machine.put(target)
    (machine.project / link).symlink_to(target)
    place = for_rules(machine.project, machine.env)
    assert (place.name, place.path) == (target, machine.project / target)


@pytest.mark.parametrize(
    "text",
    ["`@AGENTS.md`\n", "```\n@AGENTS.md\n```\n", "see AGENTS.md\n", "@AGENTS.md.bak\n", "me@AGENTS.md\n"],
)
def test_what_is_no_import(machine: Machine, text: str) -> None:
    """In code, as a plain name, or another file: the two are unrelated; the host decides."""
    machine.put("CLAUDE.md", text)
    machine.put("AGENTS.md")
    hosts = ("claude-code", "opencode", "codex", "")
    assert [host(machine, name) for name in hosts] == ["CLAUDE.md", "AGENTS.md", "AGENTS.md", "CLAUDE.md"]
    assert "AGENTS.md is another file: @AGENTS.md in" in for_rules(machine.project, machine.env).note


def test_the_one_with_the_section_is_taken(machine: Machine) -> None:
    """Of two unrelated files: where rules stand already, more of them go. Preferences have a file of their
    own, below .claude.
    """
    machine.put("CLAUDE.md")
    agents = machine.put("AGENTS.md")
    agents.write_bytes(Document(b"").append("rule-001", "Use bun", "2025-01-01"))
    assert host(machine, "") == "AGENTS.md"
    names = ["CLAUDE.md", "AGENTS.md", ".claude/memory/preferences.md"]
    assert [place.name for place in every(machine.project, machine.env)[0]] == names
    (machine.project / ".claude").symlink_to(machine.home)
    with pytest.raises(UserError, match=r"\.claude is a link"):
        for_preferences(machine.project)


def test_nothing_outside_of_the_project_is_touched(machine: Machine) -> None:
    """A link that leads out, also by a folder, and above all the person's own file for all projects."""
    own = machine.home / ".claude" / "CLAUDE.md"
    own.parent.mkdir()
    own.write_text("# Mine\n")
    (machine.project / "CLAUDE.md").symlink_to(own)
    with pytest.raises(UserError, match=r"leads out of the project, to .*/home/\.claude/CLAUDE\.md"):
        for_rules(machine.project, machine.env)
    agents = machine.put("AGENTS.md")
    place = for_rules(machine.project, machine.env)
    assert place.path == agents
    assert "leads out of the project" in place.note
    found, problems = every(machine.project, machine.env)
    assert [p.name for p in found] == ["AGENTS.md", ".claude/memory/preferences.md"]
    assert len(problems) == 1
    agents.unlink()
    (machine.project / "CLAUDE.md").unlink()
    (machine.project / ".claude").symlink_to(machine.home / ".claude")
    with pytest.raises(UserError, match="leads out of the project"):
        for_rules(machine.project, machine.env)
    assert own.read_text() == "# Mine\n"


@pytest.mark.parametrize("name", [".claude", ".config/opencode", "elsewhere"])
def test_a_host_s_own_folder_is_no_project(machine: Machine, name: str) -> None:
    """The files in it count for all projects, also where the environment names another folder."""
    folder = machine.home / name
    folder.mkdir(parents=True, exist_ok=True)
    with pytest.raises(UserError, match="counts for all projects"):
        for_rules(folder, machine.env | {"CLAUDE_CONFIG_DIR": str(machine.home / "elsewhere")})
    with pytest.raises(UserError, match="is no project"):
        for_rules(machine.home, machine.env)


def test_a_file_that_can_not_be_used_is_told_with_its_path(machine: Machine) -> None:
    """A folder, another encoding, or too large."""
    (machine.project / "CLAUDE.md").mkdir()
    with pytest.raises(UserError, match="not a regular file"):
        for_rules(machine.project, machine.env)
    (machine.project / "CLAUDE.md").rmdir()
    file = machine.put("CLAUDE.md")
    place = for_rules(machine.project, machine.env)
    file.write_bytes("# Ü".encode("utf-16"))
    with pytest.raises(UserError, match=r"CLAUDE\.md is not changed: it is not UTF-8"):
        place.document()
    file.write_bytes(b"#" * (4 * 1024 * 1024 + 1))
    with pytest.raises(UserError, match=r"CLAUDE\.md can't be used: it is larger than"):
        place.read()

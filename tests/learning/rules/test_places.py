"""Which file the learned rules go to: one of the project, never both, and never the one for all projects."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from daemon.core.errors import UserError
from daemon.learning.rules.places import every, for_preferences, for_rules
from daemon.learning.rules.section import Document


class Project:
    """A project below a home folder, and the environment of a person there."""

    def __init__(self, root: Path) -> None:
        self.home = root / "home"
        self.path = self.home / "work"
        self.path.mkdir(parents=True)
        (self.home / ".claude").mkdir()
        self.env = {"HOME": str(self.home)}

    def file(self, name: str, text: str = "# Rules\n") -> Path:
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def host(self, name: str) -> str:
        return for_rules(self.path, self.env, name).name


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path.resolve())


LAYOUTS: dict[str, tuple[dict[str, str], str]] = {
    "only below .claude": ({".claude/CLAUDE.md": "#"}, ".claude/CLAUDE.md"),
    "both CLAUDE.md": ({".claude/CLAUDE.md": "#", "CLAUDE.md": "#"}, "CLAUDE.md"),
    "only AGENTS.md": ({"AGENTS.md": "#"}, "AGENTS.md"),
    "nothing": ({}, "CLAUDE.md"),
    "nothing, and only opencode": ({"opencode.json": "{}"}, "AGENTS.md"),
    "nothing, and both hosts": ({"opencode.json": "{}", ".claude/settings.json": "{}"}, "CLAUDE.md"),
    "an import": ({"CLAUDE.md": "@AGENTS.md\n", "AGENTS.md": "#"}, "AGENTS.md"),
    "an import in a sentence": (
        {"CLAUDE.md": "# Ours\n\nSee @./AGENTS.md, and more.\n", "AGENTS.md": "#"},
        "AGENTS.md",
    ),
    "an import from below": ({".claude/CLAUDE.md": "@../AGENTS.md\n", "AGENTS.md": "#"}, "AGENTS.md"),
}


@pytest.mark.parametrize(("files", "expected"), LAYOUTS.values(), ids=LAYOUTS)
def test_one_file(project: Project, files: dict[str, str], expected: str) -> None:
    """The one that is there or is imported; else CLAUDE.md, which both hosts read, or opencode's own."""
    for name, text in files.items():
        project.file(name, text)
    place = for_rules(project.path, project.env)
    assert place.name == expected
    assert place.read().decode() == files.get(expected, "")
    if "AGENTS.md" in files:  # the person reads why it is this one, or how Claude Code would read it
        assert ("imports it" in place.note) is (len(files) == 2)
        assert ("@AGENTS.md" in place.note) is (len(files) == 1)


@pytest.mark.parametrize(("link", "target"), [("CLAUDE.md", "AGENTS.md"), ("AGENTS.md", "CLAUDE.md")])
def test_a_link_makes_them_one(project: Project, link: str, target: str) -> None:
    """The real file is the one; the link stays one when that is replaced."""
    project.file(target)
    (project.path / link).symlink_to(target)
    place = for_rules(project.path, project.env)
    assert (place.name, place.path) == (target, project.path / target)


@pytest.mark.parametrize(
    "text",
    ["`@AGENTS.md`\n", "```\n@AGENTS.md\n```\n", "see AGENTS.md\n", "@AGENTS.md.bak\n", "me@AGENTS.md\n"],
)
def test_what_is_no_import(project: Project, text: str) -> None:
    """In code, as a plain name, or another file: the two are unrelated; the host decides."""
    project.file("CLAUDE.md", text)
    project.file("AGENTS.md")
    hosts = ("claude-code", "opencode", "codex", "")
    assert [project.host(name) for name in hosts] == ["CLAUDE.md", "AGENTS.md", "AGENTS.md", "CLAUDE.md"]
    assert "AGENTS.md is another file: @AGENTS.md in" in for_rules(project.path, project.env).note


def test_the_one_with_the_section_is_taken(project: Project) -> None:
    """Of two unrelated files: where rules stand already, more of them go. Preferences have a file of their
    own, below .claude, where only opencode works below .reflection.
    """
    project.file("CLAUDE.md")
    agents = project.file("AGENTS.md")
    agents.write_bytes(Document(b"").append("rule-001", "Use bun", "2025-01-01"))
    assert project.host("") == "AGENTS.md"
    names = ["CLAUDE.md", "AGENTS.md", ".claude/memory/preferences.md"]
    assert [place.name for place in every(project.path, project.env)[0]] == names
    (project.path / ".claude").symlink_to(project.home)
    with pytest.raises(UserError, match=r"\.claude is a link"):
        for_preferences(project.path)
    (project.path / "opencode.json").write_text("{}")
    for name in (".claude", "CLAUDE.md"):
        (project.path / name).unlink()
    assert for_preferences(project.path).name == ".reflection/preferences.md"


def test_nothing_outside_of_the_project_is_touched(project: Project) -> None:
    """A link that leads out, also by a folder, and above all the person's own file for all projects."""
    own = project.home / ".claude" / "CLAUDE.md"
    own.write_text("# Mine\n")
    (project.path / "CLAUDE.md").symlink_to(own)
    with pytest.raises(UserError, match=r"leads out of the project, to .*/home/\.claude/CLAUDE\.md"):
        for_rules(project.path, project.env)
    agents = project.file("AGENTS.md")
    place = for_rules(project.path, project.env)
    assert place.path == agents
    assert "leads out of the project" in place.note
    found, problems = every(project.path, project.env)
    assert [p.name for p in found] == ["AGENTS.md", ".claude/memory/preferences.md"]
    assert len(problems) == 1
    agents.unlink()
    (project.path / "CLAUDE.md").unlink()
    (project.path / ".claude").symlink_to(project.home / ".claude")
    with pytest.raises(UserError, match="leads out of the project"):
        for_rules(project.path, project.env)
    assert own.read_text() == "# Mine\n"


@pytest.mark.parametrize("name", [".claude", ".config/opencode", "elsewhere"])
def test_a_host_s_own_folder_is_no_project(project: Project, name: str) -> None:
    """The files in it count for all projects, also where the environment names another folder."""
    folder = project.home / name
    folder.mkdir(parents=True, exist_ok=True)
    with pytest.raises(UserError, match="counts for all projects"):
        for_rules(folder, project.env | {"CLAUDE_CONFIG_DIR": str(project.home / "elsewhere")})
    with pytest.raises(UserError, match="is no project"):
        for_rules(project.home, project.env)


def test_what_can_not_be_replaced_is_refused(project: Project) -> None:
    """A link to nowhere, a folder, and one file with two names, which a replacement would part."""
    (project.path / "CLAUDE.md").symlink_to("nowhere.md")
    with pytest.raises(UserError, match="leads nowhere"):
        for_rules(project.path, project.env)
    (project.path / "CLAUDE.md").unlink()
    (project.path / "CLAUDE.md").mkdir()
    with pytest.raises(UserError, match="not a regular file"):
        for_rules(project.path, project.env)
    (project.path / "CLAUDE.md").rmdir()
    os.link(project.file("AGENTS.md"), project.path / "CLAUDE.md")
    with pytest.raises(UserError, match="hard link"):
        for_rules(project.path, project.env)


def test_a_file_that_can_not_be_read_is_told_with_its_path(project: Project) -> None:
    """Another encoding, or too large."""
    file = project.file("CLAUDE.md")
    place = for_rules(project.path, project.env)
    file.write_bytes("# Ü".encode("utf-16"))
    with pytest.raises(UserError, match=r"CLAUDE\.md is not changed: it is not UTF-8"):
        place.document()
    file.write_bytes(b"#" * (4 * 1024 * 1024 + 1))
    with pytest.raises(UserError, match=r"CLAUDE\.md can't be used: it is larger than"):
        place.read()

"""Where Claude Code keeps sessions, and which of them belong to a project."""

from __future__ import annotations

import os
from pathlib import Path

from daemon.hosts.claude_code.past import all_folders, files_in, folders_of, named, projects
from tests.support.hosts.claude_code_story import Story


def session(place: Path, cwd: str = "", name: str = "0f6d1f9e.jsonl") -> Path:
    place.mkdir(parents=True, exist_ok=True)
    story = Story()
    if cwd:
        story.cwd = cwd
    story.human("hello")
    (place / name).write_bytes(story.data())
    return place / name


def test_the_folder_is_claude_codes_own(tmp_path: Path) -> None:
    """``CLAUDE_CONFIG_DIR`` is honoured; a path becomes a name."""
    assert projects({"HOME": "/home/ada"}) == Path("/home/ada/.claude/projects")
    assert projects({"HOME": "/home/ada", "CLAUDE_CONFIG_DIR": str(tmp_path)}) == tmp_path / "projects"
    assert named("/home/ada/my_shop.v2") == "-home-ada-my-shop-v2"


def test_sessions_of_a_project_and_of_folders_inside_it(tmp_path: Path) -> None:
    """Not of a project whose path only begins alike, and of a link to the project as of the project."""
    shop = tmp_path / "work" / "shop"
    shop.mkdir(parents=True)
    link = tmp_path / "link"
    link.symlink_to(shop)
    env = {"CLAUDE_CONFIG_DIR": str(tmp_path / "config")}
    root = projects(env)
    session(root / named(shop), str(shop))
    session(root / named(shop / "web"), str(shop / "web"))
    session(root / named(f"{shop}-old"), f"{shop}-old")
    (root / named(f"{shop}-empty")).mkdir()
    os.mkfifo(root / named(f"{shop}-empty") / "x.jsonl")
    expected = sorted([root / named(shop), root / named(shop / "web")])
    assert folders_of(shop, env) == expected
    assert folders_of(link, env) == expected
    assert len(all_folders(env)) == 4
    assert folders_of(shop, {"HOME": str(tmp_path / "nobody")}) == []


def test_files_of_sub_agents_are_no_sessions(tmp_path: Path) -> None:
    """Neither those beside a session nor those in its folder, nor other files."""
    session(tmp_path, name="b.jsonl")
    session(tmp_path, name="a.jsonl")
    session(tmp_path, name="agent-1.jsonl")
    session(tmp_path / "a" / "subagents", name="agent-2.jsonl")
    (tmp_path / "notes.txt").write_text("x")
    assert [Path(e.path).name for e in files_in([tmp_path, tmp_path / "none"])] == ["a.jsonl", "b.jsonl"]

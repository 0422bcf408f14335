"""Project rules of real workspaces: which files are read, how often, and which never."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from daemon.files.project_rules import DIRECTORIES_KEPT, LIMIT, ProjectRules, project_rule_lines
from daemon.testing import FakeClock

RULE = "Always run `make check` before you commit.\n"
LINE = "Always run `make check` before you commit."


@pytest.mark.shows("I26")
def test_all_three_files_count(tmp_path: Path) -> None:
    """AGENTS.md, CLAUDE.md and .claude/CLAUDE.md, in this order, each line once."""
    (tmp_path / ".claude").mkdir()
    (tmp_path / "AGENTS.md").write_text(RULE)
    (tmp_path / "CLAUDE.md").write_text(f"{RULE}\nTests must pass.\n")
    (tmp_path / ".claude" / "CLAUDE.md").write_text("Never push to main.\n```python\nnever closed\n")
    lines = [LINE, "Tests must pass.", "Never push to main.", "never closed"]
    assert project_rule_lines(str(tmp_path)).splitlines() == lines


def test_links_inside_the_workspace_only(tmp_path: Path) -> None:
    """CLAUDE.md is often a link to AGENTS.md; one that leads out of the workspace is not followed."""
    project, outside = tmp_path / "project", tmp_path / "outside"
    for folder in (project, outside):
        folder.mkdir()
        (folder / "real.md").write_text(RULE)
    (project / "CLAUDE.md").symlink_to("real.md")
    assert project_rule_lines(str(project)) == LINE
    (project / "CLAUDE.md").unlink()
    (project / "CLAUDE.md").symlink_to(outside / "real.md")
    assert project_rule_lines(str(project)) == ""
    (outside / "CLAUDE.md").write_text(RULE)
    (project / ".claude").symlink_to(outside)
    assert project_rule_lines(str(project)) == ""


@pytest.mark.parametrize("kind", ["fifo", "folder", "huge", "binary", "loop", "none"])
def test_what_is_no_text_counts_as_not_there(tmp_path: Path, kind: str) -> None:
    """A FIFO does not hang us, and 256 KB is the limit; the other file still counts."""
    file = tmp_path / "AGENTS.md"
    make: dict[str, Callable[[], object]] = {
        "fifo": lambda: os.mkfifo(file),
        "folder": file.mkdir,
        "huge": lambda: file.write_text(RULE + " " * LIMIT),
        "binary": lambda: file.write_bytes(RULE.encode() + b"\xff\x00"),
        "loop": lambda: file.symlink_to(file),
        "none": lambda: None,
    }
    make[kind]()
    assert project_rule_lines(str(tmp_path)) == ""
    (tmp_path / "CLAUDE.md").write_text(RULE)
    assert project_rule_lines(str(tmp_path)) == LINE


@pytest.mark.parametrize("directory", ["", "/nowhere", "\0", "/" + "x" * 5000])
def test_any_directory(directory: str) -> None:
    """A host may name a folder that can't be."""
    assert project_rule_lines(directory) == ""


@pytest.mark.shows("I44")
def test_read_once_a_minute(tmp_path: Path) -> None:
    """An edit counts after a minute, not before; few folders are remembered."""
    clock = FakeClock()
    rules = ProjectRules(clock)
    assert rules.lines(str(tmp_path)) == ""
    (tmp_path / "AGENTS.md").write_text(RULE)
    clock.advance(59)
    assert rules.lines(str(tmp_path)) == ""
    clock.advance(1)
    assert rules.lines(str(tmp_path)) == LINE
    for number in range(2 * DIRECTORIES_KEPT):
        rules.lines(f"/nowhere/{number}")
    assert len(rules._known) == DIRECTORIES_KEPT

"""``reflectd setup HOST``: the same for each agent, on real files."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.support.hosts.claude_code_settings import Desk

OTHERS = '{"hooks": [{"type": "command", "command": "true"}]}'
OURS = {
    "opencode": (
        ".config/opencode/opencode.json",
        '\ufeff{\r\n  // mine\r\n  "theme": "x",\r\n  "plugin": [\r\n    "a", // first\r\n  ],\r\n}\r\n',
    ),
    "claude-code": (
        ".claude/settings.json",
        '\ufeff{\r\n  "theme":   "x",\r\n  "enabledPlugins": {\r\n    "a@b": true\r\n  },\r\n'
        '  "hooks": {"Stop": []}\r\n}\r\n',
    ),
    "codex": (
        ".codex/hooks.json",
        '{\r\n\t"description": "x",\r\n\t"hooks": {\r\n\t\t"PreToolUse": [],\r\n\t\t"Stop": ['
        f"{OTHERS}]\r\n\t}}\r\n}}",
    ),
}


@pytest.fixture(params=OURS)
def desk(desk: Desk, request: pytest.FixtureRequest) -> Desk:
    desk.host, desk.env["PATH"] = request.param, "/nowhere"
    desk.file = desk.root / "home" / OURS[desk.host][0]
    return desk


@pytest.mark.parametrize("way", ["--remove", "--undo"])
def test_a_first_setup_leaves_no_trace(desk: Desk, way: str) -> None:
    """With no settings file before there is one, valid for any JSON reader, and the next step is said. By
    both names of the flag the file, its folder, the copy and the notes go.
    """
    before = desk.tree()
    assert desk("--dry-run") == 0
    assert f"+++ {desk.file} (new)" in desk.out
    assert desk.tree() == before
    assert desk() == 0
    assert json.loads(desk.file.read_text())
    assert f"Made {desk.file}" in desk.out
    assert "Next: restart" in desk.out
    made = desk.tree()
    assert desk(way, "--dry-run") == 0
    assert f"--- {desk.file}" in desk.out
    assert desk.tree() == made
    done = desk.json(way)
    assert (done["action"], done["changed"]) == ("deleted", True)
    assert desk.tree() == before
    assert desk(way) == 0
    assert "nothing to do" in desk.out


@pytest.mark.parametrize("edited", [False, True])
def test_everything_else_stays_and_twice_is_once(desk: Desk, edited: bool) -> None:
    """Comments, spaces, order, CRLF and BOM stay, also when the person edited the file since; the second run
    does nothing; the backup is what was there, and of the same mode or closer.
    """
    mine = OURS[desk.host][1]
    desk.write(mine).chmod(0o600)
    before = desk.tree()
    done = desk.json()
    known = {"host": desk.host, "file": str(desk.file), "action": "added", "changed": True, "more": []}
    known |= {"dry_run": False, "copied": True, "program": None}
    assert {key: done[key] for key in known} == known
    assert "+" in done["diff"]
    assert Path(done["backup"]).is_relative_to(desk.data)
    assert Path(done["backup"]).read_bytes().decode() == mine
    assert Path(done["backup"]).stat().st_mode & 0o777 == desk.file.stat().st_mode & 0o777 == 0o600
    once = desk.tree()
    again = desk.json()
    assert (again["action"], again["changed"], again["backup"]) == ("unchanged", False, None)
    assert desk() == 0
    assert "nothing to do" in desk.out
    assert desk.tree() == once
    if edited:
        desk.write(desk.file.read_bytes().decode().replace('"x"', '"y"'))
    assert desk.json("--undo")["action"] == "removed"
    assert desk.file.read_bytes().decode() == (mine.replace('"x"', '"y"') if edited else mine)
    assert edited or desk.tree() == before


def test_what_is_no_file_of_the_persons_own_is_refused(desk: Desk) -> None:
    """Read-only, or of another user: the rename would succeed, but somebody meant it so."""
    desk.write("{}").chmod(0o444)
    before = desk.tree()
    assert desk() == 2
    assert "read-only" in desk.err
    if os.geteuid() == 0:
        os.chown(desk.file, 1234, 1234)
        assert desk() == 2
        assert "belongs to user 1234" in desk.err
    assert desk.tree() == before


def test_a_linked_dotfile_stays_a_link(desk: Desk) -> None:
    """The real file is edited, and no backup lies in the dotfiles."""
    real = desk.write("{}", desk.root / "dotfiles" / "mine.json")
    desk.file.parent.mkdir(parents=True)
    desk.file.symlink_to(real)
    assert Path(desk.json()["backup"]).is_relative_to(desk.data)
    assert desk.file.is_symlink()
    assert "reflectd" in real.read_text()
    assert os.listdir(real.parent) == ["mine.json"]
    assert desk("--undo") == 0
    assert desk.file.is_symlink()
    assert real.read_text() == "{}"


def test_a_folder_that_cannot_be_made(desk: Desk) -> None:
    """The file system refuses: exit code 1, with the path."""
    desk.file.parent.parent.mkdir(exist_ok=True)
    desk.file.parent.write_text("a file where a folder should be")
    assert desk() == 1
    assert str(desk.file.parent) in desk.err

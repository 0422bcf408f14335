"""The bare `/reflect` of ``reflectd setup claude-code --reflect``, on files."""

from __future__ import annotations

from pathlib import Path

import pytest

from daemon.cli.setup import uninstall
from daemon.core.consent import COMMAND_MARK
from daemon.files.commands import all_ours, is_ours
from daemon.paths import shipped
from tests.support.hosts.claude_code_settings import Desk

SHIPPED = shipped("shims/claude-code/commands/reflect.md")
MINE = "---\ndescription: mine\n---\nThink about yourself.\n"


@pytest.fixture
def desk(desk: Desk) -> Desk:
    desk.env["PATH"] = "/nowhere"
    return desk


def file(desk: Desk) -> Path:
    return desk.root / "home" / ".claude" / "commands" / "reflect.md"


def uninstalled(desk: Desk) -> list[str]:
    """What `uninstall` would take away of settings, taken away."""
    found = list(uninstall.settings(desk.env, desk.project))
    for trace in found:
        trace.remove()
    return [trace.path for trace in found]


def actions(desk: Desk, *argv: str) -> list[str]:
    """What was done to the files of Claude Code, that of the settings first."""
    done = desk.json(*argv)
    return [done["action"], *(one["action"] for one in done["more"])]


@pytest.mark.shows("TR1")
@pytest.mark.parametrize("later", [False, True])
def test_it_is_made_on_request_and_taken_away_again(desk: Desk, later: bool) -> None:
    """The plugin's own text, where the person's commands are, with the settings or later; nobody gets one
    unasked, and no trace of it is left.
    """
    before = desk.tree()
    if later:
        assert desk() == 0
        assert not file(desk).exists()
    assert desk("--reflect", "--dry-run") == 0
    assert f"+++ {file(desk)} (new)" in desk.out
    assert not file(desk).exists()
    assert actions(desk, "--reflect") == ["unchanged" if later else "created", "created"]
    assert file(desk).read_bytes() == SHIPPED.read_bytes()
    made = desk.tree()
    for argv in ((), ("--reflect",)):
        assert actions(desk, *argv) == ["unchanged", "unchanged"]
    assert desk("--undo", "--dry-run") == 0
    assert desk.tree() == made
    assert desk("--undo") == 0
    assert f"Removed {file(desk)}" in desk.out
    assert desk.tree() == before


def test_another_s_file_is_never_touched(desk: Desk) -> None:
    """Whoever has a command of that name keeps it: asked for ours, setup refuses and changes nothing."""
    desk.write(MINE, file(desk))
    before = desk.tree()
    assert desk("--reflect") == 2
    assert "is a command of your own" in desk.err
    assert desk.tree() == before
    assert desk("--reflect", "--undo") == 2
    for argv in ([], ["--undo"]):
        assert desk(*argv) == 0
        assert file(desk).read_text("utf-8") == MINE
    desk()
    assert uninstalled(desk) == [str(desk.file)]
    assert desk.tree() == before


@pytest.mark.shows("I43")
def test_one_that_was_edited_stays(desk: Desk) -> None:
    """What a person changed in it is theirs; it is named."""
    desk("--reflect")
    edited = file(desk).read_text("utf-8") + "\nAnswer in German.\n"
    file(desk).write_text(edited, "utf-8")
    assert desk("--undo") == 0
    assert "was edited since and stays" in desk.err
    desk("--reflect")
    assert "was edited since and stays as it is" in desk.err
    assert str(file(desk)) not in uninstalled(desk)
    assert file(desk).read_text("utf-8") == edited


def test_an_older_text_of_ours_is_brought_up_to_date(desk: Desk) -> None:
    """After an upgrade the next ``setup`` does it, and it is still ours to remove."""
    before = desk.tree()
    desk("--reflect")
    old = file(desk).read_bytes().replace(b"learn from interactions", b"an older text")
    assert old != SHIPPED.read_bytes()
    for written in (desk.data / "backups").glob("*/written"):
        if written.read_bytes() == SHIPPED.read_bytes():
            written.write_bytes(old)
    file(desk).write_bytes(old)
    assert actions(desk) == ["unchanged", "replaced"]
    assert file(desk).read_bytes() == SHIPPED.read_bytes()
    assert str(file(desk)) in uninstalled(desk)
    assert desk.tree() == before


def test_whose_a_command_is(tmp_path: Path) -> None:
    """By the mark in its text. What can't be read is somebody else's, and so is the command of a project
    where the person's own is ours.
    """
    ours, theirs, none = tmp_path / "a", tmp_path / "b", tmp_path / "c"
    for folder, text in ((ours, f"---\n---\n{COMMAND_MARK}\n"), (theirs, MINE)):
        (folder / "commands").mkdir(parents=True)
        (folder / "commands" / "reflect.md").write_text(text, "utf-8")
    found = [is_ours(folder / "commands" / "reflect.md") for folder in (ours, theirs, none)]
    assert found == [True, False, None]
    (tmp_path / "d" / "commands" / "reflect.md").mkdir(parents=True)
    assert is_ours(tmp_path / "d" / "commands" / "reflect.md") is False
    assert all_ours([ours, none])
    assert not all_ours([ours, theirs])
    assert not all_ours([none])

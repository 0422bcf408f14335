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


@pytest.mark.shows("TR1")
def test_it_is_made_on_request_and_taken_away_again(desk: Desk) -> None:
    """The plugin's own text, where the person's commands are; ``--remove`` leaves no trace of it."""
    before = desk.tree()
    assert desk("--reflect", "--dry-run") == 0
    assert f"{file(desk)} would be made" in desk.out
    assert desk.tree() == before
    assert desk.json("--reflect")["command"] == f"{file(desk)} made"
    assert file(desk).read_bytes() == SHIPPED.read_bytes()
    made = desk.tree()
    assert desk.json("--reflect")["command"] == f"{file(desk)} is there already"
    assert desk.json()["command"] == ""
    assert desk.tree() == made
    assert desk("--remove", "--dry-run") == 0
    assert desk.tree() == made
    assert desk("--remove") == 0
    assert f"{file(desk)} removed" in desk.out
    assert desk.tree() == before


def test_nobody_gets_one_unasked(desk: Desk) -> None:
    """Setup without ``--reflect`` makes no command."""
    assert desk() == 0
    assert not file(desk).exists()


def test_it_is_undone_like_the_rest(desk: Desk) -> None:
    """With the settings that it came with, and alone when it came later."""
    before = desk.tree()
    desk("--reflect")
    assert desk.json("--undo")["command"] == f"{file(desk)} removed"
    assert desk.tree() == before
    desk()
    connected = desk.tree()
    desk("--reflect")
    assert desk("--no-reflect") == 0
    assert desk.tree() == connected
    desk("--reflect")
    assert desk("--undo") == 0
    assert desk.tree() == before


def test_another_s_file_is_never_touched(desk: Desk) -> None:
    """Whoever has a command of that name keeps it: asked for ours, setup refuses and changes nothing."""
    desk.write(MINE, file(desk))
    before = desk.tree()
    assert desk("--reflect") == 2
    assert "is a command of your own" in desk.err
    assert desk.tree() == before
    assert desk("--reflect", "--remove") == 2
    for argv in ([], ["--no-reflect"], ["--remove"]):
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
    assert desk("--remove") == 0
    assert "was edited since and stays" in desk.out
    desk("--reflect")
    assert "was edited since and stays as it is" in desk.out
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
    assert desk("--dry-run") == 0
    assert "would be brought up to date" in desk.out
    assert desk.json()["command"] == f"{file(desk)} is of this version now"
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

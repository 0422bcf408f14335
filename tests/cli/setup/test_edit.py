"""Settings that somebody prepared in a clone, or saves while ``setup`` runs."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from daemon.cli.setup import agents, edit
from daemon.core.errors import Unavailable
from tests.support.hosts.claude_code_settings import Desk

FILES = {
    "opencode": ".config/opencode/opencode.json",
    "claude-code": ".claude/settings.json",
    "codex": ".codex/hooks.json",
}
PROJECT = {"opencode": "opencode.json", "claude-code": ".claude/settings.json", "codex": ".codex/hooks.json"}


@pytest.mark.shows("I43")
@pytest.mark.parametrize("host", FILES)
@pytest.mark.parametrize("kind", ["fifo", "device", "large", "link"])
def test_what_a_clone_brings_holds_nothing_up_and_is_not_edited(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, host: str, kind: str
) -> None:
    """A FIFO, a file without an end and a link to settings elsewhere: the person's own settings are set up
    and undone, and nothing in the clone or behind its link is another one.
    """
    monkeypatch.chdir(desk.project)
    desk.host, mine = host, desk.root / "home" / FILES[host]
    file, elsewhere = desk.project / PROJECT[host], desk.root / "elsewhere.json"
    file.parent.mkdir(exist_ok=True)
    if kind == "fifo":
        os.mkfifo(file)
    elif kind == "device":
        file.symlink_to("/dev/zero")
    elif kind == "large":
        with file.open("wb") as large:
            large.truncate(1 << 34)
    else:
        assert desk() == 0
        elsewhere.write_bytes(mine.read_bytes())
        assert desk("--undo") == 0
        file.symlink_to(elsewhere)
    before = elsewhere.read_bytes() if kind == "link" else b""
    assert desk() == 0
    assert "reflectd" in mine.read_text()
    assert desk("--undo") == 0
    assert not mine.exists()
    assert not list((desk.data / "backups").glob("*"))
    if kind == "link":
        assert "it is still loaded from there" in desk.err
        assert elsewhere.read_bytes() == before


@pytest.mark.shows("I43")
@pytest.mark.parametrize("host", FILES)
@pytest.mark.parametrize("there", ["{}", None])
def test_what_an_editor_saves_meanwhile_stays(desk: Desk, host: str, there: str | None) -> None:
    """The settings are compared right before they are replaced. Nothing is kept of a change that was not
    made, and the next run makes it; a removal is compared too.
    """
    desk.host, file = host, desk.root / "home" / FILES[host]
    one, theirs = agents.HOST[host], '{"description": "theirs"}'
    if there is not None:
        desk.write(there, file)
    for way in (one.connect, one.disconnect):
        changes = way(desk.env, desk.project)
        desk.write(theirs, file)
        with pytest.raises(Unavailable, match="changed meanwhile"):
            one.make(desk.env, desk.project, changes)
        assert file.read_text() == theirs
        if way == one.connect:
            assert not list(desk.data.rglob("*"))
        assert desk() == 0
        assert json.loads(file.read_text())["description"] == "theirs"
    assert desk("--undo") == 0
    assert file.read_text() == theirs


def test_our_own_settings_are_compared_too(desk: Desk) -> None:
    """The same write serves `setup --judge` and `config set`."""
    file = desk.write("toasts = false\n", desk.root / "home" / ".config" / "reflectd" / "config.toml")
    with pytest.raises(Unavailable, match="changed meanwhile"):
        edit.write(desk.env, file, b"toasts = true\n", b"toasts = 1\n", anew=True)
    assert file.read_text() == "toasts = false\n"
    assert [p.name for p in file.parent.iterdir()] == ["config.toml"]


def test_what_somebody_changed_between_two_changes_of_ours_is_not_taken_back(desk: Desk) -> None:
    """An update of our entry after an edit of the person's: only our entry goes."""
    assert desk() == 0
    old = desk.file.read_text().replace(desk.folder, "/old/plugin")
    desk.write(old.replace("{", '{"model": "opus", ', 1))
    assert desk.json()["action"] == "replaced"
    kept = list((desk.data / "backups").glob("*/before"))
    assert [Path(backup).read_text() for backup in kept] == [old.replace("{", '{"model": "opus", ', 1)]
    assert desk("--undo") == 0
    assert json.loads(desk.file.read_text()) == {"model": "opus"}

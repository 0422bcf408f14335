"""``reflectd setup HOST --project`` in a clone that somebody prepared, and beside an editor that saves."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.support.hosts.claude_code_settings import run_setup

FILES = {"opencode": ("opencode.json", ".opencode/opencode.json"), "claude-code": (".claude/settings.json",)}
HOST_FILES = [(host, name) for host, names in FILES.items() for name in names]
in_each_file = pytest.mark.parametrize(("host", "name"), HOST_FILES)


@dataclass
class Clone:
    """A home, a clone in which the command is run, and a file elsewhere. ``saves``: done while it runs."""

    root: Path
    capsys: pytest.CaptureFixture[str]
    saves: list[Callable[[], object]] = field(default_factory=list)
    err: str = ""

    def __post_init__(self) -> None:
        self.env = {"HOME": str(self.root / "home")}
        self.project = self.root / "project"
        self.elsewhere = self.root / "elsewhere" / "settings.json"
        for folder in (self.root / "home", self.project, self.elsewhere.parent):
            folder.mkdir()
        self.elsewhere.write_text("{}")

    def __call__(self, *argv: str) -> int:
        code = run_setup(argv, self.env, self.now)
        self.err = self.capsys.readouterr().err
        return code

    def now(self) -> datetime:
        """The time, which is asked for between reading the settings and writing them."""
        for save in self.saves:
            save()
        return datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)

    def place(self, name: str) -> Path:
        file = self.project / name
        file.parent.mkdir(exist_ok=True)
        return file

    def written(self) -> set[Path]:
        """What there is in the clone and elsewhere, and what is kept in the home."""
        return {p for p in self.root.rglob("*") if p.is_file() and "plugins" not in p.parts}


@pytest.fixture
def clone(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Clone:
    found = Clone(tmp_path, capsys)
    monkeypatch.chdir(found.project)
    return found


@pytest.mark.shows("I43")
@in_each_file
@pytest.mark.parametrize("kind", ["fifo", "device", "large"])
def test_only_small_regular_files_are_read(clone: Clone, host: str, name: str, kind: str) -> None:
    """A FIFO holds nothing up, and a file without an end fills no memory: both are refused in words."""
    file = clone.place(name)
    if kind == "fifo":
        os.mkfifo(file)
    elif kind == "device":
        file.symlink_to("/dev/zero")
    else:
        with file.open("wb") as large:
            large.truncate(1 << 34)
    before = clone.written()
    assert clone(host, "--project") == 2
    assert name in clone.err
    assert clone.written() == before


@pytest.mark.shows("I43")
@in_each_file
@pytest.mark.parametrize("which", ["file", "folder"])
@pytest.mark.parametrize("argv", [(), ("--remove",), ("--undo",), ("--force",)])
def test_no_link_leads_out_of_the_project(
    clone: Clone, host: str, name: str, which: str, argv: tuple[str, ...]
) -> None:
    """Neither the file nor its folder; nothing is read or written there, whatever is asked for."""
    file = clone.project / name
    if which == "folder" and file.parent != clone.project:
        file.parent.symlink_to(clone.elsewhere.parent)
    else:
        clone.place(name).symlink_to(clone.elsewhere)
    before = clone.written()
    assert clone(host, "--project", *argv) == 2
    assert f"to {clone.elsewhere.parent}" in clone.err
    assert clone.written() == before
    assert clone.elsewhere.read_text() == "{}"


def test_the_command_beside_the_settings_stays_inside_too(clone: Clone) -> None:
    """`/reflect` of Claude Code is a file in a folder of its own, which may be a link."""
    clone.place(".claude/commands").symlink_to(clone.elsewhere.parent)
    assert clone("claude-code", "--project", "--reflect") == 2
    assert list(clone.elsewhere.parent.iterdir()) == [clone.elsewhere]


@in_each_file
def test_a_link_inside_the_project_is_followed(clone: Clone, host: str, name: str) -> None:
    """The real file is edited, and the link stays."""
    real = clone.place("shared.json")
    real.write_text("{}")
    file = clone.place(name)
    file.symlink_to(real)
    assert clone(host, "--project") == 0
    assert file.is_symlink()
    assert "reflectd" in real.read_text()


def test_a_plugin_that_is_a_fifo_holds_nothing_up(clone: Clone) -> None:
    """The plugins of a project are looked at for a second one of ours."""
    os.mkfifo(clone.place(".opencode/plugin.json").with_name("x.js"))
    (clone.project / ".opencode" / "plugin").mkdir()
    os.mkfifo(clone.project / ".opencode" / "plugin" / "a.js")
    (clone.project / ".opencode" / "plugin" / "b.js").symlink_to("/dev/zero")
    assert clone("opencode", "--project") == 0


@pytest.mark.shows("I43")
@pytest.mark.parametrize(
    ("host", "name", "there"),
    [*((*one, "{}") for one in HOST_FILES), *((host, names[0], None) for host, names in FILES.items())],
)
def test_what_an_editor_saves_meanwhile_stays(clone: Clone, host: str, name: str, there: str | None) -> None:
    """The settings are compared right before they are replaced. Nothing is kept of a change that was not
    made, and the next run makes it.
    """
    file, theirs = clone.place(name), '{"model": "theirs"}'
    if there is not None:
        file.write_text(there)
    clone.saves = [lambda: file.write_text(theirs)]
    assert clone(host, "--project") == 1
    assert "changed meanwhile" in clone.err
    assert file.read_text() == theirs
    assert not [p for p in clone.written() if "backups" in p.parts]
    clone.saves = []
    assert clone(host, "--project") == 0
    assert json.loads(file.read_text())["model"] == "theirs"
    assert clone(host, "--project", "--remove") == 0
    assert file.read_text() == theirs


def test_our_own_settings_are_compared_too(clone: Clone) -> None:
    """`setup --judge` edits the person's file of reflectd."""
    file = Path(clone.env["HOME"], ".config", "reflectd", "config.toml")
    file.parent.mkdir(parents=True)
    file.write_text("toasts = false\n")
    saved = [file.read_text()]

    def save() -> None:
        saved.append(f"{saved[-1]}# saved again\n")
        file.write_text(saved[-1])

    clone.saves = [save]
    clone("claude-code", "--project", "--judge", "offline")
    assert len(saved) > 1
    assert file.read_text() == saved[-1]
    assert [p.name for p in file.parent.iterdir()] == ["config.toml"]

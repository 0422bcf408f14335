"""The copies of the plugins stay where they are, whatever happens to the package, and follow the person's
settings: with the real command.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from daemon import paths
from daemon.cli.setup import copies
from harness.machine.reflectd import Daemon
from harness.machine.sandbox import Sandbox
from tests.support.machine.command_line import reflectd, said

ENTRY = {"opencode": "index.ts", "claude-code": "hooks/hooks.json"}


def copy_of(box: Sandbox, host: str) -> Path:
    return box.home / ".local" / "share" / "reflectd" / "plugins" / host


def make_old(box: Sandbox, host: str) -> Path:
    """The copy as another version left it: another text, and a file that this version does not have."""
    entry = copy_of(box, host) / ENTRY[host]
    entry.write_text("of another version")
    (entry.parent / "more").mkdir()
    (entry.parent / "more" / "gone.ts").write_text("")
    return entry


@pytest.mark.parametrize("host", sorted(ENTRY))
def test_start_brings_what_the_hosts_load_up_to_date(box: Sandbox, host: str) -> None:
    """After an upgrade the first start of the daemon, as the old plugin does it, brings the new plugin; the
    settings of the host stay as they are.
    """
    said(reflectd(box, "setup", host), 0)
    settings = {path: path.read_bytes() for path in box.home.rglob("*.json") if "plugins" not in path.parts}
    entry = make_old(box, host)
    said(reflectd(box, "start", "--from-shim"), 0, "started")
    assert entry.read_bytes() == (paths.shipped(copies.SHIPPED[host]) / ENTRY[host]).read_bytes()
    assert not (entry.parent / "more").exists()
    assert {path: path.read_bytes() for path in settings} == settings


def test_doctor_brings_them_up_to_date(box: Sandbox) -> None:
    """It says so once, with what to do; the next run finds nothing."""
    said(reflectd(box, "setup", "opencode"), 0)
    make_old(box, "opencode")
    said(reflectd(box, "doctor"), 0, "was of another version, now it is of this", "restart opencode")
    found = json.loads(reflectd(box, "doctor", "--json").stdout)["checks"]
    (check,) = [c for c in found if c["name"] == "copies"]
    assert (check["outcome"], check["mend"]) == ("ok", "")


def test_without_a_setup_nothing_is_copied(box: Sandbox) -> None:
    """Start and doctor make no copy that no settings name."""
    said(reflectd(box, "start"), 0)
    reflectd(box, "doctor")
    assert not copy_of(box, "opencode").parent.exists()


def test_a_link_is_left_alone(box: Sandbox) -> None:
    """A developer's link to the plugin's source stays a link, and what it leads to stays as it is."""
    source = box.root / "source"
    source.mkdir()
    (source / "index.ts").write_text("mine")
    copy_of(box, "opencode").parent.mkdir(parents=True)
    copy_of(box, "opencode").symlink_to(source)
    said(reflectd(box, "setup", "opencode"), 0)
    said(reflectd(box, "start"), 0)
    said(reflectd(box, "doctor"), 0, "is a link")
    said(reflectd(box, "setup", "opencode", "--remove"), 0)
    assert os.listdir(source) == ["index.ts"]
    assert (source / "index.ts").read_text() == "mine"


def test_a_copy_that_others_may_write_or_nobody_can_run_is_mended(box: Sandbox) -> None:
    """The bytes are right and the modes are not: whoever could write there would run in the agent."""
    said(reflectd(box, "setup", "claude-code"), 0)
    script, hooks = (copy_of(box, "claude-code") / name for name in ("scripts/hook.sh", "hooks/hooks.json"))
    script.chmod(0o644)
    hooks.chmod(0o666)
    assert copies.refresh(box.env(), "claude-code")
    assert (script.stat().st_mode & 0o777, hooks.stat().st_mode & 0o777) == (0o755, 0o644)
    assert not copies.refresh(box.env(), "claude-code")


def test_a_copy_that_cannot_be_written_keeps_nobody_from_starting(box: Sandbox) -> None:
    """The daemon starts, and why the plugin is old is said."""
    said(reflectd(box, "setup", "opencode"), 0)
    entry = make_old(box, "opencode")
    entry.unlink()
    entry.mkdir()
    said(reflectd(box, "start"), 0, "started", "can't write", "not a regular file")


def hooks(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / copies.HOOKS).read_bytes())
    return found


@pytest.mark.shows("I39")
@pytest.mark.parametrize(
    "by",
    [
        ("setup", "--learning", "{}"),
        ("setup", "claude-code", "--learning", "{}"),
        ("config", "set", "memory.enabled", "{}"),
    ],
)
def test_the_hook_at_tool_calls_follows_the_setting_at_once(box: Sandbox, by: tuple[str, ...]) -> None:
    """One command is enough, both ways, and says which agent to restart; off leaves the shipped bytes."""
    said(reflectd(box, "setup", "claude-code"), 0)
    folder, shipped = copy_of(box, "claude-code"), paths.shipped(copies.SHIPPED["claude-code"])
    words = ("true", "false") if by[0] == "config" else ("on", "off")
    assert (folder / copies.HOOKS).read_bytes() == (shipped / copies.HOOKS).read_bytes()
    said(reflectd(box, *(word.format(words[0]) for word in by)), 0, "estart Claude Code")
    assert not copies.refresh(box.env(), "claude-code")
    before, found = hooks(shipped), hooks(folder)
    ((entry,),) = [found["hooks"].pop(event) for event in [copies.EVENT]]
    assert found == before
    assert (entry["matcher"], [hook["args"] for hook in entry["hooks"]]) == ("*", [[copies.EVENT]])
    said(reflectd(box, *(word.format(words[1]) for word in by)), 0, "estart Claude Code")
    assert (folder / copies.HOOKS).read_bytes() == (shipped / copies.HOOKS).read_bytes()


def test_an_edited_settings_file_counts_from_the_next_restart_on(box: Sandbox) -> None:
    """As the page on settings says it: the daemon and the plugins, without `doctor` and a second setup."""
    said(reflectd(box, "setup", "claude-code", "--learning", "off"), 0)
    file = box.home / ".config" / "reflectd" / "config.toml"
    with Daemon(box):
        file.write_text("[memory]\nenabled = true\n")
        said(reflectd(box, "restart"), 0)
        assert copies.EVENT in hooks(copy_of(box, "claude-code"))["hooks"]
        said(reflectd(box, "stop"), 0)


def test_each_part_is_there_only_where_the_settings_say_so(box: Sandbox) -> None:
    """Without the mod no code of it is on the disk, also beside a line with a mistake."""
    folder = copy_of(box, "claude-code")
    said(reflectd(box, "setup", "claude-code"), 0)
    assert (folder / copies.MOD).is_file()
    said(reflectd(box, "config", "set", "claude_code.mod", "false"), 0, "restart Claude Code")
    assert not (folder / copies.MOD).exists()
    assert "modules" not in hooks(folder)
    with (box.home / ".config" / "reflectd" / "config.toml").open("a") as file:
        file.write("\n[memory]\ncolour = 3\nenabled = true\n")
    assert copies.refresh_all(box.env()) == ["claude-code"]
    assert not (folder / copies.MOD).exists()
    assert copies.EVENT in hooks(folder)["hooks"]
    (box.home / ".config" / "reflectd" / "config.toml").unlink()
    said(reflectd(box, "setup", "claude-code"), 0)
    assert (folder / copies.MOD).is_file()


@pytest.mark.parametrize("data", ["/x", "/", "relative"])
def test_only_empty_folders_below_the_data_folder_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, data: str
) -> None:
    """Whatever the variables say, a folder that holds something and a folder above ours stay."""
    monkeypatch.chdir(tmp_path)
    env = {"HOME": str(tmp_path / "home"), "XDG_DATA_HOME": data.replace("/x", str(tmp_path / "x"))}
    (tmp_path / "home").mkdir()
    (tmp_path / "x").mkdir()
    copies.remove_made(env, tmp_path / "x")
    copies.remove_made(env, tmp_path / "home")
    assert sorted(os.listdir(tmp_path)) == ["home", "x"]

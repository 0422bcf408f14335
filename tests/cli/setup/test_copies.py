"""The copies of the plugins stay where they are, whatever happens to the package: with the real command."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from daemon import paths
from daemon.cli.setup import copies
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

"""``reflectd uninstall`` where reflectd was used: real settings, a real daemon, real verdicts."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pexpect
import pytest

from harness.machine.reflectd import Daemon
from harness.machine.sandbox import Sandbox
from tests.support.machine.command_line import environment, judged, reflectd, said

THEIRS = '{\n  // mine\n  "theme": "x"\n}\n'


def tree(folder: Path) -> dict[str, bytes | None]:
    """Everything below the folder, with its bytes."""
    return {str(p.relative_to(folder)): None if p.is_dir() else p.read_bytes() for p in folder.rglob("*")}


def ours(box: Sandbox) -> list[str]:
    """The paths of this machine that have our name, but for what belongs to projects."""
    named = [str(p.relative_to(box.root)) for p in box.root.rglob("*reflect*")]
    return sorted(name for name in named if ".reflection" not in name and "/orchestration/" not in name)


def used(box: Sandbox) -> None:
    """Both agents are connected, opencode also with settings in another folder; a session was judged;
    settings and a prompt were written; the daemon runs.
    """
    (box.root / "other").mkdir()
    said(reflectd(box, "setup", "opencode"), 0)
    other = {"XDG_CONFIG_HOME": str(box.root / "other")}
    said(reflectd(box, "setup", "opencode", **other), 0)
    said(reflectd(box, "setup", "claude-code", "--judge", "offline"), 0)
    prompts = box.home / ".config" / "reflectd" / "prompts"
    prompts.mkdir(parents=True, exist_ok=True)
    (prompts / "judge.txt").write_text("mine")
    with Daemon(box) as daemon:
        judged(box, daemon, "ses_1")
    said(reflectd(box, "playbook", "add", "Tests need redis"), 0)
    said(reflectd(box, "reflect", "--json"), 0)
    said(reflectd(box, "backtest", box.project), 0)
    assert {"reflect", "backtest"} <= set(os.listdir(box.state))
    said(reflectd(box, "start"), 0, "started")


def test_nothing_is_left_but_the_files_of_projects(box: Sandbox) -> None:
    """Every byte of the hosts' settings is as before, the daemon has ended, and what we made is gone, in the
    home and in another folder; `.reflection` is named and untouched.
    """
    (box.home / ".config" / "opencode" / "opencode.jsonc").write_text(THEIRS)
    before = tree(box.home)
    used(box)
    (box.root / "reflectd.log").unlink()  # of the daemon that this test ran in the foreground
    reflection = tree(box.project / ".reflection")
    done = said(reflectd(box, "uninstall", "--yes"), 0, "To be removed", "Not touched", "Next: ")
    assert f"{box.project / '.reflection'} (verdicts and playbook of that project)" in done
    assert tree(box.home) == before
    assert tree(box.project / ".reflection") == reflection
    assert os.listdir(box.root / "other") == []
    assert not box.state.exists()
    assert not box.socket.exists()
    assert ours(box) == []
    said(reflectd(box, "uninstall"), 0, "Nothing of reflectd is on this machine")


def test_a_list_comes_first_and_alone_it_changes_nothing(box: Sandbox) -> None:
    """``--dry-run``, and a script that did not say ``--yes`` (exit code 2): people read what would go."""
    used(box)
    before, state = tree(box.home), set(os.listdir(box.state))
    text = said(reflectd(box, "uninstall", "--dry-run"), 0, "To be removed")
    for path in (
        box.home / ".config" / "opencode" / "opencode.json",
        box.root / "other" / "opencode" / "opencode.json",
        box.home / ".claude" / "settings.json",
        box.home / ".config" / "reflectd",
        box.home / ".local" / "share" / "reflectd",
        box.state,
        box.socket,
    ):
        assert f"{path} (" in text
    said(reflectd(box, "uninstall"), 2, "To be removed", "--yes", "Nothing was removed")
    said(reflectd(box, "uninstall", "--json"), 2, "--yes")
    items = json.loads(reflectd(box, "uninstall", "--dry-run", "--json").stdout)["items"]
    assert {item["kind"] for item in items} == {"settings", "daemon", "plugins", "state", "config"}
    assert not any(item["removed"] for item in items)
    assert tree(box.home) == before
    assert state <= set(os.listdir(box.state))
    said(reflectd(box, "status"), 0, "runs")


@pytest.mark.parametrize(("answer", "gone"), [("\r", False), ("n\r", False), ("\x04", False), ("y\r", True)])
@pytest.mark.full("a pseudo-terminal is driven")
def test_on_a_terminal_it_asks(box: Sandbox, answer: str, gone: bool) -> None:
    """Only a yes removes."""
    said(reflectd(box, "setup", "opencode"), 0)
    child: pexpect.spawn[str] = pexpect.spawn(
        sys.executable,
        ["-m", "daemon", "uninstall"],
        env=environment(box),  # type: ignore[arg-type]
        cwd=str(box.project),
        dimensions=(60, 200),
        encoding="utf-8",
        timeout=60,
    )
    try:
        child.expect_exact("Remove all of this? [y/N]")
        child.send(answer)
        child.expect_exact("Removed." if gone else "Nothing was removed.")
        child.expect(pexpect.EOF)
    finally:
        child.close()
    assert child.exitstatus == 0
    assert (box.home / ".config" / "opencode" / "opencode.json").exists() is not gone


def test_what_a_person_put_into_our_folders_stays(box: Sandbox) -> None:
    """A key, a note and a link's target are theirs: named, not removed. ``--keep-config`` keeps settings."""
    config = box.home / ".config" / "reflectd"
    config.mkdir()
    (config / "config.toml").write_text("")
    (config / "anthropic.key").write_text("k")
    (box.state / "note.txt").write_text("mine")
    (box.root / "elsewhere").mkdir()
    (box.root / "elsewhere" / "case.json").write_text("mine")
    (box.state / "cases").symlink_to(box.root / "elsewhere")
    theirs = box.file("opencode.json", '{"plugin": ["opencode-reflectd"]}')
    (box.home / ".bashrc").write_text("source <(reflectd completion bash)\n")
    said(reflectd(box, "uninstall", "--yes", "--keep-config"), 0)
    assert sorted(os.listdir(config)) == ["anthropic.key", "config.toml"]
    text = said(reflectd(box, "uninstall", "--yes"), 0)
    assert os.listdir(config) == ["anthropic.key"]
    assert os.listdir(box.state) == ["note.txt"]
    assert os.listdir(box.root / "elsewhere") == ["case.json"]
    for path in (config / "anthropic.key", box.state / "note.txt", theirs, box.home / ".bashrc"):
        assert path.exists()
        assert f"{path} (" in text.partition("Not touched")[2]


def test_wrong_settings_keep_nobody_from_leaving(box: Sandbox) -> None:
    """A typo in our own settings is no reason to stay."""
    said(reflectd(box, "setup", "opencode"), 0)
    file = box.home / ".config" / "reflectd" / "config.toml"
    file.parent.mkdir()
    file.write_text("[judge\n")
    said(reflectd(box, "uninstall", "--yes"), 0, "Removed.")
    assert ours(box) == []


def test_what_cannot_be_removed_does_not_keep_the_rest(box: Sandbox) -> None:
    """Exit code 1 with the path and the reason; all else is gone, and a second run finds what was left."""
    said(reflectd(box, "setup", "opencode"), 0)
    said(reflectd(box, "setup", "claude-code"), 0)
    file = box.home / ".config" / "opencode" / "opencode.json"
    file.chmod(0o444)
    done = json.loads(reflectd(box, "uninstall", "--yes", "--json").stdout)
    failed = [(item["path"], "read-only" in item["error"]) for item in done["items"] if item["error"]]
    assert failed == [(str(file), True)]
    assert not (box.home / ".claude").exists()
    said(reflectd(box, "uninstall", "--yes"), 1, "read-only", str(file))
    file.chmod(0o644)
    said(reflectd(box, "uninstall", "--yes"), 0, "Removed.")
    assert "reflectd" not in file.read_text() if file.exists() else True


def test_the_service_goes_too(box: Sandbox) -> None:
    """Its files are in the list and are removed. A manager that can't be asked here is said, with what to run
    by hand, and exit code 1; there is nothing to remove afterwards.
    """
    assert reflectd(box, "service", "install").returncode in {0, 1}
    listed = json.loads(reflectd(box, "uninstall", "--dry-run", "--json").stdout)["items"]
    (service,) = [item for item in listed if item["kind"] == "service"]
    done = reflectd(box, "uninstall", "--yes", "--json")
    (removed,) = [item for item in json.loads(done.stdout)["items"] if item["kind"] == "service"]
    assert not list(Path(service["path"]).glob("*reflectd*"))
    assert done.returncode == int(bool(removed["error"]))
    assert removed["error"] is None or "Run by hand" in removed["error"]
    said(reflectd(box, "uninstall"), 0, "Nothing of reflectd is on this machine")

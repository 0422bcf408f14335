"""``reflectd setup claude-code --no-mod``: the plugin's copy with and without its mod."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from daemon.cli.setup import copies
from daemon.cli.setup.mod import MODULE, NAMED_IN
from daemon.paths import shipped
from tests.support.hosts.claude_code_settings import Desk

SOURCE = shipped(copies.SHIPPED["claude-code"])


@pytest.fixture
def desk(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Desk:
    found = Desk(tmp_path, capsys)
    monkeypatch.chdir(found.project)
    return found


def setting(desk: Desk) -> Path:
    return desk.root / "home" / ".config" / "reflectd" / "config.toml"


def named(folder: str | Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(Path(folder, NAMED_IN).read_text())
    return found


def test_setup_makes_the_copy_with_the_mod(desk: Desk) -> None:
    """Without a flag nothing is asked and no setting is written; every byte of the copy is as shipped."""
    assert desk() == 0
    assert Path(desk.folder, MODULE).read_bytes() == (SOURCE / MODULE).read_bytes()
    assert named(desk.folder)["modules"] == ["./register.js"]
    assert not setting(desk).exists()
    assert "mod:" not in desk.out


def test_no_mod_leaves_no_code_of_it(desk: Desk) -> None:
    """The module is not on the disk and nothing names it; the hooks are the same. It stays so when the copy
    is brought up to date. `--mod` brings it back.
    """
    assert desk("--no-mod") == 0
    assert f"claude_code.mod = false written in {setting(desk)}" in desk.out
    assert not Path(desk.folder, MODULE).exists()
    assert named(desk.folder) == {k: v for k, v in named(SOURCE).items() if k != "modules"}
    assert copies.state(desk.env, "claude-code") == "current"
    Path(desk.folder, NAMED_IN).write_text("of another version")
    assert copies.refresh(desk.env, "claude-code")
    assert "modules" not in named(desk.folder)
    assert desk("--no-mod") == 0
    assert f"claude_code.mod = false stands already in {setting(desk)}" in desk.out
    assert desk() == 0
    assert "modules" not in named(desk.folder)
    assert desk("--mod") == 0
    assert "already loads reflectd.\n" in desk.out
    assert Path(desk.folder, MODULE).is_file()
    assert "modules" in named(desk.folder)


def test_a_setting_with_mistakes_beside_it_still_counts(desk: Desk) -> None:
    """What the person does not want is not brought back because another line of the file is wrong."""
    setting(desk).parent.mkdir(parents=True)
    setting(desk).write_text("colour = 3\n[claude_code]\nmod = false\n")
    assert copies.refresh(desk.env, "claude-code", make=True)
    assert not Path(desk.folder, MODULE).exists()


def test_a_dry_run_writes_nothing(desk: Desk) -> None:
    """It says what would be written, and where."""
    before = desk.tree()
    assert desk("--no-mod", "--dry-run") == 0
    assert f"claude_code.mod = false would be written into {setting(desk)}" in desk.out
    assert desk.tree() == before


def test_the_environment_counts_more(desk: Desk) -> None:
    """Then the person reads why the copy is not as they said."""
    desk.env["REFLECTD_CLAUDE_CODE_MOD"] = "true"
    found = desk.json("--no-mod")
    assert found["notes"][1] == "REFLECTD_CLAUDE_CODE_MOD in your environment counts more than the file"
    assert Path(desk.folder, MODULE).is_file()


@pytest.mark.parametrize("flag", ["--mod", "--no-mod"])
def test_wrong_arguments(desk: Desk, flag: str) -> None:
    """A flag that would do nothing is refused, and a settings file that can't be edited is not."""
    assert desk(flag, "--remove") == 2
    assert f"give {flag} alone" in desk.err
    setting(desk).parent.mkdir(parents=True)
    setting(desk).write_text("[claude_code\n")
    assert desk(flag) == 2
    assert "it is not valid TOML. Nothing was changed in it" in desk.err

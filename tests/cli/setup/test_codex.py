"""``reflectd setup codex`` on files alone, with no Codex to ask (tests/e2e/test_codex.py has one)."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from daemon.cli.setup import codex
from daemon.cli.setup.codex import CODEX, EVENTS, problems
from tests.support.hosts.claude_code_settings import Desk

OTHERS = '{"hooks": [{"type": "command", "command": "true"}]}'
MINE = (
    '{\r\n\t"description": "mine",\r\n\t"hooks": {\r\n\t\t"PreToolUse": [],\r\n\t\t"Stop": ['
    + OTHERS
    + "]\r\n\t}\r\n}"
)


@pytest.fixture
def desk(desk: Desk) -> Desk:
    desk.host, desk.file = "codex", desk.root / "home" / ".codex" / "hooks.json"
    return desk


def trust(desk: Desk, folder: Path, quote: str = '"', more: str = "") -> str:
    """What Codex writes when each hook of the file is trusted."""
    groups = json.loads(desk.file.read_text())["hooks"]
    tables = [
        f"\n[hooks.state.{quote}{folder}/hooks.json:{codex._snake(event)}:{n}:0{quote}]\n"
        f'trusted_hash = "sha256:{event}{codex._is_ours(group)}"\n{more}'
        for event, found in groups.items()
        for n, group in enumerate(found)
    ]
    return "\n[hooks.state]\n" + "".join(tables)


def test_each_hook_once(desk: Desk) -> None:
    """By a script that stays where it is."""
    assert desk("--yes") == 0
    assert "does not trust the hooks yet" in desk.out
    hooks = json.loads(desk.file.read_text())["hooks"]
    assert list(hooks) == list(EVENTS)
    (handler,) = hooks["Stop"][0]["hooks"]
    assert shlex.split(handler["command"]) == [f"{desk.data}/plugins/codex/hook.sh", "Stop", "codex"]


@pytest.mark.parametrize(
    "text", ["{{{", "[]", '{"hooks": []}', '{"hooks": {"Stop": {}}}', '{"hooks": {"Stop": [}', "\ufffe{"]
)
def test_a_file_of_another_form_is_left_alone(desk: Desk, text: str) -> None:
    """It is named, and nothing is written."""
    desk.write(text)
    before = desk.tree()
    assert desk() == 2
    assert str(desk.file) in desk.err
    assert desk.tree() == before


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('{"hooks": {}} // mine', "plain JSON"),
        ('\ufeff{"hooks": {}}', "BOM"),
        ('{"hooks": {"Stop": [{"hooks": [{"type": "http", "url": "x"}]}]}}', "type http at Stop"),
        ('{"hooks": {}, "version": 1}', "'version'"),
    ],
)
def test_what_codex_refuses_is_said(desk: Desk, text: str, why: str) -> None:
    """Codex runs no hook of such a file and tells nobody: setup does, and so does status."""
    desk.write(text)
    assert desk() == 0
    assert why in desk.err + desk.out
    assert any(why in found for found in CODEX.silenced(desk.env, desk.project))
    assert not list(problems(MINE))


@pytest.mark.parametrize("kind", ["plain", "quotes", "link", "relative", "off"])
def test_what_codex_noted_of_our_hooks_goes(desk: Desk, kind: str) -> None:
    """However Codex names its home, and wherever that is; what it noted of others' hooks stays."""
    home = desk.root / ('my "codex"' if kind == "quotes" else "codex")
    home.mkdir()
    named = str(home)
    if kind == "link":
        (desk.root / "link").symlink_to(home)
        named = str(desk.root / "link")
    desk.env["CODEX_HOME"] = f"../{home.name}" if kind == "relative" else named
    desk.file, settings = home / "hooks.json", home / "config.toml"
    desk.write(MINE)
    quote, more = "'" if kind == "quotes" else '"', "enabled = false\n" if kind == "off" else ""
    theirs = 'model = "x"\n' + trust(desk, home, quote, more)
    assert desk() == 0
    assert any("does not trust the hooks" in why for why in CODEX.silenced(desk.env, desk.project))
    settings.write_text('model = "x"\n' + trust(desk, home, quote, more))
    assert not list(CODEX.silenced(desk.env, desk.project))
    assert desk("--remove") == 0
    assert settings.read_text() == theirs


@pytest.mark.parametrize("how", ["--remove", "--undo"])
def test_settings_that_held_only_that_go(desk: Desk, how: str) -> None:
    """Codex made the file when it noted the trust."""
    desk.file.parent.mkdir()
    assert desk() == 0
    (desk.file.parent / "config.toml").write_text(trust(desk, desk.file.parent).removeprefix("\n"))
    assert desk(how) == 0
    assert not list(desk.file.parent.iterdir())


def test_a_hook_behind_ours_stays_trusted(desk: Desk) -> None:
    """It moves up when ours goes, and Codex knows hooks by their places."""
    desk.write(MINE)
    assert desk() == 0
    last = json.loads(desk.file.read_text())
    last["hooks"]["Stop"].append(json.loads(OTHERS))
    desk.write(json.dumps(last))
    settings = desk.file.parent / "config.toml"
    settings.write_text(trust(desk, desk.file.parent).replace('False"\n', 'False"\nenabled = true\n'))
    assert desk("--remove") == 0
    assert settings.read_text() == trust(desk, desk.file.parent, more="enabled = true\n")


def test_a_hook_before_ours_takes_its_trust(desk: Desk) -> None:
    """Then ours is one that Codex has not seen, which status says without running Codex."""
    assert desk() == 0
    (desk.file.parent / "config.toml").write_text(trust(desk, desk.file.parent))
    moved = json.loads(desk.file.read_text())
    moved["hooks"]["Stop"].insert(0, json.loads(OTHERS))
    desk.write(json.dumps(moved))
    (why,) = CODEX.silenced(desk.env, desk.project)
    assert f"does not trust 1 of {len(EVENTS)} hooks" in why

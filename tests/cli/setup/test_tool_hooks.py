"""Hooks at Claude Code's tool calls are on the disk only where lessons are given."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from daemon.cli.setup import copies
from daemon.cli.setup import copies as tool_hooks
from daemon.paths import shipped

OFF = "[memory]\nenabled = true\nat_prompt = false\n"
SHIPPED = shipped("shims/claude-code") / "hooks" / "hooks.json"


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    return {"HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path / "config")}


def settings(env: dict[str, str], text: str) -> None:
    file = Path(env["XDG_CONFIG_HOME"], "reflectd", "config.toml")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def copied(env: dict[str, str]) -> dict[str, Any]:
    copies.refresh(env, "claude-code", make=True)
    found: dict[str, Any] = json.loads(
        (copies.place(env, "claude-code") / "hooks" / "hooks.json").read_bytes()
    )
    return found


@pytest.mark.parametrize("text", ["", "[memory]\nenabled = false\n", OFF])
def test_off_is_not_one_byte_more(env: dict[str, str], text: str) -> None:
    """The copy has the hooks that are shipped, byte for byte."""
    settings(env, text)
    copied(env)
    assert (copies.place(env, "claude-code") / "hooks" / "hooks.json").read_bytes() == SHIPPED.read_bytes()


@pytest.mark.shows("I39")
def test_on_adds_a_hook(env: dict[str, str]) -> None:
    """At every tool. A change counts when the copy is brought up to date, both ways."""
    before = json.loads(SHIPPED.read_bytes())
    settings(env, "[memory]\nenabled = true\n")
    found = copied(env)
    assert copies.state(env, "claude-code") == "current"
    added = {e: found["hooks"][e] for e in found["hooks"] if found["hooks"][e] != before["hooks"].get(e)}
    assert set(added) == {tool_hooks.EVENT}
    for event, entries in added.items():
        (entry,) = entries
        (hook,) = entry["hooks"]
        assert entry["matcher"] == "*"
        assert (hook["command"], hook["args"]) == ("${CLAUDE_PLUGIN_ROOT}/scripts/hook.sh", [event])
    assert {e: found["hooks"][e] for e in before["hooks"]} == before["hooks"]
    settings(env, OFF)
    assert copies.state(env, "claude-code") == "different"
    assert copied(env) == before


def test_without_the_mod_too(env: dict[str, str]) -> None:
    """The two choices don't touch each other."""
    settings(env, "[memory]\nenabled = true\n[claude_code]\nmod = false\n")
    found = copied(env)
    assert "modules" not in found
    assert tool_hooks.EVENT in found["hooks"]


def test_beside_hooks_that_are_there() -> None:
    """An event that has hooks already keeps them."""
    named = json.dumps({"hooks": {"PreToolUse": [{"hooks": []}]}}).encode()
    assert len(json.loads(tool_hooks.with_them(named))["hooks"]["PreToolUse"]) == 2

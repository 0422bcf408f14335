"""The plugin's mod, looked at and run by the real Claude Code, without a session."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from daemon.paths import shipped
from harness.hosts.claude_code import ClaudeCode, Ran
from harness.machine.sandbox import sandbox

pytestmark = [pytest.mark.needs("claude"), pytest.mark.slow("it starts the real Claude Code")]
PLUGIN = shipped("shims/claude-code")


def claude_plugin(*words: str) -> Ran:
    """``claude plugin …`` without a model and without a person's settings."""
    with sandbox() as box:
        return ClaudeCode(box, "http://127.0.0.1:9").call("plugin", *words)


@pytest.mark.shows("I39")
def test_claude_code_finds_nothing_wrong_with_the_plugin() -> None:
    """Events, calls and files are as the engine wants them, and the mod reads one variable."""
    ran = claude_plugin("validate", "--strict", str(PLUGIN))
    assert ran.code == 0, ran.stdout
    assert "Validation passed" in ran.stdout
    assert "./register.js env reads: REFLECTD_DISABLE\n" in ran.stdout
    assert "./register.js env writes: nothing\n" in ran.stdout
    assert "$.fs" not in ran.stdout


def test_validate_finds_what_is_wrong(tmp_path: Path) -> None:
    """The check above can fail: an event that the engine doesn't know is found."""
    plugin = Path(shutil.copytree(PLUGIN, tmp_path / "plugin"))
    module = plugin / "hooks" / "register.js"
    module.write_text(module.read_text().replace("on('turn.complete'", "on('turn.over'"))
    assert claude_plugin("validate", "--strict", str(plugin)).code == 1


def test_the_mod_in_the_engine(tmp_path: Path) -> None:
    """The stories of ``register.test.ts``, with a clock that the test moves."""
    plugin = Path(shutil.copytree(PLUGIN, tmp_path / "plugin"))
    shutil.copy(Path(__file__).with_name("register.test.ts"), plugin)
    ran = claude_plugin("test", str(plugin))
    assert ran.code == 0, ran.stdout + ran.stderr
    assert "(pass) Esc is told with the prompt that it ended" in ran.stdout + ran.stderr

"""How ``claude`` is found, and with which environment it is called. No program runs here."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from daemon.llm.claude_cli import child_env, find

if TYPE_CHECKING:
    from pathlib import Path

from tests.llm.samples import program


def test_the_program_that_is_found(tmp_path: Path) -> None:
    """The setting wins, then PATH, then where installers put it; a folder or a plain file is no program."""
    on_path, usual = program(tmp_path / "bin"), program(tmp_path / ".local" / "bin")
    env = {"PATH": str(tmp_path / "bin"), "HOME": str(tmp_path)}
    assert find("", env) == on_path
    assert find("", {**env, "PATH": ""}) == usual
    assert find(str(usual), env) == usual
    assert find(str(tmp_path), env) is None
    assert find(str(tmp_path / "gone"), env) is None
    assert find("", {}) is None


@pytest.mark.shows("I9", "I46")
def test_the_environment_of_the_call() -> None:
    """Nothing of a session or of another account gets through; what marks our children is set."""
    given_env = {
        "HOME": "/home/a",
        "PATH": "/bin",
        "HTTPS_PROXY": "http://proxy",
        "CLAUDE_CONFIG_DIR": "/home/a/.claude",
        "CLAUDE_CODE_OAUTH_TOKEN": "token",
        "CLAUDECODE": "1",
        "CLAUDE_CODE_MESSAGING_TOKEN": "secret",
        "CLAUDE_CODE_USE_BEDROCK": "1",
        "CLAUDE_PROJECT_DIR": "/w",
        "AI_AGENT": "claude",
        "ANTHROPIC_API_KEY": "key",
        "ANTHROPIC_BASE_URL": "http://elsewhere",
        "ANTHROPIC_MODEL": "other",
    }
    made = child_env(given_env, 9_500, 12.0)
    kept = {"HOME", "PATH", "HTTPS_PROXY", "CLAUDE_CONFIG_DIR", "CLAUDE_CODE_OAUTH_TOKEN"}
    assert {k: v for k, v in made.items() if k in given_env} == {k: given_env[k] for k in kept}
    assert made["REFLECTD_CHILD"] == "1"
    assert made["CLAUDE_CODE_MAX_OUTPUT_TOKENS"] == "9500"
    assert made["API_TIMEOUT_MS"] == "12000"

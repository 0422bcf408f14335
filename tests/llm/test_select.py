"""Which providers there are, by settings and what is installed."""

from __future__ import annotations

from pathlib import Path

import pytest

from daemon.config import from_text
from daemon.core.errors import Unavailable, UserError
from daemon.core.llm import Prompt
from daemon.core.policy import POLICIES
from daemon.keys import VARIABLES, Access, Keys, load_keys
from daemon.llm.anthropic import AnthropicProvider
from daemon.llm.claude_cli import ClaudeCliProvider
from daemon.llm.openai_compat import OpenAIProvider
from daemon.llm.select import providers
from tests.llm.samples import program


def test_auto_never_takes_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It uses the person's login and limits, so only its own name chooses it."""
    program(tmp_path / "bin")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    found = providers("auto", from_text(), Keys(Access("a-key"), Access("a-key")), folder=tmp_path)
    assert [p.name for p in found] == ["anthropic", "openai", "offline"]
    (chosen,) = providers("claude-cli", from_text(), Keys(), folder=tmp_path)
    assert isinstance(chosen, ClaudeCliProvider)
    assert all(chosen.name in policy.order for policy in POLICIES.values())


def test_an_address_of_the_vendors_is_the_sdks() -> None:
    """What `setup` writes into the settings is the address that an empty one means."""
    assert VARIABLES["anthropic"].official == AnthropicProvider.official
    assert VARIABLES["openai"].official == OpenAIProvider.official


def test_no_program_is_the_persons_to_mend(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Chosen and not there: an error of the settings, with the setting that mends it."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(UserError, match=r"claude_cli\.path"):
        providers("claude-cli", from_text(), Keys(), folder=tmp_path)


def test_quick_questions_go_to_the_small_model(tmp_path: Path) -> None:
    """The setting names the judge's model; the tier ``fast`` has its own."""
    made = ClaudeCliProvider(tmp_path, "opus", tmp_path, {})
    judge, quick = (Prompt("judge", tier, "", "") for tier in ("judge", "fast"))
    assert made.model_for(judge) == ("anthropic", "opus")
    assert made.model_for(quick) == ("anthropic", "haiku")


async def test_a_token_in_a_file_is_the_login(tmp_path: Path) -> None:
    """The judge `claude-cli` gets it from the daemon, whose environment has none."""
    program, token = tmp_path / "claude", tmp_path / "token"
    program.write_text('#!/bin/sh\nprintf "token %s" "$CLAUDE_CODE_OAUTH_TOKEN" >&2\nexit 1\n')
    program.chmod(0o755)
    token.write_text("t0ken\n")
    settings = from_text(f"[claude_cli]\npath = '{program}'\ntoken_file = '{token}'")
    (made,) = providers("claude-cli", settings, load_keys({}, settings), folder=tmp_path / "judge")
    with pytest.raises(Unavailable, match="token t0ken"):
        await made.complete(Prompt("judge", "judge", "Judge.", "Data."), 30.0)

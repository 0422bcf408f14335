"""Where API keys come from, and to which address they may go."""

from __future__ import annotations

from pathlib import Path

import pytest

from daemon import config
from daemon.core.errors import UserError
from daemon.core.settings import Settings
from daemon.keys import TOKEN, Access, load_keys


@pytest.mark.shows("I46")
def test_keys_come_from_a_file_or_the_environment(tmp_path: Path) -> None:
    """A file wins; a key of the environment never goes to another address; no repr shows one."""
    env = {"ANTHROPIC_API_KEY": " sk-env ", "OPENAI_API_KEY": "sk-other"}
    keys = load_keys(env, config.from_text())
    assert (keys.anthropic[:2], keys.openai[:2]) == (("sk-env", ""), ("sk-other", ""))
    file = tmp_path / "key"
    file.write_text("sk-file\n")
    own = config.from_text(f"[anthropic]\nkey_file = '{file}'\n[openai]\nbase_url = 'http://localhost:1/v1'")
    keys = load_keys(env, own)
    assert keys.anthropic == ("sk-file", "", "anthropic.key_file")
    assert keys.openai == ("", "http://localhost:1/v1", "")
    assert "sk-" not in f"{keys!r} {keys}"


def test_the_key_of_a_gateway_goes_to_the_gateway() -> None:
    """Key and address of the environment belong together; an address that is none is not made up for."""
    env = {"ANTHROPIC_API_KEY": "k", "ANTHROPIC_BASE_URL": "https://gw.example.org"}
    assert load_keys(env, config.from_text()).anthropic[:2] == ("k", "https://gw.example.org")
    env["ANTHROPIC_BASE_URL"] = "gw"
    assert load_keys(env, config.from_text()).anthropic == Access()


def test_a_host_brings_no_key_that_the_settings_do_not_name() -> None:
    """Its environment may be that of one project: only a variable and an address that were recorded count,
    and never another address of the environment.
    """
    env = {"ANTHROPIC_API_KEY": "k", "OPENAI_API_KEY": "o", "ANTHROPIC_BASE_URL": "https://other.example.org"}
    keys = load_keys(env, config.from_text(), by_host=True)
    assert (keys.anthropic, keys.openai) == (Access(), Access())
    assert keys.unused == {"anthropic": "ANTHROPIC_API_KEY", "openai": "OPENAI_API_KEY"}
    half = "[anthropic]\nkey_env = 'ANTHROPIC_API_KEY'"
    with pytest.raises(UserError, match=r"anthropic.key_env needs anthropic.base_url"):
        load_keys(env, config.from_text(half), by_host=True)
    both = f"{half}\nbase_url = 'https://gw.example.org'"
    keys = load_keys(env, config.from_text(both), by_host=True)
    assert keys.anthropic[:2] == ("k", "https://gw.example.org")
    assert set(keys.unused) == {"openai"}
    assert load_keys({}, config.from_text(both), by_host=True).anthropic.key == ""


@pytest.mark.parametrize("content", [None, "", "  \n", "x" * 5000, b"\xff\xfe"])
def test_a_key_file_that_holds_no_key(tmp_path: Path, content: str | bytes | None) -> None:
    """A daemon that was told where its key is does not judge without it in silence."""
    file = tmp_path / "key"
    if content is not None:
        file.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(UserError, match=r"openai.key_file: .*key"):
        load_keys({}, config.from_text(f"[openai]\nkey_file = '{file}'"))


@pytest.mark.shows("I46")
def test_a_login_of_claude_code_comes_from_a_file_or_the_environment(tmp_path: Path) -> None:
    """The file counts first, because the variable reaches no daemon that Claude Code starts."""
    file = tmp_path / "token"
    file.write_text("of-the-file\n")
    env = {TOKEN: "of-the-variable"}
    named = load_keys(env, config.from_text(f"[claude_cli]\ntoken_file = '{file}'"), by_host=True)
    assert (named.claude.key, named.claude.place) == ("of-the-file", "claude_cli.token_file")
    assert load_keys(env, Settings()).claude.key == "of-the-variable"
    assert load_keys({}, Settings()).claude == ("", "", "")
    assert "of-the" not in repr(named)
    file.unlink()
    with pytest.raises(UserError, match=r"claude_cli\.token_file: .* is missing or empty"):
        load_keys(env, config.from_text(f"[claude_cli]\ntoken_file = '{file}'"))

"""What ``claude-cli`` decides without a process: which program, which environment, what a result means."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from daemon.core.errors import BadReply, Fault, ReflectdError, Unavailable
from daemon.llm import claude_cli as claude_result
from daemon.llm.claude_cli import child_env, find
from daemon.llm.faults import Asked
from tests.llm.samples import KEY, program

ASKED = Asked("claude-cli", "Claude Code", "sonnet", "")


def printed(**fields: Any) -> bytes:
    return json.dumps({"type": "result", "subtype": "success", "is_error": True, **fields}).encode()


def error(**fields: Any) -> ReflectdError:
    found = claude_result.read(printed(**fields))
    assert found is not None
    return claude_result.of_error(ASKED, found)


@pytest.mark.parametrize(
    ("fields", "fault"),
    [
        ({"result": "Not logged in · Please run /login"}, "auth"),
        ({"result": "API Error: 403 no", "api_error_status": 403}, "auth"),
        ({"result": "You've hit your session limit · resets 3pm", "api_error_status": 429}, "billing"),
        ({"result": "Claude AI usage limit reached|1790000000"}, "billing"),
        ({"result": "5-hour limit reached ∙ resets 3pm", "api_error_status": 429}, "billing"),
        ({"result": "API Error: rate limit reached", "api_error_status": 429}, "rate_limit"),
        ({"result": "API Error: Request timed out."}, "timeout"),
        ({"result": "API Error: Connection refused (ECONNREFUSED)"}, "connection"),
        ({"result": "API Error: Overloaded", "api_error_status": 529}, "overloaded"),
        ({"result": "I cannot", "stop_reason": "refusal"}, "refused"),
        ({"result": "Something new"}, ""),
        ({}, ""),
    ],
)
def test_what_an_error_means(fields: dict[str, Any], fault: Fault) -> None:
    """A used-up plan is not a busy server: asking again in a second would not help."""
    failed = error(**fields)
    assert isinstance(failed, Unavailable)
    assert (failed.fault, failed.usage) == (fault, None)
    assert str(failed).startswith("claude-cli: ")


@pytest.mark.shows("I46")
def test_a_secret_in_an_error_is_not_told() -> None:
    """What Claude Code prints is redacted and cut."""
    assert KEY not in str(error(result=f"Refused {KEY} " + "x" * 5_000))
    assert KEY not in str(claude_result.of_exit(ASKED, 1, b"", f"bad {KEY}".encode()))
    assert len(str(error(result="x" * 1_000_000))) < 300


@pytest.mark.shows("I41")
def test_what_a_call_took() -> None:
    """Cached tokens count; a price of 0 is unknown; a failure that was paid for says so."""
    used = {
        "input_tokens": 10,
        "output_tokens": 5,
        "cache_read_input_tokens": 200,
        "cache_creation_input_tokens": None,
    }
    failed = error(subtype="error_max_turns", usage=used, total_cost_usd=0.5)
    assert isinstance(failed, BadReply)
    assert failed.usage is not None
    assert (failed.usage.input, failed.usage.output, failed.usage.cached) == (210, 5, 200)
    assert failed.usage.cost == 0.5
    free = claude_result.read(printed(total_cost_usd=0))
    assert free is not None
    assert claude_result.usage_of(free).cost is None


def test_the_model_that_answered() -> None:
    """The one that said most; without the mark of its context."""
    told = {"claude-haiku-4": {"outputTokens": 1}, "claude-opus-4-8[1m]": {"outputTokens": 9}}
    found = claude_result.read(printed(modelUsage=told))
    assert found is not None
    assert claude_result.model_of(found) == "claude-opus-4-8"


@pytest.mark.shows("I36")
@pytest.mark.parametrize(
    ("out", "found"),
    [
        (b"", False),
        (b"oops", False),
        (b"{}", False),
        (b"[1]", False),
        (b"[" * 100_000, False),
        (b'{"type": "result", "result": 7}', False),
        (b'{"type": "result", "unknown": [1]}', True),
        (b'a warning\n{"type": "result"}\n', True),
        (b'[{"type": "system"}, {"type": "result"}]', True),
    ],
)
def test_what_is_a_result(out: bytes, found: bool) -> None:
    """One object, the last line, or the last of a verbose list; newer fields are ignored."""
    assert (claude_result.read(out) is not None) is found


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

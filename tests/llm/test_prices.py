"""USD of a call: the maintained table, and nothing where it does not know."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from daemon.core.llm import Usage
from daemon.llm.prices import cost_usd, estimate_usd
from daemon.llm.sdk import cost_eur

MILLION = Usage(input=1_000_000, output=1_000_000)


@pytest.mark.parametrize(
    ("provider", "model"),
    [
        ("anthropic", "claude-sonnet-4-5-20250929"),
        ("openai", "gpt-4.1-mini-2025-04-14"),
        ("host", "anthropic/claude-sonnet-4-5"),
        ("host", "google-vertex/gemini-2.5-pro"),
        ("host", "github-copilot/claude-sonnet-4.6"),
        ("host", "openrouter/anthropic/claude-sonnet-4.5"),
    ],
)
def test_known_models_cost(provider: str, model: str) -> None:
    """Ours and opencode's names lead to a price between 0.1 and 1,000 USD for two million tokens."""
    cost = cost_usd(provider, model, MILLION)
    assert cost is not None
    assert 0.1 < cost < 1_000


@pytest.mark.shows("I41")
@pytest.mark.parametrize(
    ("provider", "model"),
    [
        ("anthropic", "claude-nope"),
        ("openai", "my-finetune"),
        ("openai", ""),
        ("nobody", "gpt-4.1"),
        ("my-openai-gateway", "gpt-4.1"),
        ("", "gpt-4.1"),
        ("host", ""),
        ("host", "gpt-4.1"),
        ("host", "ollama/llama3"),
        ("host", "lmstudio/gpt-4.1"),
        ("host", "github-copilot/gpt-4.1"),  # the table says 0: part of the plan
        ("offline", "rules"),
        ("openai", "x" * 100_000),
    ],
)
def test_unknown_is_unknown(provider: str, model: str) -> None:
    """Never 0 and never the price of something with a similar name."""
    assert cost_usd(provider, model, MILLION) is None
    assert estimate_usd(provider, model, 1_000, 1_000) is None


@pytest.mark.shows("I41")
@pytest.mark.parametrize(
    ("url", "model", "known"),
    [
        ("https://api.openai.com/v1", "gpt-4.1", True),
        ("https://openrouter.ai/api/v1", "gpt-4.1", False),
        ("https://openrouter.ai/api/v1", "openai/gpt-4.1", True),
        ("http://127.0.0.1:11434/v1", "gpt-4.1", False),
        ("http://localhost:8080", "gpt-4.1", False),
        ("https://llm.example.com/v1", "gpt-4.1", False),
    ],
)
def test_address_decides(url: str, model: str, known: bool) -> None:
    """Who is asked decides the price; a server of one's own has none, on this machine too."""
    assert (cost_usd("openai", model, MILLION, base_url=url) is not None) is known


def test_cached_tokens_cost_less_and_written_more() -> None:
    """Reading from the cache is cheaper than plain input, writing to it dearer; both are counted once."""
    model = "claude-sonnet-4-5"
    plain = cost_usd("anthropic", model, Usage(100_000, 0))
    cached = cost_usd("anthropic", model, Usage(100_000, 0, cached=90_000))
    written = cost_usd("anthropic", model, Usage(100_000, 0), written=90_000)
    assert plain is not None
    assert cached is not None
    assert written is not None
    assert cached < plain < written


def test_table_as_installed() -> None:
    """Looking a price up starts no thread and opens no connection."""
    code = """
import json, sys, threading
seen = []
sys.addaudithook(lambda event, args: seen.append(event) if event.startswith("socket.") else None)
from daemon.core.llm import Usage
from daemon.llm.prices import cost_usd
assert "genai_prices" not in sys.modules
cost = cost_usd("openai", "gpt-4.1", Usage(1000, 100))
reached = [event for event in seen if event in {"socket.connect", "socket.getaddrinfo"}]
print(json.dumps([cost, threading.active_count(), reached]))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    cost, threads, connections = json.loads(done.stdout)
    assert cost > 0
    assert (threads, connections) == (1, [])
    assert done.stderr == ""


@pytest.mark.shows("I41")
@pytest.mark.parametrize(
    ("tokens", "eur"), [((1_000, 0), 0.001), ((0, 1_000), 0.005), ((700, 200), 0.0017), ((0, 0), None)]
)
def test_subtask_1_5_cost(tokens: tuple[int, int], eur: float | None) -> None:
    """(input / 1000) * 0.001 + (output / 1000) * 0.005; what nobody told is not 0."""
    assert cost_eur(*tokens) == (None if eur is None else pytest.approx(eur))

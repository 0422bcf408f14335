"""Which small model: the person's lists against what is offered."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon import config
from daemon.core.fast import choose, first_offered, lists_of, needs_second_look
from daemon.core.settings import Fast
from daemon.core.transcript import Model

LISTS = lists_of(Fast())
HAIKU = "claude-haiku-4-5"


def test_the_lists_have_the_hosts_provider_ids_in_the_settings_order() -> None:
    """Seed, "Fast Model Selection": four providers, and every model of the seed is still in its list."""
    assert list(LISTS) == ["anthropic", "openai", "google", "github-copilot"]
    assert {"claude-3-5-haiku-20241022", "claude-haiku-4"} <= {*LISTS["anthropic"]}
    assert {"gpt-4o-mini", "gpt-3.5-turbo"} <= {*LISTS["openai"]}
    assert {"gemini-2.0-flash", "gemini-1.5-flash"} <= {*LISTS["google"]}
    assert {"claude-haiku-4.5", "gpt-4o-mini"} <= {*LISTS["github-copilot"]}


@pytest.mark.parametrize(
    ("wanted", "ids", "found"),
    [
        ("a, b", ("b", "a"), "a"),
        ("a, b", ("c", "b"), "b"),
        ("a, b", ("c",), ""),
        ("", ("c",), ""),
        ("a", (), ""),
        # the same model under a longer id
        (HAIKU, ("claude-haiku-4-5-20251001",), "claude-haiku-4-5-20251001"),
        (HAIKU, ("claude-haiku-4-5@20251001",), "claude-haiku-4-5@20251001"),
        (HAIKU, ("claude-haiku-4-5-latest",), "claude-haiku-4-5-latest"),
        (HAIKU, ("claude-haiku-4.5",), "claude-haiku-4.5"),
        ("claude-haiku-4.5", ("claude-haiku-4-5",), "claude-haiku-4-5"),
        (HAIKU, ("anthropic/claude-haiku-4.5",), "anthropic/claude-haiku-4.5"),
        (
            HAIKU,
            ("us.anthropic.claude-haiku-4-5-20251001-v1:0",),
            "us.anthropic.claude-haiku-4-5-20251001-v1:0",
        ),
        ("gpt-4o-mini", ("gpt-4o-mini-2024-07-18",), "gpt-4o-mini-2024-07-18"),
        ("gpt-3.5-turbo", ("gpt-3.5-turbo-0125",), "gpt-3.5-turbo-0125"),
        ("gemini-2.0-flash", ("models/gemini-2.0-flash-001",), "models/gemini-2.0-flash-001"),
        ("gemini-2.5-flash", ("gemini-2.5-flash-preview-09-2025",), "gemini-2.5-flash-preview-09-2025"),
        # of several forms: the id as it was written, then the bare one, the newest, a preview last
        (HAIKU, ("x/claude-haiku-4-5", HAIKU), HAIKU),
        (HAIKU, (HAIKU + "-20251001", "x/" + HAIKU), "x/" + HAIKU),
        ("a", ("a-20250101", "a-20260101", "a-20240101"), "a-20260101"),
        ("a", ("a-20250101", "a-latest"), "a-latest"),
        ("a", ("a-preview", "a-001"), "a-001"),
        # another size, kind or generation
        ("claude-haiku-4", (HAIKU, "claude-haiku-4-5-20251001"), ""),
        ("gpt-4o", ("gpt-4o-mini",), ""),
        ("gpt-4o-mini", ("gpt-4o-mini-tts", "gpt-4o-mini-realtime-preview", "gpt-4o-mini-search"), ""),
        ("gemini-2.5-flash", ("gemini-2.5-flash-lite", "gemini-2.5-flash-image"), ""),
        ("gpt-5-mini", ("my-gpt-5-mini", "gpt-5-minister", "gpt-5-mini-high"), ""),
        (HAIKU, ("anthropic/claude-haiku-4.5:free",), ""),
        ("claude-3-5-haiku-20241022", ("claude-3-5-haiku-20240101",), ""),
    ],
)
def test_first_offered(wanted: str, ids: tuple[str, ...], found: str) -> None:
    """The first name of the list that is really there, under whichever id."""
    names = tuple(wanted.split(", ")) if wanted else ()
    assert first_offered(names, ids) == found


@pytest.mark.parametrize(
    ("own", "offered", "found"),
    [
        # its own provider first, whatever the settings' order
        ("openai/gpt-5.4", {"anthropic": (HAIKU,), "openai": ("gpt-5-mini",)}, "openai/gpt-5-mini"),
        ("google/gemini-4-argon", {"google": ("gemini-2.5-flash",)}, "google/gemini-2.5-flash"),
        (
            "github-copilot/gpt-6-sol",
            {"github-copilot": ("gpt-4o-mini", "claude-haiku-4.5")},
            "github-copilot/claude-haiku-4.5",
        ),
        # then the others in the settings' order
        (
            "openai/gpt-5.4",
            {"openai": ("gpt-5.4",), "google": ("gemini-1.5-flash",)},
            "google/gemini-1.5-flash",
        ),
        (
            "openai/gpt-5.4",
            {"google": ("gemini-1.5-flash",), "anthropic": (HAIKU,), "openai": ()},
            f"anthropic/{HAIKU}",
        ),
        ("", {"openai": ("gpt-4o-mini",), "mine": (HAIKU,)}, "openai/gpt-4o-mini"),
        # a provider without a list: all names at that provider, and nobody else
        ("openrouter/x/big", {"openrouter": ("openai/gpt-5-mini",)}, "openrouter/openai/gpt-5-mini"),
        ("ollama/qwen", {"ollama": ("qwen",), "anthropic": (HAIKU,)}, ""),
        ("gone/big", {"anthropic": (HAIKU,)}, ""),
        # nothing there
        ("openai/gpt-5.4", {"openai": ("gpt-5.4",), "mine": (HAIKU,)}, ""),
        ("openai/gpt-5.4", {}, ""),
    ],
)
def test_choose(own: str, offered: dict[str, tuple[str, ...]], found: str) -> None:
    """The session's own provider, then the others; what a session on a server of its own says stays there."""
    provider, _, name = own.partition("/")
    model = choose(LISTS, offered, Model(provider, name) if own else None)
    assert (f"{model.provider}/{model.model}" if model else "") == found


def test_the_person_s_own_names_come_first() -> None:
    """`fast.models`: tried in each provider before the models that reflectd knows."""
    offered = {"anthropic": (HAIKU, "claude-tiny-9")}
    chosen = choose(lists_of(Fast("claude-tiny-9")), offered, Model("anthropic", "claude-opus-5"))
    assert chosen == Model("anthropic", "claude-tiny-9")


@pytest.mark.shows("I36")
@given(st.lists(st.text(max_size=60)), st.lists(st.text(max_size=60)))
def test_any_names_at_all(names: list[str], ids: list[str]) -> None:
    """Whatever a host offers, the answer is one of its ids or nothing, and a written id is found."""
    found = first_offered(tuple(names), tuple(ids))
    assert found in {*ids, ""}
    if names and names[0] in ids:
        assert found == names[0]


@pytest.mark.parametrize(
    ("text", "provider", "model", "wanted"),
    [
        ("", "anthropic", "claude-sonnet-5-5", False),
        ("", "anthropic", "claude-haiku-4-5-20251001", True),
        ("", "host", "ollama/qwen3:8b", True),
        ("", "host", "anthropic/claude-opus-5", False),
        ("[openai]\nbase_url = 'http://127.0.0.1:11434/v1'", "openai", "llama", True),
        ("[openai]\nbase_url = 'https://gateway.example/v1'", "openai", "gpt-5.4", False),
        ("[fast]\nmodels = 'tiny-9'", "openai", "tiny-9", True),
    ],
)
def test_which_judge_gets_a_second_look(text: str, provider: str, model: str, *, wanted: bool) -> None:
    """A small model, or one on this machine."""
    assert needs_second_look(config.from_text(text), provider, model) is wanted

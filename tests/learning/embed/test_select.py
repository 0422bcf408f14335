"""Which embedder the settings mean, and what is said when there is none."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from daemon.config import from_text
from daemon.core.errors import UserError
from daemon.learning.embed import minilm
from daemon.learning.embed.minilm import MiniLM
from daemon.learning.embed.models import OpenAIEmbedder, choose, embedder

HERE = "[embed]\nbase_url = 'http://127.0.0.1:9/v1'\n"
INSTALLED = not minilm.missing()
LOCAL = "minilm" if INSTALLED else "none"
ENV = {"OPENAI_API_KEY": "k", "OTHER_KEY": "o"}


@pytest.mark.parametrize(
    ("text", "env", "name", "why"),
    [
        ("", {}, LOCAL, "on this machine" if INSTALLED else "a model for embeddings is not installed"),
        ("", ENV, LOCAL, ""),  # a key that lies about is not used unasked
        ("[embed]\nprovider = 'none'", ENV, "none", "embed.provider is none"),
        ("[embed]\nprovider = 'minilm'", ENV, LOCAL, "" if INSTALLED else "minilm, which is not installed"),
        (HERE, {}, "openai", "text-embedding-3-small at 127.0.0.1:9, without a key"),
        (HERE, ENV, "openai", "without a key"),  # OpenAI's key never goes to another address
        (HERE + "provider = 'minilm'", {}, LOCAL, ""),
        (
            "[embed]\nprovider = 'openai'",
            ENV,
            "openai",
            "at api.openai.com, with the key from OPENAI_API_KEY",
        ),
        ("[embed]\nprovider = 'openai'", {}, "none", "there is no key and no address"),
        (HERE + "[spend]\ncents_per_day = 0", {}, "none", "spend.cents_per_day is 0, so no model is asked"),
        ("[spend]\ncents_per_day = 0", {}, LOCAL, ""),  # a model on this machine costs nothing
    ],
)
def test_the_choice(text: str, env: dict[str, str], name: str, why: str) -> None:
    """What counts by settings and environment; nobody is asked for it."""
    settings = from_text(text)
    choice = choose(settings, env)
    assert choice.name == name
    assert why in choice.why
    kinds = {"minilm": MiniLM, "openai": OpenAIEmbedder, "none": type(None)}
    assert type(embedder(choice, settings)) is kinds[name]


def test_a_key_of_the_environment_needs_a_person(tmp_path: Path) -> None:
    """A daemon that a host started uses no key of its environment, but the one of a file."""
    settings = from_text("[embed]\nprovider = 'openai'")
    assert choose(settings, ENV, by_host=True).name == "none"
    file = tmp_path / "key"
    file.write_text("k\n")
    in_file = from_text(f"[embed]\nkey_file = '{file}'")
    assert choose(in_file, {}, by_host=True).why.endswith("with the key from embed.key_file")
    file.unlink()
    with pytest.raises(UserError, match=r"embed\.key_file: .* is missing or empty"):
        choose(in_file, {})


@pytest.mark.parametrize(
    "lacking", [minilm.PACKAGES, pytest.param(("onnxruntime",), marks=pytest.mark.needs("embeddings"))]
)
def test_what_is_not_installed_is_said(monkeypatch: pytest.MonkeyPatch, lacking: tuple[str, ...]) -> None:
    """All of it in general words; a part of it by name. A person who asked for it is told as of a fault."""
    for package in lacking:
        monkeypatch.setitem(sys.modules, package, None)  # as if it were not installed
    choice = choose(from_text(), {})
    assert (choice.name, choice.asked) == ("none", False)
    assert "'.[embed]'" in choice.mend
    assert f"there is no {lacking[0]}" in choice.why
    named = choose(from_text("[embed]\nprovider = 'minilm'"), {})
    assert (named.name, named.asked) == ("none", True)
    assert "embed.provider is minilm, which is not installed" in named.why

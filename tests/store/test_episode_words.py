"""The words of episodes: how texts are taken apart, and what a match is worth."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.store.episode_words import ASKED, FEW, LOOKED_AT, MOST, asked, of_episode, telling, terms
from tests.store.episodes import episode, rich


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("Migrating the Databases", ["migrat", "the", "databa"]),
        ("parse_config", ["parseconfig", "parse", "config"]),
        ("parseConfig", ["parseconfig", "parse", "config"]),
        ("HTTPServer2", ["httpserver2", "http", "server"]),
        ("ECONNREFUSED", ["econnr"]),
        ("src/größe.py", ["src", "grosse", "py"]),
        ("日本語", ["日本", "本語"]),
        ("x" * 50, []),
        ("", []),
    ],
)
def test_texts_are_taken_apart(text: str, wanted: list[str]) -> None:
    """Without case, accents and endings; identifiers also by their parts; pairs where there are no spaces."""
    assert terms(text) == wanted


@given(st.text())
def test_any_text(text: str) -> None:
    """Each term is letters and digits only, so that it is data in every query."""
    for term in terms(text):
        assert term.isalnum(), term
    assert len(asked(text)) <= ASKED


def test_an_episode_is_found_by_all_that_it_says() -> None:
    """Its task, its lesson, what it hung on, and its files; it is bounded."""
    found = of_episode(rich(1))
    assert {"npm", "econnr", "tests"} <= set(found)
    assert len(of_episode(episode(1, "many words " * 1_000))) == MOST


def test_words_that_say_nothing_are_left_out() -> None:
    """The rarest first; not those of very many episodes; not more than a search may look at."""
    assert telling({"a": 50, "b": 3, "c": 0}, 100) == ["b", "a"]
    assert telling({"a": FEW + 1, "b": FEW}, 10_000) == ["b"]
    assert telling({"a": LOOKED_AT - 10, "b": 20, "c": 5}, 10**7) == ["c", "b"]
    assert telling({"a": 2 * LOOKED_AT}, 10**7) == ["a"]

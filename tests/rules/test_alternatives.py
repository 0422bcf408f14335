"""The table of things of which a project mostly uses one."""

from __future__ import annotations

import pytest

from daemon.rules.alternatives import KINDS, named


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("use npm and run npx", ["package managers", "package managers"]),
        ("npm-check and my-bun", []),
        ("put spaces around operators, use the tab bar", []),
        ("indent with spaces", ["ways to indent"]),
        ("short answers, short functions", ["lengths of answers"]),
        ("use rest endpoints and take a rest", ["kinds of API"]),
    ],
)
def test_a_name_counts_where_it_means_the_thing(text: str, kinds: list[str]) -> None:
    """As a word of its own, and not where the same word means another thing."""
    assert [kind for _, kind, _ in named(text)] == kinds


def test_each_kind_has_at_least_two_names() -> None:
    """One alone contradicts nothing."""
    assert all(len(names) >= 2 for names in KINDS.values())

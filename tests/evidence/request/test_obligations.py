"""Which lines of a project's rules oblige, and to what."""

from __future__ import annotations

import pytest

from daemon.evidence.request.obligations import obligations


@pytest.mark.shows("I26")
@pytest.mark.parametrize(
    ("project", "asks", "forbids"),
    [
        ("- Always run `make lint` before committing.", {"lint"}, set()),
        ("You must run the tests before you finish.", {"tests"}, set()),
        ("`cargo test` must pass.", {"tests"}, set()),
        ("Run tests: `npm test`", set(), set()),
        ("Never commit unless asked.", set(), {"commit"}),
        ("Do not push to main.", set(), set()),
    ],
)
def test_what_obliges(project: str, asks: set[str], forbids: set[str]) -> None:
    """A line of the project's rules counts only where it obliges; a description is none."""
    found = obligations(project)
    assert {t for _, said in found for t in said.asks} == asks
    assert {t for _, said in found for t in said.forbids} == forbids

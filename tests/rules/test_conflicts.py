"""Which statements contradict each other, and which only share a topic (FR7)."""

from __future__ import annotations

import pytest

from daemon.rules.alternatives import named
from daemon.rules.conflicts import Conflict, Statement, contradiction, find

FORBIDS = "one forbids what the other asks for"


@pytest.mark.parametrize(
    ("a", "b", "why"),
    [
        ("Use bun for package management", "Use npm for package management", "different package managers"),
        ("Use tabs", "Indent with 4 spaces", "different ways to indent"),
        ("Use npm", "Use npm not yarn", ""),
        ("Use yarn", "Use npm not yarn", FORBIDS),
        ("Never use npm", "Run `npm test` before you commit", FORBIDS),
        ("Never use npm, yarn or pnpm", "Install with pnpm", FORBIDS),
        ("Don't use npm, use bun", "Use bun", ""),
        ("Don't use npm, use bun", "Use npm", FORBIDS),
        ("Prefer jest over vitest", "Write tests with vitest", FORBIDS),
        ("npm is not allowed", "Use npm", FORBIDS),
        ("Prefer functional components", "Use class components", "different kinds of components"),
        ("Always run tests before pushing", "Never run tests before pushing", FORBIDS),
        ("Always add comments", "Don't add comments", FORBIDS),
        ("No semicolons", "Use semicolons", FORBIDS),
        ("Keep old branches", "Delete old branches", FORBIDS),
        ("Avoid default exports", "Use default exports", FORBIDS),
        ("Stop writing docstrings", "Write docstrings", FORBIDS),
        ("Ask before you delete files", "Don\u2019t ask before you delete files", FORBIDS),
        ("Run the linter before the tests", "Run the linter after the tests", "another order"),
        ("Never push before the tests pass", "Push before the tests pass", FORBIDS),
        ("Limit lines to 80 characters", "Limit lines to 100 characters", "another number"),
        ("Use 2-space indentation", "Use 4-space indentation", "another number"),
        ("Use npm", "Use npm for package management", ""),
        ("Never push without running the tests", "Run the tests before pushing", ""),
        ("Don't forget to run the tests", "Always run the tests", ""),
        ("Don't remove comments", "Keep comments", ""),
        ("Use tabs", "Put spaces around operators", ""),
        ("Don't add comments to tests", "Add comments to public functions", ""),
        ("Delete branches after the merge", "Create branches from main", ""),
        ("Never edit generated files", "Edit the changelog with each change", ""),
        ("Write tests for each fix", "Never mock the database in tests", ""),
        ("Run lint before committing", "Run tests before committing", ""),
        ("Limit lines to 80 characters", "Wait at least 30 seconds", ""),
        ("Use port 8080", "Use port 8080 for the API", ""),
        ("Don't use any in TypeScript", "Use TypeScript", ""),
        ("Not only unit tests, also integration tests", "Write unit tests", ""),
        ("", "Use npm", ""),
        ("Use npm " + "and more " * 60, "Use bun", ""),
    ],
)
def test_what_contradicts_and_why(a: str, b: str, why: str) -> None:
    """In both directions: another thing of one kind, a negation, an opposite verb, an order, a number; what
    only shares a topic does not.
    """
    for found in (contradiction(a, b), contradiction(b, a)):
        assert (why in found) if why else not found


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("use npm and run npx", ["package managers", "package managers"]),
        ("npm-check and my-bun", []),
        ("put spaces around operators, use the tab bar", []),
        ("indent with spaces", ["ways to indent"]),
        ("use rest endpoints and take a rest", ["kinds of API"]),
    ],
)
def test_a_name_counts_where_it_means_the_thing(text: str, kinds: list[str]) -> None:
    """As a word of its own, and not where the same word means another thing."""
    assert [kind for _, kind, _ in named(text)] == kinds


def test_the_statements_are_told_in_order_and_with_their_place() -> None:
    """Also lines that a person wrote by hand."""
    there = [
        Statement("Use npm", "rule-003"),
        Statement("Answer briefly", "rule-004"),
        Statement("Install with yarn", where="CLAUDE.md:12", own=True),
    ]
    assert find("Use bun", there) == [
        Conflict(there[0], "they choose different package managers"),
        Conflict(there[2], "they choose different package managers"),
    ]


def test_a_model_may_find_more() -> None:
    """It is asked only about what words did not find, and what it adds is told with the others."""
    asked: list[tuple[str, list[str]]] = []

    def model(text: str, texts: list[str]) -> list[int]:
        asked.append((text, list(texts)))
        return [1]

    there = [Statement("Use npm"), Statement("Ship small changes"), Statement("One large release a month")]
    found = find("Use bun", there, model)  # type: ignore[arg-type]
    assert asked == [("Use bun", ["Ship small changes", "One large release a month"])]
    assert [c.statement for c in found] == [there[0], there[2]]
    assert found[1].why == "a model says that they contradict each other"

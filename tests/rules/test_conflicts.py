"""Which statements contradict each other, and which only share a topic (FR7)."""

from __future__ import annotations

import pytest

from daemon.rules.conflicts import Conflict, Statement, contradiction, find

CHOICE = "they choose different"
FORBIDS = "one forbids what the other asks for"


@pytest.mark.parametrize(
    ("a", "b", "why"),
    [
        ("Use bun for package management", "Use npm for package management", "different package managers"),
        ("Use tabs", "Indent with 4 spaces", "different ways to indent"),
        ("Always use pnpm", "Install dependencies with `yarn`", "different package managers"),
        ("Use npm", "Use npm not yarn", ""),
        ("Use yarn", "Use npm not yarn", FORBIDS),
        ("Never use npm", "Run `npm test` before you commit", FORBIDS),
        ("Never use npm, yarn or pnpm", "Install with pnpm", FORBIDS),
        ("Don't use npm, use bun", "Use bun", ""),
        ("Don't use npm, use bun", "Use npm", FORBIDS),
        ("Use bun instead of npm", "Use npm", FORBIDS),
        ("Prefer jest over vitest", "Write tests with vitest", FORBIDS),
        ("npm is not allowed", "Use npm", FORBIDS),
        ("Use double quotes", "Use single-quoted strings", "different kinds of quotes"),
        ("Prefer functional components", "Use class components", "different kinds of components"),
        ("Keep responses concise", "Give detailed explanations", "different lengths of answers"),
        ("Use uv", "Use poetry for dependencies", "different Python package managers"),
        ("Use snake_case for functions", "Use camelCase everywhere", "different ways to write names"),
        ("Always run tests before pushing", "Never run tests before pushing", FORBIDS),
        ("Always add comments", "Don't add comments", FORBIDS),
        ("Add semicolons", "Remove semicolons", FORBIDS),
        ("No semicolons", "Use semicolons", FORBIDS),
        ("Keep old branches", "Delete old branches", FORBIDS),
        ("Commit directly to main", "Never commit to main directly", FORBIDS),
        ("Avoid default exports", "Use default exports", FORBIDS),
        ("Stop writing docstrings", "Write docstrings", FORBIDS),
        ("Ask before you delete files", "Don\u2019t ask before you delete files", FORBIDS),
        ("Run the linter before the tests", "Run the linter after the tests", "another order"),
        ("Never push before the tests pass", "Push before the tests pass", FORBIDS),
        ("Limit lines to 80 characters", "Limit lines to 100 characters", "another number"),
        ("Use Python 3.11", "Use Python 3.12", "another number"),
        ("Use 2-space indentation", "Use 4-space indentation", "another number"),
    ],
)
def test_what_contradicts_and_why(a: str, b: str, why: str) -> None:
    """In both directions: another thing of one kind, a negation, an opposite verb, an order, a number."""
    for found in (contradiction(a, b), contradiction(b, a)):
        assert (why in found) if why else not found


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("Use npm", "Use npm for package management"),
        ("Never push without running the tests", "Run the tests before pushing"),
        ("Never push before running the tests", "Run the tests before pushing"),
        ("Don't forget to run the tests", "Always run the tests"),
        ("Never skip tests", "Always run the tests"),
        ("Don't remove comments", "Keep comments"),
        ("Use TypeScript strict mode", "Use dark mode"),
        ("Use tabs", "Put spaces around operators"),
        ("Don't add comments to tests", "Add comments to public functions"),
        ("Delete branches after the merge", "Create branches from main"),
        ("Remove unused imports", "Use absolute imports"),
        ("Don't commit secrets", "Commit often"),
        ("Never edit generated files", "Edit the changelog with each change"),
        ("Write tests for each fix", "Never mock the database in tests"),
        ("Use pytest", "Use ruff"),
        ("Run lint before committing", "Run tests before committing"),
        ("Limit lines to 80 characters", "Wait at least 30 seconds"),
        ("Use port 8080", "Use port 8080 for the API"),
        ("Don't use any in TypeScript", "Use TypeScript"),
        ("Prefer composition over inheritance", "Use composition"),
        ("Not only unit tests, also integration tests", "Write unit tests"),
        ("Use the logger", "Log errors"),
        ("Answer in English", "Write comments in English"),
        ("", "Use npm"),
        ("Use npm " + "and more " * 60, "Use bun"),
    ],
)
def test_what_only_shares_a_topic(a: str, b: str) -> None:
    """Nobody is asked about these."""
    assert (contradiction(a, b), contradiction(b, a)) == ("", "")


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

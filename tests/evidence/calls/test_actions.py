"""Which check says at least what another one said."""

from __future__ import annotations

import pytest

from daemon.evidence.calls.actions import Check
from daemon.evidence.calls.commands import read_script


def checks(script: str) -> list[Check]:
    return [a for a in read_script(script, "/repo") if isinstance(a, Check)]


@pytest.mark.parametrize(
    ("later", "earlier", "covers"),
    [
        ("pytest", "pytest", True),
        ("pytest -q", "pytest -x --tb short", True),
        ("pytest", "pytest tests/test_a.py", True),
        ("pytest tests/", "pytest", True),
        ("pytest tests/test_a.py", "pytest", False),
        ("pytest tests/test_a.py", "pytest /repo/tests/test_a.py", True),
        ("pytest tests/unit", "pytest tests/unit/test_a.py::test_b", True),
        ("pytest tests/test_a.py", "pytest tests/test_b.py", False),
        ("pytest -k foo", "pytest", False),
        ("pytest", "pytest -k foo", True),
        ("pytest -k foo", "pytest -k foo", True),
        ("pytest -k foo", "pytest -k bar", False),
        ("python -m pytest", "uv run pytest", True),
        ("pytest -n 4 -p no:cacheprovider", "pytest", True),
        ("mypy .", "ruff check .", False),
        ("cargo test", "pytest", False),
        ("npm test", "npx jest src/a.test.js", True),
        ("npx jest", "npm test", True),
        ("npm test", "npx playwright test", False),
        ("npm run lint", "npm test", False),
        ("make test", "pytest", True),
        ("pytest", "make test", True),
        ("go test ./...", "go test ./pkg/a", True),
        ("go test ./pkg/a", "go test ./...", False),
        ("cargo test parser", "cargo test", False),
        ("cargo test", "cargo test parser", True),
        ("cd web && npm test", "cd api && npm test", False),
        ("npm test", "cd api && npm test", True),
        ("cd api && npm test", "npm test", False),
        ("cd /repo && pytest", "pytest", True),
        ('cd "$X" && pytest', "pytest", True),
    ],
)
def test_scopes(later: str, earlier: str, covers: bool) -> None:
    """A run replaces an earlier one of the same kind with the same scope or a narrower one, nothing else."""
    assert checks(later)[0].covers(checks(earlier)[0]) is covers

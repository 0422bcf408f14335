"""What may stand before a command without changing what runs."""

from __future__ import annotations

import pytest

from daemon.evidence.calls.prefixes import unwrap


@pytest.mark.parametrize(
    ("command", "inner", "negated"),
    [
        ("pytest -q", "pytest -q", False),
        ("FOO=1 BAR=2 timeout -k 5 60 pytest", "pytest", False),
        ("uv run --with x pytest", "pytest", False),
        ("docker compose exec -T web pytest -q", "pytest -q", False),
        ("python -W error -m pytest -x", "pytest -x", False),
        ("php artisan test", "artisan test", False),
        ("python -c pytest", "python -c pytest", False),
        ("if pytest", "pytest", True),
        ("! npx jest", "jest", True),
        ("command -v pytest", "", True),
        ("", "", False),
    ],
)
def test_unwrap(command: str, inner: str, *, negated: bool) -> None:
    """The command that runs, and whether something eats its exit code."""
    assert unwrap(tuple(command.split())) == (tuple(inner.split()), negated)

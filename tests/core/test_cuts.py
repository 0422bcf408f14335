"""Texts and calls made short for a prompt."""

from __future__ import annotations

import pytest

from daemon.core.cuts import argument_in_short, head_and_tail
from daemon.core.transcript import ToolCall


@pytest.mark.parametrize(
    ("text", "limit", "short"),
    [
        ("abcdef", 6, "abcdef"),
        ("abcdefg", 6, "abc […] efg"),
        ("abcdefg", 5, "ab […] fg"),
        ("abcdefg", 1, " […] "),
        ("", 0, ""),
    ],
)
def test_head_and_tail(text: str, limit: int, short: str) -> None:
    """Never more than the limit besides the mark, for odd and tiny limits too."""
    assert head_and_tail(text, limit) == short


@pytest.mark.parametrize(
    ("given", "names", "short"),
    [
        ({"description": "run it", "command": "pytest\n  -q"}, (), "run it"),
        ({"description": "run it", "command": "pytest\n  -q"}, ("command", "description"), "pytest -q"),
        ({"count": 3, "command": "  "}, (), ""),
        ({"other": "x"}, ("command",), ""),
        ({"command": "x" * 100}, (), "x" * 20),
    ],
)
def test_argument_in_short(given: dict[str, object], names: tuple[str, ...], short: str) -> None:
    """The first text that may be told, in one line, within the limit."""
    assert argument_in_short(ToolCall("c", "bash", "completed", given), 20, names) == short


@pytest.mark.shows("I46")
def test_a_secret_is_redacted_before_the_cut() -> None:
    """No half of a secret is left over."""
    call = ToolCall("c", "bash", "completed", {"command": "echo 1234567890 ghp_" + "a1B2" * 9})
    assert "ghp_" not in argument_in_short(call, 24)

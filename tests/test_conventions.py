"""What a newcomer may rely on: every test says what it shows, and every promised invariant is shown."""

from __future__ import annotations

import ast
import re
from pathlib import Path

TESTS = Path(__file__).parent
HELD = [
    *range(1, 43),
    *range(44, 47),
    48,
]


def docstrings() -> dict[str, str]:
    """``file::test`` → its docstring, empty when it has none."""
    found = {}
    for path in sorted(TESTS.rglob("test_*.py")):
        if "node_modules" in path.parts:
            continue
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
                found[f"{path.relative_to(TESTS)}::{node.name}"] = ast.get_docstring(node) or ""
    return found


def test_every_test_says_what_it_shows() -> None:
    """A test without a docstring says nothing when it fails."""
    silent = [name for name, text in docstrings().items() if not text]
    assert silent == []


def test_every_invariant_is_shown() -> None:
    """Each invariant that must hold is named by a test's docstring (ranges such as I1-I5 count)."""
    shown: set[int] = set()
    # the state machine's promises stand in its assigned docstring
    texts = [*docstrings().values(), (TESTS / "engine" / "test_machine.py").read_text("utf-8")]
    for text in texts:
        for first, last in re.findall(r"\bI(\d+)(?:\s?-\s?I(\d+))?\b", text):
            shown |= set(range(int(first), int(last or first) + 1))
    assert [f"I{n}" for n in HELD if n not in shown] == []

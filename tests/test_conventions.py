"""What a newcomer may rely on: every test says what it shows.

That every promise has a test is checked by ``test_shows.py``.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

import grimp

TESTS = Path(__file__).parent


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


def test_every_slow_test_says_why() -> None:
    """What ``make test-fast`` leaves out is left out for a reason."""
    for path in sorted(TESTS.rglob("*.py")):
        if "node_modules" not in path.parts and path.name != "tiers.py":
            marks = re.findall(r"^[^#\n]*pytest\.mark\.slow(.?)(.?)", path.read_text("utf-8"), re.MULTILINE)
            assert all(mark == ("(", '"') for mark in marks), f"{path}: a slow test without a reason"


def test_no_modules_import_each_other_in_a_circle() -> None:
    """Over the whole tree, imports for types included: a newcomer can read it from the bottom up."""
    graph = grimp.build_graph("daemon", cache_dir=None)
    left = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    while free := [module for module, imported in left.items() if not imported & left.keys()]:
        for module in free:
            del left[module]
    assert sorted(left) == []

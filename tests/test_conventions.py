"""What a newcomer may rely on: every test says what it shows.

Which test shows which invariant is checked by ``test_docs.py``.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

import grimp

TESTS = Path(__file__).parent
PACKAGE = TESTS.parent / "daemon"
LONG = 350


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


def modules() -> set[str]:
    """The modules of the package that a test file belongs to."""
    found = (path.relative_to(PACKAGE) for path in PACKAGE.rglob("*.py"))
    return {str(path) for path in found if path.name not in {"__init__.py", "__main__.py"}}


def excused() -> dict[str, str]:
    """module → why it has no test file of its own, from the table in ``tests/README.md``."""
    table = (TESTS / "README.md").read_text("utf-8").partition("\n## Modules without")[2]
    rows = re.findall(r"^\| (`[^|]+`) \| (.+?) \|$", table, re.MULTILINE)
    return {name: why for names, why in rows for name in re.findall(r"`([^`]+)`", names)}


def test_every_module_has_its_test_file() -> None:
    """``daemon/a/b.py`` is tested in ``tests/a/test_b.py``, or the README says why not."""
    alone = {m for m in modules() if not (TESTS / Path(m).with_name(f"test_{Path(m).name}")).exists()}
    assert sorted(alone - set(excused())) == [], "no test file, and no reason in tests/README.md"
    assert sorted(set(excused()) - alone) == [], "named in tests/README.md, but it has a test file or is gone"


def test_a_long_module_says_why() -> None:
    """More than 350 lines, without the empty ones, need a reason in the module's docstring."""
    silent = []
    for path in PACKAGE.rglob("*.py"):
        text = path.read_text("utf-8")
        said = " ".join((ast.get_docstring(ast.parse(text)) or "").split())
        reason = re.search(r"(?:file|module) is (?:long|longer than \S+) because", said)
        if sum(bool(line.strip()) for line in text.splitlines()) > LONG and not reason:
            silent.append(str(path.relative_to(PACKAGE)))
    assert silent == []


def test_every_slow_test_says_why() -> None:
    """What ``make test-fast`` leaves out is left out for a reason."""
    for path in sorted(TESTS.rglob("*.py")):
        if "node_modules" not in path.parts and path.name != "slow.py":
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

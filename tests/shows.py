"""Prints which tests show which promise: `python -m tests.shows [--json] [--only I21 …]`, or `make shows`.

A test names promises in `@pytest.mark.shows("I21")`, a test of the plugin for opencode in a line
`// shows: I21` above it. Marks are read from the source, so nothing is imported or run. The promises are the
invariants of `design/invariants.md` and what `tests/data/promises.toml` lists.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

REPO = Path(__file__).resolve().parents[1]
INVARIANTS = "design/invariants.md"
ROW = re.compile(r"^\| (I\d+) \| (.+?) \| (yes|partly|not yet) \|$", re.MULTILINE)
COMMENT = re.compile(r"^ *// shows: (.+)\n *test\(([\"'`])(.+?)\2, ", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Promise:
    """``holds``: yes, partly or not yet. ``page``: where its subject is described."""

    text: str
    page: str
    holds: str = "yes"


def promises() -> dict[str, Promise]:
    """Each promise by its id: the invariants first, then those of the other pages."""
    rows = ROW.findall((REPO / INVARIANTS).read_text("utf-8"))
    found = {number: Promise(text, INVARIANTS, holds) for number, text, holds in rows}
    pages = tomllib.loads((REPO / "tests" / "data" / "promises.toml").read_text("utf-8"))
    return found | {
        name: Promise(text, page) for page, texts in pages.items() for name, text in texts.items()
    }


def _python(tree: ast.Module) -> Iterator[tuple[str, list[str]]]:
    """Each test with a mark, and the promises that the mark names; ``ValueError`` for other arguments."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            for mark in node.decorator_list:
                if isinstance(mark, ast.Call) and ast.unparse(mark.func) == "pytest.mark.shows":
                    yield node.name, [str(ast.literal_eval(name)) for name in mark.args]


def marks(root: Path = REPO) -> dict[str, list[str]]:
    """The tests that show each promise, as ``file::test``, in the order of their names."""
    found: dict[str, list[str]] = {}
    python = [path for path in (root / "tests").rglob("test_*.py") if "node_modules" not in path.parts]
    shim = (root / "plugin-shim" / "opencode" / "test").rglob("*.test.ts")
    for path in sorted([*python, *shim]):
        text = path.read_text("utf-8")
        if path.suffix == ".ts":
            named = [(test, names.split(", ")) for names, _, test in COMMENT.findall(text)]
        else:
            named = list(_python(ast.parse(text))) if "mark.shows(" in text else []
        for test, names in named:
            for name in names:
                found.setdefault(name, []).append(f"{path.relative_to(root)}::{test}")
    return found


def main(arguments: list[str] | None = None) -> int:
    """Print them. 2: a promise that was asked for does not exist."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.shows", description="The tests behind each promise."
    )
    parser.add_argument("--json", action="store_true", help="one JSON object: id → text, page, holds, tests")
    parser.add_argument("--only", nargs="+", metavar="ID", help="these promises alone")
    args = parser.parse_args(arguments)
    known, shown = promises(), marks()
    if unknown := sorted(set(args.only or ()) - set(known)):
        print(f"no such promise: {', '.join(unknown)}", file=sys.stderr)
        return 2
    wanted = {name: known[name] for name in args.only or known}
    if args.json:
        rows = {
            name: {"text": p.text, "page": p.page, "holds": p.holds, "tests": shown.get(name, [])}
            for name, p in wanted.items()
        }
        print(json.dumps(rows, ensure_ascii=False, indent=2))
        return 0
    for name, promise in wanted.items():
        print(f"{name}  {promise.text}{'' if promise.holds == 'yes' else f' ({promise.holds})'}")
        print("".join(f"    {test}\n" for test in shown.get(name, [])))
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""The changes that ``mutants.py`` tries: which parts of a module can be changed, and to what.

Left out is what no test should notice: docstrings, calls for the log, annotations, ``__all__``, imports for
types, and arguments such as ``slots``. Parts of f-strings have no places in Python 3.11.
"""

from __future__ import annotations

import ast
import dataclasses
from collections import Counter
from typing import Any

LOG = {"debug", "info", "warning", "error", "exception"}
VALUES = {"slots", "frozen", "kw_only", "repr", "strict", "compare"}  # arguments whose value no test can see
OPS: dict[type, type] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
    ast.And: ast.Or, ast.Or: ast.And, ast.Add: ast.Sub, ast.Sub: ast.Add,
}  # fmt: skip


@dataclasses.dataclass
class Mutant:
    """One change of the bytes from ``start`` to ``end``, and what came of it.

    ``probe`` is the line of its statement. None: the statement runs at the import and defines ``names``.
    """

    module: str
    function: str
    line: int
    kind: str
    before: str
    after: str
    start: int
    end: int
    probe: int | None
    names: list[str]
    nth: int = 0
    result: str = ""
    by: str = ""
    tests: int = 0
    seconds: float = 0.0
    earlier: str = ""

    def key(self) -> tuple[Any, ...]:
        """The same mutant in another state of the module."""
        return self.module, self.function, self.kind, self.before, self.after, self.nth


class Finder:
    """All mutants of one module."""

    def __init__(self, module: str, text: bytes) -> None:
        self.module, self.text, self.found = module, text, list[Mutant]()
        self.lines = text.splitlines(keepends=True)
        self.walk(ast.parse(text), "", None, inside=False, names=[])
        seen: Counter[tuple[Any, ...]] = Counter()
        for m in self.found:
            m.nth = seen[m.key()]
            seen[m.key()] += 1

    def place(self, line: int, column: int) -> int:
        """Bytes before a place."""
        return sum(map(len, self.lines[: line - 1])) + column

    def add(self, node: ast.AST, kind: str, after: ast.AST | str, where: tuple[Any, ...]) -> None:
        """One mutant: ``after`` takes the place of ``node``."""
        place: Any = node
        start = self.place(place.lineno, place.col_offset)
        end = self.place(place.end_lineno, place.end_col_offset)
        new = after if isinstance(after, str) else ast.unparse(after)
        if not isinstance(node, ast.stmt | ast.Constant):
            new = f"({new})"
        before = ast.unparse(node)
        if isinstance(node, ast.Return):
            new = "return None"
        new += "\n" * self.text[start:end].count(b"\n") if isinstance(node, ast.stmt) else ""
        self.found.append(
            Mutant(self.module, where[0], place.lineno, kind, before, new, start, end, *where[1:])
        )

    def walk(self, node: ast.AST, name: str, probe: int | None, *, inside: bool, names: list[str]) -> None:
        """Mutants of ``node``, then of what is in it."""
        if isinstance(node, ast.JoinedStr):  # its parts have no places of their own in Python 3.11
            return
        if isinstance(node, ast.stmt):
            first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", []))])
            before = self.lines[first - 1][: node.col_offset]
            if not before.strip() and not self.lines[first - 1][node.col_offset :].startswith(b"elif"):
                probe = first
            if not inside:
                targets = getattr(node, "targets", [getattr(node, "target", node)])
                own = [getattr(t, "id", getattr(t, "name", "")) for t in targets]
                names = [*names, *(n for n in own if n)]
            if "__all__" in names or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
                return
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            name = f"{name}.{node.name}".lstrip(".")
        if isinstance(node, ast.Call) and (_is_silent(node.func)):
            return
        where = (name, probe if inside else None, names)
        self.expression(node, where)
        self.statement(node, where, inside=inside)
        for field, value in ast.iter_fields(node):
            if field in {"annotation", "returns", "bases", "type_params"} or _is_for_types(node, field):
                continue
            within = inside or (field == "body" and isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST) and not (
                    isinstance(child, ast.keyword) and child.arg in VALUES
                ):
                    self.walk(child, name, probe, inside=within, names=names)

    def expression(self, node: ast.AST, where: tuple[Any, ...]) -> None:
        """The mutants of an expression or a pattern."""
        match node:
            case ast.Compare(ops=[op]) if type(op) in OPS:
                new = ast.Compare(node.left, [OPS[type(op)]()], node.comparators)
                self.add(node, "comparison", new, where)
                for side in (node.left, *node.comparators):
                    for part in getattr(side, "elts", [side]):
                        self.emptied(part, where)
            case ast.BoolOp():
                self.add(node, "and/or", ast.BoolOp(OPS[type(node.op)](), node.values), where)
            case ast.UnaryOp(op=ast.Not()):
                self.add(node, "not", node.operand, where)
            case ast.BinOp(op=ast.Add() | ast.Sub()) if not any(map(_is_text, (node.left, node.right))):
                self.add(node, "+/-", ast.BinOp(node.left, OPS[type(node.op)](), node.right), where)
            case ast.Constant(value=bool()):
                self.add(node, "boolean", str(not node.value), where)
            case ast.Constant(value=int() | float() as value):
                for by in (1, -1):
                    self.add(node, "number", f"({value + by!r})", where)
            case ast.MatchValue(value=value):
                self.emptied(value, where)

    def statement(self, node: ast.AST, where: tuple[Any, ...], *, inside: bool) -> None:
        """The mutants of a statement."""
        match node:
            case ast.If() if not _is_for_types(node, "body"):
                for forced in ("True", "False"):
                    self.add(node.test, "if", forced, where)
            case ast.Return(value=ast.expr() as value) if not isinstance(value, ast.Constant) or value.value:
                self.emptied(value, where)
                self.add(node, "return", "return None", where)
            case ast.Expr(value=ast.Call() | ast.Await()) | ast.Assign() | ast.AugAssign() if inside:
                called = node.value.value if isinstance(node.value, ast.Await) else node.value
                if not (isinstance(called, ast.Call) and _is_silent(called.func)):
                    self.add(node, "statement", "pass", where)
            case ast.Raise() | ast.Continue() | ast.Break():
                self.add(node, "statement", "pass", where)

    def emptied(self, node: ast.AST, where: tuple[Any, ...]) -> None:
        """A text that is compared or returned."""
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value:
            self.add(node, "text", "''", where)


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.JoinedStr) or (
        isinstance(node, ast.Constant) and isinstance(node.value, str | bytes)
    )


def _is_silent(function: ast.expr) -> bool:
    """Is this a call for the log, or one that only the type checker hears?"""
    if isinstance(function, ast.Attribute):
        return function.attr in LOG and ast.unparse(function.value).rpartition(".")[2].endswith(
            ("log", "logger")
        )
    return isinstance(function, ast.Name) and function.id in {"assert_never", "cast", "TypeVar"}


def _is_for_types(node: ast.AST, field: str) -> bool:
    return isinstance(node, ast.If) and field == "body" and ast.unparse(node.test).endswith("TYPE_CHECKING")

"""Finds the regular expressions of a package: ``patterns_of`` those that its modules hold compiled, and
``written_in`` those that its source hands to ``re`` as text. ``pattern_attack`` attacks them.
"""

from __future__ import annotations

import ast
import functools
import importlib
import pkgutil
import re
import types
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

_WALKED: Final = 8  # containers in containers
_METHODS: Final = frozenset({"search", "match", "fullmatch", "finditer", "findall", "sub", "subn", "split"})
_ANCHORED: Final = frozenset({"match", "fullmatch"})
_PLAIN: Final = (str, bytes, int, float, type(None))  # hold nothing
_CALLS_RE: Final = re.compile(rf"^\s.*\bre\.compile\b|\bre\.(?:{'|'.join(sorted(_METHODS))})\b", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Place:
    """A pattern and where it stands. ``anchored``: its module only ever matches at one place of a text."""

    name: str
    pattern: str
    flags: int
    anchored: bool = False


def patterns_of(package: str) -> list[Place]:
    """The compiled patterns that the modules of ``package`` hold, each once: in globals, containers, classes,
    instances of its classes, and in defaults and closures of functions.
    """
    found: dict[tuple[str, int], Place] = {}
    for module in _modules(package):
        held = [(n, p) for n, v in sorted(vars(module).items()) for p in _walk(v, package, set(), 0)]
        once = _only_anchored(module) if held else set()
        for name, pattern in held:
            key = (pattern.pattern, pattern.flags)
            known = found.get(key)
            anchored = name in once and (known is None or known.anchored)
            found[key] = Place(f"{module.__name__}.{name}", *key, anchored)
    return list(found.values())


def _modules(package: str) -> Iterator[types.ModuleType]:
    root = importlib.import_module(package)
    yield root
    for info in pkgutil.walk_packages(root.__path__, f"{package}."):
        if not info.name.endswith("__main__"):
            yield importlib.import_module(info.name)


def _walk(value: object, package: str, seen: set[int], depth: int) -> Iterator[re.Pattern[str]]:
    if isinstance(value, re.Pattern):
        if isinstance(value.pattern, str):
            yield value
        else:
            yield re.compile(value.pattern.decode("latin-1"), value.flags | re.ASCII)
        return
    if id(value) in seen or depth > _WALKED or isinstance(value, _PLAIN):
        return
    seen.add(id(value))
    for inner in _inside(value, package):
        if not isinstance(inner, _PLAIN):
            yield from _walk(inner, package, seen, depth + 1)


def _inside(value: Any, package: str) -> Iterable[object]:
    own = str(getattr(value, "__module__", "") or "").split(".")[0] == package
    match value:
        case dict() | types.MappingProxyType():
            return [*value.keys(), *value.values()]
        case list() | tuple() | set() | frozenset():
            return value
        case functools.partial():
            return [value.func, *value.args, *value.keywords.values()]
        case types.MethodType() | staticmethod() | classmethod():
            return [value.__func__]
        case property():
            return [value.fget, value.fset]
        case types.FunctionType() if own:
            cells = [_content(c) for c in value.__closure__ or ()]
            return [*(value.__defaults__ or ()), *(value.__kwdefaults__ or {}).values(), *cells]
        case type() if own:
            return list(vars(value).values())
        case types.ModuleType() | type() | types.FunctionType():
            return []
    if hasattr(value, "__wrapped__"):
        return [value.__wrapped__]
    if str(type(value).__module__).split(".")[0] != package:
        return []
    names = [*getattr(value, "__dict__", ()), *(n for c in type(value).__mro__ for n in _slots(c))]
    return [getattr(value, n, None) for n in names]


def _slots(kind: type) -> Sequence[str]:
    slots = vars(kind).get("__slots__", ())
    return (slots,) if isinstance(slots, str) else tuple(slots)


def _content(cell: types.CellType) -> object:
    try:
        return cell.cell_contents
    except ValueError:  # not filled yet
        return None


def _only_anchored(module: types.ModuleType) -> set[str]:
    """The private names of patterns whose every use in the module is ``match`` or ``fullmatch``."""
    with open(str(module.__file__), encoding="utf-8") as file:
        source = file.read()
    if "match" not in source:
        return set()
    nodes = list(ast.walk(ast.parse(source)))
    takers = {
        f.name
        for f in nodes
        if isinstance(f, ast.FunctionDef) and f.args.args and _matches_only(f, f.args.args[0].arg)
    }
    used: dict[str, list[str]] = {}
    loads: dict[str, int] = {}
    for node in nodes:
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            loads[node.id] = loads.get(node.id, 0) + 1
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            used.setdefault(node.value.id, []).append(node.attr)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in takers:
            names = [a.id for a in node.args[:1] if isinstance(a, ast.Name)]
            for name in names:
                used.setdefault(name, []).append("match")
    return {
        n
        for n, how in used.items()
        if n.startswith("_") and set(how) <= _ANCHORED and len(how) == loads.get(n)
    }


def _matches_only(function: ast.FunctionDef, name: str) -> bool:
    """Whether all that ``function`` does with its argument ``name`` is to match it at one place."""
    uses = [n for n in ast.walk(function) if isinstance(n, ast.Name) and n.id == name]
    calls = [n for n in ast.walk(function) if isinstance(n, ast.Attribute) and n.attr in _ANCHORED]
    return bool(uses) and len(uses) == sum(
        isinstance(c.value, ast.Name) and c.value.id == name for c in calls
    )


def written_in(folder: Path) -> tuple[list[Place], list[str]]:
    """(patterns that the source below ``folder`` hands to ``re`` as plain text, functions that put a pattern
    together, as ``file:function``). What is compiled outside of functions is left to ``patterns_of``.
    """
    found: list[Place] = []
    made: list[str] = []
    for path in sorted(folder.rglob("*.py")):
        name, source = str(path.relative_to(folder)), path.read_text("utf-8")
        if not _CALLS_RE.search(source):  # most files, and to parse one takes a hundred times as long
            continue
        for function, node in _calls(ast.parse(source), ""):
            pattern = node.args[0] if node.args else None
            flags = [
                a for a in [*node.args[1:], *(k.value for k in node.keywords)] if "re." in ast.unparse(a)
            ]
            compiles = isinstance(node.func, ast.Attribute) and node.func.attr == "compile"
            if compiles and not function:
                continue
            if isinstance(pattern, ast.Constant) and isinstance(pattern.value, str):
                number = int(eval(ast.unparse(flags[0]), {"re": re})) if flags else 0
                attr = node.func.attr if isinstance(node.func, ast.Attribute) else ""
                once = attr in _ANCHORED
                found.append(Place(f"{name}:{node.lineno}", pattern.value, number | re.UNICODE, once))
            elif function:
                made.append(f"{name}:{function}")
    return found, made


def _calls(node: ast.AST, function: str) -> Iterator[tuple[str, ast.Call]]:
    for inner in ast.iter_child_nodes(node):
        named = isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef)
        yield from _calls(inner, inner.name if named else function)  # type: ignore[attr-defined]
        if isinstance(inner, ast.Call) and isinstance(inner.func, ast.Attribute):
            of = inner.func.value
            if isinstance(of, ast.Name) and of.id == "re" and inner.func.attr in _METHODS | {"compile"}:
                yield function, inner

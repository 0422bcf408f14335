"""Sets or removes one member of nested objects in a settings text (JSON with comments). Other bytes stay.

``put`` makes missing objects on the way to the member; ``take`` also removes objects that become empty. Never
reads or writes files. A text that is not JSON, and a value that should be an object and is none, is a
``UserError`` with its place. Each edited text is parsed again and compared with what was wanted before it is
returned.
"""

from __future__ import annotations

import json
from copy import deepcopy
from typing import Any, cast

from ..core.errors import UserError
from .jsonc import Node, append, apply, begun, cut, parse, place, top, unique


def read(text: str, *paths: tuple[str, ...]) -> dict[str, Any]:
    """The settings as a dict; empty for a text of spaces and comments.

    ``paths`` will be edited: whatever is on the way to them must be an object in which no name stands twice.
    Raises ``UserError``.
    """
    root = top(text)
    if root is None:
        return {}
    for path in paths:
        _walk(text, root, path)
    return cast("dict[str, Any]", root.value)


def is_bare(text: str) -> bool:
    """Whether the text is empty or an empty object, so that no setting and no comment is lost without it."""
    return "".join(text.removeprefix("\ufeff").split()) in {"", "{}"}


def put(text: str, path: tuple[str, ...], value: object) -> str:
    """``text`` with ``value`` at ``path``, written on one line. An existing value is replaced where it
    stands.

    Raises ``UserError``.
    """
    root = top(text)
    if root is None:
        return put(begun(text), path, value)
    node, depth, found = _walk(text, root, path)
    if found and found.value == value:
        return text
    for name in reversed(path[depth + 1 :]):
        value = {name: value}
    new = json.dumps(value, ensure_ascii=False)
    name = json.dumps(path[depth], ensure_ascii=False)
    edits = [(found.start, found.end, new)] if found else append(text, node, f"{name}: {new}")
    wanted = deepcopy(root.value)
    _at(wanted, path[:depth])[path[depth]] = value
    return _checked(apply(text, edits), wanted)


def take(text: str, path: tuple[str, ...]) -> str:
    """``text`` without the member at ``path`` and the objects that it leaves empty. Raises ``UserError``."""
    root = top(text)
    if root is None:
        return text
    node, depth, found = _walk(text, root, path)
    if not found:
        return text
    wanted = deepcopy(root.value)
    del _at(wanted, path[:depth])[path[depth]]
    after = cut(text, node, next(i for i, item in enumerate(node.items) if item.name == path[depth]))
    after = _checked(after, wanted)
    inside, _, above = _walk(after, cast("Node", top(after)), path)
    if depth and above is None and _is_empty(after, inside):
        return take(after, path[:depth])
    return after


def _walk(text: str, root: Node, path: tuple[str, ...]) -> tuple[Node, int, Node | None]:
    """Follow ``path`` as deep as it exists: the last object, its depth, and the member itself or None."""
    node = root
    for depth, name in enumerate(path):
        unique(text, node)
        inner = next((item.node for item in node.items if item.name == name), None)
        if inner is None or depth == len(path) - 1:
            return node, depth, inner
        if not isinstance(inner.value, dict):
            raise UserError(f'{place(text, inner.start)}: "{name}" must be an object in braces, {{ }}')
        node = inner
    raise ValueError("an empty path names no member")


def _at(value: dict[str, Any], path: tuple[str, ...]) -> dict[str, Any]:
    for name in path:
        value = value[name]
    return value


def _is_empty(text: str, node: Node) -> bool:
    return not text[node.start + 1 : node.end - 1].strip(" \t\r\n")


def _checked(after: str, wanted: dict[str, Any]) -> str:
    new = parse(after)
    if new is None or new.value != wanted or list(new.value) != list(wanted):
        raise RuntimeError("the edit would have changed more than one setting; nothing was done")
    return after

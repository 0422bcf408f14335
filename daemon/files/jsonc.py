"""Edits the settings texts of the hosts (JSON with comments): one member of nested objects, or the items of
a list. Every other byte stays.

It accepts the JSON of the hosts' own parsers; anything else is a ``UserError`` with line and column. Each
edited text is parsed again and compared with the intended value before it is returned. Never reads or writes
files.
"""

from __future__ import annotations

import json
import re
from copy import deepcopy
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from msgspec import Struct

from ..core.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Callable

# The parser remembers where each value stands. ``append`` and ``cut`` add and remove one item of a list or
# object, with the commas, lines and comments around it; the rest of the document is never printed anew.
#
# Why not a library (tried in 2026): json-five prints an unchanged text exactly, but not an edited one. A
# new element becomes ``,"new"],`` on the bracket's line, and a removed element takes its neighbour's
# comment with it. It also accepts single quotes, names without quotes and tabs in strings, which the hosts
# refuse. jsonc-edit runs node; jsonc-document needs Python 3.12.

Edit: TypeAlias = "tuple[int, int, str]"  # from, to, what stands there instead

MAX_DEPTH = 200

_COMMENT = r"//[^\r\n]*|/\*.*?\*/"
_TRIVIA = re.compile(rf"(?:[ \t\r\n]++|{_COMMENT})*+", re.DOTALL)
_REST_OF_LINE = re.compile(rf"(?:[ \t]*+(?:{_COMMENT}))*+(?:[ \t]*+(?=[\r\n]))?", re.DOTALL)
_NEWLINE = re.compile(r"\r\n|\n|\r")
_SPACES = re.compile(r"[ \t]*")
_PLAIN = r'[^"\\\x00-\x1f]*'
_STRING = re.compile(rf'"{_PLAIN}(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{{4}}){_PLAIN})*"')
_SCALAR = re.compile(r"(?:true|false|null)\b|-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")


class Node(Struct, frozen=True):
    """A value and where it stands."""

    start: int
    end: int
    value: Any
    items: tuple[Item, ...] = ()  # the elements of an array, the members of an object


class Item(Struct, frozen=True):
    """An element of an array, or a member of an object with its name."""

    start: int  # of the name in an object
    node: Node
    comma: int | None
    name: str = ""

    @property
    def end(self) -> int:
        """The position after its comma, or after the value when it has none."""
        return self.node.end if self.comma is None else self.comma + 1


def parse(text: str) -> Node | None:
    """The document; None for a text of spaces and comments. Raises ``UserError``."""
    return _Parser(text).document()


def top(text: str) -> Node | None:
    """The document, which must be an object in which no name stands twice. Raises ``UserError``."""
    root = parse(text)
    if root is None:
        return None
    if not isinstance(root.value, dict):
        raise UserError(f"{place(text, root.start)}: the settings must be an object in braces, {{ }}")
    unique(text, root)
    return root


def unique(text: str, node: Node) -> None:
    """Refuse an object in which a name stands twice. Raises ``UserError``."""
    seen: dict[str, int] = {}
    for item in node.items:
        if item.name in seen:
            both = f"{place(text, seen[item.name])} and {place(text, item.start)}"
            raise UserError(f"{both}: {item.name!r} stands twice, and only the last is read: join them")
        seen[item.name] = item.start


def begun(text: str) -> str:
    """A text of spaces and comments with an empty object after them."""
    gap = _newline(text) if text.strip(" \t\ufeff") and text[-1] not in "\r\n" else ""
    return f"{text}{gap}{{}}{_newline(text)}"


def append(text: str, node: Node, new: str) -> list[Edit]:
    """Edits that put ``new`` after the last item, on its own line where the other items have one."""
    if not node.items:
        return [_fill(text, node, new)]
    last = node.items[-1]
    begin = _line_start(text, last.start)
    indent = text[begin : last.start]
    if begin == 0 or indent.strip(" \t"):  # on one line with what is before it
        return [(last.end, last.end, f", {new}" if last.comma is None else f" {new},")]
    at, line = _end(_REST_OF_LINE, text, last.end), f"{_newline(text)}{indent}{new}"
    return [(at, at, line), (last.end, last.end, ",")] if last.comma is None else [(at, at, f"{line},")]


def _fill(text: str, node: Node, new: str) -> Edit:
    """The edit that puts the first item between brackets that hold only spaces and comments."""
    inner = text[node.start + 1 : node.end - 1]
    at = node.start + 1 + len(inner.rstrip(" \t\r\n"))
    nl = _newline(text)
    begin = _line_start(text, node.start)
    outer = text[begin : _end(_SPACES, text, begin)]
    line = f"{nl}{outer}{outer or '  '}{new}"
    if "\n" in inner or "\r" in inner:
        at = _end(_REST_OF_LINE, text, at)
        return at, at, line
    if inner.strip():
        return at, at, f" {new}"
    return at, at, f"{line}{nl}{outer}" if text[node.start] == "{" else new


def cut(text: str, node: Node, index: int) -> str:
    """``text`` without one item of ``node``, its comma, and its line when nothing else stands on it."""
    opening, closing = text[node.start], text[node.end - 1]
    items, item = node.items, node.items[index]
    start, end = item.start, item.node.end
    cuts: list[Edit] = []
    if item.comma is None and index:
        before = cast("int", items[index - 1].comma)  # the parser has seen one: there is an item after it
        cuts.append((before, before + 1, ""))
    elif item.comma is not None and text[end : item.comma].strip():  # a comment stands between them
        cuts.append((item.comma, item.comma + 1, ""))
    else:
        end = item.end
    left, right = len(text[:start].rstrip(" \t")), len(text) - len(text[end:].lstrip(" \t"))
    own_line, line_ends = text[left - 1] in "\r\n", text[right] in "\r\n"
    newline = left - (2 if text.startswith("\r\n", left - 2) else 1)
    if own_line and line_ends:
        start, end = newline, right
    elif own_line and text[right] == closing:
        gap = text[items[index - 1].end if index else node.start + 1 : newline]
        # the bracket moves up a line, unless a // comment would swallow it there
        start = newline if _end(_TRIVIA, f"{gap}{closing}", 0) == len(gap) else start
    elif own_line or (index == 0 and item.comma is not None):
        end = right
    elif text[left - 1] != opening:
        start = left
    return apply(text, [*cuts, (start, end, "")])


def apply(text: str, cuts: list[Edit]) -> str:
    """Carry out edits that don't overlap."""
    for start, end, new in sorted(cuts, key=lambda cut: cut[0], reverse=True):  # stable
        text = text[:start] + new + text[end:]
    return text


def _line_start(text: str, at: int) -> int:
    return max(text.rfind("\n", 0, at), text.rfind("\r", 0, at)) + 1


def _end(pattern: re.Pattern[str], text: str, at: int) -> int:
    found = pattern.match(text, at)
    return found.end() if found else at


def _newline(text: str) -> str:
    return next(iter(_NEWLINE.findall(text)), "\n")


def place(text: str, at: int) -> str:
    """The position ``at``, as line and column."""
    line = len(_NEWLINE.findall(text[:at])) + 1
    return f"line {line}, column {at - _line_start(text, at) + 1}"


class _Parser:
    """Parses strict JSON with comments and trailing commas, and remembers where each value stands."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 1 if text.startswith("\ufeff") else 0

    def document(self) -> Node | None:
        if self.peek() == "":
            return None
        node = self.value(0)
        if self.peek():
            raise self.wrong("nothing may follow the closing bracket")
        return node

    def peek(self) -> str:
        """The next character that is no space and in no comment; empty at the end."""
        self.at = _end(_TRIVIA, self.text, self.at)
        if self.text.startswith("/*", self.at):
            raise self.wrong("this comment has no end, */ is missing")
        return self.text[self.at : self.at + 1]

    def wrong(self, what: str) -> UserError:
        where = "the end" if self.at >= len(self.text) else place(self.text, self.at)
        return UserError(f"not valid JSON at {where}: {what}")

    def value(self, depth: int) -> Node:
        first, start = self.peek(), self.at
        if first in ("{", "["):
            return self.container("}" if first == "{" else "]", depth + 1)
        if first == '"':
            text = self.string()
            return Node(start, self.at, text)
        found = _SCALAR.match(self.text, start)
        if not found:
            raise self.wrong("a value is missing (text needs double quotes)")
        self.at = found.end()
        return Node(start, self.at, json.loads(found.group()))

    def string(self) -> str:
        found = _STRING.match(self.text, self.at)
        if not found:
            raise self.wrong(
                "this string is not closed on its line, or has a backslash that JSON does not know"
            )
        self.at = found.end()
        return cast("str", json.loads(found.group()))

    def container(self, closing: str, depth: int) -> Node:
        if depth > MAX_DEPTH:
            raise self.wrong(f"more than {MAX_DEPTH} brackets inside each other")
        start, items = self.at, list[Item]()
        self.at += 1
        while self.peek() != closing:
            if items and items[-1].comma is None:
                raise self.wrong(f"a comma or {closing} is missing")
            items.append(self.item(closing, depth))
        self.at += 1
        values = [item.node.value for item in items]
        value = values if closing == "]" else {item.name: item.node.value for item in items}
        return Node(start, self.at, value, tuple(items))

    def item(self, closing: str, depth: int) -> Item:
        start, name = self.at, ""
        if closing == "}":
            if self.peek() != '"':
                raise self.wrong("a name in double quotes, or }, is missing")
            name = self.string()
            if self.peek() != ":":
                raise self.wrong("a colon is missing after the name")
            self.at += 1
        node = self.value(depth)
        comma = self.at if self.peek() == "," else None
        self.at += comma is not None
        return Item(start, node, comma, name)


# --- one member of nested objects, or one item of a list ----------------------------------------------------

Place: TypeAlias = "tuple[str | int, ...]"  # names lead into objects, numbers into lists


def read(text: str, *paths: tuple[str, ...]) -> dict[str, Any]:
    """The settings as a dict; empty for a text of spaces and comments.

    ``paths`` will be edited: each value on the way to them must be an object in which no name stands twice.
    Raises ``UserError``.
    """
    root = top(text)
    if root is None:
        return {}
    for path in paths:
        _walk(text, root, path)
    return cast("dict[str, Any]", root.value)


def is_bare(text: str) -> bool:
    """Says whether the text is empty or an empty object, so that no setting and no comment is lost without
    it.
    """
    return "".join(text.removeprefix("\ufeff").split()) in {"", "{}"}


def put(text: str, path: Place, value: object) -> str:
    """``text`` with ``value`` at ``path``, written on one line. An existing value is replaced where it
    stands; the number after the last item of a list appends one. Raises ``UserError``.
    """
    root = top(text)
    if root is None:
        return put(begun(text), path, value)
    node, depth, found = _walk(text, root, path)
    if found and found.value == value:
        return text
    for missing in reversed(path[depth + 1 :]):
        value = {missing: value}
    name, new = path[depth], json.dumps(value, ensure_ascii=False)
    wanted = deepcopy(root.value)
    inside = _at(wanted, path[:depth])
    if isinstance(name, str):
        inside[name] = value
        added = f"{json.dumps(name, ensure_ascii=False)}: {new}"
    else:
        inside[name : name + 1] = [value]
        added = new
    edits = [(found.start, found.end, new)] if found else append(text, node, added)
    return _checked(apply(text, edits), wanted)


def take(text: str, path: Place) -> str:
    """``text`` without the value at ``path``, and without the objects that a member leaves empty. Raises
    ``UserError``.
    """
    root = top(text)
    if root is None:
        return text
    node, depth, found = _walk(text, root, path)
    if not found:
        return text
    wanted = deepcopy(root.value)
    del _at(wanted, path[:depth])[path[depth]]
    after = cut(text, node, next(i for i, item in enumerate(node.items) if item.node is found))
    after = _checked(after, wanted)
    if isinstance(path[-1], int):
        return after
    inside, _, above = _walk(after, cast("Node", top(after)), path)
    if depth and above is None and _is_empty(after, inside):
        return take(after, path[:depth])
    return after


def _walk(text: str, root: Node, path: Place) -> tuple[Node, int, Node | None]:
    """Follow ``path`` as deep as it exists: the last object or list, its depth, and the value itself or
    None.
    """
    node = root
    for depth, name in enumerate(path):
        if isinstance(name, str):
            unique(text, node)
            inner = next((item.node for item in node.items if item.name == name), None)
        else:
            inner = node.items[name].node if name < len(node.items) else None
        if inner is None or depth == len(path) - 1:
            return node, depth, inner
        if isinstance(path[depth + 1], str) and not isinstance(inner.value, dict):
            raise UserError(f'{place(text, inner.start)}: "{name}" must be an object in braces, {{ }}')
        node = inner
    raise ValueError("an empty path names no member")


def _at(value: Any, path: Place) -> Any:  # noqa: ANN401 - of any JSON
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


def items(text: str, path: tuple[str, ...]) -> list[Any]:
    """The items of the list at ``path``; none where there is no list. Raises ``UserError``."""
    root = top(text)
    node = _walk(text, root, path)[2] if root else None
    if node is not None and not isinstance(node.value, list):
        raise UserError(f'{place(text, node.start)}: "{path[-1]}" must be a list in brackets, [ ]')
    return list(node.value) if node else []


def add_item(text: str, path: tuple[str, ...], value: object) -> str:
    """``text`` with ``value`` at the end of the list, which is made where there is none. Raises
    ``UserError``.
    """
    count, root = len(items(text, path)), top(text)
    there = root is not None and _walk(text, root, path)[2] is not None
    return put(text, (*path, count), value) if there else put(text, path, [value])


def drop_items(text: str, path: tuple[str, ...], matches: Callable[[Any], bool], *, after: int = -1) -> str:
    """``text`` without the items that match and stand behind ``after``. Comments stay, and so does a list
    that becomes empty. Raises ``UserError``.
    """
    before = items(text, path)
    for index in reversed(range(after + 1, len(before))):
        if matches(before[index]):
            text = take(text, (*path, index))
    return text

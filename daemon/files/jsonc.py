"""Edits the ``plugin`` list in the text of opencode's settings (JSON with comments). Every other byte stays.

Finds the list and knows what its entries mean; never reads or writes files. It accepts what opencode's own
parser accepts; anything else is a ``UserError`` with line and column. Each edited text is parsed again and
compared with what was wanted before it is returned.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, cast

from ..core.errors import UserError
from .jsonc_text import append, apply, begun, cut, parse, place, top

if TYPE_CHECKING:
    from collections.abc import Callable

    from .jsonc_text import Item, Node

KEY = "plugin"


def plugins(text: str) -> list[Any]:
    """The entries as opencode reads them: strings, or ``[spec, options]``. Raises ``UserError``."""
    member = _find(text)[1]
    return list(member.node.value) if member else []


def spec_of(entry: object) -> str:
    """What an entry loads, without its options; empty when opencode would ignore the entry."""
    first = entry[0] if isinstance(entry, list) and entry else entry
    return first if isinstance(first, str) else ""


def add_plugin(text: str, spec: str) -> str:
    """``text`` with ``spec`` at the end of the list; unchanged when the list has it. Raises ``UserError``."""
    root, member = _find(text)
    before = member.node.value if member else []
    if any(spec_of(entry) == spec for entry in before):
        return text
    if root is None:
        return add_plugin(begun(text), spec)
    quoted = json.dumps(spec, ensure_ascii=False)
    where, new = (member.node, quoted) if member else (root, f'"{KEY}": [{quoted}]')
    after = apply(text, append(text, where, new))
    return _checked(root, after, [*before, spec])


def replace_plugin(text: str, matches: Callable[[str], bool], spec: str) -> str:
    """``text`` in which the first matching entry loads ``spec``, with its options; other matches are removed.

    Unchanged when no entry matches. Raises ``UserError``.
    """
    root, entries, found = _matching(text, matches)
    if not found:
        return text
    for index in reversed(found[1:]):
        text = cut(text, cast("Item", _find(text)[1]).node, index)
    place = found[0]
    node = cast("Item", _find(text)[1]).node.items[place].node
    old = node.items[0].node if node.items else node
    text = apply(text, [(old.start, old.end, json.dumps(spec, ensure_ascii=False))])
    entries[place] = [spec, *entries[place][1:]] if node.items else spec
    return _checked(root, text, [entry for i, entry in enumerate(entries) if i not in found[1:]])


def remove_plugin(text: str, matches: Callable[[str], bool]) -> str:
    """``text`` without the entries that match. Comments stay, and so does a list that becomes empty."""
    root, entries, found = _matching(text, matches)
    if not found:
        return text
    for index in reversed(found):
        text = cut(text, cast("Item", _find(text)[1]).node, index)
    return _checked(root, text, [entry for i, entry in enumerate(entries) if i not in found])


def _matching(text: str, matches: Callable[[str], bool]) -> tuple[Node | None, list[Any], list[int]]:
    entries = plugins(text)
    return _find(text)[0], entries, [i for i, entry in enumerate(entries) if matches(spec_of(entry))]


def _find(text: str) -> tuple[Node | None, Item | None]:
    """The top-level object (None for a text of spaces and comments) and its plugin list."""
    root = top(text)
    if root is None:
        return None, None
    member = next((item for item in root.items if item.name == KEY), None)
    if member and not isinstance(member.node.value, list):
        raise UserError(f'{place(text, member.node.start)}: "{KEY}" must be a list in brackets, [ ]')
    return root, member


def _checked(before: Node | None, after: str, wanted: list[Any]) -> str:
    old, new = (before.value if before else {}), parse(after)
    if new is None or new.value != {**old, KEY: wanted}:
        raise RuntimeError("the edit would have changed more than the plugin list; nothing was done")
    return after

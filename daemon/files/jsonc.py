"""Edits the ``plugin`` list of an opencode settings text (JSON with comments); every other byte stays.

Owns: finding that list, and what its entries mean. Never touches files. Accepts just what opencode's own
parser accepts; anything else is a ``UserError`` with line and column. Every edit is
parsed again and compared before it is returned.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, cast

from daemon.core.errors import UserError
from daemon.files.jsonc_text import append, apply, begun, cut, parse, place, top

if TYPE_CHECKING:
    from collections.abc import Callable

    from daemon.files.jsonc_text import Item, Node

KEY = "plugin"


def plugins(text: str) -> list[Any]:
    """The entries as opencode reads them: strings, or ``[spec, options]``. Raises ``UserError``."""
    member = _find(text)[1]
    return list(member.node.value) if member else []


def spec_of(entry: object) -> str:
    """What an entry loads, without its options; empty when opencode would not take it."""
    first = entry[0] if isinstance(entry, list) and entry else entry
    return first if isinstance(first, str) else ""


def add_plugin(text: str, spec: str) -> str:
    """``text`` with ``spec`` at the end of the list; unchanged when it is listed. Raises ``UserError``."""
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
    """The first matching entry loads ``spec`` instead, in its place and with its options; the other
    matches go. ``text`` when nothing matches. Raises ``UserError``.
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
    """``text`` without the entries that match. Comments stay, and so does an emptied list."""
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

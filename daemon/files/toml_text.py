"""Sets one value in a settings text (TOML). Every other byte stays.

Finds the places where the value may stand, edits the text at each of them, and takes the first edit after
which the text parses to exactly the intended settings. So an unknown form of TOML is never broken: it is a
``UserError`` that names the line to write by hand. Never reads or writes files.
"""

from __future__ import annotations

import json
import re
import tomllib
from copy import deepcopy
from typing import TYPE_CHECKING, Any

from ..core.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Iterator


def put(text: str, section: str, name: str, value: bool | int | str) -> str:
    """``text`` with ``name = value`` in ``[section]``, or outside of all sections when that is empty. Raises
    ``UserError``.
    """
    was = _parsed(text)
    if was is None:
        raise UserError("it is not valid TOML")
    wanted: dict[str, Any] = deepcopy(was)
    inside = wanted.setdefault(section, {}) if section else wanted
    shown = json.dumps(value, ensure_ascii=False)  # true, 12 and "text" are the same in TOML
    if isinstance(inside, dict):
        old = inside.get(name)
        if old == value and type(old) is type(value):
            return text
        inside[name] = value
        for edited in _edits(text, section, name, shown):
            if _parsed(edited) == wanted:
                return edited
    where = f"its [{section}]" if section else "its first line"
    raise UserError(f"write {name} = {shown} into {where} yourself")


def _edits(text: str, section: str, name: str, value: str) -> Iterator[str]:
    """``text`` with the value in each place where it may stand: instead of the old one, below the section's
    header, beside a dotted key of the section, in a new section at the end. Without a section: instead of the
    old one, or at the top.
    """
    end = "\r\n" if "\r\n" in text else "\n"
    lines = text.splitlines(keepends=True)
    dotted = rf"(?:{section}[ \t]*\.[ \t]*)?"
    old = re.compile(rf"([ \t]*{dotted}{name}[ \t]*=[ \t]*)(\"[^\"\r\n]*\"|'[^'\r\n]*'|[^\s\"'#]+)")
    header = re.compile(rf"[ \t]*\[[ \t]*{section}[ \t]*\]")
    beside = re.compile(rf"[ \t]*{section}[ \t]*\.")
    new = f"{name} = {value}{end}"
    for i, line in enumerate(lines):
        if found := old.match(line):
            yield "".join([*lines[:i], f"{found[1]}{value}{line[found.end() :]}", *lines[i + 1 :]])
    if not section:
        yield f"{new}{text}"
        return
    for pattern, added in ((header, new), (beside, f"{section}.{new}")):
        for i, line in enumerate(lines):
            if pattern.match(line):
                ended = line if line.endswith("\n") else line + end
                yield "".join([*lines[:i], ended, added, *lines[i + 1 :]])
    gap = "" if not text.strip() else end if text.endswith("\n") else end * 2
    yield f"{text}{gap}[{section}]{end}{new}"


def _parsed(text: str) -> dict[str, Any] | None:
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError):
        return None

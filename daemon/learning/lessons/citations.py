"""Paths and commands that a lesson names: noted when it is learned, looked for before it is shown.

Something that does not exist when the lesson is learned can't be gone later: the lesson may tell to make it.
Everything here blocks.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ...files.safe import read_text

if TYPE_CHECKING:
    from collections.abc import Iterable

MOST: Final = 8
FILE_BYTES: Final = 200_000  # of a Makefile or package.json
_CODE: Final = re.compile(r"`([^`\n]{2,120})`")
_COMMAND: Final = re.compile(r"[a-z][a-z0-9_.+-]* \S.*")
_TOKEN: Final = re.compile(r"[\w./@+-]+")
_PATH: Final = re.compile(r"(?!\.\.|[/@-])(?=.*[^\W\d_])(?:.*/.*|.*\w\.[a-z][a-z0-9]{0,5})")


def cites(text: str, folder: str) -> tuple[str, ...]:
    """The paths and commands that a lesson names and that are in the folder now."""
    marked = [" ".join(code.split()) for code in _CODE.findall(text)]
    commands = [code for code in marked if _COMMAND.fullmatch(code)]
    prose = " ".join([_CODE.sub(" ", text), *(code for code in marked if code not in commands)])
    words = (word.rstrip("./@+-") for word in _TOKEN.findall(prose))
    paths = [word for word in words if len(word) > 2 and _PATH.fullmatch(word)]
    return tuple(name for name in dict.fromkeys([*paths, *commands]) if is_there(folder, name))[:MOST]


def stand(names: Iterable[str], folders: Iterable[str]) -> bool:
    """Says whether each of these names is in one of the folders."""
    roots = [folder for folder in folders if folder]
    return all(any(is_there(root, name) for root in roots) for name in names)


def is_there(root: str, name: str) -> bool:
    """Says whether a path or a command line can be used in this folder."""
    first, _, rest = name.partition(" ")
    if not rest:
        return Path(root, name).exists()
    target = rest.split()[-1] if rest.split() else ""
    if first == "make" and not target.startswith("-"):
        return f"\n{target}:" in f"\n{_text(Path(root, 'Makefile'))}"
    if first in {"npm", "pnpm", "yarn", "bun"} and rest.startswith("run "):
        return f'"{target}"' in _text(Path(root, "package.json"))
    return shutil.which(first) is not None or Path(root, first).exists()


def _text(path: Path) -> str:
    try:
        return read_text(path, FILE_BYTES, follow=False) or ""
    except (OSError, ValueError):
        return ""

"""Paths and commands that a lesson names: noted when it is learned, looked for before it is shown.

Something that was not there when the task ended badly can't be gone later: the lesson may tell to make it,
and the agent may have made it before the lesson was drawn. Everything here blocks.
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
_SCRIPTS: Final = {"make": "Makefile", **dict.fromkeys(("npm", "pnpm", "yarn", "bun"), "package.json")}
_CODE: Final = re.compile(r"`([^`\n]{2,120})`")
_COMMAND: Final = re.compile(r"[a-z][a-z0-9_.+-]* \S.*")
_TOKEN: Final = re.compile(r"[\w./@+-]+")
_PATH: Final = re.compile(r"(?!\.\.|[/@-])(?=.*[^\W\d_])(?:.*/.*|.*\w\.[a-z][a-z0-9]{0,5})")


def cites(text: str, folder: str, before: int = 0) -> tuple[str, ...]:
    """The paths and commands that a lesson names and that are in the folder now; with ``before`` (epoch ms)
    without those whose file was made or changed since.
    """
    marked = [" ".join(code.split()) for code in _CODE.findall(text)]
    commands = [code for code in marked if _COMMAND.fullmatch(code)]
    prose = " ".join([_CODE.sub(" ", text), *(code for code in marked if code not in commands)])
    words = (word.rstrip("./@+-") for word in _TOKEN.findall(prose))
    paths = [word for word in words if len(word) > 2 and _PATH.fullmatch(word)]
    there = (name for name in dict.fromkeys([*paths, *commands]) if is_there(folder, name))
    return tuple(name for name in there if not before or not _is_newer(folder, name, before))[:MOST]


def stand(names: Iterable[str], folders: Iterable[str]) -> bool:
    roots = [folder for folder in folders if folder]
    return all(any(is_there(root, name) for root in roots) for name in names)


def is_there(root: str, name: str) -> bool:
    """Says whether a path or a command line can be used in this folder."""
    first, _, rest = name.partition(" ")
    if not rest:
        return Path(root, name).exists()
    target = rest.split()[-1] if rest.split() else ""
    if first == "make" and not target.startswith("-"):
        return f"\n{target}:" in f"\n{_text(Path(root, _SCRIPTS[first]))}"
    if first != "make" and first in _SCRIPTS and rest.startswith("run "):
        return f'"{target}"' in _text(Path(root, _SCRIPTS[first]))
    return shutil.which(first) is not None or Path(root, first).exists()


def _is_newer(root: str, name: str, than: int) -> bool:
    """Says whether the file on which the name rests has changed since then; a program is no file of it."""
    first, _, rest = name.partition(" ")
    file = Path(root, _SCRIPTS.get(first, first) if rest else name)
    try:
        return file.stat().st_mtime_ns // 1_000_000 > than
    except OSError:
        return False


def _text(path: Path) -> str:
    try:
        return read_text(path, FILE_BYTES, follow=False) or ""
    except (OSError, ValueError):
        return ""

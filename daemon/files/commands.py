"""The command `/reflect` among a person's own commands of Claude Code: its place, and its owner.

A plugin's command has the plugin's name before its own, so `setup claude-code` offers a bare one. The mark in
its text says that it is ours. Another's file is never touched; an unreadable one is another's.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from ..core.consent import COMMAND_MARK
from .safe import read_text

if TYPE_CHECKING:
    from collections.abc import Iterable

NAME: Final = "commands/reflect.md"
LIMIT: Final = 256 * 1024


def text_in(path: Path) -> str | None:
    """The command's text, None when there is no file. Raises ``OSError`` and ``ValueError``."""
    return read_text(path, LIMIT)


def is_ours(path: Path) -> bool | None:
    """Says whether that file is our command; None when there is no file."""
    try:
        found = text_in(path)
    except (OSError, ValueError):
        return False
    return None if found is None else COMMAND_MARK in found


def all_ours(folders: Iterable[str | Path]) -> bool:
    """Says whether `/reflect` is our command where these folders hold a person's and a project's commands."""
    found = [ours for folder in folders if (ours := is_ours(Path(folder) / NAME)) is not None]
    return bool(found) and all(found)

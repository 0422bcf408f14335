"""Folders of ours: made so that nobody else may write to them, and removed as far as they are empty."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path


def make_folder(folder: Path) -> list[Path]:
    """Make the folder and those above it; returns those that were made, the outermost first. Whatever the
    umask, nobody else may write to them.
    """
    if folder.is_dir():
        return []
    made = make_folder(folder.parent)
    folder.mkdir(mode=0o755, exist_ok=True)
    return [*made, folder]


def remove_empty(folders: Iterable[Path]) -> None:
    """Remove these folders, the innermost first, each only when it is empty. None of them has to be there."""
    for folder in folders:
        with suppress(OSError):
            folder.rmdir()

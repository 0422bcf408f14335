"""A copy of the database from before an upgrade changed it, for a person who goes back to the older reflectd.

It is named for the first migration that it lacks. That is the migration for which the older reflectd refuses
the newer database, so the older one can name the copy. It is made with SQLite's own backup, synced (0600),
and stands under its name only when it is whole.
"""

from __future__ import annotations

import os
import secrets
import sqlite3
from contextlib import closing, suppress
from typing import TYPE_CHECKING, Final

from ..core.errors import UserError, words
from .syncing import sync_folder

if TYPE_CHECKING:
    from pathlib import Path

KEPT: Final = 2
_MIDDLE: Final = ".before-"


def back_up(c: sqlite3.Connection, path: Path, migration: str) -> None:
    """Copy the database to the file of this migration, which is the first that it lacks.

    Raises ``UserError`` when the disk refuses: the upgrade waits, and nothing was changed.
    """
    temporary = path.with_name(
        f".reflectd-{secrets.token_hex(8)}.tmp"
    )  # of a killed daemon: `app` removes it
    try:
        fd = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            with closing(sqlite3.connect(temporary)) as copy:
                copy.execute("PRAGMA journal_mode=OFF")
                c.backup(copy)
            os.fsync(fd)
        finally:
            os.close(fd)
        temporary.replace(_file(path, migration))
        with suppress(OSError):  # some file systems can't
            sync_folder(path.parent)
    except (OSError, sqlite3.OperationalError) as e:
        size = path.stat().st_size / 1e6
        raise UserError(
            f"{path} ({size:.1f} MB) could not be copied before its upgrade, so it is as it was: {words(e)}. "
            "Make room on that disk"
        ) from e
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def drop_older(path: Path, migration: str) -> None:
    """Of the copies, that of this migration and the newest other ones stay."""
    mine = _file(path, migration)
    with suppress(OSError):
        others = [file for file in path.parent.glob(f"{path.name}{_MIDDLE}*") if file != mine]
        for file in sorted(others, key=lambda file: file.stat().st_mtime_ns)[: 1 - KEPT]:
            file.unlink()


def way_back(path: Path, migration: str) -> str:
    """How an older reflectd, which lacks this migration, is used again: with the copy, where there is one."""
    kept = _file(path, migration)
    if not kept.is_file():
        return "or set daemon.state_dir to another folder"
    return (
        f"or go back to {kept.name}, the copy from before that upgrade: put it in the place of {path.name} "
        "and move its -wal and -shm away (docs/upgrade.md)"
    )


def _file(path: Path, migration: str) -> Path:
    return path.with_name(f"{path.name}{_MIDDLE}{migration}")

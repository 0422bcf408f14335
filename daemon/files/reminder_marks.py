"""Marks for the hooks of a host without a stream of orders: at which words of a tool call a lesson may wait.

One file for each session in ``<state folder>/reminders``, a word a line. ``hook.sh`` asks the daemon about a
tool call only if the session has a file and the call holds one of its words; so a session without lessons
costs no request. What can't be written is left out: then nothing is asked. It blocks: call it in a thread.
"""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from ..core.errors import Unavailable
from .atomic import write_atomic

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

FOLDER: Final = "reminders"
MOST: Final = 200  # words of one session
KEPT_S: Final = 7 * 86_400


def mark(state_dir: Path, session: str, words: Iterable[str]) -> None:
    """The words of this session; without any there is no file. Raises ``Unavailable``."""
    file = state_dir / FOLDER / session
    if not _is_name(session):
        return
    found = list(dict.fromkeys(w for w in words if w and w.isprintable()))[:MOST]
    try:
        if not found:
            file.unlink(missing_ok=True)
            return
        file.parent.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise Unavailable(f"can't write {file}: {error.strerror}") from error
    write_atomic(file, "".join(f"{word}\n" for word in found), durable=False)


def remove_old(state_dir: Path) -> None:
    """The files of sessions that ended without a word."""
    with suppress(OSError):
        for file in (state_dir / FOLDER).iterdir():
            if time.time() - file.stat().st_mtime > KEPT_S:
                file.unlink(missing_ok=True)


def _is_name(session: str) -> bool:
    """Whether the id can be the name of a file, and of no other one."""
    return 0 < len(session) <= 100 and all(c.isascii() and (c.isalnum() or c in "-_") for c in session)

"""Marks for the hooks of a host without a stream of orders: at which tool calls of a session a lesson may
wait.

One file for each session in ``<state folder>/reminders``: ``any`` while a lesson for its task waits to be
given, ``failed`` where the project has lessons that a failed call may bring back. ``hook.sh`` asks the daemon
about no other call; so a session without lessons costs no request. It blocks: call it in a thread.
"""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING, Final, Literal

from ..core.errors import Unavailable
from .atomic import write_atomic

if TYPE_CHECKING:
    from pathlib import Path

At = Literal["any", "failed"]
FOLDER: Final = "reminders"
KEPT_S: Final = 7 * 86_400


def mark(state_dir: Path, session: str, at: At | None) -> None:
    """At which calls of this session a hook asks; None: at none, and there is no file. Raises
    ``Unavailable``.
    """
    file = state_dir / FOLDER / session
    if not _is_name(session):
        return
    try:
        if at is None:
            file.unlink(missing_ok=True)
            return
        file.parent.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise Unavailable(f"can't write {file}: {error.strerror}") from error
    write_atomic(file, f"{at}\n", durable=False)


def remove_old(state_dir: Path) -> None:
    """The files of sessions that ended without a word."""
    with suppress(OSError):
        for file in (state_dir / FOLDER).iterdir():
            if time.time() - file.stat().st_mtime > KEPT_S:
                file.unlink(missing_ok=True)


def _is_name(session: str) -> bool:
    """Whether the id can be the name of a file, and of no other one."""
    return 0 < len(session) <= 100 and all(c.isascii() and (c.isalnum() or c in "-_") for c in session)

"""Marks for the hooks of a host without a stream of orders: the sessions for which a late lesson waits.

One empty file for each such session in ``<state folder>/lessons``. ``hook.sh`` asks the daemon at a tool
call only where there is one, so a session without lessons costs no request. It blocks: call it in a thread.
"""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from ...core.errors import Unavailable
from ...files.atomic import write_atomic

if TYPE_CHECKING:
    from pathlib import Path

FOLDER: Final = "lessons"
KEPT_S: Final = 7 * 86_400


def mark(state_dir: Path, session: str, *, waits: bool) -> None:
    """Whether a lesson waits for this session. Raises ``Unavailable``."""
    file = state_dir / FOLDER / session
    if not _is_name(session):
        return
    try:
        if not waits:
            file.unlink(missing_ok=True)
            return
        file.parent.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise Unavailable(f"can't write {file}: {error.strerror}") from error
    write_atomic(file, "", durable=False)


def remove_old(state_dir: Path) -> None:
    """The files of sessions that ended without a word."""
    with suppress(OSError):
        for file in (state_dir / FOLDER).iterdir():
            if time.time() - file.stat().st_mtime > KEPT_S:
                file.unlink(missing_ok=True)


def _is_name(session: str) -> bool:
    """Whether the id can be the name of a file, and of no other one."""
    return 0 < len(session) <= 100 and all(c.isascii() and (c.isalnum() or c in "-_") for c in session)

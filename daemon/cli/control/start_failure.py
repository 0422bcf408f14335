"""Why the daemon did not start: written down by `serve` and `start`, told by `doctor`, `status`, the next
hook of Claude Code and the plugin of opencode, until a daemon serves again (``app`` removes it).
"""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from ... import __version__
from ...core.errors import ReflectdError, Unavailable
from ...files.safe import read_text, write_atomic

if TYPE_CHECKING:
    from pathlib import Path

    from ...paths import Paths

CHARS: Final = 400
LIMIT: Final = 10_000


def keep(where: Paths, error: Exception) -> None:
    """Write down why a start failed, and how to go back. Never raises."""
    why = str(error) if isinstance(error, ReflectdError) else f"{type(error).__name__}: {error}"
    said = f"reflectd {__version__} does not start: {' '.join(why.split())[:CHARS].rstrip('.?')}."
    before = _line(where.served)
    if before and before != __version__:
        mend = f"Mend it or install reflectd {before} again, which ran before (docs/upgrade.md)"
    else:
        mend = "Mend it"
    with suppress(Unavailable):
        text = json.dumps(f"{said} {mend}, then `reflectd start`.")
        write_atomic(where.start_failed, f"{text}\n", durable=False)


def read(where: Paths) -> str:
    """The sentence for the person; "" when the last start worked."""
    try:
        found = json.loads(_line(where.start_failed) or '""')
    except ValueError:
        return ""
    return found if isinstance(found, str) else ""


def _line(path: Path) -> str:
    with suppress(OSError, ValueError):
        return (read_text(path, LIMIT, follow=False) or "").strip()
    return ""

"""What a restart of the running daemon would change: its program, and the settings that it read at its start.

Compares what the daemon says of itself (``GET /v1/status``) with this program and with the person's file.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from ... import __version__, config

if TYPE_CHECKING:
    from collections.abc import Mapping

NAMED = 5


def outdated(status: Mapping[str, Any]) -> list[str]:
    """One sentence for each thing that the daemon has from before; none when a restart changes nothing. A
    daemon of an older version may not tell all of it.
    """
    return [*_program(status), *_settings(status)]


def _program(status: Mapping[str, Any]) -> list[str]:
    upgrade = status.get("upgrade") or {}
    if upgrade.get("problem"):
        return [f"its program was replaced and it goes on as it was: {upgrade['problem']}"]
    if upgrade.get("waiting"):
        return ["its program was replaced; it leaves for the new one at the next quiet moment"]
    if status["version"] == __version__:
        return []
    theirs, ours = _parts(str(status["version"])), _parts(__version__)
    word = "older than" if theirs < ours else "newer than" if theirs > ours else "another version than"
    return [f"it is {status['version']}, {word} this program, {__version__}"]


def _settings(status: Mapping[str, Any]) -> list[str]:
    told = status.get("settings")
    if not told:
        return []
    before, now = told["digests"], config.digests(Path(told["file"]))
    changed = sorted(key for key in before.keys() | now.keys() if before.get(key) != now.get(key))
    if not changed:
        return []
    names = ", ".join(changed[:NAMED]) + (" …" if len(changed) > NAMED else "")
    return [f"it runs on older settings: {told['file']} changed since ({names})"]


def _parts(version: str) -> list[int]:
    return [int(part) for part in version.split(".") if part.isdecimal()]

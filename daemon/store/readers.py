"""Who reads a store that several people share, and what that reader confirmed.

A random key in the state folder makes a mark for each state that was set here. Only a mark that fits counts,
so nobody who can write to the shared store can confirm anything for another reader, nor change a text after
it was confirmed: then it is quarantined again.
"""

from __future__ import annotations

import hmac
import secrets
from contextlib import suppress
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from ..core.errors import UserError, words

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


class Reader:
    """``name`` tells readers apart, and nothing about the person."""

    def __init__(self, path: Path) -> None:
        """``path``: the file of the key; it is made (0600) when there is none. Raises ``UserError``."""
        try:
            with suppress(FileExistsError):
                path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
                path.touch(0o600, exist_ok=False)
                path.write_text(secrets.token_hex(32), "ascii")
        except OSError as error:
            raise UserError(f"{path} can't be used as the key of this reader: {words(error)}") from None
        self._key = _read(path)
        self.name = _sign(self._key, [b"reader"])[:16]
        with suppress(OSError):
            _used(path).touch(0o600, exist_ok=False)
            _used(path).write_text(self.name, "ascii")

    def mark(self, state: str, values: Sequence[Any]) -> str:
        """The mark of an episode with these values in this state."""
        return _sign(self._key, [repr(part).encode() for part in (state, *values)])

    def knows(self, mark: str, state: str, values: Sequence[Any]) -> bool:
        """Whether this reader made the mark."""
        return hmac.compare_digest(mark, self.mark(state, values))


def lost(path: Path) -> tuple[str, str] | None:
    """What is wrong with the key of this file, and what to do. Changes nothing. A key that was never made is
    no fault; one that was used and is gone, or is another one now, is.
    """
    used = _used(path)
    try:
        name = used.read_text("ascii").strip()
    except (OSError, ValueError):
        name = ""
    if not path.exists():
        again = "put it back from a backup, before a new one is made"
        return (f"{path} was used and is gone", again) if name else None
    try:
        now = _sign(_read(path), [b"reader"])[:16]
    except UserError as error:
        return str(error), "put the old one back, or move it away for a new one"
    if not name or now == name:
        return None
    return (
        f"{path} is another key than was used",
        f"put the old one back, or remove {used} to keep the new one",
    )


def _used(path: Path) -> Path:
    """The file with the name of the reader who used the key first."""
    return path.with_name(f"{path.name}.used")


def _read(path: Path) -> bytes:
    try:
        key = bytes.fromhex(path.read_text("ascii").strip())
    except (OSError, ValueError) as error:
        raise UserError(f"{path} can't be used as the key of this reader: {words(error)}") from None
    if len(key) < 16:
        raise UserError(f"{path} is no key of a reader; move it away, and lessons of others are new to you")
    return key


def _sign(key: bytes, parts: list[bytes]) -> str:
    return hmac.new(key, b"\0".join(parts), sha256).hexdigest()

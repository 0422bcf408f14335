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
            key = bytes.fromhex(path.read_text("ascii").strip())
        except (OSError, ValueError) as error:
            raise UserError(f"{path} can't be used as the key of this reader: {words(error)}") from None
        if len(key) < 16:
            raise UserError(
                f"{path} is no key of a reader; move it away, and lessons of others are new to you"
            )
        self._key = key
        self.name = self._sign([b"reader"])[:16]

    def mark(self, state: str, values: Sequence[Any]) -> str:
        """The mark of an episode with these values in this state."""
        return self._sign([repr(part).encode() for part in (state, *values)])

    def knows(self, mark: str, state: str, values: Sequence[Any]) -> bool:
        """Whether this reader made the mark."""
        return hmac.compare_digest(mark, self.mark(state, values))

    def _sign(self, parts: list[bytes]) -> str:
        return hmac.new(self._key, b"\0".join(parts), sha256).hexdigest()

"""What the library says and asks with: lines on stderr, and the prompts as the daemon has them."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final

from ..core.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .asking import Asking

LINES: Final = 50  # of what was left out, in one call


def template(name: str, asking: Asking) -> str:
    """The text of a prompt: the person's own, else the one that comes with reflectd. Raises ``UserError``."""
    from ..clock import SystemClock
    from ..files.prompts import SLOTS, SUFFIX, Prompts
    from ..files.trust import FILE, Trust
    from ..paths import config_file, resolve, shipped

    wanted = name.removesuffix(SUFFIX)
    if wanted not in SLOTS:
        raise UserError(f"there is no prompt {ascii(name)[:80]}; there are {', '.join(SLOTS)}")
    trust = Trust(resolve(asking.env, connects=False).state_dir / FILE, SystemClock())
    found = Prompts(shipped("prompts"), config_file(asking.env).parent / "prompts", trust).templates("")
    tell(found.problems)
    return found.texts[wanted]


def nonce() -> str:
    """A marker that fences the data of one call."""
    import secrets

    return secrets.token_hex(8)


def tell(lines: Iterable[str]) -> None:
    """Lines on stderr, without control characters."""
    told = list(lines)
    shown = told[:LINES] + ([f"and {len(told) - LINES} more"] if len(told) > LINES else [])
    for line in shown:
        sys.stderr.write(f"reflectd: {''.join(c if c.isprintable() else '?' for c in line)}\n")

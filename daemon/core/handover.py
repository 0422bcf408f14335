"""A command that stopped for want of something only a person has, and that the final text hands over.

A key that is in no file here, a code sent to a phone, a certificate of the account's owner: the work ended
there, and the person's turn begins. The same failure without a word about it is no handover.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from daemon.core.evidence import Row
from daemon.core.look import short

if TYPE_CHECKING:
    from collections.abc import Sequence

    from daemon.core.moves import Move

_LAST: Final = 6  # commands at the end of the work
_WANTS_PERSON: Final = re.compile(
    r"\b(?P<name>[A-Z][A-Z0-9]*_(?:[A-Z0-9]+_)*(?:KEY|TOKEN|SECRET|PASSWORD|PASSPHRASE|CREDENTIALS|PAT|DSN))\b"
    r"|two-factor|\b2FA\b|\bOTP\b|one-time (?:code|password)|verification code|digit code|authenticator app"
    r"|certificate[^\n]{0,60}\b(?:expired|revoked)|not logged in|log ?in required|please (?:log|sign) in"
    r"|authentication required|AuthenticationError|could not read (?:Username|Password)|401 Unauthorized"
    r"|403 Forbidden|AccessDenied|not authorized to perform|insufficient (?:scope|permissions?|privileges)"
    r"|Permission denied \(publickey|requires? (?:approval|an? (?:owner"
    r"|admin))|Input stream is not a terminal"
    r"|Could not resolve host|No route to host|VPN",
)
_MISSING: Final = re.compile(
    r"KeyError|not set|unset|missing|required|undefined|no value|must be set|not found|not provided|empty",
    re.IGNORECASE,
)
_CORE: Final = re.compile(r"[\w./:-]{4,80}")


def handed_over(found: Sequence[Move], final: str, asked: str) -> list[Row]:
    """At most one row of kind ``denied``, without id."""
    scripts = [m for m in found if m.script][-_LAST:]
    for i, move in enumerate(scripts):
        if move.ok or move.looks or not (m := _WANTS_PERSON.search(move.output[-4000:])):
            continue
        if m["name"] and not _MISSING.search(move.output[-4000:]):
            continue
        core = set(_CORE.findall(move.script[:300]))
        if any(
            later.ok and not later.looks and core <= set(_CORE.findall(later.script))
            for later in scripts[i + 1 :]
        ):
            continue
        last = move.script.rsplit("&&", 1)[-1].strip()
        words = [w for w in last.split() if not w.startswith("-")][:4]
        told = " ".join(words) in " ".join(final.split()) or bool(m["name"] and m["name"] in final)
        if told and (m["name"] or core & set(_CORE.findall(asked[:6000])) or "`" in final):
            wanted = f"`{short(move.script)}` wants what only a person has ({short(m[0])})"
            text = f"{wanted}, and the text hands it over"
            return [Row("", "denied", text)]
    return []

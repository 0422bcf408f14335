"""The permission to see the dashboard, and the headers of every answer (design/dashboard.md).

Owns the tokens, which work once and for a minute, and the cookies that they are exchanged for; both live in
memory and end with the site. A refused request gets a status and one line of plain text that tells nothing of
the pages.
"""

from __future__ import annotations

import hashlib
import secrets
from typing import TYPE_CHECKING, Final

from aiohttp import web

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..core.ports import Clock

HOST: Final = "127.0.0.1"
TOKEN_S: Final = 60
BROWSERS: Final = 16
"""The number of cookies that count at once; with one more the oldest ends."""
TOKENS: Final = 16
OPEN: Final = frozenset({"/", "/enter", *(f"/static/{f}" for f in ("enter.js", "style.css", "mark.svg"))})
"""Paths that are answered without a cookie: the page that brings one, and nothing else."""
_NEAR: Final = frozenset({"same-origin", "none"})
_METHODS: Final = frozenset({"GET", "POST"})
HEADERS: Final[Mapping[str, str]] = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
    "Server": "reflectd",
}


class Entry:
    """The door of one site, which listens on one port."""

    def __init__(self, port: int, clock: Clock) -> None:
        self._host = f"{HOST}:{port}"
        self.origin = f"http://{self._host}"
        self.cookie = f"reflectd_{port}"
        self._clock = clock
        self._tokens: dict[bytes, float] = {}  # and since when
        self._cookies: dict[bytes, None] = {}

    def token(self) -> str:
        """A new token. It works once."""
        token = secrets.token_urlsafe(32)
        self._tokens[_digest(token)] = self._clock.monotonic()
        while len(self._tokens) > TOKENS:
            del self._tokens[next(iter(self._tokens))]
        return token

    def enter(self, token: str) -> str:
        """The cookie for this token, which is used up; "" when it is wrong, was used, or is too old."""
        made = self._tokens.pop(_digest(token), None)
        if made is None or self._clock.monotonic() - made > TOKEN_S:
            return ""
        cookie = secrets.token_urlsafe(32)
        self._cookies[_digest(cookie)] = None
        while len(self._cookies) > BROWSERS:
            del self._cookies[next(iter(self._cookies))]
        return cookie

    def knows(self, request: web.Request) -> bool:
        """Says whether the request has a cookie of this site."""
        return _digest(request.cookies.get(self.cookie, "")) in self._cookies

    def refusal(self, request: web.Request) -> web.Response | None:
        """The answer to a refused request; None when it may be answered."""
        if request.headers.get("Host", "") != self._host:
            return refused(421, "this is the dashboard of reflectd under one address only")
        if request.method not in _METHODS:
            return refused(405, "only GET and POST are answered", Allow="GET, POST")
        origin = request.headers.get("Origin")
        if origin != self.origin and (origin is not None or request.method == "POST"):
            return refused(403, "requests from other pages are refused")
        if request.headers.get("Sec-Fetch-Site", "none") not in _NEAR:
            return refused(403, "requests from other pages are refused")
        if request.path not in OPEN and not self.knows(request):
            return refused(403, "open the dashboard with: reflectd dashboard")
        return None


def refused(status: int, why: str, **headers: str) -> web.Response:
    """A refusal, in one line."""
    return web.Response(status=status, text=f"{why}\n", headers=headers)


async def with_headers(_: web.Request, response: web.StreamResponse) -> None:
    """Adds the security headers to every answer."""
    response.headers.update(HEADERS)


def _digest(secret: str) -> bytes:
    """The digest that is kept of a secret: comparing digests tells nothing by its time."""
    return hashlib.sha256(secret.encode("utf-8", "replace")).digest()

"""A small client for the daemon's socket. It uses the standard library only, because the CLI must start fast.

Nothing is sent to a socket that another user owns, could have put there, or listens on. Raises
``Unavailable`` when no daemon answers, ``UserError`` for such a socket, and ``Refused`` with the daemon's own
words.
"""

from __future__ import annotations

import json
import os
import socket
from http.client import HTTPConnection, HTTPException
from typing import TYPE_CHECKING, Any, TypeAlias

from .core.errors import Refused, Unavailable, UserError, words
from .owners import check_private, peer_uid

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

Stream: TypeAlias = "Generator[dict[str, Any] | None, None, None]"
TIMEOUT_S = 10.0
STREAM_S = 60.0  # a heartbeat comes every 15 s
LINE_BYTES = 16 * 1024 * 1024
MAX_ROUTE = 8_000  # characters; the daemon's server refuses a longer line, and may hang up before it is sent


class _Connection(HTTPConnection):
    def __init__(self, path: Path, timeout: float) -> None:
        super().__init__("reflectd", timeout=timeout)
        self._path = path

    def connect(self) -> None:
        self.sock = connected = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connected.settimeout(self.timeout)
        for place in (self._path.parent, self._path):
            check_private(place, place.stat())
        connected.connect(str(self._path))
        uid = peer_uid(connected)  # the folder may have changed since it was looked at
        if uid not in {os.geteuid(), None}:
            raise UserError(f"a program of another user (uid {uid}) answers on {self._path}; not used")


def request(
    path: Path, method: str, route: str, body: object = None, timeout_s: float = TIMEOUT_S
) -> dict[str, Any]:
    """Send one request to the daemon at the socket ``path``. Returns the JSON object that it answers."""
    if len(route) > MAX_ROUTE:
        raise Refused(f"this is too long to ask: {len(route):,} characters, at most {MAX_ROUTE:,}", 414)
    connection = _Connection(path, timeout_s)
    try:
        data = None if body is None else json.dumps(body)
        connection.request(method, route, data, {"content-type": "application/json"} if data else {})
        response = connection.getresponse()
        status, text = response.status, response.read()
    except (OSError, HTTPException) as e:
        raise _absent(path, e) from e
    finally:
        connection.close()
    return _object(path, status, text)


def _absent(path: Path, e: OSError | HTTPException) -> Unavailable:
    """Without the number of the system's error, and for a socket that is gone or stale without its words."""
    usual = isinstance(e, FileNotFoundError | ConnectionRefusedError)
    return Unavailable(
        f"no daemon answers on {path}{'' if usual else f': {words(e)}'}. Start one with `reflectd start`"
    )


def stream(path: Path, route: str, timeout_s: float = STREAM_S) -> Stream:
    """Yield the objects of an endless NDJSON answer as they come, and None for each heartbeat.

    Ends when the daemon ends the answer. Raises ``Unavailable`` when no daemon answers, when the daemon
    serves too many streams already, and when nothing comes for ``timeout_s``; ``UserError`` when the daemon
    refuses.
    """
    connection = _Connection(path, timeout_s)
    try:
        connection.request("GET", route)
        response = connection.getresponse()
        if response.status != 200:
            _object(path, response.status, response.read())
        while line := response.readline(LINE_BYTES):
            yield _object(path, 200, line) if line.strip() else None
    except (OSError, HTTPException) as e:
        raise _absent(path, e) from e
    finally:
        connection.close()


def _object(path: Path, status: int, text: bytes) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise Unavailable(f"another program than reflectd answers on {path}")
    error = found.get("error", text.decode("utf-8", "replace"))
    if status == 503:
        raise Unavailable(f"the daemon cannot do this now: {error}")
    if status != 200:
        raise Refused(str(error), status)
    return found

"""A small client for the socket, standard library only: the CLI must start fast.

``Unavailable`` when no daemon answers, ``UserError`` with the daemon's own words when it refuses.
"""

from __future__ import annotations

import json
import socket
from http.client import HTTPConnection, HTTPException
from typing import TYPE_CHECKING, Any, TypeAlias

from daemon.core.errors import Unavailable, UserError

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

Stream: TypeAlias = "Generator[dict[str, Any] | None, None, None]"
TIMEOUT_S = 10.0
STREAM_S = 60.0  # a heartbeat comes every 15 s
LINE_BYTES = 16 * 1024 * 1024


class _Connection(HTTPConnection):
    def __init__(self, path: Path, timeout: float) -> None:
        super().__init__("reflectd", timeout=timeout)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self._path))


def request(
    path: Path, method: str, route: str, body: object = None, timeout_s: float = TIMEOUT_S
) -> dict[str, Any]:
    """One request to the daemon at the socket ``path``; the answer's JSON object."""
    connection = _Connection(path, timeout_s)
    try:
        data = None if body is None else json.dumps(body)
        connection.request(method, route, data, {"content-type": "application/json"} if data else {})
        response = connection.getresponse()
        status, text = response.status, response.read()
    except (OSError, HTTPException) as e:
        raise Unavailable(f"no daemon answers on {path} ({e}). Start one with `reflectd start`") from e
    finally:
        connection.close()
    return _object(path, status, text)


def stream(path: Path, route: str, timeout_s: float = STREAM_S) -> Stream:
    """The objects of an endless NDJSON answer as they come; None for each heartbeat.

    Ends when the daemon ends it. ``Unavailable`` when no daemon answers, when it has no room, and when
    nothing comes for ``timeout_s``; ``UserError`` when it refuses.
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
        raise Unavailable(f"no daemon answers on {path} ({e}). Start one with `reflectd start`") from e
    finally:
        connection.close()


def _object(path: Path, status: int, text: bytes) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise Unavailable(f"what answers on {path} is not reflectd")
    error = found.get("error", text.decode("utf-8", "replace"))
    if status == 503:
        raise Unavailable(f"the daemon cannot do this now: {error}")
    if status != 200:
        raise UserError(f"the daemon refused ({status}): {error}")
    return found

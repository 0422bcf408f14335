"""A small client for the socket, standard library only: the CLI must start fast.

``Unavailable`` when no daemon answers, ``UserError`` with the daemon's own words when it refuses.
"""

from __future__ import annotations

import json
import socket
from http.client import HTTPConnection, HTTPException
from typing import TYPE_CHECKING, Any

from daemon.core.errors import Unavailable, UserError

if TYPE_CHECKING:
    from pathlib import Path

TIMEOUT_S = 10.0


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
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise Unavailable(f"what answers on {path} is not reflectd")
    if status != 200:
        raise UserError(
            f"the daemon refused ({status}): {found.get('error', text.decode('utf-8', 'replace'))}"
        )
    return found

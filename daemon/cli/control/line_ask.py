"""Asks the daemon for one line, as fast as Python allows: one raw request, a limit of some milliseconds.

It imports hardly anything, reads no settings and never raises for what the daemon or the disk does: the
answer then says what was wrong. As every client it sends nothing to a socket that is not this user's alone.
"""

from __future__ import annotations

import os
import socket
from time import monotonic

from ...owners import objection, peer_uid

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

WAIT_MS = 20
MOST_BYTES = 64 * 1024
_PLAIN = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~/")


def find(env: Mapping[str, str]) -> str | None:
    """The socket's path, as ``paths.find_socket`` finds it. None where only the settings or all of
    ``paths`` can tell.
    """
    home = env.get("HOME", "")
    config = _folder(env, "XDG_CONFIG_HOME", f"{home}/.config")
    state = env.get("REFLECTD_STATE_DIR", "")
    if not home.startswith("/") or state[:1] not in {"", "/"}:
        return None
    if b"socket" in _read(f"{config}/reflectd/config.toml"):
        return None
    chosen = env.get("REFLECTD_SOCKET", "")
    if chosen:
        return chosen if chosen.startswith("/") else None
    state = state or _folder(env, "XDG_STATE_HOME", f"{home}/.local/state") + "/reflectd"
    written = os.fsdecode(_read(f"{state}/socket").strip())
    if written.startswith("/") and "\0" not in written:
        return written
    return _folder(env, "XDG_RUNTIME_DIR", f"{state}/run", "/reflectd") + "/reflectd.sock"


def _folder(env: Mapping[str, str], name: str, default: str, below: str = "") -> str:
    value = env.get(name, "")
    return value + below if value.startswith("/") else default


def _read(path: str) -> bytes:
    try:
        with open(path, "rb") as f:  # noqa: PTH123 - pathlib takes longer than the whole request
            return f.read(MOST_BYTES)
    except OSError:
        return b""


def ask(path: str, query: Mapping[str, str], wait_ms: int = WAIT_MS) -> dict[str, Any]:
    """What ``GET /v1/line`` answers; else ``{"state": "no daemon" or "no answer", "error": why}``."""
    for place in (os.path.dirname(path), path):  # noqa: PTH120 - as above
        try:
            said = objection(place, os.stat(place))  # noqa: PTH116 - as above
        except OSError as e:
            return _without("no daemon", f"no daemon answers on {path}: {e.strerror}")
        if said:
            return _without("no daemon", said)
    end = monotonic() + wait_ms / 1000
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as s:
        s.settimeout(wait_ms / 1000)
        try:
            s.connect(path)
        except (TimeoutError, BlockingIOError):  # so many wait already that no more fit
            return _without("no answer", f"the daemon did not answer within {wait_ms} ms")
        except OSError as e:
            return _without("no daemon", f"no daemon answers on {path}: {e.strerror}")
        uid = peer_uid(s)  # the folder may have changed since it was looked at
        if uid not in {os.geteuid(), None}:
            return _without("no daemon", f"a program of another user (uid {uid}) answers on {path}; not used")
        try:
            s.sendall(_request(query))
            answer = _receive(s, end)
        except OSError:
            return _without("no answer", f"the daemon did not answer within {wait_ms} ms")
    return _object(answer)


def _without(state: str, error: str) -> dict[str, Any]:
    return {"state": state, "error": error}


def _request(query: Mapping[str, str]) -> bytes:
    words = "&".join(f"{name}={_quoted(value)}" for name, value in query.items())
    return f"GET /v1/line?{words} HTTP/1.1\r\nHost: reflectd\r\nConnection: close\r\n\r\n".encode()


def _quoted(text: str) -> str:
    try:
        data = os.fsencode(text)
    except UnicodeEncodeError:  # half a character, as JSON may have
        data = text.encode("utf-8", "replace")
    return "".join(chr(b) if b in _PLAIN else f"%{b:02X}" for b in data)


def _receive(s: socket.socket, end: float) -> bytes:
    """All that comes until the other end closes, or is more than an answer can be. Raises ``OSError``."""
    found = b""
    while len(found) < MOST_BYTES:
        left = end - monotonic()
        if left <= 0:
            raise TimeoutError
        s.settimeout(left)
        more = s.recv(MOST_BYTES)
        if not more:
            break
        found += more
    return found


def _object(answer: bytes) -> dict[str, Any]:
    import json

    head, _, body = answer.partition(b"\r\n\r\n")
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        return _without("no answer", "another program than reflectd answers")
    if b" 200 " not in head.partition(b"\r\n")[0]:
        return _without("no answer", str(found.get("error", "the daemon refused")))
    return found

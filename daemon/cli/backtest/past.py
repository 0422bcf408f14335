"""opencode's past sessions for a back-test: an opencode that is open is asked for them, through the daemon.

opencode keeps its sessions in a database of its own, so only opencode reads them. Which there are comes page
by page; the messages of one come when its turn to be judged comes, so that one is held at a time.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlencode

from ...client import request
from ...core.errors import BadReply, ReflectdError, Unavailable
from ...paths import find_socket
from ..reflect.reading import OPEN_S, PAGE_S, listed
from .askers import ROUTE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ...core.transcript import Stop
    from ...paths import Paths

OLD: Final = (
    "the plugin in that opencode is older than this reflectd: close opencode, open it, and run this again"
)


@dataclass(frozen=True, slots=True)
class Past:
    """A session that an opencode has. ``directory``: where that opencode is open. ``changed``: ns."""

    id: str
    directory: str
    socket: Path
    changed: int
    size: int = 0

    @property
    def name(self) -> str:
        """What it is called where files have their path."""
        return f"opencode:{self.id}"

    @property
    def stem(self) -> str:
        """What it is called while it is read."""
        return self.id


def past_of(where: Paths, since_ms: int = 0) -> list[Past]:
    """The sessions of all folders in which an opencode is open, oldest first; those that nobody used since
    then are left out. None without a daemon. Raises ``Unavailable`` when an opencode does not answer.
    """
    socket = find_socket(where)
    try:
        there = request(socket, "GET", "/v1/status", timeout_s=OPEN_S)["instances"]
    except (ReflectdError, KeyError):
        return []
    found: dict[str, Past] = {}
    for folder in dict.fromkeys(i["directory"] for i in there if i["host"] == "opencode"):
        for one in _listed(socket, folder, since_ms):
            found[one.id] = one
    return sorted(found.values(), key=lambda p: (p.changed, p.id))


def _listed(socket: Path, folder: str, since_ms: int) -> Iterator[Past]:
    """Page by page. A mark begins with the time of the last use, in 15 digits."""
    after = f"{since_ms:015d}:" if since_ms else ""
    for sessions, _ in listed(socket, f"{ROUTE}sessions", folder, after):
        for each in sessions:
            session = each.get("session") if isinstance(each, dict) else None
            if isinstance(session, dict) and isinstance(id_ := session.get("id"), str) and id_:
                updated = session.get("updated")
                changed = int(updated) if isinstance(updated, int | float) else 0
                yield Past(id_, folder, socket, changed * 1_000_000)


def stops_of_past(past: Past) -> Iterator[Stop]:
    """Its stops, oldest first. Raises ``Unavailable`` and ``BadReply``."""
    from ...hosts.opencode.past import stops_of_read

    query = urlencode({"directory": past.directory, "session": past.id})
    read = request(past.socket, "GET", f"{ROUTE}session?{query}", timeout_s=PAGE_S).get("read")
    if not isinstance(read, dict):
        raise BadReply("opencode answered with no session")
    if read.get("missing") is True:
        return
    if read.get("whole") is not True:
        raise Unavailable(OLD)
    yield from stops_of_read(read, past.id)

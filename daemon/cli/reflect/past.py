"""opencode's past sessions of a project, page by page, through the daemon and an opencode that is open there.

opencode keeps its sessions in a database of its own, so only opencode reads them. Of each session come its
human messages, each with the agent's answer before it. Where the last scan stopped is kept with the cursors
of files. Raises ``Unavailable`` when no daemon runs or no opencode is open in the project.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import urlencode

from ...core.errors import BadReply, ReflectdError, Unavailable

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from ...core.transcript import Transcript
    from ...paths import Paths
    from .scan import Scan

PAGE_S: Final = 90.0  # a page of long sessions takes opencode seconds
MOST_PAGES: Final = 100_000
OPEN_S: Final = 5.0
CURSOR: Final = "opencode"  # among the cursors of files, whose names are paths


class Page(NamedTuple):
    """Sessions, those that were used longest ago first. ``after``: where the next page begins, also for a
    scan on another day.
    """

    sessions: tuple[Transcript, ...]
    after: str


def read_past(scan: Scan, where: Paths, *, quiet: bool) -> bool:
    """Read what is new in opencode's past sessions of the project, with a line that moves on a terminal
    unless ``quiet``. Whether an opencode could be asked; one that fails half-way is told of, and asked again
    for the rest by the next scan.
    """
    from ..progress import Progress
    from .scan import COUNT_S

    directory = open_in(where, scan.book.project)
    if directory is None:
        return False
    known = _mark(scan.cursors.get(CURSOR))
    begin = max(known, f"{scan.since:015d}:" if scan.since else "")
    progress, counted = Progress(0 if quiet else 1), time.monotonic()
    scan.old = begin != known  # what was passed over now must not be passed over by the next scan
    try:
        for page in pages(where, directory, begin):
            scan.sessions(page.sessions, CURSOR, [page.after])
            progress.show(0, f"opencode: {scan.read} sessions")
            if time.monotonic() - counted >= COUNT_S:
                scan.count()
                counted = time.monotonic()
    except Unavailable as e:
        scan.failed.append(f"opencode's past sessions: {e}")
    finally:
        progress.clear()
    return True


def open_in(where: Paths, project: Path) -> str | None:
    """What an opencode that is open in the project calls its folder; None when there is none, or no
    daemon.
    """
    from ...client import request
    from ...paths import find_socket

    try:
        found = request(find_socket(where), "GET", "/v1/status", timeout_s=OPEN_S)["instances"]
    except (ReflectdError, KeyError):
        return None
    here = os.path.realpath(project)
    folders = (i["directory"] for i in found if i["host"] == "opencode")
    return next((f for f in folders if os.path.realpath(f) == here), None)


def _mark(cursor: object) -> str:
    """Where the last scan stopped; "" when it is not known."""
    found = cursor[0] if isinstance(cursor, list) and len(cursor) == 1 else ""
    return found if isinstance(found, str) else ""


def pages(where: Paths, project: Path | str, after: str = "") -> Iterator[Page]:
    """The pages behind ``after``, "" for all."""
    from ...paths import find_socket

    route = "/v1/features/rules/history"
    for sessions, end in listed(find_socket(where), route, str(project), after):
        yield Page(tuple(t for s in sessions if (t := _session(s)) is not None), end)


def listed(socket: Path, route: str, directory: str, after: str) -> Iterator[tuple[list[Any], str]]:
    """What each page of this route has, as JSON, and its mark. Raises ``ReflectdError``."""
    from ...client import request

    for _ in range(MOST_PAGES):
        query = urlencode({"directory": directory, "after": after})
        page = request(socket, "GET", f"{route}?{query}", timeout_s=PAGE_S).get("page")
        if not isinstance(page, dict) or not isinstance(page.get("sessions"), list):
            raise Unavailable("opencode answered with no list of sessions")
        end = str(page.get("after", ""))
        yield page["sessions"], end
        if page.get("more") is not True or end <= after:
            return
        after = end


def _session(found: Any) -> Transcript | None:  # noqa: ANN401 - JSON
    """One session as a transcript; None for one that can't be read (I36)."""
    from ...hosts.opencode.messages import parse_transcript

    if not isinstance(found, dict):
        return None
    try:
        made = parse_transcript(found, is_ours=lambda _: True)
    except BadReply:
        return None
    return made if made.session else None

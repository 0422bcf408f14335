"""opencode's past sessions of a project, page by page, through the daemon and an opencode that is open there.

opencode keeps its sessions in a database of its own, so only opencode reads them. Of each session come its
human messages, each with the agent's answer before it. Raises ``Unavailable`` when no daemon runs or no
opencode is open in the project.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import urlencode

from ...core.errors import BadReply, Unavailable

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from ...core.transcript import Transcript
    from ...paths import Paths

PAGE_S: Final = 90.0  # a page of long sessions takes opencode seconds
MOST_PAGES: Final = 100_000


class Page(NamedTuple):
    """Sessions, those that were used longest ago first. ``after``: where the next page begins, also for a
    scan on another day.
    """

    sessions: tuple[Transcript, ...]
    after: str


def pages(where: Paths, project: Path, after: str = "") -> Iterator[Page]:
    """The pages behind ``after``, "" for all."""
    from ...client import request
    from ...paths import find_socket

    for _ in range(MOST_PAGES):
        query = urlencode({"directory": str(project), "after": after})
        found = request(find_socket(where), "GET", f"/v1/features/rules/history?{query}", timeout_s=PAGE_S)
        page = found.get("page")
        if not isinstance(page, dict) or not isinstance(page.get("sessions"), list):
            raise Unavailable("opencode answered with no list of sessions")
        end = str(page.get("after", ""))
        yield Page(tuple(t for s in page["sessions"] if (t := _session(s)) is not None), end)
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

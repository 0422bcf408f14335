"""The page History: sessions that were judged, by day and project, each with its rounds and what followed.

It reads the same as ``reflectd history``, a page at a time.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from ..core.errors import BadReply
from ..core.words import OUTCOMES
from ..store.verdicts import ALWAYS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .source import Source

PAGE: Final = 30
GIST: Final = 200
Json = dict[str, Any]


async def read(source: Source, query: Mapping[str, str]) -> Json | None:
    """One page. The query: ``project`` (a folder), ``day`` (``2026-05-31``, local), ``session``, ``before``
    (the place where the page before ended).
    """
    project, day, session = (query.get(name, "") for name in ("project", "day", "session"))
    projects = await source.status.folders()
    like = _like(project, projects)
    if len(like) == 1:
        project = like[0]
    elif project and not project.startswith("/"):
        shown = {"project": project, "day": day, "session": session, "place": project, "like": like}
        return {**shown, "projects": projects, "days": [], "next": None, "first": None}
    since, until = _day(day)
    where = {"session": session, "directory": project, "after": query.get("before", "")}
    found = await source.status.history(**where, since=since, until=until, limit=PAGE)
    if found is None:
        return None
    kept = {name: value for name, value in (("project", project), ("day", day)) if value}
    return {
        "project": project,
        "day": day,
        "session": session,
        "place": found["directory"],
        "like": [],
        "projects": projects,
        "days": _by_day([_session(s) for s in found["sessions"]]),
        "next": {**kept, "before": found["next"]} if found["next"] else None,
        "first": kept if query.get("before") else None,
    }


def _like(typed: str, projects: Sequence[str]) -> list[str]:
    """The folders that somebody means who typed a part of a name: those of that name, else all that have it
    in theirs.
    """
    if not typed or typed.startswith("/"):
        return []
    said = typed.strip().lower()
    names = [(folder, folder.rpartition("/")[2].lower()) for folder in projects]
    return [f for f, name in names if name == said] or [f for f, name in names if said in name]


def _day(day: str) -> tuple[int, int]:
    """From its first moment to that of the next day, in local time; all times for none."""
    if not day:
        return 0, ALWAYS
    try:
        first = datetime.strptime(day, "%Y-%m-%d")  # noqa: DTZ007 - local time is meant
        both = (first.astimezone(), (first + timedelta(days=1)).astimezone())
        begin, end = (int(t.timestamp() * 1000) for t in both)
    except (ValueError, OverflowError, OSError):
        raise BadReply("a day is written as in 2026-05-31") from None
    return max(0, begin), max(0, end)


def _session(s: Json) -> Json:
    rounds = [_round(r) for r in s["rounds"]]
    return {
        "session": s["session"],
        "title": s["title"],
        "host": s["host"],
        "directory": s["directory"],
        "more": s["rounds_total"] - len(rounds),
        "at": rounds[0]["at"] if rounds else 0,
        "rounds": rounds,
    }


def _round(r: Json) -> Json:
    order = r["order"] or {}
    first = next((line.strip() for line in r["feedback"].splitlines() if line.strip()), "")
    reason = "" if r["reason"] == "judged" else r["reason"].replace("guard:", "guard ")
    return {
        "round": r["round"],
        "at": r["timestamp"],
        "state": r["state"],
        "severity": "" if r["severity"] == "NONE" else r["severity"],
        "gist": (first or reason)[:GIST],
        "followed": OUTCOMES.get(order.get("status", ""), ""),
    }


def _by_day(sessions: list[Json]) -> list[Json]:
    """The sessions under the local day of their newest round."""
    days: list[Json] = []
    for s in sessions:
        day = datetime.fromtimestamp(s["at"] / 1000).astimezone().strftime("%A %d %B %Y") if s["at"] else ""
        if not days or days[-1]["day"] != day:
            days.append({"day": day, "sessions": []})
        days[-1]["sessions"].append(s)
    return days

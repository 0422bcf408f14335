"""The data of the pages Now, History, Cost and Health, from the same parts of the daemon as the socket's
answers.
"""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from ..core.errors import BadReply
from ..core.policy import MONTH_EUR
from ..core.ports import Clock
from ..core.words import OUTCOMES
from ..engine.feature import Features
from ..engine.intake import Intake
from ..engine.status import StatusReport
from ..log import Logger
from ..paths import Paths
from ..store.retention import DAY_MS
from ..store.verdicts import ALWAYS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..store.ledger import By

Json = dict[str, Any]


class Source(Struct, frozen=True):
    """The sources of the pages and the targets of their buttons. Handed to each page."""

    status: StatusReport
    features: Features
    intake: Intake
    clock: Clock
    paths: Paths
    log: Logger


# --- Now: what each session does at this moment, and which of them wait for the person ----------------------

LOOKED_AT: Final = 200
RECENT: Final = 10
SECTIONS: Final = (
    ("waits", "Waits for you", "Nothing waits for you."),
    ("stuck", "Seems stuck", ""),
    ("judged", "Being judged", ""),
    ("works", "At work", "No agent is at work."),
    (
        "recent",
        "Lately",
        "No session yet. Start your agent; see `reflectd setup --help` when nothing shows up.",
    ),
)


async def now(source: Source, _: Mapping[str, str]) -> Json:
    """The sections with their sessions. A session is in one only, the one that wants attention most."""
    status = source.status.status()
    stuck: Mapping[str, str] = status["features"].get("stuck", {}).get("stuck", {})
    now_ms = source.clock.now_ms()
    rows: dict[str, list[Json]] = {name: [] for name, _, _ in SECTIONS}
    for s in source.status.sessions(LOOKED_AT):
        place = _place(s, stuck, now_ms)
        if place != "recent" or len(rows[place]) < RECENT:
            rows[place].append(_row(source, s, place, stuck, status["judges"]))
    for place in ("waits", "stuck", "judged", "works"):
        rows[place].sort(key=lambda row: row["since"])
    sections = [
        {"name": name, "title": title, "none": none, "rows": rows[name]}
        for name, title, none in SECTIONS
        if rows[name] or none
    ]
    return {"sections": sections, "degraded": status["degraded"], "hosts": len(status["instances"])}


def _place(s: Json, stuck: Mapping[str, str], now_ms: int) -> str:
    fresh = now_ms - s["active_at"] < DAY_MS
    if s["off"]:
        return "recent"
    if fresh and (s["asks"] or (s["phase"] == "awaiting_user" and not s["busy"])):
        return "waits"
    if s["session"] in stuck:
        return "stuck"
    if s["phase"] == "judging":
        return "judged"
    return "works" if s["busy"] else "recent"


def _row(source: Source, s: Json, place: str, stuck: Mapping[str, str], judges: Mapping[str, Json]) -> Json:
    last = next(iter(source.status.verdicts(s["session"], 1)), None)
    said = ""
    if place == "stuck":
        said = stuck[s["session"]]
    elif s["asks"]:
        said = "asks for your permission or has a question"
    elif s["waits_for"]:
        said = f"waits for {', '.join(s['waits_for'][:3])} in the background"
    elif place == "waits" and last is not None:
        said = last["feedback"]
    state = {"waits": "awaiting_user", "stuck": "stuck", "works": "busy"}.get(place, s["phase"])
    by = (last or {}).get("judge") or {}
    asked = judges.get(s["host"], {}).get("asked", ())
    return {
        **{name: s[name] for name in ("session", "title", "host", "directory")},
        "state": "off" if s["off"] else state,
        "since": s["active_at"],
        "rounds": s["attempts"],
        "said": said,
        "judge": by.get("provider") or (asked[0] if asked else ""),
        "model": by.get("model") or "",
        "judged": last is not None,
        "agent": s["model"],
        "context": s["context_tokens"],
    }


# --- History: sessions that were judged, by day and project, a page at a time -------------------------------

PAGE: Final = 30
GIST: Final = 200


async def history(source: Source, query: Mapping[str, str]) -> Json | None:
    """One page. The query: ``project`` (a folder), ``day`` (``2026-05-31``, local), ``session``, ``before``
    (the place where the page before ended).
    """
    project, day, session = (query.get(name, "") for name in ("project", "day", "session"))
    if project and not project.startswith("/"):
        raise BadReply("a project is named by its whole folder")
    since, until = _day(day)
    where = {"session": session, "directory": project, "after": query.get("before", "")}
    judged = await source.status.history(**where, since=since, until=until, limit=PAGE)
    if judged is None:
        return None
    kept = {name: value for name, value in (("project", project), ("day", day)) if value}
    return {
        "project": project,
        "day": day,
        "session": session,
        "projects": await source.status.folders(),
        "place": judged["directory"],
        "days": _by_day([_session(s) for s in judged["sessions"]]),
        "next": {**kept, "before": judged["next"]} if judged["next"] else None,
        "first": kept if query.get("before") else None,
    }


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
        **{name: s[name] for name in ("session", "title", "host", "directory")},
        "more": s["rounds_total"] - len(rounds),
        "at": rounds[0]["at"] if rounds else 0,
        "rounds": rounds,
    }


def _round(r: Json) -> Json:
    first = next((line.strip() for line in r["feedback"].splitlines() if line.strip()), "")
    reason = "" if r["reason"] == "judged" else r["reason"].replace("guard:", "guard ")
    return {
        "round": r["round"],
        "at": r["timestamp"],
        "state": r["state"],
        "severity": "" if r["severity"] == "NONE" else r["severity"],
        "gist": (first or reason)[:GIST],
        "followed": OUTCOMES.get((r["order"] or {}).get("status", ""), ""),
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


# --- Cost: what judging cost, beside the agent's own work ---------------------------------------------------

DAYS: Final = 30
GROUPS: Final = 200
PACE_DAYS: Final = 7
TABLES: Final[tuple[tuple[By, str], ...]] = (
    ("purpose", "By purpose"),
    ("model", "By model"),
    ("project", "By project"),
    ("account", "By account"),
)


async def cost(source: Source, _: Mapping[str, str]) -> Json:
    """Sums of today and of 30 days, and tables. ``bar``: a day's part of the dearest day. Amounts in several
    currencies are never added up, and an unknown price is unknown, not 0.
    """
    status = source.status.status()
    moment = datetime.fromtimestamp(source.clock.now_ms() / 1000).astimezone()
    today = moment.replace(hour=0, minute=0, second=0, microsecond=0, tzinfo=None)
    days = [(today - timedelta(days=n)).date().isoformat() for n in reversed(range(DAYS))]
    since = int((today - timedelta(days=DAYS - 1)).astimezone().timestamp() * 1000)
    of_today, by_day, *tables = await asyncio.gather(
        source.status.ledger("", int(today.astimezone().timestamp() * 1000), 1, None),
        source.status.ledger("", since, GROUPS, "day"),
        *(source.status.ledger("", since, GROUPS, by, work=False) for by, _ in TABLES),
    )
    amounts = {g["name"]: g for g in by_day["groups"]}
    pace = sum(amounts[day]["cost"] or 0 for day in days[-PACE_DAYS:] if day in amounts) / PACE_DAYS
    unit = "cost" if by_day["sums"]["cost"] else "unpriced_tokens"
    most = max((g[unit] or 0 for g in amounts.values()), default=0)
    return {
        "today": of_today["sums"],
        "agent_today": of_today["agent"],
        "all": by_day["sums"],
        "agent": by_day["agent"],
        "spent": status["spent_today"],
        "asked": status["asked_today"],
        "limits": status["limits"],
        "month_limit": MONTH_EUR,
        "month": status["month"],
        "pace": pace,
        "pace_days": PACE_DAYS,
        "days": DAYS,
        "by_day": [
            {**amounts[day], "bar": (amounts[day][unit] or 0) / (most or 1)}
            for day in reversed(days)
            if day in amounts
        ],
        "tables": [
            {"title": title, "by": by, "groups": table["groups"]}
            for (by, title), table in zip(TABLES, tables, strict=True)
        ],
    }


# --- Health: what does not work right now, and what waits ---------------------------------------------------

OF_STATUS: Final = ("faults", "judges", "filing", "upgrade", "standstill", "keys_unused", "instances", "off")
OF_DAEMON: Final = (
    *("version", "pid", "started_at", "rss_mb", "mode", "socket", "state_dir", "events", "sessions"),
)


async def health(source: Source, _: Mapping[str, str]) -> Json:
    """Faults, providers, useless replies, jobs, hosts, and the daemon."""
    status = source.status.status()
    return {
        **{name: status[name] for name in OF_STATUS},
        "down": status["providers_down"],
        "dead": status["dead_letters"],
        "jobs": {kind: n for kind, n in status["jobs"].items() if n},
        "daemon": {name: status[name] for name in OF_DAEMON},
        "verdicts": status["verdicts"],
    }

"""The page Now: what each session does at this moment, and which of them wait for the person.

It reads the same as ``reflectd status``. A session is in one section only, the one that wants attention most.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .source import Source

LOOKED_AT: Final = 200
RECENT: Final = 10
DAY_MS: Final = 86_400_000
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
Json = dict[str, Any]


async def read(source: Source, _: Mapping[str, str]) -> Json:
    """The sections with their sessions."""
    status = source.status.status()
    stuck: Mapping[str, str] = status["features"].get("stuck", {}).get("stuck", {})
    now = source.clock.now_ms()
    found: dict[str, list[Json]] = {name: [] for name, _, _ in SECTIONS}
    for s in source.status.sessions(LOOKED_AT):
        place = _place(s, stuck, now)
        if place != "recent" or len(found[place]) < RECENT:
            found[place].append(_row(source, s, place, stuck, status["judges"]))
    for place in ("waits", "stuck", "judged", "works"):
        found[place].sort(key=lambda row: row["since"])
    sections = [
        {"name": name, "title": title, "none": none, "rows": found[name]}
        for name, title, none in SECTIONS
        if found[name] or none
    ]
    return {"sections": sections, "degraded": status["degraded"], "hosts": len(status["instances"])}


def _place(s: Json, stuck: Mapping[str, str], now: int) -> str:
    fresh = now - s["active_at"] < DAY_MS
    if s["off"]:
        return "recent"
    if fresh and (s["asks"] or (s["phase"] == "awaiting_user" and not s["busy"])):
        return "waits"
    if s["session"] in stuck:
        return "stuck"
    if s["phase"] == "judging":
        return "judged"
    return "works" if s["busy"] else "recent"


def _state(s: Json, place: str) -> str:
    if s["off"]:
        return "off"
    return {"waits": "awaiting_user", "stuck": "stuck", "works": "busy"}.get(place) or str(s["phase"])


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
    by = (last or {}).get("judge") or {}
    asked = judges.get(s["host"], {}).get("asked", ())
    return {
        "session": s["session"],
        "title": s["title"],
        "host": s["host"],
        "directory": s["directory"],
        "state": _state(s, place),
        "since": s["active_at"],
        "rounds": s["attempts"],
        "said": said,
        "judge": by.get("provider") or (asked[0] if asked else ""),
        "model": by.get("model") or "",
        "judged": last is not None,
        "agent": s["model"],
        "context": s["context_tokens"],
    }

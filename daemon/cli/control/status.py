"""``reflectd status``: whether the daemon runs, what it sees, and what does not work."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from ...client import request
from ...core.errors import Unavailable
from ...core.words import HOSTS
from ...paths import find_socket
from ..judging import allows, names, read, who_judges
from ..render import (
    Paint,
    ago,
    clock,
    count,
    dear,
    place,
    plain,
    print_json,
    short,
    span,
    standstill,
    waiting,
)
from ..settings import add_flags, look
from ..terminal import add_flag, show
from . import start_failure

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from ...core.settings import Settings
    from ...paths import Paths

NOT_RUNNING = 3
SHOWN = 10


def add_parser(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the verb."""
    parser = verbs.add_parser("status", help="is it running, and what does it see")
    parser.add_argument("--json", action="store_true", help="print status and sessions as JSON")
    add_flag(parser)
    add_flags(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Exit code 0 when a daemon answers, 3 when none does."""
    settings, where = look(args)
    socket = find_socket(where)
    try:
        status = request(socket, "GET", "/v1/status")
        sessions = request(socket, "GET", f"/v1/sessions?limit={SHOWN}")["sessions"]
    except Unavailable as e:
        off, failed = _off(where), start_failure.read(where)
        if args.json:
            print_json({"running": False, "error": str(e), "start_failed": failed, "off": off})
        else:
            paint = Paint()
            lines = paint.row("reflectd is not running: ", str(e), "  ")
            if failed:
                lines += _row("FAILED", paint(plain(failed), "red"), paint)
            for folder in off:
                lines += _row("off", _off_text(folder), paint)
            for label, text in _about_learning(settings, where, off):
                lines += _row(label, text, paint)
            show(lines, pager=False)
        return NOT_RUNNING
    if args.json:
        print_json({"running": True, **status, "sessions_shown": sessions})
    else:
        known = [*(i["directory"] for i in status["instances"]), *status.get("off", ())]
        more = _about_learning(settings, where, known)
        show(render(status, sessions, Paint(), time.time() * 1000, more), pager=not args.no_pager)
    return 0


def render(
    status: dict[str, Any],
    sessions: list[dict[str, Any]],
    paint: Paint,
    now_ms: float,
    more: Sequence[tuple[str, str]] = (),
) -> list[str]:
    """The status as lines for people. ``now_ms``: epoch ms, from which the age of sessions is told. ``more``:
    what this command found out itself.
    """
    facts = [
        *_judges(status),
        ("mode", status["mode"]),
        ("socket", plain(status["socket"])),
        ("state", plain(status["state_dir"])),
        *_models(status),
        *_learning(status),
        *more,
        *(("key", allows(name, v)) for name, v in status.get("keys_unused", {}).items()),
    ]
    if status["degraded"]:
        facts.append(("DEGRADED", paint(plain(status["degraded"]), "red")))
    facts += [("prune", standstill(s)) for s in status.get("standstill", ())]
    counts = (f"{n:,} {paint.state(state)}" for state, n in sorted(status["verdicts"].items()))
    facts.append(("verdicts", ", ".join(counts) or "none yet"))
    for i in status["instances"]:
        name = HOSTS.get(i.get("host", ""), "opencode")
        mod = ", without its mod" if i.get("mod") is False else ""
        facts.append(("host", f"{name} {i['mode']} (pid {i['pid']}) in {place(i['directory'])}{mod}"))
    facts += [("off", _off_text(folder)) for folder in status.get("off", ())]
    if not status["instances"]:
        facts.append(("host", "none connected; start your agent, or see `reflectd setup --help`"))
    runs = f"(pid {status['pid']}, up {span(status['uptime_s'])}, {status['rss_mb']} MB)"
    title = paint(f"reflectd {status['version']} runs", "bold")
    lines = paint.row("", f"{title} {runs}", "  ")
    for label, text in facts:
        lines += _row(label, text, paint)
    for s in sessions:
        lines += _session(s, status, paint, now_ms)
    return lines


def _off(where: Paths) -> list[str]:
    """The folders that are off, from the database; none when it can't be read."""
    from ...store.readonly import ReadOnly
    from ...store.sessions import Sessions

    try:
        with ReadOnly(where.database) as db:
            return Sessions(db).off_folders()
    except Unavailable:
        return []


def _about_learning(settings: Settings, where: Paths, known: Sequence[str]) -> list[tuple[str, str]]:
    """A playbook of another program in this project; and once, where a daemon ran before, that nobody was
    asked whether it may learn.
    """
    from ..learned.learned import offer_here
    from ..setup.learning import in_words, is_answered

    offered = offer_here(settings, where, known)
    facts = [("playbook", offered)] if offered else []
    if where.database.exists() and not is_answered(settings) and not where.told_of_learning.exists():
        facts.append(("learns", in_words(settings)))
        with suppress(OSError):  # then it is said once more
            where.told_of_learning.touch(mode=0o600)
    return facts


def _off_text(folder: str) -> str:
    return f"{place(folder)} and everything below it"


def _row(label: str, text: str, paint: Paint) -> list[str]:
    return paint.row(f"  {paint(f'{label:8}', 'red' if label.isupper() else 'dim')} ", text)


def _session(s: dict[str, Any], status: dict[str, Any], paint: Paint, now_ms: float) -> list[str]:
    """A session: its state and title; below, its project, when its agent last did something, and who judges.

    After an update, a daemon of the older version may not tell all of it.
    """
    state = "off" if s["off"] else waiting(s) or ("busy" if s["busy"] else s["phase"])
    why = f" ({short(s['reason'], 100)})" if s["reason"] not in {"", "judged"} and state == s["phase"] else ""
    rounds = f", {count(s['attempts'], 'round')}" if s["attempts"] else ""
    told = state if state.startswith("waits for ") else paint.state(state)
    title = f"  {short(s['title'], 60)}" if s["title"] else ""
    host, active = s.get("host", ""), s.get("active_at", 0)
    more = [place(s["directory"])] if s["directory"] else []
    more += [ago(active, now_ms)] if active else []
    judges = status.get("judges", {})
    more += [f"{HOSTS[host]}, judged by {names(read(judges[host]))}"] if host in judges else []
    lines = _row("session", f"{short(s['session'], 120)}  {told}{why}{rounds}{title}", paint)
    return lines + ([*paint.row(" " * 11, paint(", ".join(more), "dim"))] if more else [])


def _judges(status: dict[str, Any]) -> list[tuple[str, str]]:
    """Who judges each host's sessions. After an update, a daemon of the older version tells it for all."""
    if "judges" not in status:
        return [("judge", ", then ".join(status.get("providers", [status["provider"]])))]
    return [
        ("judge", f"{HOSTS.get(host, host)} -> {who_judges(host, read(found))}")
        for host, found in status["judges"].items()
    ]


def _learning(status: dict[str, Any]) -> list[tuple[str, str]]:
    """What waits and what lapsed, where the person switched learning on."""
    found = status.get("features", {}).get("playbook")
    if not found:
        return []
    if not found["hosts"]:
        return [("learns", "nothing: no model is set up, and the rules can't learn")]
    said = [
        f"{count(found.get(key, 0), one, many)} {what}"
        for key, one, many, what in (
            ("cases_waiting", "turn", "turns", "to look back on"),
            ("texts_waiting", "text", "texts", "to be confirmed (`reflectd learned approve`)"),
            ("stretches", "stretch", "stretches", "looked back on"),
            ("lapsed", "turn", "turns", "lapsed for want of money or a model"),
        )
        if found.get(key)
    ]
    over = " · over spend.learning_percent: it waits" if found.get("over_limit") else ""
    return [("learns", f"{', '.join(said) or 'nothing yet'}{over}")]


def _models(status: dict[str, Any]) -> list[tuple[str, str]]:
    """Providers that do not answer, the costs of the last 24 hours with their limits, and useless replies.

    After an update, a daemon of the older version may not tell all of it.
    """
    refused = status.get("providers_refused", ())
    facts = [
        ("REFUSED" if name in refused else "silent", f"{name}: {short(e, 200)}")
        for name, e in status.get("providers_down", {}).items()
    ]
    spent, limits, dead = status["spent_today"], status.get("limits"), status.get("dead_letters")
    if limits and status["providers"] != ["offline"]:
        unknown = f", {spent['tokens']:,} of {limits['tokens_per_day']:,} unpriced tokens"
        usd = f"{spent['today']:.4f} of {limits['cents_per_day'] / 100:.2f} USD"
        told = f"{usd} in 24 h{unknown if spent['tokens'] else ''}"
        asked = status.get("asked_today", {})
        if asked.get("today") or asked.get("tokens"):
            more = f" and {asked['tokens']:,} unpriced tokens" if asked["tokens"] else ""
            told += f"; besides, {asked['today']:.4f} USD{more} asked for"
        facts.append(("spent", told))
        facts += [
            ("month", f"about {m['expected']:.2f} {m['currency']} at its end, {over}")
            for m in status.get("month", ())
            if (over := dear(m, limits))
        ]
    if dead and dead["count"]:
        last = f"the last at {clock(dead['last_at'])}: {short(dead['last_why'], 120)}"
        facts.append(
            ("useless", f"{count(dead['count'], 'reply', 'replies')} of models could not be used, {last}")
        )
    return facts

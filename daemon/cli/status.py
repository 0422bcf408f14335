"""``reflectd status``: is it running, what does it see, what does not work."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from daemon.cli.render import clock, short, span
from daemon.cli.settings import add_flags, load
from daemon.client import request
from daemon.core.errors import Unavailable
from daemon.paths import find_socket

if TYPE_CHECKING:
    import argparse

NOT_RUNNING = 3
SHOWN = 10


def add_parser(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the verb."""
    parser = verbs.add_parser("status", help="is it running, and what does it see")
    parser.add_argument("--json", action="store_true", help="print status and sessions as JSON")
    add_flags(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Exit code 0 when a daemon answers, 3 when none does."""
    _, where = load(args)
    socket = find_socket(where)
    try:
        status = request(socket, "GET", "/v1/status")
        sessions = request(socket, "GET", f"/v1/sessions?limit={SHOWN}")["sessions"]
    except Unavailable as e:
        if args.json:
            print(json.dumps({"running": False, "error": str(e)}))
        else:
            print(f"reflectd is not running: {e}")
        return NOT_RUNNING
    if args.json:
        print(json.dumps({"running": True, **status, "sessions_shown": sessions}, indent=1))
    else:
        print("\n".join(render(status, sessions)))
    return 0


HOSTS = {"opencode": "opencode", "claude-code": "Claude Code"}


def render(status: dict[str, Any], sessions: list[dict[str, Any]]) -> list[str]:
    """Status for people."""
    lines = [
        f"reflectd {status['version']} runs (pid {status['pid']}, up {span(status['uptime_s'])}, "
        f"{status['rss_mb']} MB)",
        f"  judge    {', then '.join(status.get('providers', [status['provider']]))}; mode {status['mode']}",
        f"  socket   {status['socket']}",
        f"  state    {status['state_dir']}",
    ]
    lines += _models(status)
    if status["degraded"]:
        lines.append(f"  DEGRADED {status['degraded']}")
    counts = ", ".join(f"{n} {state}" for state, n in sorted(status["verdicts"].items())) or "none yet"
    lines.append(f"  verdicts {counts}")
    for i in status["instances"]:
        name = HOSTS.get(i.get("host", ""), "opencode")
        lines.append(f"  host     {name} {i['mode']} (pid {i['pid']}) in {i['directory']}")
    if not status["instances"]:
        lines.append("  host     none connected; start your agent, or see `reflectd setup --help`")
    for s in sessions:
        state = "off" if s["off"] else "busy" if s["busy"] else s["phase"]
        reason = f" ({s['reason']})" if s["reason"] not in {"", "judged"} and state == s["phase"] else ""
        rounds = f", {s['attempts']} rounds" if s["attempts"] else ""
        lines.append(f"  session  {s['session']}  {state}{reason}{rounds}  {short(s['title'], 40)}")
    return lines


def _models(status: dict[str, Any]) -> list[str]:
    """Who does not answer, the last 24 hours against the limits, and replies that were useless.

    A daemon of before an update does not tell some of it.
    """
    lines = [f"  silent   {name}: {short(e, 200)}" for name, e in status.get("providers_down", {}).items()]
    spent, limits, dead = status["spent_today"], status.get("limits"), status.get("dead_letters")
    if limits and status["providers"] != ["offline"]:
        unknown = f", {spent['tokens']:,} of {limits['tokens_per_day']:,} unpriced tokens"
        usd = f"{spent['today']:.4f} of {limits['cents_per_day'] / 100:.2f} USD"
        lines.append(f"  spent    {usd} in 24 h{unknown if spent['tokens'] else ''}")
    if dead and dead["count"]:
        last = f"the last at {clock(dead['last_at'])}: {short(dead['last_why'], 120)}"
        lines.append(f"  useless  {dead['count']} replies of models, {last}")
    return lines

"""``reflectd cost``: what judging cost, from the ledger: one row per call that was made.

Asks the daemon; without one it reads the database itself, and changes nothing. A price nobody knows is shown
as unknown, with its tokens, never as 0. Exit codes: 0 told · 1 no daemon and no database · 2 wrong arguments.
"""

from __future__ import annotations

import sys
import time
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, get_args
from urllib.parse import urlencode

from daemon.cli.render import Paint, print_json, short, table
from daemon.cli.settings import add_flags, load
from daemon.client import request
from daemon.core.errors import Unavailable, UserError
from daemon.paths import find_socket

if TYPE_CHECKING:
    import argparse

    from daemon.core.settings import Settings
    from daemon.paths import Paths

Json = dict[str, Any]
DAY_S = 86_400
MOST_DAYS = 400
LIMIT = 500
BY = ("day", "session", "model", "purpose", "provider")
EPILOG = """examples:
  reflectd cost                    the last 7 days, day by day
  reflectd cost --days 30 --by model
  reflectd cost --session ses_58c3f0d9 --by purpose

exit codes: 0 told, 1 no daemon and no database, 2 wrong arguments"""


def add_parser(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the verb."""
    import argparse

    parser = verbs.add_parser(
        "cost", help="what judging cost", epilog=EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--days", type=int, default=7, metavar="N", help="the last N days, today included (7)"
    )
    parser.add_argument(
        "--session", default="", metavar="SESSION", help="one session, by (the beginning of) its id"
    )
    parser.add_argument("--by", choices=BY, default="day", help="one line per (day)")
    parser.add_argument("--json", action="store_true", help="print calls, sums and limits as JSON")
    add_flags(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Gather, then print."""
    settings, where = load(args)
    if not 1 <= args.days <= MOST_DAYS:
        raise UserError(f"--days must be a number from 1 to {MOST_DAYS}")
    found = _gather(settings, where, args.session, _midnight_ms(args.days), args.by)
    if args.json:
        print_json({"days": args.days, "session": args.session, "by": args.by, **found})
        return 0
    print("\n".join(_lines(found, args, Paint())))
    return 0


def told(sums: Json) -> str:
    """Sums in one line: what is known, what is not, and what needed no model."""
    asked = int(sums.get("calls", 0)) - int(sums.get("rules", 0))
    rules = f"{sums['rules']} by fixed rules, free" if sums.get("rules") else ""
    if not asked:
        return rules or "no calls"
    parts = [f"{asked} calls, {sums['input']:,} tokens in, {sums['output']:,} out, {_cost(sums)}"]
    parts += [f"{sums[k]} {k}" for k in ("cancelled", "failed") if sums[k]]
    return "; ".join([*parts, *([rules] if rules else [])])


def _cost(sums: Json) -> str:
    known = f"{sums['cost']:.4f} USD" if sums["cost"] is not None else ""
    unknown = f"{sums['unpriced_tokens']:,} tokens at an unknown price" if sums["unpriced"] else ""
    return " + ".join(part for part in (known, unknown) if part) or "cost unknown"


def _gather(settings: Settings, where: Paths, session: str, since: int, by: str) -> Json:
    socket = find_socket(where)
    query = urlencode({"session": session, "since": since, "by": by, "limit": LIMIT})
    try:
        found = request(socket, "GET", f"/v1/ledger?{query}")
        status = request(socket, "GET", "/v1/status")
        spent, limits = status["spent_today"], status.get("limits") or asdict(settings.spend)
    except Unavailable:
        found = _from_file(where, session, since, by)
        spent = found.pop("spent_today")
        limits = asdict(settings.spend)
        print("reflectd: no daemon runs; read from its database", file=sys.stderr)
    found.pop("api", None)
    return {
        **found,
        "spent_24h": {"usd": spent["today"], "unpriced_tokens": spent["tokens"]},
        "limits": limits,
    }


def _from_file(where: Paths, session: str, since: int, by: str) -> Json:
    from daemon.store.ledger import By, Ledger, report
    from daemon.store.readonly import ReadOnly

    group: By | None = next((b for b in get_args(By) if b == by), None)
    with ReadOnly(where.database) as db:
        found = report(db, session=session, since=since, limit=LIMIT, by=group)
        spent = Ledger(db).spent("", int((time.time() - DAY_S) * 1000))
    groups = [{"name": name, **asdict(sums)} for name, sums in found.groups]
    rows = [asdict(row) for row in found.rows]
    return {
        "rows": rows,
        "sums": asdict(found.sums),
        "agent": asdict(found.agent),
        "groups": groups,
        "spent_today": asdict(spent),
    }


def _lines(found: Json, args: argparse.Namespace, paint: Paint) -> list[str]:
    head = (
        args.by,
        "calls",
        "free",
        "tokens in",
        "tokens out",
        "USD",
        "unknown price",
        "cancelled",
        "failed",
    )
    groups = [*found["groups"], {"name": "together", **found["sums"]}]
    rows = [head, *(_row(g) for g in groups)]
    lines = table(rows, right=range(1, len(head)))
    lines[0] = paint(lines[0], "dim")
    lines[-1] = paint(lines[-1], "bold")
    what = f"session {short(args.session, 60)}, " if args.session else ""
    title = (
        f"What judging cost: {what}the last {args.days} days"
        if args.days > 1
        else f"What judging cost: {what}today"
    )
    if not found["sums"]["calls"]:
        lines = ["nothing was judged"]
    if len(found["groups"]) == LIMIT:
        lines.append(f"only the first {LIMIT} are listed; all are counted")
    lines.append("")
    if found["agent"]["tokens"]:
        lines.append(f"the agent      {worked(found['agent'])}, for the tasks that were judged")
    return [title, *lines, *_spent(found["spent_24h"], found["limits"])]


def worked(agent: Json) -> str:
    """What the agent's own work cost."""
    if not agent.get("tokens"):
        return "cost not told by its host"
    price = f"{agent['usd']:.4f} USD" if agent["usd"] is not None else "price unknown"
    return f"{price}, {agent['tokens']:,} tokens"


def _spent(spent: Json, limits: Json) -> list[str]:
    """The last 24 hours against the limits."""
    return [
        f"last 24 hours  {spent['usd']:.4f} of {limits['cents_per_day'] / 100:.2f} USD, and "
        f"{spent['unpriced_tokens']:,} of {limits['tokens_per_day']:,} tokens at an unknown price",
        f"one session    at most {limits['cents_per_session'] / 100:.2f} USD",
    ]


def _row(g: Json) -> tuple[str, ...]:
    asked = g["calls"] - g["rules"]
    known = f"{g['cost']:.4f}" if g["cost"] is not None else "-" if not asked or g["unpriced"] else "unknown"
    unknown = f"{g['unpriced_tokens']:,} tokens" if g["unpriced"] else "-"
    counts = (str(g[k] or "-") for k in ("cancelled", "failed"))
    name = short(g["name"], 48) or "(not told)"
    return (name, str(asked), str(g["rules"]), f"{g['input']:,}", f"{g['output']:,}", known, unknown, *counts)


def _midnight_ms(days: int) -> int:
    """The local midnight with which the last ``days`` days begin."""
    now = time.localtime()
    return int(time.mktime((now.tm_year, now.tm_mon, now.tm_mday - days + 1, 0, 0, 0, 0, 0, -1)) * 1000)

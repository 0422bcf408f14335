"""``reflectd cost``: what judging cost, from the ledger, which has one row per call of a model.

Reads the database. An unknown price is shown as unknown, with the tokens, never as 0.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, get_args

from msgspec import to_builtins

from ...core.errors import UserError
from ..render import Paint, count, dear, place, print_json, short
from ..settings import NOTHING, add_flags, database, look, unknown
from ..terminal import columns, show

if TYPE_CHECKING:
    import argparse

    from ...core.settings import Settings
    from ...paths import Paths

Json = dict[str, Any]
DAY_S = 86_400
MOST_DAYS = 400
LIMIT = 500
NAME = 32  # characters of a group's name
BY = ("day", "session", "project", "model", "purpose", "provider", "account")
EPILOG = """examples:
  reflectd cost                    the last 7 days, day by day
  reflectd cost --days 30 --by model
  reflectd cost --days 30 --by project
  reflectd cost --session ses_58c3f0d9 --by purpose"""


def add_parser(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = verbs.add_parser("cost", epilog=EPILOG)
    parser.add_argument(
        "--days", type=int, default=7, metavar="N", help="the last N days, today included (7)"
    )
    parser.add_argument(
        "--session", default="", metavar="SESSION", help="one session, by (the beginning of) its id"
    )
    parser.add_argument("--by", choices=BY, default="day", help="one line per (day)")
    add_flags(parser, run, json="print calls, sums and limits as JSON")


def run(args: argparse.Namespace) -> int:
    settings, where = look(args)
    found = _gather(settings, where, args.session, since(args.days), args.by)
    if args.json:
        print_json({"days": args.days, "session": args.session, "by": args.by, **found})
        return 0
    show(lines(found, args, Paint()))
    return 0


def told(sums: Json) -> str:
    """Sums in one line: calls with known and unknown prices, and judgements by rules."""
    asked = int(sums.get("calls", 0)) - int(sums.get("rules", 0))
    rules = f"{sums['rules']} by fixed rules, free" if sums.get("rules") else ""
    if not asked:
        return rules or "no calls"
    parts = [f"{count(asked, 'call')}, {sums['input']:,} tokens in, {sums['output']:,} out, {_cost(sums)}"]
    parts += [f"{sums[k]} {k}" for k in ("cancelled", "failed") if sums[k]]
    return "; ".join([*parts, *([rules] if rules else [])])


def _cost(sums: Json) -> str:
    paid = [] if sums["cost"] is None else [("USD", sums["cost"])]
    known = " + ".join(f"{amount:.4f} {code}" for code, amount in [*paid, *sums.get("others", ())])
    unknown = f"{sums['unpriced_tokens']:,} tokens at an unknown price" if sums["unpriced"] else ""
    return " + ".join(part for part in (known, unknown) if part) or "cost unknown"


def _gather(settings: Settings, where: Paths, session: str, begin: int, by: str) -> Json:
    from ...core.guards import Spent
    from ...engine.history import report_object
    from ...store.ledger import By, Ledger, Report, Sums, Work, report
    from ...store.sessions import Sessions

    group: By | None = next((b for b in get_args(By) if b == by), None)
    found, spent, asked, month = Report((), Sums(), Work()), (0.0, 0), (0.0, 0), []
    judged = learned = Spent()
    known = False
    with database(where) as db:
        if db is not None:
            identity = session and (Sessions(db).only(session) or session)
            found = report(db, session=identity, since=begin, limit=LIMIT, by=group)
            ledger, now = Ledger(db), int(time.time() * 1000)
            spent, asked = (
                (s.today, s.tokens)
                for s in (ledger.spent("", now - DAY_S * 1000, account) for account in ("judging", "asked"))
            )
            week = now - 7 * DAY_S * 1000
            judged, learned = (ledger.spent("", week, account) for account in ("judging", "learning"))
            month = [to_builtins(m) for m in ledger.month(now)]
            known = bool(found.rows) or Sessions(db).peek(identity) is not None
    if session and not known:
        raise unknown(session)
    return {
        **report_object(found),
        "spent_24h": {"usd": spent[0], "unpriced_tokens": spent[1]},
        "asked_24h": {"usd": asked[0], "unpriced_tokens": asked[1]},
        "learning_7d": {
            "usd": learned.today,
            "tokens": learned.all_tokens,
            "of_usd": judged.today * settings.spend.learning_percent / 100,
            "of_tokens": judged.all_tokens * settings.spend.learning_percent // 100,
        },
        "month": month,
        "limits": to_builtins(settings.spend),
    }


def lines(found: Json, args: argparse.Namespace, paint: Paint) -> list[str]:
    named = [{**g, "name": place(g["name"])} if args.by == "project" else g for g in found["groups"]]
    groups = [*named, {"name": "together", **found["sums"]}]
    what = f"session {short(args.session, 60)}, " if args.session else ""
    when = f"the last {args.days} days" if args.days > 1 else "today"
    names = [short(g["name"], NAME) or "(not told)" for g in groups]
    wide = max(map(columns, names)) + 2
    labels = [f"{name}{' ' * (wide - columns(name))}" for name in names]
    shown = [line for label, g in zip(labels, groups, strict=True) for line in paint.row(label, told(g))]
    if not found["sums"]["calls"]:
        shown = ["no model was asked in this time" if found["month"] or args.session else NOTHING]
    if len(found["groups"]) == LIMIT:
        shown.append(f"only the first {LIMIT} are listed; all are counted")
    shown.append("")
    if found["agent"]["tokens"]:
        shown += paint.row("the agent      ", f"{worked(found['agent'])}, for the tasks that were judged")
    sums = found["spent_24h"], found["asked_24h"]
    last = [
        *_spent(*sums, found["limits"], paint),
        *_learned(found["learning_7d"], paint),
        *_month(found["month"], paint),
    ]
    return [f"Cost of judging: {what}{when}", *shown, *last]


def worked(agent: Json) -> str:
    if not agent.get("tokens"):
        return "its host does not tell the cost"
    price = f"{agent['usd']:.4f} USD" if agent["usd"] is not None else "price unknown"
    return f"{price}, {agent['tokens']:,} tokens"


def _spent(spent: Json, asked: Json, limits: Json, paint: Paint) -> list[str]:
    """The cost of judging in the last 24 hours, of asked work besides, and the limits."""
    usd = f"{spent['usd']:.4f} of {limits['cents_per_day'] / 100:.2f} USD"
    tokens = f"{spent['unpriced_tokens']:,} of {limits['tokens_per_day']:,} tokens at an unknown price"
    return [
        *paint.row("last 24 hours  ", f"{usd}, and {tokens}"),
        *(paint.row("asked for      ", _asked(asked)) if any(asked.values()) else []),
        f"one session    at most {limits['cents_per_session'] / 100:.2f} USD",
    ]


def _learned(learned: Json, paint: Paint) -> list[str]:
    """The cost of learning, and its limit, which grows with what judging costs."""
    if not learned["tokens"]:
        return []
    said = f"{learned['tokens']:,} of at most {learned['of_tokens']:,} tokens"
    if learned["of_usd"]:
        said = f"{learned['usd']:.4f} of at most {learned['of_usd']:.4f} USD"
    return paint.row("learning       ", f"{said} in 7 days, besides judging")


def _month(months: list[Json], paint: Paint) -> list[str]:
    """This month's cost and expected cost, a line for each currency."""
    told = []
    for m in months:
        over = f", {more}" if (more := dear(m)) else ""
        said = f"{m['so_far']:.2f} {m['currency']} so far, about {m['expected']:.2f} at its end{over}"
        told += paint.row("this month     ", paint(said, "yellow") if over else said)
    return told


def _asked(asked: Json) -> str:
    more = (
        f", and {asked['unpriced_tokens']:,} tokens at an unknown price" if asked["unpriced_tokens"] else ""
    )
    return f"{asked['usd']:.4f} USD{more} in 24 hours, besides judging (asked for by you)"


def since(days: int) -> int:
    """The local midnight with which the last ``days`` days begin, epoch ms. Raises ``UserError``."""
    if not 1 <= days <= MOST_DAYS:
        raise UserError(f"--days must be a number from 1 to {MOST_DAYS}")
    now = time.localtime()
    return int(time.mktime((now.tm_year, now.tm_mon, now.tm_mday - days + 1, 0, 0, 0, 0, 0, -1)) * 1000)

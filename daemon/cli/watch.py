"""``reflectd watch``: one line per verdict as it comes, and a command of yours for each.

Reads the daemon's stream; when the daemon goes away it says so and connects again. Exit codes: 0 nobody reads
the output any more · 1 no daemon at the start · 2 wrong arguments · 130 ended by Ctrl-C.
"""

from __future__ import annotations

import json
import signal
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn
from urllib.parse import urlencode

from daemon.cli.render import Paint, clock, first_line, money, short
from daemon.cli.settings import add_flags, load
from daemon.client import stream
from daemon.core.errors import Unavailable, UserError
from daemon.paths import find_socket

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from daemon.cli.hook import Hook
    from daemon.paths import Paths

Json = dict[str, Any]
RETRY_S = 0.5
ID_CHARS = 16
TOLD = frozenset({"verdict", "stuck"})
EPILOG = """examples:
  reflectd watch                   verdicts on sessions of this folder and below
  reflectd watch --all --verbose   everywhere; also when judging starts, what is left alone, nudges
  reflectd watch --json | jq -r .feedback
  reflectd watch --exec 'jq -r .state | xargs notify-send'

CMD is run by your shell for each final verdict, and when an agent at work seems stuck ("state": "stuck"),
one after the other, with the verdict as one line of JSON on its standard input. One that takes too long is
killed; one that fails is told, and nothing more.

exit codes: 1 no daemon at the start, 2 wrong arguments, 130 ended by Ctrl-C"""


def add_parser(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the verb."""
    import argparse

    parser = verbs.add_parser(
        "watch",
        help="verdicts as they come",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("session", nargs="?", default="", metavar="SESSION", help="(the beginning of) its id")
    parser.add_argument("--dir", metavar="DIR", help="this folder and what is below it (the current one)")
    parser.add_argument("--all", action="store_true", help="every folder")
    parser.add_argument(
        "--verbose", action="store_true", help="also when judging starts, what is left alone, and nudges"
    )
    parser.add_argument("--json", action="store_true", help="print each as one line of JSON")
    parser.add_argument("--exec", metavar="CMD", help="run CMD for each final verdict, its JSON on stdin")
    parser.add_argument("--exec-timeout", type=int, default=60, metavar="S", help="seconds for one CMD (60)")
    add_flags(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Until Ctrl-C, a closed terminal or a closed pipe; no command of ours is left behind."""
    _, where = load(args)
    if not 1 <= args.exec_timeout <= 86_400:
        raise UserError("--exec-timeout must be a number of seconds from 1 to 86400")
    query = {"session": args.session, "directory": _folder(args)}
    route = f"/v1/stream?{urlencode({k: v for k, v in query.items() if v})}"
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _end)
    hook = _hook(args)
    try:
        for entry in _entries(where, route, query["directory"]):
            _show(entry, args, hook)
    finally:
        if hook is not None:
            hook.close()
    return 0


def _hook(args: argparse.Namespace) -> Hook | None:
    if not args.exec:
        return None
    from daemon.cli.hook import Hook

    return Hook(args.exec, float(args.exec_timeout), aside=args.json)


def _end(number: int, _frame: object) -> NoReturn:
    raise SystemExit(128 + number)


def _folder(args: argparse.Namespace) -> str:
    """What is watched: everything for ``--all`` and for a session, wherever it is."""
    if args.dir and args.all:
        raise UserError("name a folder with --dir, or every folder with --all, not both")
    if args.all or (args.session and not args.dir):
        return ""
    return str(Path(args.dir or ".").absolute())


def _entries(where: Paths, route: str, folder: str) -> Iterator[Json]:
    """What the stream says, over restarts of the daemon. ``Unavailable`` when none is there at the start."""
    ever = connected = False
    while True:
        try:
            with closing(stream(find_socket(where), route)) as lines:
                for line in lines:
                    if line is not None:
                        yield line
                    elif not connected:
                        _say(f"watching {folder or 'every folder'}; Ctrl-C ends it")
                        ever = connected = True
        except Unavailable:
            if not ever:
                raise
        if connected:
            _say("the daemon is gone; waiting for it")
        connected = False
        time.sleep(RETRY_S)


def _show(entry: Json, args: argparse.Namespace, hook: Hook | None) -> None:
    final = entry.get("kind") in TOLD
    if entry.get("dropped"):
        _say(f"{entry['dropped']} lines were lost: they came faster than they were read")
    if final or args.verbose:
        line = json.dumps(entry, ensure_ascii=False) if args.json else told(entry, Paint())
        print(line, flush=True)
    if final and hook is not None:
        hook.push(json.dumps(entry, ensure_ascii=False))


def told(entry: Json, paint: Paint) -> str:
    """One line: when, which session, what, and what it cost."""
    identity = paint(short(entry.get("session", "?"), 200)[:ID_CHARS], "dim")
    name = f"{identity}  {short(entry.get('title', ''), 30)}".rstrip()
    head = f"{clock(entry.get('at', 0))}  {name}"
    if entry.get("kind") == "skip":
        guard, why = short(entry.get("guard", ""), 30), short(entry.get("reason", ""), 100)
        return f"{head}  {paint(f'left alone: {guard}, {why}', 'dim')}"
    if entry.get("kind") == "judging":
        return f"{head}  {paint('judging', 'dim')}"
    if entry.get("kind") == "nudge":
        status = short(entry.get("status") or "no answer yet", 20)
        cause, why = short(entry.get("cause", ""), 30), short(entry.get("reason", ""), 100)
        return f"{head}  {paint(f'{cause} ({status}): {why}', 'dim')}"
    severity = str(entry.get("severity", "NONE"))
    state = paint.state(str(entry.get("state", "?"))) + (
        f" {short(severity, 10)}" if severity != "NONE" else ""
    )
    why = str(entry.get("reason", ""))
    said = first_line(entry.get("feedback", "")) or ("" if why == "judged" else why)
    sent = " (sent)" if entry.get("feedback_sent") else ""
    by = entry.get("judge") or {}
    cost = by.get("cost") if isinstance(by, dict) else None
    tail = f"  {paint(money(cost), 'dim')}" if isinstance(cost, int | float) and cost else ""
    return f"{head}  {state}{sent}  {short(said, 100)}".rstrip() + tail


def _say(text: str) -> None:
    print(f"reflectd: {text}", file=sys.stderr, flush=True)

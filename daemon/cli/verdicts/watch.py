"""``reflectd watch``: prints a line for each verdict as it comes, and runs the person's command for each.

Reads the daemon's stream. When the daemon ends, it says so and connects again.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from contextlib import closing
from typing import TYPE_CHECKING, Any, NoReturn
from urllib.parse import urlencode

from ...client import stream
from ...core.errors import Unavailable, UserError
from ...core.proof import in_words
from ...files.project import upward
from ...paths import find_socket
from ..render import Paint, clock, count, money, place, print_json, severity, short
from ..settings import add_flags, here, look
from .why import gist

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from ...paths import Paths

_NAME = re.compile(r"[\w./-]{1,200}")
Json = dict[str, Any]
RETRY_S = 0.5
ID_CHARS = 16
TOLD = frozenset({"verdict", "stuck"})
EPILOG = """examples:
  reflectd watch                   verdicts on sessions of this project and below
  reflectd watch --all             everywhere; `reflectd history` has those from before
  reflectd watch --json | jq -r .feedback
  reflectd watch --exec 'jq -r .state | xargs notify-send'

Your shell runs CMD for each final verdict, and when an agent at work seems
stuck ("state": "stuck"). CMD gets the verdict as one line of JSON on its
standard input. Only one CMD runs at a time, and the next line waits for it.
One that takes too long is killed; one that fails is reported, and watching
goes on."""


def add_parser(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = verbs.add_parser("watch", epilog=EPILOG)
    parser.add_argument("session", nargs="?", default="", metavar="SESSION", help="(the beginning of) its id")
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--dir", metavar="DIR", help="this folder and what is below it (this project)")
    where.add_argument("--all", action="store_true", help="every folder; each line names its project")
    parser.add_argument(
        "--verbose", action="store_true", help="also print when judging starts, skipped turns and nudges"
    )
    parser.add_argument("--exec", metavar="CMD", help="run CMD for each final verdict, its JSON on stdin")
    parser.add_argument("--exec-timeout", type=int, default=60, metavar="S", help="seconds for one CMD (60)")
    add_flags(parser, run, json="print each as one line of JSON")


def run(args: argparse.Namespace) -> int:
    """Watch until Ctrl-C, a closed terminal or a closed pipe. A command that still runs is ended then."""
    _, where = look(args)
    if not 1 <= args.exec_timeout <= 86_400:
        raise UserError("--exec-timeout must be a number of seconds from 1 to 86400")
    _check(args.exec or "")
    query = {"session": args.session, "directory": _folder(args, where)}
    route = f"/v1/stream?{urlencode({k: v for k, v in query.items() if v})}"
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _end)
    for entry in _entries(where, route, _watched(args, query["directory"])):
        _show(entry, args)
    return 0


def _check(command: str) -> None:
    """Raises ``UserError`` when the shell finds no program or builtin of the command's first word."""
    word = (command.split() or [""])[0]
    if not _NAME.fullmatch(word):
        return
    look_up = ["/bin/sh", "-c", 'command -v -- "$0"', word]
    if subprocess.run(look_up, stdout=subprocess.DEVNULL, check=False).returncode:  # noqa: S603 - runs nothing
        raise UserError(f"--exec: there is no command {word}")


def _run(args: argparse.Namespace, line: str) -> None:
    """Run the person's command with this line on its input; no line is read meanwhile. What it started is
    killed when it ends, when its time is over and when watching ends. A failure is told.
    """
    try:
        process = subprocess.Popen(  # noqa: S602 - the person typed it, as in `sh -c`
            args.exec,
            shell=True,
            stdin=subprocess.PIPE,
            stdout=sys.stderr if args.json else None,  # stdout has JSON and nothing else
            env={**os.environ, "REFLECTD_CHILD": "1"},
            start_new_session=True,
            text=True,
            errors="backslashreplace",
        )
    except OSError as e:
        _say(f"--exec: cannot be run: {e.strerror}")
        return
    try:
        process.communicate(f"{line}\n", args.exec_timeout)
        if code := process.returncode:
            _say(f"--exec: ended with {f'signal {-code}' if code < 0 else f'exit code {code}'}")
    except subprocess.TimeoutExpired:
        _say(f"--exec: took longer than {args.exec_timeout} s and was killed")
    finally:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        with contextlib.suppress(OSError):
            process.stdin.close()  # type: ignore[union-attr]  # it is a pipe
        process.wait()


def _end(number: int, _frame: object) -> NoReturn:
    raise SystemExit(128 + number)


def _folder(args: argparse.Namespace, where: Paths) -> str:
    """The folder that is watched; empty for every folder: with ``--all``, and for a session."""
    if args.all or (args.session and not args.dir):
        return ""
    if args.dir and not os.path.isdir(args.dir):  # noqa: PTH112 - as `upward` takes it
        raise UserError(f"there is no folder {args.dir}")
    return str(upward(args.dir)[0] if args.dir else here(where))


def _watched(args: argparse.Namespace, folder: str) -> str:
    """The watched sessions, in words. A session need not be known yet."""
    place = folder or "every folder"
    return f"sessions whose id begins with {args.session} in {place}" if args.session else place


def _entries(where: Paths, route: str, watched: str) -> Iterator[Json]:
    """The entries of the daemon's stream. Connects again when the daemon was restarted. Raises
    ``Unavailable`` when no daemon runs at the start.
    """
    ever = connected = False
    while True:
        try:
            with closing(stream(find_socket(where), route)) as lines:
                for line in lines:
                    if line is not None:
                        yield line
                    elif not connected:
                        _say(f"watching {watched}; Ctrl-C ends it")
                        ever = connected = True
        except Unavailable:
            if not ever:
                raise
        if connected:
            _say("the daemon is gone; waiting for it")
        connected = False
        time.sleep(RETRY_S)


def _show(entry: Json, args: argparse.Namespace) -> None:
    final = entry.get("kind") in TOLD
    if entry.get("dropped"):
        _say(f"{count(entry['dropped'], 'line')} lost: more came than could be read")
    if final or args.verbose:
        if args.json:
            print_json(entry, line=True)
        else:
            print(told(entry, Paint(), everywhere=args.all), flush=True)
    if final and args.exec and args.exec.strip():
        _run(args, json.dumps(entry, ensure_ascii=False))


def told(entry: Json, paint: Paint, *, everywhere: bool = False) -> str:
    """An entry: the time, with ``everywhere`` the project, the session, the state, and what it cost. One
    line, unless it is wider than the terminal.
    """
    at = clock(entry.get("at", 0))
    parts = [place(entry.get("directory") or "?")] if everywhere else []
    parts.append(paint(short(entry.get("session", "?"), 200)[:ID_CHARS], "dim"))
    parts += [short(entry.get("title", ""), 30), _what(entry, paint)]
    return "\n".join(paint.row(f"{at}  ", "  ".join(p for p in parts if p), " " * 10))


def _what(entry: Json, paint: Paint) -> str:
    if entry.get("kind") == "skip":
        guard, why = short(entry.get("guard", ""), 30), short(entry.get("reason", ""), 100)
        return paint(f"left alone: {guard}, {why}", "dim")
    if entry.get("kind") == "judging":
        return paint("judging", "dim")
    if entry.get("kind") == "nudge":
        status = short(entry.get("status") or "no answer yet", 20)
        cause, why = short(entry.get("cause", ""), 30), short(entry.get("reason", ""), 100)
        return paint(f"{cause} ({status}): {why}", "dim")
    state = paint.state(str(entry.get("state", "?")), str(entry.get("reason", "")))
    state += severity(entry.get("severity"))
    sent = " (feedback)" if entry.get("feedback_sent") else ""
    by = entry.get("judge") or {}
    cost = by.get("cost") if isinstance(by, dict) else None
    tail = f"  {paint(money(cost), 'dim')}" if isinstance(cost, int | float) and cost else ""
    why = gist(entry) or in_words(entry.get("proof"))
    return f"{state}{sent}  {short(why, 100)}".rstrip() + tail


def _say(text: str) -> None:
    print(f"reflectd: {text}", file=sys.stderr, flush=True)

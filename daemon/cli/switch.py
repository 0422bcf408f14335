"""``reflectd on|off``: the switch of one project or one session; siblings are not touched (I40)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from daemon.cli.settings import add_flags, load
from daemon.client import request
from daemon.paths import find_socket

if TYPE_CHECKING:
    import argparse


def add_parser(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register both verbs."""
    for verb, text in (
        ("on", "judge this project (or one session) again"),
        ("off", "leave this project (or one session) alone"),
    ):
        parser = verbs.add_parser(verb, help=text)
        what = parser.add_mutually_exclusive_group()
        what.add_argument("--session", metavar="ID", help="one session, by its full id")
        what.add_argument("--dir", metavar="DIR", help="the project's folder (the current one)")
        add_flags(parser)
        parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Tell the daemon; it keeps the switch over restarts."""
    _, where = load(args)
    on = args.verb == "on"
    if args.session:
        body: dict[str, object] = {"on": on, "session": args.session}
        name = f"session {args.session}"
    else:
        folder = str(Path(args.dir or ".").absolute())
        body, name = {"on": on, "directory": folder}, folder
    request(find_socket(where), "POST", "/v1/switch", body)
    print(f"reflectd is {'on' if on else 'off'} for {name}")
    return 0

"""``reflectd dashboard``: opens the pages of the running daemon in the browser, or closes them.

Without a browser the link is printed; it works once, and for a minute.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from ...client import request
from ...paths import find_socket
from ..render import print_json, span
from ..settings import add_flags, look
from ..terminal import say

if TYPE_CHECKING:
    import argparse

EPILOG = """examples:
  reflectd dashboard               open it in your browser
  reflectd dashboard --no-browser  print the link, which works once, within a minute
  reflectd dashboard --stop        close it; it closes by itself when nobody looked at it for an hour"""


def add_parser(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = verbs.add_parser("dashboard", epilog=EPILOG)
    parser.add_argument("--no-browser", action="store_true", help="print the link, open nothing")
    parser.add_argument("--stop", action="store_true", help="close it")
    add_flags(parser, run, json="print the link as JSON, open nothing")


def run(args: argparse.Namespace) -> int:
    _, where = look(args)
    found = request(find_socket(where), "POST", "/v1/dashboard", {"stop": True} if args.stop else {})
    if args.json:
        found.pop("api", None)
        print_json(found)
    elif args.stop:
        say("the dashboard is closed" if found["closed"] else "no dashboard was open")
    elif args.no_browser or not _opened(found["url"]):
        print(found["url"])
        say("this link works once, within a minute", sys.stderr)
    else:
        idle = span(found["until_idle_s"])
        say(f"opened in your browser; it ends when nobody looked at it for {idle}")
    return 0


def _opened(url: str) -> bool:
    """Says whether a browser took it; a text browser would take the terminal, so none is tried there."""
    if sys.platform != "darwin" and not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
        return False
    import webbrowser

    return webbrowser.open(url)

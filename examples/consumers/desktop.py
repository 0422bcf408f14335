#!/usr/bin/env python3
"""Shows a verdict as a desktop notification: reflectd watch --exec 'python3 desktop.py'

``notify-send`` on Linux, ``osascript`` on macOS. The texts are arguments; no shell and no script sees them.
"""

from __future__ import annotations

import html
import sys
from typing import TYPE_CHECKING

import programs
import telling

if TYPE_CHECKING:
    import argparse

LIMIT_S = 10.0
BODY_CHARS = 1000
INSTALL = "on Debian and Ubuntu: apt-get install libnotify-bin"
APPLESCRIPT = (
    "on run argv",
    "display notification (item 2 of argv) with title (item 1 of argv)",
    "end run",
)


def words(message: telling.Message) -> str:
    """Title and body, as lines."""
    return "\n".join((message.title, *message.lines))


def command(message: telling.Message, program: str) -> list[str]:
    """The program and its arguments."""
    body = "\n".join(message.lines)[:BODY_CHARS]
    if program == "osascript":
        script = [part for line in APPLESCRIPT for part in ("-e", line)]
        # so that no argument begins with "-", the title has a name before it and the body a blank
        return ["osascript", *script, f"reflectd: {message.title}", f" {body}"]
    # notify-send reads markup and backslashes in a body, so they are escaped
    plain = html.escape(body, quote=False).replace("\\", "\\\\")
    return ["notify-send", "--app-name=reflectd", "--", message.title, plain]


def tell(message: telling.Message, args: argparse.Namespace) -> None:
    """Show it."""
    programs.run(command(message, args.program), args.timeout, INSTALL)


def main(argv: list[str] | None = None) -> int:
    """The command line."""
    parser = telling.parser(__doc__ or "", LIMIT_S)
    parser.add_argument(
        "--program",
        choices=("notify-send", "osascript"),
        default="osascript" if sys.platform == "darwin" else "notify-send",
        help="who shows it (%(default)s)",
    )
    return telling.run(parser, argv, words, tell)


if __name__ == "__main__":
    sys.exit(main())

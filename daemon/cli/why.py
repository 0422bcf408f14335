"""``reflectd why``: what was decided on a session's last turn, from what, and what it cost.

Asks the daemon for state and verdicts, and reads the case file itself. Without a daemon it reads the newest
case file of this folder, and says so. Exit codes: 0 explained · 1 nothing to explain and no daemon ·
2 no such session, or several begin like that.
"""

from __future__ import annotations

import json
import os
import stat
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from daemon.cli.render import Paint, print_json
from daemon.cli.settings import add_flags, load
from daemon.client import request
from daemon.core.errors import Unavailable
from daemon.paths import find_socket

if TYPE_CHECKING:
    import argparse

    from daemon.paths import Paths

CASE_BYTES = 32 * 1024 * 1024
EPILOG = """examples:
  reflectd why                     the newest verdict of this folder, else the newest of all
  reflectd why ses_58c3f0d9        a session, by the beginning of its id
  reflectd why --full | less       with the whole prompt and reply

exit codes: 0 explained, 1 nothing to explain and no daemon, 2 no such session or not the only one"""


def add_parser(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the verb."""
    import argparse

    parser = verbs.add_parser(
        "why",
        help="why a session was judged as it was",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("session", nargs="?", default="", metavar="SESSION", help="(the beginning of) its id")
    parser.add_argument("--dir", metavar="DIR", help="the project's folder (the current one)")
    parser.add_argument("--full", action="store_true", help="the whole prompt, reply and feedback")
    parser.add_argument("--json", action="store_true", help="print all that is known as JSON")
    add_flags(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Gather, then print."""
    _, where = load(args)
    folder = Path(args.dir or ".").absolute()
    found = gather(where, args.session, folder)
    if args.json:
        print_json(found)
        return 0
    from daemon.cli.explained import explained

    print("\n".join(explained(found, Paint(), full=args.full)))
    return 0


def gather(where: Paths, session: str, folder: Path) -> dict[str, Any]:
    """The daemon's answer with ``case`` and ``case_file``; without a daemon only these."""
    try:
        query = urlencode({"session": session, "directory": str(folder)})
        found = request(find_socket(where), "GET", f"/v1/why?{query}")
    except Unavailable as e:
        return _without_daemon(where, session, folder, str(e))
    case, path = None, ""
    for path in found["cases"][:1]:
        try:
            case = read_case(Path(path))
        except Unavailable as e:
            print(f"reflectd: {e}", file=sys.stderr)
    return {**found, "daemon": True, "case_file": path, "case": case}


def _without_daemon(where: Paths, session: str, folder: Path, why: str) -> dict[str, Any]:
    from daemon.files.cases import folders, newest_cases

    cases = newest_cases(folders(folder, where.fallback_reflection(folder)), session)
    if not cases:
        what = f"of a session that begins with {session!r} " if session else ""
        raise Unavailable(f"{why}. And {folder} has no evaluation {what}to read without one")
    said = f"no daemon runs; this is the newest evaluation in {folder}"
    print(f"reflectd: {said}", file=sys.stderr)
    return {"daemon": False, "case_file": str(cases[0]), "case": read_case(cases[0])}


def read_case(path: Path) -> dict[str, Any]:
    """A case file: a regular file of a bounded size with one JSON object. Raises ``Unavailable``."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW)
        with os.fdopen(fd, "rb") as file:
            if not stat.S_ISREG(os.fstat(fd).st_mode):
                raise Unavailable(f"{path} is not a regular file")
            data = file.read(CASE_BYTES + 1)
        found = json.loads(data) if len(data) <= CASE_BYTES else None
    except OSError as e:
        raise Unavailable(f"cannot read {path}: {e.strerror}") from e
    except (ValueError, RecursionError) as e:
        raise Unavailable(f"{path} is not an evaluation of reflectd: {e}") from e
    if not isinstance(found, dict) or found.get("version") != 1:
        raise Unavailable(f"{path} is not an evaluation of reflectd")
    return found

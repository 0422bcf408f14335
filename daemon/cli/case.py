"""``reflectd case``: keep cases, say what their verdict should have been, list and remove them.

``dispute`` is the same in one step. Which case is meant is decided here: the newest of a session, which the
daemon is asked for where it runs, else the newest in the folder.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from daemon.cli.settings import add_flags, load
from daemon.client import request
from daemon.core.errors import Unavailable, UserError
from daemon.paths import find_socket

if TYPE_CHECKING:
    from collections.abc import Iterator

    from daemon.files.case_folder import Saved
    from daemon.paths import Paths

EXPECTED = ("complete", "incomplete", "awaiting_user")
SESSIONS = 500
EPILOG = """A case is everything that one judgement looked at. The daemon keeps the last 200 of a project in
its .reflection folder; `save` copies one to your own case folder, where it stays. Secrets are taken out
before a case is written; names and code of your project are in it, so look before you share one.

examples:
  reflectd case save                              keep the newest case of this folder
  reflectd case save ses_58c3f --out bug.json     keep one session's newest case as bug.json
  reflectd case label bug.json --expect complete --why "the tests were forbidden"
  reflectd case list
  reflectd judge bug.json --provider offline      what the rules say now
  reflectd case remove ses_58c3f0d91ffe_1760000001000

`reflectd dispute` saves and labels in one step.
exit codes: 0 done, 1 not available, 2 wrong arguments or file"""


def add_parser(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the verb and what it does."""
    parser = verbs.add_parser(
        "case",
        help="keep cases, label, list or remove them",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    what = parser.add_subparsers(dest="what", metavar="WHAT", required=True)
    save = what.add_parser("save", help="copy a session's newest case to your case folder")
    save.add_argument("session", nargs="?", default="", metavar="SESSION", help="its id, or how it begins")
    save.add_argument("--out", metavar="FILE", help="write it to FILE instead")
    add_flags(save)
    save.set_defaults(run=_save)
    label = what.add_parser("label", help="say what the verdict of a case should have been")
    label.add_argument("file", metavar="FILE", help="a path, or a name from `reflectd case list`")
    label.add_argument("--expect", choices=EXPECTED, required=True, help="what it should have been")
    label.add_argument("--why", default="", metavar="TEXT", help="one sentence, for whoever reads it")
    add_flags(label)
    label.set_defaults(run=_label)
    shown = what.add_parser("list", help="show the cases of your case folder")
    shown.add_argument("--json", action="store_true", help="print them as JSON")
    add_flags(shown)
    shown.set_defaults(run=_list)
    remove = what.add_parser("remove", help="remove a case from your case folder")
    remove.add_argument("file", metavar="FILE", help="a name from `reflectd case list`")
    add_flags(remove)
    remove.set_defaults(run=_remove)


def newest_case(where: Paths, session: str) -> Path:
    """The newest case of a session, or of the current folder when none is named."""
    from daemon.files.case_folder import newest
    from daemon.files.verdict import FOLDER

    here = Path.cwd()
    directories = [here, *_directories(where, session)] if session else [here]
    folders = [f for d in directories for f in (d / FOLDER, where.fallback_reflection(d))]
    found = newest(dict.fromkeys(folders), session)
    if found is None:
        of = f"session {session!r} has" if session else f"{here} has"
        raise UserError(
            f"{of} no saved case. The daemon writes one when it judges a turn; `reflectd status` shows the "
            "sessions it knows. Name one, or run this in its folder"
        )
    return found


def _directories(where: Paths, session: str) -> Iterator[Path]:
    """Where the daemon knows the session to be; nothing when no daemon runs."""
    socket = find_socket(where)
    try:
        known = request(socket, "GET", f"/v1/sessions?limit={SESSIONS}")["sessions"]
        judged = request(socket, "GET", f"/v1/verdicts?limit=1&session={quote(session, safe='')}")["verdicts"]
    except Unavailable:
        return
    for found in [*judged, *known]:
        if str(found["session"]).startswith(session) and found["directory"]:
            yield Path(found["directory"])


def _save(args: argparse.Namespace) -> int:
    from daemon.files.case_folder import CaseFolder

    _, where = load(args)
    source = newest_case(where, args.session)
    path, new = CaseFolder(where.state_dir).save(source, Path(args.out) if args.out else None)
    print(f"saved {source} to {path}" if new else f"{path} is saved already; its label stays")
    return 0


def _label(args: argparse.Namespace) -> int:
    from daemon.files.case_folder import CaseFolder

    _, where = load(args)
    folder = CaseFolder(where.state_dir)
    path = folder.find(args.file)
    before = folder.label(path, args.expect, args.why)
    changed = f" (it said {before.get('expect')})" if before else ""
    print(f"{path} expects {args.expect}{changed}")
    return 0


def _list(args: argparse.Namespace) -> int:
    from daemon.files.case_folder import CaseFolder

    _, where = load(args)
    folder = CaseFolder(where.state_dir)
    cases = folder.list()
    if args.json:
        print(json.dumps({"folder": str(folder.path), "cases": [_as_json(c) for c in cases]}, indent=1))
        return 0
    for case in cases:
        if case.problem:
            print(f"{case.path.stem}  can't be used: {plain(case.problem)}")
            continue
        judged, expect = case.judged or "not judged", case.expect or "no label"
        print(f"{case.path.stem}  judged {judged}, expected {expect}  {plain(case.request[:60])}")
    if not cases:
        print(f"no cases in {folder.path}; `reflectd case save` or `reflectd dispute` makes one")
    return 0


def _as_json(case: Saved) -> dict[str, Any]:
    return {
        "file": str(case.path),
        "session": case.session,
        "at": case.at,
        "judged": case.judged,
        "expect": case.expect,
        "why": case.why,
        "request": case.request,
        "problem": case.problem,
    }


def _remove(args: argparse.Namespace) -> int:
    from daemon.files.case_folder import CaseFolder

    _, where = load(args)
    print(f"removed {CaseFolder(where.state_dir).remove(args.file)}")
    return 0


def plain(text: str) -> str:
    """One line without what a terminal would obey."""
    return "".join(c if c.isprintable() else " " for c in text)

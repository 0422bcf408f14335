"""``reflectd case``: keep cases, say what their verdict should have been, list and remove them.

``dispute`` is the same in one step. Which case is meant is decided here: the newest of a session, which the
daemon is asked for where it runs, else the newest in the folder.
"""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from daemon.cli.render import print_json, short, table
from daemon.cli.settings import add_flags, load
from daemon.client import request
from daemon.core.errors import Unavailable, UserError
from daemon.paths import find_socket

if TYPE_CHECKING:
    from daemon.paths import Paths

EXPECTED = ("complete", "incomplete", "awaiting_user")
LOOKED_AT = 200  # cases; as many as a project keeps
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
    save = _verb(what, "save", "copy a session's newest case to your case folder")
    save.add_argument("session", nargs="?", default="", metavar="SESSION", help="its id, or how it begins")
    save.add_argument("--out", metavar="FILE", help="write it to FILE instead")
    add_flags(save)
    save.set_defaults(run=_save)
    label = _verb(what, "label", "say what the verdict of a case should have been")
    label.add_argument("file", metavar="FILE", help="a path, or a name from `reflectd case list`")
    label.add_argument("--expect", choices=EXPECTED, required=True, help="what it should have been")
    label.add_argument("--why", default="", metavar="TEXT", help="one sentence, for whoever reads it")
    add_flags(label)
    label.set_defaults(run=_label)
    shown = _verb(what, "list", "show the cases of your case folder")
    shown.add_argument("--json", action="store_true", help="print them as JSON")
    add_flags(shown)
    shown.set_defaults(run=_list)
    remove = _verb(what, "remove", "remove a case from your case folder")
    remove.add_argument("file", metavar="FILE", help="a name from `reflectd case list`")
    add_flags(remove)
    remove.set_defaults(run=_remove)


def _verb(
    verbs: argparse._SubParsersAction[argparse.ArgumentParser], name: str, text: str
) -> argparse.ArgumentParser:
    return verbs.add_parser(name, help=text, description=text)


def newest_case(where: Paths, session: str) -> Path:
    """The newest case of a session, or of the current folder when none is named. Raises ``UserError``."""
    from daemon.files.cases import folders, newest_cases

    here = Path.cwd()
    known = _known(where, session, here) if session else []
    found = known or newest_cases(folders(here, where.fallback_reflection(here)), session, limit=LOOKED_AT)
    if not found:
        of = f"session {session!r} has" if session else f"{here} has"
        raise UserError(
            f"{of} no saved case. The daemon writes one when it judges a turn; `reflectd status` shows the "
            "sessions it knows. Name one of them, or run this in its folder"
        )
    sessions = {path.stem.rpartition("_")[0] for path in found}
    if session and session not in sessions and len(sessions) > 1:
        raise UserError(f"several sessions begin with {session}: {', '.join(sorted(sessions)[:5])}")
    return next((p for p in found if p.stem.rpartition("_")[0] == session), found[0])


def _known(where: Paths, session: str, here: Path) -> list[Path]:
    """The cases of a session that the daemon knows, wherever it works; none when no daemon runs."""
    query = urlencode({"session": session, "directory": str(here)})
    try:
        found = request(find_socket(where), "GET", f"/v1/why?{query}")
    except Unavailable:
        return []
    except UserError as e:
        if "(404)" in str(e):  # it does not know the session; the folder may
            return []
        raise
    return [Path(path) for path in found["cases"]]


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
        print_json({"folder": str(folder.path), "cases": [asdict(c) | {"path": str(c.path)} for c in cases]})
        return 0
    if not cases:
        print(f"no cases in {folder.path}; `reflectd case save` or `reflectd dispute` makes one")
        return 0
    rows = [("case", "judged", "expected", "request")]
    for c in cases:
        said = f"can't be used: it {c.problem}" if c.problem else c.request
        rows.append((short(c.path.stem, 80), c.judged or "-", c.expect or "-", short(said, 60)))
    print("\n".join(table(rows)))
    return 0


def _remove(args: argparse.Namespace) -> int:
    from daemon.files.case_folder import CaseFolder

    _, where = load(args)
    print(f"removed {CaseFolder(where.state_dir).remove(args.file)}")
    return 0

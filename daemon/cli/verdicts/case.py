"""``reflectd case``: keeps cases, labels them with the right verdict, lists and removes them.

A command without a case means the newest one: of a session, which the daemon finds when it runs, else of the
current project. ``dispute`` saves and labels in one step.
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from ...client import request
from ...core.errors import Refused, Unavailable, UserError
from ...core.words import EXPECTED
from ...paths import find_socket
from ..render import Paint, print_json, short, table
from ..settings import add_flags, here, look
from ..terminal import columns
from .why import add_round, cases_upward, folder_of, gather, is_inside

if TYPE_CHECKING:
    import argparse

    from ...paths import Paths

LOOKED_AT = 200  # cases: as many as a project keeps
EPILOG = """A case is everything that one judgement looked at. The daemon keeps the last 200 cases of a
project in its .reflection folder. `save` copies one to your own case folder, where it stays. Secrets are
removed before a case is written. It holds names and code of your project, so look at it before you share it.

examples:
  reflectd case save                              keep the newest case of this project
  reflectd case save ses_58c3f --out bug.json     keep one session's newest case as bug.json
  reflectd case label bug.json --expect complete --why "the tests were forbidden"
  reflectd case list
  reflectd judge bug.json --provider offline      judge it by the rules of today
  reflectd case remove ses_58c3f0d91ffe_1760000001000

`reflectd dispute` saves and labels in one step.
exit codes: 0 done, 1 not available, 2 wrong arguments or file"""


def add_parser(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the verb and its actions."""
    parser = verbs.add_parser(
        "case",
        help="keep cases, label, list or remove them",
        epilog=EPILOG,
    )
    what = parser.add_subparsers(dest="what", metavar="WHAT", required=True)
    save = _verb(what, "save", "copy a session's newest case to your case folder")
    save.add_argument("session", nargs="?", default="", metavar="SESSION", help="its id, or how it begins")
    add_round(save)
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


def newest_case(where: Paths, session: str, number: int = 0) -> Path:
    """The newest case of a session, or of the current project when none is named; with ``number`` that of
    this round. Raises ``UserError``.
    """
    if number:
        return _case_of_round(where, session, number)
    project = here(where)
    known = _known(where, session, project) if session else []
    found = known or cases_upward(where, Path(), session, LOOKED_AT) or _known(where, session, project)
    if not found:
        of = f"session {session!r} has" if session else f"{project} has"
        raise UserError(
            f"{of} no saved case. The daemon writes one when it judges a turn; `reflectd status` shows the "
            "sessions it knows. Name one of them, or run this in its project"
        )
    sessions = {path.stem.rpartition("_")[0] for path in found}
    if session and session not in sessions and len(sessions) > 1:
        raise UserError(f"several sessions begin with {session}: {', '.join(sorted(sessions)[:5])}")
    return next((p for p in found if p.stem.rpartition("_")[0] == session), found[0])


def _case_of_round(where: Paths, session: str, number: int) -> Path:
    project = here(where)
    found = gather(where, session, project, number)
    of = found["verdicts"][0]["session"]
    if found["elsewhere"]:
        raise UserError(f"no session of {project} was judged; name one, such as {of}")
    if not found["case_file"]:
        raise UserError(
            f"round {number} of {of} has no saved case: no judge was asked, or it is not among the "
            f"{LOOKED_AT} newest of its project. `reflectd why {of} --round {number}` shows what is known"
        )
    return Path(found["case_file"])


def _known(where: Paths, session: str, project: Path) -> list[Path]:
    """The cases that the daemon knows: of a session in whatever folder, without one only of the project; none
    when no daemon runs.
    """
    query = urlencode({"session": session, "directory": str(project)})
    try:
        found = request(find_socket(where), "GET", f"/v1/why?{query}")
    except Unavailable:
        return []
    except Refused as e:
        if e.status == 404:  # the daemon does not know the session, but the folder may hold its cases
            return []
        raise
    ours = session or is_inside(folder_of(found), project)
    return [Path(path) for path in found["cases"]] if ours else []


def _save(args: argparse.Namespace) -> int:
    from ...files.labelled_cases import CaseFolder

    _, where = look(args)
    source = newest_case(where, args.session, args.round)
    path, new = CaseFolder(where.state_dir).save(source, Path(args.out) if args.out else None)
    print(f"saved {source} to {path}" if new else f"{path} was saved already and keeps its label")
    return 0


def _label(args: argparse.Namespace) -> int:
    from ...files.labelled_cases import CaseFolder

    _, where = look(args)
    folder = CaseFolder(where.state_dir)
    path = folder.find(args.file)
    before = folder.label(path, args.expect, args.why)
    changed = f" (it said {before.get('expect')})" if before else ""
    print(f"{path} expects {args.expect}{changed}")
    return 0


def _list(args: argparse.Namespace) -> int:
    from ...files.labelled_cases import CaseFolder

    _, where = look(args)
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
    print("\n".join(_listed(rows, Paint())))
    return 0


def _listed(rows: list[tuple[str, str, str, str]], paint: Paint) -> list[str]:
    """The table; where the terminal is too narrow, each case with what is known of it below."""
    lines = table(rows)
    if not paint.width or max(map(columns, lines)) <= paint.width:
        return lines
    lines = []
    for name, judged, expected, said in rows[1:]:
        lines += [name, *paint.row("  ", f"judged {judged}, expected {expected}: {said}")]
    return lines


def _remove(args: argparse.Namespace) -> int:
    from ...files.labelled_cases import CaseFolder

    _, where = look(args)
    print(f"removed {CaseFolder(where.state_dir).remove(args.file)}")
    return 0

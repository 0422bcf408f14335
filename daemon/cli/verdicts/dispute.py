"""``reflectd dispute``: a person's word on verdicts. Saves a case and labels it in one step; below it cases
are saved, labelled, listed and removed. It changes no verdict and sends nothing.

A command without a case means the newest one: of a session, else of the current project.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import asdict

from ...client import request
from ...core.errors import Unavailable, UserError
from ...core.words import EXPECTED, NAMES, state_name
from ...paths import find_socket
from ..render import count, print_json, short
from ..settings import add_flags, here, look
from ..terminal import say
from .why import add_round, cases_upward, gather

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

    from ...paths import Paths

LOOKED_AT = 200  # cases: as many as a project keeps
SAID = "done|not-done|your-turn"
VERDICT = "verdict"  # the action that is meant where none is named
EPILOG = """examples:
  reflectd dispute --should-be done                the newest verdict of this project was wrong
  reflectd dispute ses_58c3f --round 2 --should-be not-done --why "the tests never ran"
  reflectd dispute --should-be your-turn --dry-run           only show which case it is
  reflectd dispute save ses_58c3f --out bug.json   keep one session's newest case as bug.json
  reflectd dispute label bug.json --expect done --why "the tests were forbidden"
  reflectd dispute list
  reflectd dispute remove NAME                     undo; the name is printed
  reflectd judge bug.json --provider offline       judge it by the rules of today

A case is everything that one judgement looked at. The daemon keeps the last 200 cases of a project in its
.reflection folder; yours stay in your own folder. Secrets are removed before a case is written. It holds
names and code of your project, so look at it before you share it.

exit codes: 0 done, 1 not available, 2 wrong arguments or file"""


def add_parser(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the verb with its actions."""
    names = ("save", "label", "list", "remove", VERDICT)
    parser = verbs.add_parser("dispute", epilog=EPILOG, bare=VERDICT, actions=names)
    what = parser.add_subparsers(dest="what", metavar="WHAT", required=True)

    def action(name: str, text: str, run: Callable[[argparse.Namespace], int]) -> argparse.ArgumentParser:
        below = what.add_parser(name, help=text, description=text)
        add_flags(below, run, json="print them as JSON" if name == "list" else "")
        return below

    said = action(
        VERDICT, "a verdict was wrong: keep its case with the right one (also without this word)", _dispute
    )
    save = action("save", "copy a session's newest case to your case folder", _save)
    for each in (said, save):
        each.add_argument(
            "session", nargs="?", default="", metavar="SESSION", help="its id, or how it begins"
        )
        add_round(each)
    said.add_argument(
        "--should-be", type=_state, metavar=SAID, required=True, help="what the verdict should have been"
    )
    said.add_argument("--dry-run", action="store_true", help="show what would be kept, write nothing")
    save.add_argument("--out", metavar="FILE", help="write it to FILE instead")
    label = action("label", "say what the verdict of a case should have been", _label)
    label.add_argument("file", metavar="FILE", help="a path, or a name from `reflectd dispute list`")
    label.add_argument("--expect", type=_state, metavar=SAID, required=True, help="what it should have been")
    for each in (said, label):
        each.add_argument("--why", default="", metavar="TEXT", help="one sentence, for whoever reads it")
    action("list", "show the cases of your case folder", _list)
    remove = action("remove", "remove a case from your case folder", _remove)
    remove.add_argument("file", metavar="FILE", help="a name from `reflectd dispute list`")


def _state(text: str) -> str:
    """The state that a person means: in the words that `why` shows, or in those of the verdict files."""
    import argparse

    words = text.lower().replace("-", " ").replace("_", " ")
    state = next((s for s in EXPECTED if words in {NAMES[s], s.replace("_", " ")}), "")
    if not state:
        raise argparse.ArgumentTypeError(f"{text!r} is none of {SAID}")
    return state


def newest_case(where: Paths, session: str, number: int = 0) -> Path:
    """The newest case of a session, or of the current project when none is named; with ``number`` that of
    this round. Raises ``UserError``.
    """
    project = here(where)
    files = [] if number or not session else cases_upward(where, Path(), session, LOOKED_AT)
    sessions = {path.stem.rpartition("_")[0] for path in files}
    if len(sessions - {session}) > 1 and session not in sessions:
        raise UserError(f"several sessions begin with {session}: {', '.join(sorted(sessions)[:5])}")
    found = gather(where, session, project, number)
    known = [found["session"] or {}, *found["verdicts"]]
    of = next((k["session"] for k in known if k), "")
    if found["elsewhere"]:
        raise UserError(
            f"{project} has no saved case: nothing in it was judged; name a session, such as {of}"
        )
    if not found["case_file"]:
        what = f"{'round ' + str(number) + ' of ' if number else ''}{of or project}"
        more = f"; `reflectd why {of}` shows what is known" if of else ""
        raise UserError(
            f"{what} has no saved case: no judge was asked, or it is not among the {LOOKED_AT} newest of its "
            f"project{more}"
        )
    return Path(found["case_file"])


def _save(args: argparse.Namespace) -> int:
    from ...files.cases import CaseFolder

    _, where = look(args)
    source = newest_case(where, args.session, args.round)
    path, new = CaseFolder(where.state_dir).save(source, Path(args.out) if args.out else None)
    print(f"saved {source} to {path}" if new else f"{path} was saved already and keeps its label")
    return 0


def _label(args: argparse.Namespace) -> int:
    from ...files.cases import CaseFolder

    _, where = look(args)
    folder = CaseFolder(where.state_dir)
    path = folder.find(args.file)
    before = folder.label(path, args.expect, args.why)
    changed = f" (it said {state_name(str(before.get('expect')))!r})" if before else ""
    print(f"{path} expects {state_name(args.expect)!r}{changed}")
    return 0


def _list(args: argparse.Namespace) -> int:
    from ...files.cases import CaseFolder

    _, where = look(args)
    folder = CaseFolder(where.state_dir)
    cases = folder.list()
    if args.json:
        print_json({"folder": str(folder.path), "cases": [asdict(c) | {"path": str(c.path)} for c in cases]})
        return 0
    if not cases:
        print(f"no cases in {folder.path}; `reflectd dispute` makes one")
        return 0
    for c in cases:
        judged, expected = state_name(c.judged) or "-", state_name(c.expect) or "-"
        known = f"judged {judged}, expected {expected}: {c.request}"
        print(short(c.path.stem, 80))
        say("  " + short(f"can't be used: it {c.problem}" if c.problem else known, 120))
    return 0


def _remove(args: argparse.Namespace) -> int:
    from ...files.cases import CaseFolder

    _, where = look(args)
    print(f"removed {CaseFolder(where.state_dir).remove(args.file)}")
    return 0


def _dispute(args: argparse.Namespace) -> int:
    """Save the newest case of the session, or that of a round, with the person's label."""
    from ...files.cases import dispute

    _, where = look(args)
    source = newest_case(where, args.session, args.round)
    found = dispute(where.state_dir, source, args.should_be, args.why, dry_run=args.dry_run)
    case = found.case
    agrees = " (that is what the judge said)" if found.agrees else ""
    before = f" (before: {state_name(found.before)})" if found.before else ""
    say(f"session   {case.session}")
    say(f"request   {short(case.request, 100)}")
    say(f"judged    {state_name(case.judged)}{': ' if case.feedback else ''}{short(case.feedback, 160)}")
    say(f"should be {state_name(args.should_be)}{agrees}{before}")
    say(f"{'would be kept as' if args.dry_run else 'kept as'} {found.path}")
    if not args.dry_run and not found.agrees:
        _taken_back(find_socket(where), case.session)
    if not args.dry_run:
        say(f"undo with: reflectd dispute remove {found.path.stem}")
    return 0


def _taken_back(socket: Path, session: str) -> None:
    """The wrong verdict's lessons are taken back, where a daemon knows of it."""
    from ...files.cases import TAUGHT

    for feature, route in TAUGHT:
        with suppress(Unavailable, UserError):
            found = request(socket, "POST", f"/v1/features/{feature}/{route}", {"session": session})
            if found.get("counts") or found.get("texts"):
                counted = count(found["counts"], "count of a point", "counts of points")
                say(f"learned   {counted} and {count(found['texts'], 'new text')} are taken back")
            if found.get("withdrawn"):
                say(f"learned   {count(found['withdrawn'], 'lesson')} taken back")

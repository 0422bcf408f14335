"""``reflectd dispute``: a person's word on a verdict keeps its case with the right one; below it those cases
are listed and removed. It changes no verdict and sends nothing.

Without a session the newest case of the current project is meant.
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
from .why import add_round, gather

if TYPE_CHECKING:
    import argparse

    from ...paths import Paths

SAID = "done|not-done|your-turn"
VERDICT = "verdict"  # the action that is meant where none is named
EPILOG = """examples:
  reflectd dispute --should-be done          the newest verdict here was wrong
  reflectd dispute ses_58c3f --round 2 --should-be not-done --why "it never ran"
  reflectd dispute remove NAME               undo; the name is printed

A case is everything that one judgement looked at. The daemon keeps the last
200 of a project in its .reflection folder; yours stay in your own folder.
Secrets are removed before a case is written. It holds names and code of your
project, so look at it before you share it."""


def add_parser(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = verbs.add_parser("dispute", epilog=EPILOG, bare=VERDICT, actions=("list", "remove", VERDICT))
    what = parser.add_subparsers(dest="what", metavar="WHAT", required=True)
    text = "a verdict was wrong: keep its case with the right one (also without this word)"
    said = what.add_parser(VERDICT, help=text, description=text)
    said.add_argument("session", nargs="?", default="", metavar="SESSION", help="its id, or how it begins")
    add_round(said)
    said.add_argument(
        "--should-be", type=_state, metavar=SAID, required=True, help="what the verdict should have been"
    )
    said.add_argument("--why", default="", metavar="TEXT", help="one sentence, for whoever reads it")
    add_flags(said, _dispute)
    add_flags(what.add_parser("list", help="the cases that you kept"), _list, json="print them as JSON")
    remove = what.add_parser("remove", help="remove one of them")
    remove.add_argument("name", metavar="NAME", help="from `reflectd dispute list`")
    add_flags(remove, _remove)


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
    found = gather(where, session, project, number)
    known = [found["session"] or {}, *found["verdicts"]]
    of = next((k["session"] for k in known if k), "")
    if found["case_file"] and not found["elsewhere"]:
        return Path(found["case_file"])
    what = str(project) if found["elsewhere"] or not of else f"round {number} of {of}" if number else of
    raise UserError(
        f"{what} has no saved case: no judge was asked, or it is not among the 200 newest of its project"
        + (f"; `reflectd why {of}` shows what is known" if of else "")
    )


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
    print(f"removed {CaseFolder(where.state_dir).remove(args.name)}")
    return 0


def _dispute(args: argparse.Namespace) -> int:
    """Save the newest case of the session, or that of a round, with the person's label."""
    from ...files.cases import dispute

    _, where = look(args)
    source = newest_case(where, args.session, args.round)
    found = dispute(where.state_dir, source, args.should_be, args.why)
    case = found.case
    agrees = " (that is what the judge said)" if found.agrees else ""
    before = f" (before: {state_name(found.before)})" if found.before else ""
    say(f"session   {case.session}")
    say(f"request   {short(case.request, 100)}")
    say(f"judged    {state_name(case.judged)}{': ' if case.feedback else ''}{short(case.feedback, 160)}")
    say(f"should be {state_name(args.should_be)}{agrees}{before}")
    say(f"kept as {found.path}")
    if not found.agrees:
        _taken_back(find_socket(where), case.session)
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

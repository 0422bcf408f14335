"""``reflectd proof``: the checks of this project that reflectd may run, and its runs.

``use`` chooses the project's check, ``forbid`` strikes one out, ``allow`` takes that back. Exit codes:
0 done, 1 no daemon runs, or you said no, 2 no such check, one that is never run, or no terminal to ask on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..clock import SystemClock
from ..config import load_project, project_command
from ..core.errors import Unavailable, UserError
from ..files.prompts import TRUST_FILE, Trust, trusts_command
from .render import Paint, clock, place, plain, print_json, short
from .settings import add_action, database, here, load, look
from .terminal import asked, attended, say, show

if TYPE_CHECKING:
    import argparse
    from pathlib import Path

    from ..core.proof import Ended
    from ..core.settings import Settings
    from ..paths import Paths
    from ..store.proofs import Command

Json = dict[str, Any]
STATUS_S = 2.0
EPILOG = """examples:
  reflectd proof                   what may be run here, and what was run
  reflectd proof use 'make test'   the check of this project
  reflectd proof forbid 2          never run the second of the list
  reflectd config set proof.enabled true"""
WHERE = {"person": "you chose it", "project": "the project names it", "agent": "an agent ran it"}


def add_parser(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the verb and its actions."""
    parser = verbs.add_parser("proof", epilog=EPILOG, bare="list")
    what = parser.add_subparsers(dest="action", metavar="ACTION")
    add_action(what, "list", "what may be run here, and what was run (also without an action)", _list)
    use = add_action(what, "use", "choose the check of this project", _change)
    use.add_argument("command", metavar="COMMAND", help="one line, run in the project's folder")
    for name, text in (("forbid", "never run a check of the list"), ("allow", "let it be run again")):
        action = add_action(what, name, text, _change)
        action.add_argument(
            "command", metavar="N|COMMAND", help="its number in the list, or the command itself"
        )


def _list(args: argparse.Namespace) -> int:
    settings, where = look(args)
    folder = here(where, args.dir)
    settings, problems = load_project(settings, folder)
    known, ran = _known(where, folder)
    theirs = project_command(folder)
    trust = Trust(where.state_dir / TRUST_FILE, SystemClock())
    trusted = bool(theirs) and trusts_command(trust, folder, theirs)
    in_force = settings.proof.enabled and _in_force(where)
    if args.json:
        more = {"project": theirs, "trusted": trusted, "in_force": in_force}
        print_json(_as_json(settings, folder, known, ran) | more)
    else:
        told = [problem for problem in problems if "proof." in problem]
        lines = _lines(settings, folder, known, ran, told, trusted=trusted, in_force=in_force)
        show(lines)
    return 0


def _in_force(where: Paths) -> bool:
    """Says whether a running daemon has proof on; where none runs, the next one will have it."""
    from ..client import request
    from ..paths import find_socket

    try:
        status = request(find_socket(where), "GET", "/v1/status", timeout_s=STATUS_S)
    except Unavailable:
        return True
    return "proof" in status.get("features", {})


def _known(where: Paths, folder: Path) -> tuple[list[Command], list[Ended]]:
    """The checks of this project, the latest first, and the newest runs."""
    from ..store.proofs import Proofs

    project = str(folder.resolve())
    with database(where) as db:
        if db is None:
            return [], []
        found = Proofs(db)
        commands = sorted(found.commands(project), key=lambda c: (c.known.source != "person", -c.at))
        return commands, found.runs(project)


def _as_json(settings: Settings, folder: Path, known: list[Command], ran: list[Ended]) -> Json:
    p = settings.proof
    return {
        "directory": str(folder),
        "enabled": p.enabled,
        "command": p.command,
        "where": p.where,
        "minutes_a_day": p.minutes_a_day,
        "checks": [
            {
                "command": c.known.command,
                "folder": c.known.folder,
                "source": c.known.source,
                "forbidden": c.struck,
                "refused": _refused(c),
                "at": c.at,
            }
            for c in known
        ],
        "runs": [{**e.proof.published, "tests": list(e.proof.tests), "at": e.proof.at} for e in ran],
    }


def _refused(c: Command) -> str:
    from ..proof.choice import refused

    return refused(c.known.command)


def _lines(
    settings: Settings,
    folder: Path,
    known: list[Command],
    ran: list[Ended],
    problems: list[str],
    *,
    trusted: bool,
    in_force: bool,
) -> list[str]:
    from ..proof.choice import refused

    p, paint = settings.proof, Paint()
    on = "on" if in_force else "on after `reflectd restart`"
    state = on if p.enabled else "off; `reflectd config set proof.enabled true` lets it run checks"
    lines = paint.row("", f"{paint('Proof', 'bold')} in {place(folder)}: {state}", "  ")
    for problem in problems:
        lines += paint.row("  ! ", short(problem, 300))
    if p.command:
        why = refused(p.command)
        note = f": never run: {why}" if why else ""
        lines += paint.row("  ", f"everywhere: `{short(p.command, 200)}` (proof.command){note}")
    if theirs := project_command(folder):
        why = refused(theirs)
        note = (
            f"never run: {why}"
            if why
            else "trusted"
            if trusted
            else "not trusted, so not run: `reflectd trust`"
        )
        lines += paint.row("  ", f"this project's settings name `{short(theirs, 200)}`: {note}")
    if not known:
        lines.append("  No check is known here yet. `reflectd proof use 'make test'` chooses one.")
        lines.append("  While proof is on, a check that an agent runs here is known from then on.")
    for i, c in enumerate(known, 1):
        why = _refused(c)
        note = "forbidden" if c.struck else f"never run: {why}" if why else WHERE[c.known.source]
        lines += paint.row(f"  {i:2}. ", f"`{short(c.known.typed, 200)}`  {note}, {clock(c.at)}")
    if ran:
        lines += ["", paint("Runs", "bold")]
    for e in ran[:10]:
        lines += paint.row(f"  {clock(e.proof.at)}  ", short(e.proof.text, 200))
    return lines


def _change(args: argparse.Namespace) -> int:
    from ..client import request
    from ..paths import find_socket

    settings, where = load(args)
    folder = here(where, args.dir)
    command, below = args.command, ""
    if args.action == "use":
        from ..proof.choice import refused

        if why := refused(command):
            raise UserError(f"`{plain(command)[:200]}` is never run: {why}" if command else "name a command")
        if attended():
            say(f"When an agent in {place(folder)} says that it is done, reflectd would run:")
            say(f"  {plain(command)}")
        if not asked("Let it?", "only a person at a terminal chooses what is run"):
            say("Nothing was changed.")
            return 1
    else:
        known, _ = _known(where, folder)
        found = [c for i, c in enumerate(known, 1) if command in {str(i), c.known.command}]
        if not found:
            raise UserError(f"there is no check {command!r} here; `reflectd proof` lists those known")
        command, below = found[0].known.command, found[0].known.folder
    body = {"directory": str(folder), "do": args.action, "command": command, "folder": below}
    request(find_socket(where), "POST", "/v1/features/proof/change", body)
    if args.json:
        print_json(body)
    else:
        said = {"use": "is the check of this project", "forbid": "is never run", "allow": "may be run again"}
        say(f"`{plain(command)}` {said[args.action]}.")
        if args.action == "use" and not settings.proof.enabled:
            say("Proof is off: `reflectd config set proof.enabled true` switches it on.")
    return 0

"""``reflectd proof``: the checks of this project that reflectd may run, and its runs.

``use`` chooses the project's check, ``forbid`` strikes one out, ``allow`` takes that back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..clock import SystemClock
from ..config import load_project, project_command
from ..core.errors import UserError
from ..core.proof import Known, in_words, some
from ..files.prompts import TRUST_FILE, Trust, trusts_command
from .render import Paint, clock, place, plain, print_json, short
from .settings import add_action, database, here, load, look, running
from .terminal import asked, attended, say, show

if TYPE_CHECKING:
    import argparse
    from pathlib import Path

    from ..core.proof import Ended
    from ..core.settings import Settings
    from ..paths import Paths
    from ..store.proofs import Command

Json = dict[str, Any]
EPILOG = """examples:
  reflectd proof                   what may be run here, and what was run
  reflectd proof use 'make test'   the check of this project
  reflectd proof forbid 2          never run the second of the list
  reflectd config set proof.enabled true"""
WHERE = {"person": "you chose it", "project": "the project names it", "agent": "an agent ran it"}


def add_parser(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
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
    found = _gather(*look(args), args.dir)
    if args.json:
        print_json(found)
    else:
        show(_lines(found))
    return 0


def _gather(settings: Settings, where: Paths, named: str | None) -> Json:
    """All that is known about checks of the project, as ``--json`` prints it."""
    from ..proof.choice import refused

    folder = here(where, named)
    settings, problems = load_project(settings, folder)
    known, ran = _known(where, folder)
    p, theirs = settings.proof, project_command(folder)
    trust = Trust(where.state_dir / TRUST_FILE, SystemClock())
    return {
        "directory": str(folder),
        "enabled": p.enabled,
        "in_force": p.enabled and "proof" in running(where).get("features", {"proof": 0}),
        "command": p.command,
        "where": p.where,
        "minutes_a_day": p.minutes_a_day,
        "project": theirs,
        "trusted": bool(theirs) and trusts_command(trust, folder, theirs),
        "checks": [
            {
                "command": c.known.command,
                "folder": c.known.folder,
                "source": c.known.source,
                "forbidden": c.struck,
                "refused": refused(c.known.command),
                "at": c.at,
            }
            for c in known
        ],
        "runs": [{**e.proof.published, "tests": list(e.proof.tests), "at": e.proof.at} for e in ran],
        "problems": [problem for problem in problems if "proof." in problem],
    }


def _known(where: Paths, folder: Path) -> tuple[list[Command], list[Ended]]:
    from ..store.proofs import Proofs

    project = str(folder.resolve())
    with database(where) as db:
        if db is None:
            return [], []
        found = Proofs(db)
        commands = sorted(found.commands(project), key=lambda c: (c.known.source != "person", -c.at))
        return commands, found.runs(project)


def _lines(found: Json) -> list[str]:
    from ..proof.choice import refused

    paint = Paint()
    on = "on" if found["in_force"] else "on after `reflectd restart`"
    state = on if found["enabled"] else "off; `reflectd config set proof.enabled true` lets it run checks"
    lines = paint.row("", f"{paint('Proof', 'bold')} in {place(found['directory'])}: {state}", "  ")
    for problem in found["problems"]:
        lines += paint.row("  ! ", short(problem, 300))
    if command := found["command"]:
        note = f": never run: {why}" if (why := refused(command)) else ""
        lines += paint.row("  ", f"everywhere: `{short(command, 200)}` (proof.command){note}")
    if command := found["project"]:
        trusted = "trusted" if found["trusted"] else "not trusted, so not run: `reflectd trust`"
        note = f"never run: {why}" if (why := refused(command)) else trusted
        lines += paint.row("  ", f"this project's settings name `{short(command, 200)}`: {note}")
    if not found["checks"]:
        lines.append("  No check is known here yet. `reflectd proof use 'make test'` chooses one.")
        lines.append("  While proof is on, a check that an agent runs here is known from then on.")
    for i, c in enumerate(found["checks"], 1):
        note = f"never run: {c['refused']}" if c["refused"] else WHERE[c["source"]]
        note = "forbidden" if c["forbidden"] else note
        typed = short(Known(c["command"], c["folder"]).typed, 200)
        lines += paint.row(f"  {i:2}. ", f"`{typed}`  {note}, {clock(c['at'])}")
    if found["runs"]:
        lines += ["", paint("Runs", "bold")]
    for run in found["runs"][:10]:
        failed = f" ({some(tuple(run['tests']))})" if run["tests"] else ""
        lines += paint.row(f"  {clock(run['at'])}  ", short(f"{in_words(run)}{failed}", 200))
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

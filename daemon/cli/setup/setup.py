"""``reflectd setup [HOST]``: connects coding agents to reflectd, and disconnects them again.

Without a host it says which agents are there and asks about each that is not connected; ``--status`` only
says it. Who never said whether reflectd may learn is asked that too (``learning``). Reads the arguments and
tells the person what was done. When anything is wrong the settings stay as they were: exit code 2 (the person
can mend it, and is told how) or 1 (the file system refused, or there is no agent).
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...core.errors import Unavailable, UserError, told
from ..render import print_json
from ..terminal import attended, say
from . import agents, copies, learning
from . import claude_code as setup_claude
from . import opencode as setup_opencode

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Mapping
    from datetime import datetime

    from .agents import Agent
    from .edit import Action, Report
    from .judge import Outcome

NOT_CONNECTED = 3
SAID: dict[Action, str] = {
    "created": "Made {file}, which loads reflectd.",
    "added": "Added reflectd to {file}.",
    "replaced": "Updated the reflectd entry in {file}.",
    "removed": "Removed reflectd from {file}.",
    "deleted": "Removed {file}, which setup had made.",
    "restored": "Restored {file}.",
}
EPILOG = """examples:
  reflectd setup                     which agents are there? asks about each
  reflectd setup --status            what is connected, and who judges
  reflectd setup --yes               connect every agent that is there
  reflectd setup --yes --learning on the same, and learn from judged sessions
  reflectd setup opencode --dry-run  show the change, write nothing
  reflectd setup claude-code --undo  take the last change back

exit codes: 0 done (--status: an agent is connected), 1 no agent is there, or a
file can't be written, 2 wrong arguments or settings, 3 --status: none is
connected"""


def add_parser(subparsers: argparse._SubParsersAction[Any]) -> None:
    """Register the verb and its hosts."""
    setup = subparsers.add_parser(
        "setup",
        help="connect a coding agent to reflectd",
        usage="%(prog)s [-h] [--status | --yes] [--learning {on,off}] [--json] [HOST ...]",
        epilog=EPILOG,
    )
    what = setup.add_mutually_exclusive_group()
    what.add_argument("--status", action="store_true", help="say what is connected, change nothing")
    what.add_argument("--yes", action="store_true", help="connect every agent that is there")
    setup.add_argument("--json", action="store_true", dest="all_json", help="print the outcome as JSON")
    learning.add_flag(setup, "all_learning")
    hosts = setup.add_subparsers(dest="host", metavar="HOST", prog=setup.prog)
    for host in (setup_opencode, setup_claude):
        host.add_parser(hosts)
        learning.add_flag(hosts.choices[host.HOST])
    setup.set_defaults(run=run, parsers=hosts.choices)


def run(
    args: argparse.Namespace,
    *,
    env: Mapping[str, str] = os.environ,
    now: Callable[[], datetime] | None = None,
) -> int:
    """Do what the arguments say and report it. Returns the exit code."""
    clock = now or _utc_now
    as_json = args.all_json or bool(args.host and args.json)
    args.json = as_json
    try:
        _check(args)
        value, code = (_one(args, env, clock), 0) if args.host else _all(args, env, clock)
    except (UserError, Unavailable, OSError) as error:
        what = told(error)
        if as_json:
            print_json({"error": what})
        else:
            say(f"reflectd: {what}", sys.stderr)
        return 2 if isinstance(error, UserError) else 1
    if as_json:
        print_json(value)
    return code


def _check(args: argparse.Namespace) -> None:
    """Refuse what does not go together, before anything is written. Raises ``UserError``."""
    if args.host and (args.status or args.yes):
        raise UserError("--status and --yes are about all agents: leave out the agent's name")
    if _wanted(args) and (args.status if not args.host else args.remove or args.undo):
        raise UserError("give --learning where something is set up: not with --status, --remove or --undo")


def _wanted(args: argparse.Namespace) -> str | None:
    """What ``--learning`` says, before the host's name or after it."""
    found: str | None = args.all_learning or getattr(args, "learning", None)
    return found


def _all(
    args: argparse.Namespace, env: Mapping[str, str], clock: Callable[[], datetime]
) -> tuple[dict[str, Any], int]:
    """Say what is there, and connect what the person wants. The value for ``--json``, and the exit code."""
    found = agents.look(env, Path.cwd())
    if not (args.all_json or args.yes):
        say("\n".join(line for agent in found for line in agent.lines(env)))
    if args.status:
        return {"agents": [a.as_json() for a in found]}, 0 if any(a.loads for a in found) else NOT_CONNECTED
    there = [agent for agent in found if agent.program]
    if not there:
        raise Unavailable(
            f"no coding agent was found: {agents.neither()} is on PATH. Install one "
            f"({', '.join(agents.ADDRESSES.values())}), then run this again"
        )
    terminal = attended()
    if not args.yes and (args.all_json or not terminal):
        raise UserError(
            "there is no terminal to ask on: add --yes, or name an agent "
            f"({' or '.join(f'reflectd setup {agent.host}' for agent in there)}). Nothing was changed"
        )
    values, steps = [], list[str]()
    for agent in there:
        if agent.loads and not args.yes:
            if copies.refresh(env, agent.host):
                say(f"\n{copies.place(env, agent.host)} is of this version now. Next: restart {agent.name}.")
        else:
            if not args.yes and not _wants(agent):
                continue
            if not args.all_json:
                print(f"{agent.name}:")
            one = args.parsers[agent.host].parse_args(["--json"] if args.all_json else [])
            one.host = agent.host
            value, more = _connect(one, env, clock)
            values.append({"host": agent.host, **value})
            steps += more
    connected = all(agent.loads for agent in there)
    if not values and not args.all_json:
        say("\nAll of them are connected: nothing to do." if connected else "\nNothing was changed.")
    if not (values or any(agent.loads for agent in there) or _wanted(args)):
        return {"agents": values}, 0
    args.dry_run = args.force = False
    learns = _learn(args, env, clock, steps)
    return {"agents": values, **learns}, 0


def _wants(agent: Agent) -> bool:
    """Whether the person says yes; Enter is one. Ctrl-C and the end of input are a no."""
    try:
        answer = input(f"\nConnect {agent.name} ({agent.program})? [Y/n] ")
    except (EOFError, KeyboardInterrupt):
        print()
        return False
    return answer.strip().lower() in {"", "y", "yes"}


def _one(args: argparse.Namespace, env: Mapping[str, str], clock: Callable[[], datetime]) -> dict[str, Any]:
    """Connect or disconnect one agent, and ask whether it may learn. The value for ``--json``."""
    value, steps = _connect(args, env, clock)
    if args.remove or args.undo:
        _tell_next(steps)
        return value
    return {**value, **_learn(args, env, clock, steps)}


def _connect(
    args: argparse.Namespace, env: Mapping[str, str], clock: Callable[[], datetime]
) -> tuple[dict[str, Any], list[str]]:
    """Connect or disconnect one agent, and tell it to the person. The value for ``--json``, and what the
    person does next.
    """
    report: Report = args.setup(args, env, clock)
    program = agents.find(env, args.host)
    if not args.json:
        _tell(report, args, env)
        if not (program or args.remove or args.undo):
            say(f"warning: {agents.missing(args.host)}: install it to use this", sys.stderr)
    judge: Outcome | str | None = args.decide(args, env, clock) if "decide" in args else None
    if args.json:
        more = {"judge": {"error": judge} if isinstance(judge, str) else judge.as_json()} if judge else {}
        return {**_as_json(report, args), "program": program or None, **more}, []
    if judge:
        lines = [f"  judge:  {judge}"] if isinstance(judge, str) else judge.lines(dry_run=args.dry_run)
        say("\n".join(lines))
    return {}, _steps(report, judge, args)


def _learn(
    args: argparse.Namespace, env: Mapping[str, str], clock: Callable[[], datetime], steps: list[str]
) -> dict[str, Any]:
    """Ask whether it may learn, where nobody said it; tell that and what the person does next. The value for
    ``--json``.
    """
    outcome = learning.decide(args, _wanted(args), env, clock)
    if args.json:
        return {"learning": {"error": outcome} if isinstance(outcome, str) else outcome.as_json()}
    if isinstance(outcome, str):
        say(f"  learns: {outcome}")
    else:
        say("\n".join(outcome.lines(dry_run=args.dry_run)))
        if outcome.diff and not args.dry_run:
            steps = [*steps, "`reflectd restart`, where a daemon runs: it still does as before"]
    _tell_next(steps)
    if told := _offered(env):
        say(f"\n{told}")
    return {}


def _offered(env: Mapping[str, str]) -> str:
    """The playbook of another program in the current project."""
    from ... import config, paths
    from ..learned.learned import offer_here

    settings = config.load(env, paths.config_file(env), left_out=[])
    return offer_here(settings, paths.resolve(env, state_dir=settings.daemon.state_dir, connects=False))


def _as_json(report: Report, args: argparse.Namespace) -> dict[str, object]:
    backup = str(report.backup) if report.backup else None
    changed = report.action != "unchanged"
    values = {"file": str(report.file), "changed": changed, "backup": backup, "line": report.line}
    more = {
        "dry_run": args.dry_run,
        "diff": report.diff,
        "warnings": report.warnings,
        "copied": report.copied,
        "notes": report.notes,
        "command": report.command.told,
    }
    return {**values, "action": report.action, **more}


def _tell(report: Report, args: argparse.Namespace, env: Mapping[str, str]) -> None:
    for warning in report.warnings:
        say(f"warning: {warning}", sys.stderr)
    if report.action == "unchanged":
        end = "." if report.notes or report.command.told else ": nothing to do."
        say(f"{report.file} {'does not load' if args.remove else 'already loads'} reflectd{end}")
        if report.copied:
            say(f"  plugin: {copies.place(env, args.host)} is of this version now")
    elif args.dry_run:
        print(report.diff, end="")
    else:
        say(SAID[report.action].format(file=report.file))
        if report.line:
            say(f"  {'loaded:' if args.remove else 'loads: '} {report.line}")
        if report.backup:
            say(f"  backup: {report.backup} (the same command with --undo restores it)")
        if report.action in {"created", "added"} and "decide" not in args:
            say(f"  judge:  {_judge(args.host, env)}")
    for note in report.notes:
        say(f"  mod:    {note}")
    if report.command.told:
        say(f"  /reflect: {report.command.told}")


def _steps(report: Report, judge: Outcome | str | None, args: argparse.Namespace) -> list[str]:
    if args.dry_run:
        return []
    steps = []
    if judge and not isinstance(judge, str) and judge.diff:
        steps.append("`reflectd restart`: a running daemon still has the old judge")
    if report.action != "unchanged" or report.copied or report.command.changed:
        steps.append(f"restart {args.host_name}.")
    return steps


def _tell_next(steps: list[str]) -> None:
    for step in steps:
        say(f"Next: {step}")


def _judge(host: str, env: Mapping[str, str]) -> str:
    """Who will judge and what it may cost. The person reads this before the first cent is spent."""
    from ... import config, paths
    from ..judging import cost, found, who_judges

    try:
        settings = config.load(env, paths.config_file(env))
        judging = found(settings, env, by_host=True)[host]
    except UserError as error:
        return f"the daemon will not start with these settings: {error}"
    most = cost(judging, settings)
    offline = f'; without a model: judge.provider = "offline" in {paths.config_file(env)}' if most else ""
    return f"{who_judges(host, judging)}{most}{offline}"


def _utc_now() -> datetime:
    from datetime import UTC, datetime

    return datetime.now(UTC)

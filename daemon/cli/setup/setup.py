"""``reflectd setup [HOST]``: connects coding agents to reflectd, and disconnects them again.

On a terminal it asks at most three questions, each only while it is open: whether reflectd may learn
(``learning``), which agents to connect, and who judges Claude Code's sessions (``judge``). Nothing is written
before the last answer. The last line says what the person does next. When anything is wrong the settings stay
as they were: exit code 2 (the person can mend it, and is told how) or 1 (the file system refused, or there is
no agent).
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import asdict, replace

from ... import config, paths
from ...core.errors import Unavailable, UserError, told
from ...core.settings import toml
from ...core.words import HOSTS
from ..judging import cost, found, who_judges
from ..render import print_json
from ..terminal import attended, insisted, say
from . import agents, copies, judge, learning
from .claude_code import CLAUDE_CODE, FULL
from .codex import CODEX
from .edit import Action, Report, Written, put_settings
from .opencode import OPENCODE

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import datetime

    from ...core.policy import Judging
    from ...core.settings import Value
    from .agents import Agent

    Clock = Callable[[], datetime]

NOT_CONNECTED: Final = 3
WIDE: Final = 78  # columns of a question
NO_START: Final = "the daemon will not start with these settings"
OF_ONE: Final = {"dir": ("opencode",), "spec": ("opencode",), "reflect": ("claude-code",)}
"""Flags that need an agent's name, and the agents that have them."""
SAID: Final[dict[Action, str]] = {
    "created": "Made {file}, which loads reflectd.",
    "added": "Added reflectd to {file}.",
    "replaced": "Updated the reflectd entry in {file}.",
    "removed": "Removed reflectd from {file}.",
    "deleted": "Removed {file}, which setup had made.",
    "restored": "Restored {file}.",
}
EPILOG: Final = """examples:
  reflectd setup                     asks a few short questions, then connects
  reflectd setup --status            what is connected, and who judges
  reflectd setup --yes               connect every agent that is there, ask nothing
  reflectd setup --dry-run           show what that would change, write nothing
  reflectd setup --undo              take the last change of each agent back
  reflectd setup --learning on       learn from judged sessions, change nothing else
  reflectd setup --judge claude-cli  who judges Claude Code's sessions
  reflectd setup opencode --remove   disconnect one agent

exit codes: 0 done (--status: an agent is connected), 1 no agent is there, you
ended it at a question, or a file can't be written, 2 wrong arguments or
settings, 3 --status: none is connected"""
PROOF: Final = "proof.enabled"


def add_parser(subparsers: argparse._SubParsersAction[Any]) -> None:
    """Register the verb."""
    setup = subparsers.add_parser("setup", epilog=EPILOG)
    setup.add_argument("host", nargs="?", choices=tuple(HOSTS), metavar="HOST", help=" or ".join(HOSTS))
    what = setup.add_mutually_exclusive_group()
    what.add_argument("--status", action="store_true", help="say what is connected, change nothing")
    what.add_argument(
        "--undo", action="store_true", help="restore the agent's settings from the newest backup"
    )
    what.add_argument("--remove", action="store_true", help="remove what is ours, and nothing else")
    setup.add_argument(
        "--yes", action="store_true", help="ask nothing; without HOST: connect every agent that is there"
    )
    setup.add_argument("--dry-run", action="store_true", help="show the change, write nothing")
    for flag, text in (
        ("--learning", "whether it learns from judged sessions (asked once; alone it means on)"),
        ("--proof", "whether it runs a project's own check (asked once; alone it means on)"),
    ):
        setup.add_argument(flag, nargs="?", const="on", choices=("on", "off"), help=text)
    setup.add_argument(
        "--judge",
        choices=judge.CHOICES,
        help="who judges Claude Code's sessions, with `setup codex` Codex's (asked while nobody was chosen)",
    )
    where = setup.add_mutually_exclusive_group()
    where.add_argument("--global", "--user", action="store_true", help="in all your projects (the default)")
    where.add_argument("--project", action="store_true", help="in this folder only")
    where.add_argument("--dir", metavar="DIR", help="opencode: in that folder only")
    for flag, text in (
        ("--mod", "Claude Code: with or without the plugin's mod, which runs with your rights"),
        ("--reflect", f"Claude Code: with or without a command /reflect of yours, for {FULL}"),
    ):
        setup.add_argument(flag, action=argparse.BooleanOptionalAction, help=text)
    setup.add_argument("--spec", help="opencode: what it loads, for example opencode-reflectd from npm")
    setup.add_argument(
        "--force", action="store_true", help="even if the file was edited since or belongs to another user"
    )
    setup.add_argument("--json", action="store_true", help="print the outcome as JSON")
    setup.set_defaults(run=run)


def run(args: argparse.Namespace, *, env: Mapping[str, str] = os.environ, now: Clock | None = None) -> int:
    """Do what the arguments say and report it. Returns the exit code. Raises ``UserError``, ``Unavailable``,
    ``OSError``.
    """
    _check(args)
    value, code = _status(args, env) if args.status else _change(args, env, now or _utc_now)
    if args.json:
        print_json(value)
    return code


def _check(args: argparse.Namespace) -> None:
    """Refuse arguments that don't go together. Raises ``UserError``."""
    back = args.remove or args.undo
    if args.host and args.status:
        raise UserError("--status is about all agents: leave out the agent's name")
    if args.status and args.yes:
        raise UserError("--yes is not allowed with --status")
    for key in ("learning", "proof", "judge", "mod", "reflect"):
        given = getattr(args, key)
        if given is not None and (back or args.status):
            flag = f"--{'no-' if given is False else ''}{key}"
            raise UserError(f"give {flag} alone, without --remove, --undo and --status")
    for key, hosts in OF_ONE.items():
        if getattr(args, key) is not None and args.host not in hosts:
            raise UserError(
                f"--{key} is for one agent: {' or '.join(f'`reflectd setup {h}`' for h in hosts)}"
            )
    if args.host == OPENCODE.host and (args.mod is not None or args.judge):
        raise UserError("--mod and --judge are not for opencode: `reflectd setup claude-code`")


def _status(args: argparse.Namespace, env: Mapping[str, str]) -> tuple[dict[str, Any], int]:
    """Say what is connected. The value for ``--json``, and the exit code."""
    there = agents.look(env, Path.cwd())
    if not args.json:
        say("\n".join(line for agent in there for line in agent.lines(env)))
    return {"agents": [a.as_json() for a in there]}, 0 if any(a.loads for a in there) else NOT_CONNECTED


def _change(args: argparse.Namespace, env: Mapping[str, str], now: Clock) -> tuple[dict[str, Any], int]:
    """Ask what is open, then write the answers and connect or disconnect. The value for ``--json``, and the
    exit code.
    """
    back = args.remove or args.undo
    values = _flags(args, env)
    asks = attended() and not (args.json or args.yes or args.dry_run or back)
    hosts: Sequence[str] | None = [args.host] if args.host else None
    there: list[Agent] = []
    if hosts is None and back:
        hosts = [agent.host for agent in agents.look(env, Path.cwd()) if agent.loads]
    elif hosts is None and values and not args.yes:
        hosts, asks = [], False  # a flag that answers one question, and nothing else
    elif hosts is None:
        there = _there(args, env)
        if args.yes or args.dry_run:
            hosts = [agent.host for agent in there]
        elif not asks:
            raise UserError(
                "there is no terminal to ask on: add --yes, or name an agent "
                f"({' or '.join(f'reflectd setup {agent.host}' for agent in there)}). Nothing was changed"
            )
    if asks:
        try:
            more, hosts = _asked(values, hosts, there, env)
        except (EOFError, KeyboardInterrupt):
            print("\nNothing was changed.")
            return {}, 1
        values |= more
    return _done(args, env, now, values, hosts or ())


def _flags(args: argparse.Namespace, env: Mapping[str, str]) -> dict[str, Value]:
    """The settings that the flags set. Raises ``UserError`` for a judge that is not set up."""
    values: dict[str, Value] = {}
    if args.learning:
        values |= dict.fromkeys(learning.SETTINGS, args.learning == "on")
    if args.proof:
        values[PROOF] = args.proof == "on"
    if args.judge:
        values |= judge.given(args.judge, env, args.host or CLAUDE_CODE.host)
    if args.mod is not None:
        values["claude_code.mod"] = args.mod
    return values


def _there(args: argparse.Namespace, env: Mapping[str, str]) -> list[Agent]:
    """The agents on this machine, which are told to the person. Raises ``Unavailable`` when there is none."""
    looked = agents.look(env, Path.cwd())
    there = [agent for agent in looked if agent.program]
    if not (args.json or args.yes):
        say("\n".join(line for agent in looked for line in agent.lines(env)))
    if not there:
        raise Unavailable(
            f"no coding agent was found: {agents.neither()} is on PATH. Install one "
            f"({', '.join(host.address for host in agents.HOST.values())}), then run this again"
        )
    return there


def _asked(
    values: Mapping[str, Value], hosts: Sequence[str] | None, there: Sequence[Agent], env: Mapping[str, str]
) -> tuple[dict[str, Value], Sequence[str]]:
    """The settings that the person's answers set, and the agents to connect. With wrong settings only the
    agents are asked for. Raises ``EOFError`` and ``KeyboardInterrupt``.
    """
    try:
        settings = config.load(env, paths.config_file(env))
    except UserError:
        return {}, _which(there) if hosts is None else hosts
    more: dict[str, Value] = {}
    if not (learning.is_answered(settings) or learning.POINTS in values):
        more |= dict.fromkeys(learning.unanswered(settings), learning.ask(settings, env))
    connected = [agent.host for agent in there if agent.loads]
    hosts = _which(there) if hosts is None else hosts
    left = judge.undecided(settings, {*hosts, *connected})
    if left and not values.keys() & set(judge.SETTINGS.values()):
        more |= judge.ask(settings, env, left)
    if PROOF not in settings.sources and PROOF not in values:
        more[PROOF] = _may_prove()
    return more, hosts


def _may_prove() -> bool:
    """Asks whether a project's own check may be run. Raises ``EOFError`` and ``KeyboardInterrupt``."""
    say(
        "\nMay reflectd run a project's own check, such as `make test`, before a turn counts as done? Only a "
        "command that you chose or that an agent ran there before; `reflectd proof` lists them."
    )
    return insisted("Prove? [y/N] Enter is no: ")


def _which(there: Sequence[Agent]) -> list[str]:
    """The agents that the person wants to connect, of those that are not; Enter is all of them. Raises
    ``EOFError`` and ``KeyboardInterrupt``.
    """
    unheard = {agent.host for agent in there if agent.host == CODEX.host and agent.silenced}
    new = {agent.host: HOSTS[agent.host] for agent in there if not agent.loads or agent.host in unheard}
    if not new:
        return []
    one = f", or one: {', '.join(new)}" if len(new) > 1 else ""
    *others, last = new.values()
    question = f"Connect {', '.join(others)}{' and ' if others else ''}{last}?"
    options = f"[Y/n{one}] "
    question += f"\n{options}" if len(question) + len(options) > WIDE else f" {options}"
    while True:
        answer = input(f"\n{question}").strip().lower()
        if answer in {"", "y", "yes"}:
            return list(new)
        if answer in {"n", "no"}:
            return []
        if answer in new:
            return [answer]
        say(f"Type y, n{one}.")


def _done(
    args: argparse.Namespace,
    env: Mapping[str, str],
    now: Clock,
    values: Mapping[str, Value],
    hosts: Sequence[str],
) -> tuple[dict[str, Any], int]:
    """Write the settings, connect or disconnect the agents, and say what was done and what comes next. The
    value for ``--json``, and the exit code.
    """
    back, dry = args.remove or args.undo, args.dry_run
    if not (dry or back):  # what is refused is refused before anything is written
        for host in hosts:
            agents.HOST[host].setup(argparse.Namespace(**{**vars(args), "dry_run": True}), env, now)
    state = _write(args, env, now, values)
    reports: dict[str, Report] = {}
    failed = ""
    for host in hosts:
        try:
            reports[host] = agents.HOST[host].setup(args, env, now)
        except UserError as error:
            if args.host or not back:
                raise
            failed = told(error)  # the other agent's settings can still be taken back
            say(f"{HOSTS[host]}: {failed}", sys.stderr)
            continue
        if not args.json:
            if not args.host:
                print(f"{HOSTS[host]}:")
            _tell(reports[host], host, args, env, state)
    changed = {h for h, r in reports.items() if r.action != "unchanged" or r.copied or r.command.changed}
    changed |= set() if dry or back else set(copies.refresh_all(env))
    if args.json:
        return _as_json(args, env, reports, values, state), 2 if failed else 0
    for host, key in judge.SETTINGS.items():
        if key in values and host not in reports:
            _tell_judge(host, env, state)
    if not back and (reports or learning.POINTS in values or not values):
        say(f"  learns: {state.problem or learning.in_words(state.settings)}")
    _tell_next(args, env, [name for host, name in HOSTS.items() if host in changed], state)
    return {}, 2 if failed else 0


def _write(
    args: argparse.Namespace, env: Mapping[str, str], now: Clock, values: Mapping[str, Value]
) -> Written:
    """Set our own settings and tell it. With none to set they may have mistakes. Raises ``UserError`` and
    ``Unavailable``.
    """
    file, wrong = paths.config_file(env), list[str]()
    settings = config.load(env, file, left_out=None if values else wrong)
    if not values:
        return Written(file, settings, problem=f"{NO_START}: {'; '.join(wrong)}" if wrong else "")
    written = put_settings(env, values, now, force=args.force, dry_run=args.dry_run)
    if "claude-cli" in map(values.get, judge.SETTINGS.values()) and not args.dry_run:
        login = judge.login_of(written.settings, env)
        written = replace(written, notes=(*written.notes, *([f"Claude Code is {login}"] if login else [])))
    if not args.json:
        _tell_settings(written, values, dry=args.dry_run)
    return written


def _tell_settings(written: Written, values: Mapping[str, Value], *, dry: bool) -> None:
    """Say which of our own settings were set, or would be."""
    if dry:
        print(written.diff, end="")
        return
    lines = ", ".join(f"{key} = {toml(value)}" for key, value in values.items())
    say(f"{'Wrote' if written.diff else 'It stands already:'} {lines} in {written.file}")
    if written.backup:
        say(f"  backup: {written.backup} (`reflectd config undo`)")
    for note in written.notes:
        say(f"  note:   {note}")


def _tell(
    report: Report, host: str, args: argparse.Namespace, env: Mapping[str, str], state: Written
) -> None:
    """Say what became of one agent's settings, and who judges its sessions."""
    for warning in report.warnings:
        say(f"warning: {warning}", sys.stderr)
    if report.action == "unchanged":
        end = "." if report.command.told else ": nothing to do."
        say(f"{report.file} {'does not load' if args.remove else 'already loads'} reflectd{end}")
        if report.copied:
            say(f"  plugin: {copies.place(env, host)} is of this version now")
    elif args.dry_run:
        print(report.diff, end="")
    else:
        say(SAID[report.action].format(file=report.file))
        if report.backup:
            say(f"  backup: {report.backup} (the same command with --undo restores it)")
    if report.note:
        say(f"  {report.note}")
    if report.command.told:
        say(f"  /reflect: {report.command.told}")
    if args.remove or args.undo:
        return
    if not agents.HOST[host].find(env):
        say(f"warning: {agents.missing(host)}: install it to use this", sys.stderr)
    _tell_judge(host, env, state)


def _tell_judge(host: str, env: Mapping[str, str], state: Written) -> None:
    """Say who judges the sessions of a host, what that may cost, and what the judge lacks."""
    judging = _judging(host, env, state)
    if isinstance(judging, str):
        say(f"  judge:  {judging}")
        return
    say(f"  judge:  {who_judges(host, judging)}{cost(judging, state.settings)}")
    notes = judge.notes(state.settings, judging, env) if host in judge.SETTINGS else []
    if judging.asked == ("offline",) and (state.settings.playbook.enabled or state.settings.memory.enabled):
        notes.append(f"while the rules judge, nothing is learned by itself from sessions of {HOSTS[host]}")
    for note in notes:
        say(f"  note:   {note}")


def _judging(host: str, env: Mapping[str, str], state: Written) -> Judging | str:
    """The judge of a host's sessions, or why nobody can say it: a key file that can't be read."""
    try:
        return state.problem or found(state.settings, env, by_host=True)[host]
    except UserError as error:
        return f"{NO_START}: {error}"


def _as_json(
    args: argparse.Namespace,
    env: Mapping[str, str],
    reports: Mapping[str, Report],
    values: Mapping[str, Value],
    state: Written,
) -> dict[str, Any]:
    """The steps, for a script."""
    back = args.remove or args.undo
    each = []
    for host, report in reports.items():
        named = {} if args.host else {"host": host}
        judges = {"judge": _judge(state, env, host)} if host in judge.SETTINGS and not back else {}
        each.append({**named, **_report(report, host, args, env, values), **judges})
    if back:
        return each[0] if args.host else {"agents": each}
    enabled = {"enabled": state.settings.playbook.enabled, "lessons": state.settings.memory.enabled}
    more = {"answered": learning.is_answered(state.settings), **state.as_json(*learning.SETTINGS)}
    learns: dict[str, Any] = {"error": state.problem} if state.problem else {**enabled, **more}
    alone = {"judge": _judge(state, env, args.host or CLAUDE_CODE.host)} if args.judge and not each else {}
    return {**(each[0] if args.host else {"agents": each}), **alone, "learning": learns}


def _judge(state: Written, env: Mapping[str, str], host: str) -> dict[str, Any]:
    judging = _judging(host, env, state)
    if isinstance(judging, str):
        return {"error": judging}
    notes = [*state.notes, *judge.notes(state.settings, judging, env)]
    return {**judging._asdict(), **state.as_json(judge.SETTINGS[host]), "warnings": notes}


def _report(
    report: Report, host: str, args: argparse.Namespace, env: Mapping[str, str], values: Mapping[str, Value]
) -> dict[str, Any]:
    mod = {"claude_code.mod"} & values.keys() if host == CLAUDE_CODE.host else set[str]()
    return {
        **asdict(report),
        "file": str(report.file),
        "changed": report.action != "unchanged",
        "backup": str(report.backup) if report.backup else None,
        "dry_run": args.dry_run,
        "notes": [f"{key} = {toml(values[key])}" for key in mod],
        "command": report.command.told,
        "program": agents.HOST[host].find(env) or None,
    }


def _tell_next(
    args: argparse.Namespace, env: Mapping[str, str], changed: Sequence[str], state: Written
) -> None:
    """The last line: what the person does now. ``changed``: the agents that run with what was before."""
    from ..control.start import status
    from ..learned.learned import offer_here

    back = args.remove or args.undo
    if args.dry_run:
        say("Nothing was written.")
        return
    settings = state.settings
    where = paths.resolve(env, state_dir=settings.daemon.state_dir, connects=False)
    if not back and (offer := offer_here(settings, where)):
        say(offer)
    unused = {"claude_code.mod"}  # by the daemon
    old = state.changed - unused and status(paths.find_socket(where), 1.0)
    steps = ["`reflectd start`"] if where.stopped.exists() and not back else []
    steps += ["`reflectd restart`"] if old else []
    steps += [f"restart {' and '.join(changed)}"] if changed else []
    if args.undo and not args.host and any(key in settings.sources for key in learning.SETTINGS):
        say("Learning and the judge stay as you said: `reflectd config --changed`.")
    if steps:
        say(f"Next: {', then '.join(steps)}.")
    elif state.changed:
        say("It counts from the daemon's next start on.")
        if not any(agent.loads for agent in agents.look(env, Path.cwd())):
            say("No agent is connected yet: `reflectd setup` connects them.")
    else:
        done = not back and _connected(env)
        say("All of it is set up: nothing to do." if done else "Nothing was changed.")


def _connected(env: Mapping[str, str]) -> bool:
    """Says whether each agent that is there loads us and runs our hooks."""
    return all(agent.loads and not agent.silenced for agent in agents.look(env, Path.cwd()) if agent.program)


def _utc_now() -> datetime:
    from datetime import UTC, datetime

    return datetime.now(UTC)

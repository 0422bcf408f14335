"""``reflectd setup [HOST]``: connects coding agents to reflectd, and disconnects them again.

On a terminal it asks what is still open: whether reflectd may learn, which agents to connect, who judges,
whether it may prove. Nothing is written before the last answer, or when anything is wrong.
"""

from __future__ import annotations

import argparse
import os
import sys
from datetime import UTC, datetime
from functools import partial
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

    from ...core.policy import Judging
    from ...core.settings import Value
    from .agents import Agent

    Clock = Callable[[], datetime]

NOT_CONNECTED: Final = 3
WIDE: Final = 78  # columns of a question
NO_START: Final = "the daemon will not start with these settings"
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
        help="who judges Claude Code's sessions; with `setup codex`, or where only Codex is there, Codex's",
    )
    setup.add_argument(
        "--project", action="store_true", help="in this folder only (else in all your projects)"
    )
    for flag, text in (
        ("--mod", "Claude Code: with or without the plugin's mod, which runs with your rights"),
        ("--reflect", f"Claude Code: with or without a command /reflect of yours, for {FULL}"),
    ):
        setup.add_argument(flag, action=argparse.BooleanOptionalAction, help=text)
    setup.add_argument(
        "--force", action="store_true", help="even if the file was edited since or belongs to another user"
    )
    setup.add_argument("--json", action="store_true", help="print the outcome as JSON")
    setup.set_defaults(run=run)


def run(
    args: argparse.Namespace,
    *,
    env: Mapping[str, str] = os.environ,
    now: Clock = partial(datetime.now, UTC),  # noqa: B008 - a clock
) -> int:
    """Do what the arguments say and report it. Returns the exit code. Raises ``UserError``, ``Unavailable``,
    ``OSError``.
    """
    _check(args)
    value, code = _status(args, env) if args.status else _Run(args, env, now).change()
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
    if args.reflect is not None and args.host != CLAUDE_CODE.host:
        raise UserError("--reflect is for one agent: `reflectd setup claude-code`")
    if args.host == OPENCODE.host and (args.mod is not None or args.judge):
        raise UserError("--mod and --judge are not for opencode: `reflectd setup claude-code`")


def _status(args: argparse.Namespace, env: Mapping[str, str]) -> tuple[dict[str, Any], int]:
    """Say what is connected. The value for ``--json``, and the exit code."""
    there = agents.look(env, Path.cwd())
    if not args.json:
        say("\n".join(line for agent in there for line in agent.lines(env)))
    return {"agents": [a.as_json() for a in there]}, 0 if any(a.loads for a in there) else NOT_CONNECTED


class _Run:
    """One run that changes something. ``values``: the settings of our own that it sets; ``state``: our
    settings after that; ``reports``: the outcome for each agent.
    """

    state: Written

    def __init__(self, args: argparse.Namespace, env: Mapping[str, str], now: Clock) -> None:
        self.args, self.env, self.now = args, env, now
        self.back, self.dry = args.remove or args.undo, args.dry_run
        self.values: dict[str, Value] = {}
        self.reports: dict[str, Report] = {}

    def change(self) -> tuple[dict[str, Any], int]:
        """Ask what is open, then do it. The value for ``--json``, and the exit code."""
        args = self.args
        self._flags()
        asks = attended() and not (args.json or args.yes or self.dry or self.back)
        hosts: Sequence[str] | None = [args.host] if args.host else None
        there: list[Agent] = []
        if hosts is None and self.back:
            hosts = [agent.host for agent in agents.look(self.env, Path.cwd()) if agent.loads]
        elif hosts is None and self.values and not args.yes:
            hosts, asks = [], False  # a flag that answers one question, and nothing else
        elif hosts is None:
            there = self._there()
            if args.yes or self.dry:
                hosts = [agent.host for agent in there]
            elif not asks:
                raise UserError(
                    "there is no terminal to ask on: add --yes, or name an agent "
                    f"({' or '.join(f'reflectd setup {agent.host}' for agent in there)}). Nothing was changed"
                )
        if asks:
            try:
                hosts = self._ask(hosts, there)
            except (EOFError, KeyboardInterrupt):
                print("\nNothing was changed.")
                return {}, 1
        return self._do(hosts or ())

    def _flags(self) -> None:
        """Take the settings from the flags. Raises ``UserError`` for a judge that is not set up."""
        args = self.args
        if args.learning:
            self.values |= dict.fromkeys(learning.SETTINGS, args.learning == "on")
        if args.proof:
            self.values[PROOF] = args.proof == "on"
        if args.judge:
            self.values |= judge.given(args.judge, self.env, self._judged)
        if args.mod is not None:
            self.values["claude_code.mod"] = args.mod

    @property
    def _judged(self) -> str:
        """Whose judge ``--judge`` is: without a host that of the only one here that lends no model."""
        there = [host for host in judge.SETTINGS if agents.HOST[host].find(self.env)]
        return self.args.host or (there[0] if len(there) == 1 else CLAUDE_CODE.host)

    def _there(self) -> list[Agent]:
        """Tells the person which agents are here. Raises ``Unavailable`` when there is none."""
        looked = agents.look(self.env, Path.cwd())
        if not (self.args.json or self.args.yes):
            say("\n".join(line for agent in looked for line in agent.lines(self.env)))
        if there := [agent for agent in looked if agent.program]:
            return there
        raise Unavailable(
            f"no coding agent was found: {agents.neither()} is on PATH. Install one "
            f"({', '.join(host.address for host in agents.HOST.values())}), then run this again"
        )

    def _ask(self, hosts: Sequence[str] | None, there: Sequence[Agent]) -> Sequence[str]:
        """Take settings from the person's answers; the agents to connect. With wrong settings only the agents
        are asked for. Raises ``EOFError`` and ``KeyboardInterrupt``.
        """
        try:
            settings = config.load(self.env, paths.config_file(self.env))
        except UserError:
            return _which(there) if hosts is None else hosts
        more: dict[str, Value] = {}
        if not (learning.is_answered(settings) or learning.POINTS in self.values):
            more |= dict.fromkeys(learning.SETTINGS, learning.ask(settings, self.env))
        connected = [agent.host for agent in there if agent.loads]
        hosts = _which(there) if hosts is None else hosts
        left = judge.undecided(settings, {*hosts, *connected})
        if left and not self.values.keys() & set(judge.SETTINGS.values()):
            more |= judge.ask(settings, self.env, left)
        if PROOF not in settings.sources and PROOF not in self.values:
            more[PROOF] = _may_prove()
        self.values |= more
        return hosts

    def _do(self, hosts: Sequence[str]) -> tuple[dict[str, Any], int]:
        """Write the settings, connect or disconnect the agents, and say what was done and what comes next."""
        args, failed = self.args, False
        if not (self.dry or self.back):  # what is refused is refused before anything is written
            for host in hosts:
                agents.HOST[host].setup(
                    argparse.Namespace(**{**vars(args), "dry_run": True}), self.env, self.now
                )
        self._write()
        for host in hosts:
            try:
                self.reports[host] = agents.HOST[host].setup(args, self.env, self.now)
            except UserError as error:
                if args.host or not self.back:
                    raise
                failed = True  # the other agent's settings can still be taken back
                say(f"{HOSTS[host]}: {told(error)}", sys.stderr)
                continue
            if not args.json:
                if not args.host:
                    print(f"{HOSTS[host]}:")
                self._tell(host)
        changed = {
            h for h, r in self.reports.items() if r.action != "unchanged" or r.copied or r.command.changed
        }
        changed |= set() if self.dry or self.back else set(copies.refresh_all(self.env))
        code = 2 if failed else 0
        if args.json:
            return self._as_json(), code
        for host, key in judge.SETTINGS.items():
            if key in self.values and host not in self.reports:
                self._tell_judge(host)
        if not self.back and (self.reports or learning.POINTS in self.values or not self.values):
            by_rules = not self.state.problem and learning.is_by_rules(self.state.settings, self.env)
            say(
                f"  learns: {self.state.problem or learning.in_words(self.state.settings, by_rules=by_rules)}"
            )
        self._tell_next([name for host, name in HOSTS.items() if host in changed])
        return {}, code

    def _write(self) -> None:
        """Set our own settings, if any, and tell it. Raises ``UserError`` and ``Unavailable``."""
        values, file, wrong = self.values, paths.config_file(self.env), list[str]()
        settings = config.load(self.env, file, left_out=None if values else wrong)
        if not values:
            problem = f"{NO_START}: {'; '.join(wrong)}" if wrong else ""
            self.state = Written(file, settings, problem=problem)
            return
        written = put_settings(self.env, values, self.now, force=self.args.force, dry_run=self.dry)
        if "claude-cli" in map(values.get, judge.SETTINGS.values()) and not self.dry:
            login = judge.login_of(written.settings, self.env)
            notes = [*written.notes, *([f"Claude Code is {login}"] if login else [])]
            written = replace(written, notes=tuple(notes))
        self.state = written
        if self.args.json:
            return
        if self.dry:
            print(written.diff, end="")
            return
        lines = ", ".join(f"{key} = {toml(value)}" for key, value in values.items())
        say(f"{'Wrote' if written.diff else 'It stands already:'} {lines} in {written.file}")
        if written.backup:
            say(f"  backup: {written.backup} (`reflectd config undo`)")
        for note in written.notes:
            say(f"  note:   {note}")

    def _tell(self, host: str) -> None:
        """Say what became of one agent's settings, and who judges its sessions."""
        report = self.reports[host]
        for warning in report.warnings:
            say(f"warning: {warning}", sys.stderr)
        if report.action == "unchanged":
            end = "." if report.command.told else ": nothing to do."
            say(f"{report.file} {'does not load' if self.args.remove else 'already loads'} reflectd{end}")
            if report.copied:
                say(f"  plugin: {copies.place(self.env, host)} is of this version now")
        elif self.dry:
            print(report.diff, end="")
        else:
            say(SAID[report.action].format(file=report.file))
            if report.backup:
                say(f"  backup: {report.backup} (the same command with --undo restores it)")
        if report.note:
            say(f"  {report.note}")
        if report.command.told:
            say(f"  /reflect: {report.command.told}")
        if self.back:
            return
        if not agents.HOST[host].find(self.env):
            say(f"warning: {agents.missing(host)}: install it to use this", sys.stderr)
        self._tell_judge(host)

    def _tell_judge(self, host: str) -> None:
        """Say who judges the sessions of a host, what that may cost, and what the judge lacks."""
        judging, settings = self._judging(host), self.state.settings
        if isinstance(judging, str):
            say(f"  judge:  {judging}")
            return
        say(f"  judge:  {who_judges(host, judging)}{cost(judging, settings)}")
        notes = judge.notes(settings, judging, self.env) if host in judge.SETTINGS else []
        if judging.asked == ("offline",) and (settings.playbook.enabled or settings.memory.enabled):
            notes.append(
                f"while the rules judge, nothing is learned by itself from sessions of {HOSTS[host]}"
            )
        for note in notes:
            say(f"  note:   {note}")

    def _judging(self, host: str) -> Judging | str:
        """The judge of a host's sessions, or why nobody can say it: a key file that can't be read."""
        try:
            return self.state.problem or found(self.state.settings, self.env, by_host=True)[host]
        except UserError as error:
            return f"{NO_START}: {error}"

    def _as_json(self) -> dict[str, Any]:
        """The steps, for a script."""
        args, state = self.args, self.state
        each = []
        for host in self.reports:
            named = {} if args.host else {"host": host}
            judges = {"judge": self._judge(host)} if host in judge.SETTINGS and not self.back else {}
            each.append({**named, **self._report(host), **judges})
        steps = each[0] if args.host else {"agents": each}
        if self.back:
            return steps
        enabled = {"enabled": state.settings.playbook.enabled, "lessons": state.settings.memory.enabled}
        more = {"answered": learning.is_answered(state.settings), **state.as_json(*learning.SETTINGS)}
        learns: dict[str, Any] = {"error": state.problem} if state.problem else {**enabled, **more}
        alone = {"judge": self._judge(self._judged)} if args.judge and not each else {}
        return {**steps, **alone, "learning": learns}

    def _judge(self, host: str) -> dict[str, Any]:
        judging = self._judging(host)
        if isinstance(judging, str):
            return {"error": judging}
        notes = [*self.state.notes, *judge.notes(self.state.settings, judging, self.env)]
        return {**judging._asdict(), **self.state.as_json(judge.SETTINGS[host]), "warnings": notes}

    def _report(self, host: str) -> dict[str, Any]:
        report = self.reports[host]
        mod = {"claude_code.mod"} & self.values.keys() if host == CLAUDE_CODE.host else set[str]()
        return {
            **asdict(report),
            "file": str(report.file),
            "changed": report.action != "unchanged",
            "backup": str(report.backup) if report.backup else None,
            "dry_run": self.dry,
            "notes": [f"{key} = {toml(self.values[key])}" for key in mod],
            "command": report.command.told,
            "program": agents.HOST[host].find(self.env) or None,
        }

    def _tell_next(self, changed: Sequence[str]) -> None:
        """The last line: what the person does now. ``changed``: the agents that run with what was before."""
        from ..control.start import status

        if self.dry:
            say("Nothing was written.")
            return
        settings = self.state.settings
        where = paths.resolve(self.env, state_dir=settings.daemon.state_dir, connects=False)
        unused = {"claude_code.mod"}  # by the daemon
        old = self.state.changed - unused and status(paths.find_socket(where), 1.0)
        steps = ["`reflectd start`"] if where.stopped.exists() and not self.back else []
        steps += ["`reflectd restart`"] if old else []
        steps += [f"restart {' and '.join(changed)}"] if changed else []
        if (
            self.args.undo
            and not self.args.host
            and any(key in settings.sources for key in learning.SETTINGS)
        ):
            say("Learning and the judge stay as you said: `reflectd config --changed`.")
        if steps:
            say(f"Next: {', then '.join(steps)}.")
            return
        there = agents.look(self.env, Path.cwd())
        if self.state.changed:
            say("It counts from the daemon's next start on.")
            if not any(agent.loads for agent in there):
                say("No agent is connected yet: `reflectd setup` connects them.")
        elif not self.back and all(a.loads and not a.silenced for a in there if a.program):
            say("All of it is set up: nothing to do.")
        else:
            say("Nothing was changed.")


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

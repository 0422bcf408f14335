"""``reflectd setup [HOST]``: connects coding agents to reflectd, and disconnects them again.

On a terminal it asks what is still open: whether reflectd may learn, which agents to connect, who judges,
whether it may prove. Nothing is written before the last answer, or when anything is wrong.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

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
from .edit import Action, Change, Written, put_settings
from .opencode import OPENCODE

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping

    from ...core.policy import Judging
    from ...core.settings import Value
    from .agents import Agent

WIDE: Final = 78  # columns of a question
SAID: Final[dict[Action, str]] = {
    "created": "Made {file}, which loads {line}.",
    "added": "Added {line} to {file}.",
    "replaced": "Updated {line} in {file}.",
    "removed": "Removed {line} from {file}.",
    "deleted": "Removed {file}, which setup had made.",
}
EPILOG: Final = """examples:
  reflectd setup                     asks a few short questions, then connects
  reflectd setup --yes               connect every agent that is there, ask nothing
  reflectd setup --dry-run           show what that would change, write nothing
  reflectd setup --undo              disconnect every agent; each file is as before
  reflectd setup --learning on       learn from judged sessions, change nothing else
  reflectd setup --judge claude-cli  who judges Claude Code's sessions
  reflectd setup opencode --undo     disconnect one agent

`reflectd doctor` says what is connected.

exit codes: 0 done, 1 no agent is there, you ended it at a question, or a file
can't be written, 2 wrong arguments or settings"""
PROOF: Final = "proof.enabled"


class _Done(Struct, frozen=True):
    """The outcome for one agent. ``copied``: the plugin's copy was made or brought up to date; ``note``: for
    the person.
    """

    changes: Sequence[Change]
    backup: Path | None = None
    copied: bool = False
    note: str = ""

    @property
    def changed(self) -> bool:
        """Says whether a file of the agent's is another one."""
        return any(change.action != "unchanged" for change in self.changes)


def add_parser(subparsers: argparse._SubParsersAction[Any]) -> None:
    """Register the verb."""
    setup = subparsers.add_parser("setup", epilog=EPILOG)
    setup.add_argument("host", nargs="?", choices=tuple(HOSTS), metavar="HOST", help=" or ".join(HOSTS))
    setup.add_argument(
        "--undo",
        "--remove",
        action="store_true",
        help="take out what is ours and nothing else; a file that nobody edited since is as before",
    )
    setup.add_argument(
        "--yes", action="store_true", help="ask nothing; without HOST: connect every agent that is there"
    )
    setup.add_argument("--dry-run", action="store_true", help="show the change, write nothing")
    setup.add_argument(
        "--learning",
        nargs="?",
        const="on",
        choices=("on", "off"),
        help="whether it learns from judged sessions (asked once; alone it means on)",
    )
    setup.add_argument(
        "--judge",
        choices=judge.CHOICES,
        help="who judges Claude Code's sessions; with `setup codex`, or where only Codex is there, Codex's",
    )
    setup.add_argument(
        "--reflect", action="store_true", help=f"Claude Code: with a command /reflect of yours, for {FULL}"
    )
    setup.add_argument("--json", action="store_true", help="print the outcome as JSON")
    setup.set_defaults(run=run)


def run(args: argparse.Namespace, *, env: Mapping[str, str] = os.environ) -> int:
    """Do what the arguments say and report it. Returns the exit code. Raises ``UserError``, ``Unavailable``,
    ``OSError``.
    """
    for key in ("learning", "judge", "reflect"):
        if args.undo and getattr(args, key):
            raise UserError(f"give --{key} alone, without --undo and --remove")
    if args.reflect and args.host != CLAUDE_CODE.host:
        raise UserError("--reflect is for one agent: `reflectd setup claude-code`")
    if args.host == OPENCODE.host and args.judge:
        raise UserError("--judge is not for opencode: `reflectd setup claude-code`")
    value, code = _Run(args, env).change()
    if args.json:
        print_json(value)
    return code


class _Run:
    """One run. ``values``: the settings of our own that it sets; ``state``: our settings after that;
    ``done``: the outcome for each agent.
    """

    def __init__(self, args: argparse.Namespace, env: Mapping[str, str]) -> None:
        self.args, self.env, self.folder = args, env, Path.cwd()
        self.back, self.dry = args.undo, args.dry_run
        self.values: dict[str, Value] = {}
        self.done: dict[str, _Done] = {}
        # a mistake in them is refused, but for disconnecting
        file, left_out = paths.config_file(env), list[str]() if args.undo else None
        self.state = Written(file, config.load(env, file, left_out=left_out))

    def change(self) -> tuple[dict[str, Any], int]:
        """Ask what is open, then do it. The value for ``--json``, and the exit code."""
        args = self.args
        if args.learning:
            self.values |= dict.fromkeys(learning.SETTINGS, args.learning == "on")
        if args.judge:
            self.values |= judge.given(args.judge, self.env, self._judged)
        asks = attended() and not (args.json or args.yes or self.dry or self.back)
        hosts: Sequence[str] | None = [args.host] if args.host else None
        there: list[Agent] = []
        if hosts is None and self.back:
            hosts = [agent.host for agent in agents.look(self.env, self.folder) if agent.loads]
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

    @property
    def _judged(self) -> str:
        """Whose judge ``--judge`` is: without a host that of the only one here that lends no model."""
        there = [host for host in judge.SETTINGS if agents.HOST[host].find(self.env)]
        return self.args.host or (there[0] if len(there) == 1 else CLAUDE_CODE.host)

    def _there(self) -> list[Agent]:
        """Tells the person which agents are here. Raises ``Unavailable`` when there is none."""
        looked = agents.look(self.env, self.folder)
        if not (self.args.json or self.args.yes):
            say("\n".join(line for agent in looked for line in agent.lines()))
        if there := [agent for agent in looked if agent.program]:
            return there
        raise Unavailable(
            f"no coding agent was found: {agents.neither()} is on PATH. Install one "
            f"({', '.join(host.address for host in agents.HOST.values())}), then run this again"
        )

    def _ask(self, hosts: Sequence[str] | None, there: Sequence[Agent]) -> Sequence[str]:
        """Take settings from the person's answers; the agents to connect. Raises ``EOFError`` and
        ``KeyboardInterrupt``.
        """
        settings = self.state.settings
        more: dict[str, Value] = {}
        if not (learning.is_answered(settings) or learning.POINTS in self.values):
            more |= dict.fromkeys(learning.SETTINGS, learning.ask(settings))
        connected = [agent.host for agent in there if agent.loads]
        hosts = _which(there) if hosts is None else hosts
        left = judge.undecided(settings, {*hosts, *connected})
        if left and not self.values.keys() & set(judge.SETTINGS.values()):
            more |= judge.ask(settings, self.env, left)
        if PROOF not in settings.sources:
            more[PROOF] = _may_prove()
        self.values |= more
        return hosts

    def _do(self, hosts: Sequence[str]) -> tuple[dict[str, Any], int]:
        """Write the settings, connect or disconnect the agents, and say what was done and what comes next."""
        plans, failed = dict[str, list[Change]](), False
        for host in hosts:  # what is refused is refused before anything is written
            one = agents.HOST[host]
            try:
                if self.back:
                    plans[host] = one.disconnect(self.env, self.folder)
                else:
                    plans[host] = one.connect(self.env, self.folder, command=self.args.reflect)
            except UserError as error:
                if self.args.host or not self.back:
                    raise
                failed = True  # the other agent's settings can still be taken back
                say(f"{HOSTS[host]}: {told(error)}", sys.stderr)
        self._write()
        for host, changes in plans.items():
            self.done[host] = _Done(changes) if self.dry else self._make(host, changes)
            if not self.args.json:
                self._tell(host)
        changed = {host for host, done in self.done.items() if done.changed or done.copied}
        changed |= set() if self.dry or self.back else set(copies.refresh_all(self.env))
        if self.args.json:
            return self._as_json(), 2 if failed else 0
        for host, key in judge.SETTINGS.items():
            if key in self.values and host not in self.done:
                self._tell_judge(host)
        if not self.back and (self.done or learning.POINTS in self.values or not self.values):
            by_rules = learning.is_by_rules(self.state.settings, self.env)
            say(f"  learns: {learning.in_words(self.state.settings, by_rules=by_rules)}")
        self._tell_next([name for host, name in HOSTS.items() if host in changed])
        return {}, 2 if failed else 0

    def _make(self, host: str, changes: Sequence[Change]) -> _Done:
        one, args = agents.HOST[host], self.args
        copied = not self.back and copies.refresh(self.env, host, make=True)
        backup = one.make(self.env, self.folder, changes)
        note = "" if self.back else one.trust(self.env, yes=args.yes, asks=attended() and not args.json)
        return _Done(changes, backup, copied, note)

    def _write(self) -> None:
        """Set our own settings, if any, and tell it. Raises ``UserError`` and ``Unavailable``."""
        values = self.values
        if not values:
            return
        self.state = written = put_settings(self.env, values, dry_run=self.dry)
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
        """Say what became of one agent's files, and who judges its sessions."""
        done, agent = self.done[host], agents.HOST[host]
        if not self.args.host:
            print(f"{HOSTS[host]}:")
        for change in done.changes:
            line = FULL if change.line == FULL else "reflectd"
            for warning in change.warnings:
                say(f"warning: {warning}", sys.stderr)
            if change.action == "unchanged":
                stands = "does not load" if self.back else "already loads"
                say(f"{change.file} {stands} {line}: nothing to do.")
            elif self.dry:
                print(change.diff, end="")
            else:
                say(SAID[change.action].format(file=change.file, line=line))
        if done.copied and not done.changed:
            say(f"  plugin: {copies.place(self.env, host)} is of this version now")
        if done.backup:
            say(f"  backup: {done.backup} (the same command with --undo restores it)")
        if done.note:
            say(f"  {done.note}")
        if self.back:
            return
        if not agent.find(self.env):
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
            return found(self.state.settings, self.env, by_host=True)[host]
        except UserError as error:
            return f"the daemon will not start with these settings: {error}"

    def _as_json(self) -> dict[str, Any]:
        """The steps, for a script."""
        args, state = self.args, self.state
        each = [self._one_as_json(host) for host in self.done]
        steps = each[0] if args.host else {"agents": each}
        if self.back:
            return steps
        enabled = {"enabled": state.settings.playbook.enabled, "lessons": state.settings.memory.enabled}
        more = {"answered": learning.is_answered(state.settings), **state.as_json(*learning.SETTINGS)}
        alone = {"judge": self._judge(self._judged)} if args.judge and not each else {}
        return {**steps, **alone, "learning": {**enabled, **more}}

    def _one_as_json(self, host: str) -> dict[str, Any]:
        done = self.done[host]
        files = [
            {"file": str(c.file), "action": c.action, "changed": c.action != "unchanged", "diff": c.diff}
            for c in done.changes
        ]
        found: dict[str, Any] = {
            "host": host,
            **files[0],
            "more": files[1:],
            "line": done.changes[0].line,
            "backup": str(done.backup) if done.backup else None,
            "warnings": [warning for change in done.changes for warning in change.warnings],
            "copied": done.copied,
            "note": done.note,
            "dry_run": self.dry,
            "program": agents.HOST[host].find(self.env) or None,
        }
        judges = {"judge": self._judge(host)} if host in judge.SETTINGS and not self.back else {}
        return {**found, **judges}

    def _judge(self, host: str) -> dict[str, Any]:
        judging = self._judging(host)
        if isinstance(judging, str):
            return {"error": judging}
        notes = [*self.state.notes, *judge.notes(self.state.settings, judging, self.env)]
        return {**judging._asdict(), **self.state.as_json(judge.SETTINGS[host]), "warnings": notes}

    def _tell_next(self, changed: Sequence[str]) -> None:
        """The last line: what the person does now. ``changed``: the agents that run with what was before."""
        from ..control.start import status

        if self.dry:
            say("Nothing was written.")
            return
        settings = self.state.settings
        where = paths.resolve(self.env, state_dir=settings.daemon.state_dir, connects=False)
        old = self.state.changed and status(paths.find_socket(where), 1.0)
        steps = ["`reflectd start`"] if where.stopped.exists() and not self.back else []
        steps += ["`reflectd restart`"] if old else []
        steps += [f"restart {' and '.join(', '.join(changed).rsplit(', ', 1))}"] if changed else []
        if self.back and not self.args.host and settings.sources.keys() & set(learning.SETTINGS):
            say("Learning and the judge stay as you said: `reflectd config --changed`.")
        if steps:
            say(f"Next: {', then '.join(steps)}.")
            return
        there = agents.look(self.env, self.folder)
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

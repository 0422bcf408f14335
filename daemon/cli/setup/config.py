"""``reflectd config``: every setting, its value, and who set it; reads and writes single ones.

``set`` writes into the person's own file, keeps everything else in it, and refuses a value that a daemon
would refuse. All but the listing and ``get`` work with a file that has mistakes.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from ... import config, paths
from ...core.errors import UserError
from ...core.settings import toml
from ...core.words import HOSTS
from ..render import Paint, plain, print_json, short
from ..settings import add_flags, load
from ..terminal import say, show
from . import copies
from .edit import put_settings, undo_settings

if TYPE_CHECKING:
    import argparse


ARGUMENTS = {"get": ("KEY",), "set": ("KEY", "VALUE"), "path": (), "undo": ()}
EPILOG = """examples:
  reflectd config                          every setting
  reflectd config --changed                those that are not as they came
  reflectd config get judge.mode
  reflectd config set judge.mode observe   in your own file; its comments stay
  reflectd config path                     where that file is
  reflectd config undo                     take the last change by `set` or `setup` back

Every setting is also a flag here: `reflectd config --judge-mode observe` shows
what would be in force.

exit codes: 0 done, 1 the file system refused, 2 an unknown setting or a wrong
value"""


def add_parser(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the verb."""
    parser = verbs.add_parser("config", epilog=EPILOG)
    parser.add_argument(
        "action",
        nargs="?",
        choices=tuple(ARGUMENTS),
        help="one setting, or the file; without it all are shown",
    )
    parser.add_argument("key", nargs="?", metavar="KEY", help="the name of a setting, such as judge.mode")
    parser.add_argument("value", nargs="?", metavar="VALUE", help="what `set` writes")
    parser.add_argument("--changed", action="store_true", help="only settings that do not have their default")
    add_flags(parser, run, json="print as JSON", all_settings=True)


def run(args: argparse.Namespace) -> int:
    """Do what the arguments say. Raises ``UserError`` and ``Unavailable``."""
    given = [name for name in ("key", "value") if getattr(args, name) is not None]
    wanted = ARGUMENTS.get(args.action or "", ())
    if len(given) != len(wanted):
        raise UserError(f"write `reflectd config {' '.join((args.action, *wanted))}`")
    match args.action:
        case "path":
            print(paths.config_file(os.environ))
        case "undo":
            _undo(as_json=args.json)
        case "set":
            _set(args.key, args.value, as_json=args.json)
        case _:
            _show(args)
    return 0


def _show(args: argparse.Namespace) -> None:
    """Print the settings in force in a folder, and what is wrong with its project file."""
    if args.action:
        config.named(args.key)
    settings, _ = load(args)
    settings, problems = config.load_project(settings, Path.cwd())
    rows = config.explain(settings)
    if args.action:
        (row,) = (r for r in rows if r.key == args.key)
        value = row.value if isinstance(row.value, str) else toml(row.value)
        if args.json:
            print_json(row._asdict())
        else:
            print(value)
        return
    if args.changed:
        rows = [r for r in rows if r.source != "default"]
    if args.json:
        print_json({"settings": [r._asdict() for r in rows], "problems": problems})
        return
    show(_lines(rows, problems, Paint()))


def _lines(rows: list[config.Row], problems: list[str], paint: Paint) -> list[str]:
    """A line for each setting; on a terminal, where that would be too long, a line and a text below it."""
    lines = [] if rows else ["every setting has its default"]
    widest = max((len(r.key) for r in rows), default=0)
    for r in rows:
        value, source = toml(r.value), short(r.source, 200)
        if not paint.width:
            lines.append(f"{r.key:{widest}}  {value:12}  {source:12}  {r.doc}")
            continue
        own = "" if source == "default" else f"  {paint(f'({source})', 'yellow')}"
        lines += paint.row(f"{paint(r.key, 'bold')} = ", f"{value}{own}", " " * 8)
        lines += paint.row("    ", r.doc)
    for problem in problems:
        lines += paint.row(f"{paint('!', 'red')} ", short(problem, 1_000))
    return lines


def _set(key: str, text: str, *, as_json: bool) -> None:
    """Write one setting into the person's file. Raises ``UserError`` and ``Unavailable``."""
    value = config.value_of(key, text)
    if key == "proof.command" and text:
        from ...proof.choice import refused

        if why := refused(text):
            raise UserError(f"`{plain(text)[:200]}` is never run as a check: {why}")
    written = put_settings(os.environ, {key: value})
    wrong = [f"the settings have another mistake: {line}" for line in written.problem.splitlines()]
    notes = [*(wrong or ["a daemon that runs uses it from its next start on"]), *written.notes]
    notes += _restarts()
    if as_json:
        done = {"key": key, "value": value, "file": str(written.file), "changed": bool(written.changed)}
        print_json({**done, "backup": str(written.backup) if written.backup else None, "warnings": notes})
        return
    say(f"{key} = {toml(value)} {'written to' if written.changed else 'stands already in'} {written.file}")
    if written.backup:
        say(f"  backup:  {written.backup} (`reflectd config undo`)")
    for note in notes:
        say(f"  note:    {note}")


def _undo(*, as_json: bool) -> None:
    """Bring back the file before the last ``set`` or ``setup``. Raises ``UserError``, ``Unavailable``."""
    change = undo_settings(os.environ)
    changed = _restarts()
    if as_json:
        done = {"file": str(change.file), "action": change.action, "diff": change.diff, "warnings": changed}
        print_json(done)
        return
    print(change.diff, end="")
    say(f"{change.action} {change.file}; a daemon that runs uses it from its next start on")
    for line in changed:
        say(f"  note:    {line}")


def _restarts() -> list[str]:
    """Bring the plugins' copies up to date; a line for each agent that has to be started again."""
    changed = copies.refresh_all(os.environ)
    return [f"restart {HOSTS[host]}: its plugin follows the settings" for host in changed]

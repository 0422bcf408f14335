"""The bare `/reflect` of Claude Code: setup's ``--reflect`` and ``--no-reflect``, and the question for it.

A plugin's command answers only to its full name, `/reflectd:reflect`. So ``setup claude-code`` offers a
command of that text beside the settings, where the person's own commands are. A file that is there already is
never written to, and only one that is exactly as we wrote it is removed. opencode needs none: its plugin
brings `/reflect` itself. Raises ``UserError`` and ``Unavailable``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ...core.errors import UserError
from ...files import commands
from ...paths import shipped
from ..terminal import attended, say
from . import backups
from .edit import NOTHING, Extra, read

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Mapping
    from datetime import datetime
    from pathlib import Path

SHIPPED: Final = "shims/claude-code/commands/reflect.md"
FULL: Final = "/reflectd:reflect"


def add_flag(parser: argparse.ArgumentParser) -> None:
    """Register ``--reflect`` and ``--no-reflect``."""
    import argparse

    text = f"with or without a command /reflect of yours, which is {FULL} (asked on a terminal)"
    parser.add_argument("--reflect", action=argparse.BooleanOptionalAction, default=None, help=text)


def check(args: argparse.Namespace, settings: Path) -> None:
    """Refuse the flag where nothing is set up, or where the file is another's. Raises ``UserError``."""
    if args.reflect is None:
        return
    if args.remove or args.undo:
        raise UserError(f"give --{'' if args.reflect else 'no-'}reflect alone, without --remove and --undo")
    if args.reflect and commands.is_ours(file_of(settings)) is False:
        raise UserError(
            f"{file_of(settings)} is a command of your own, which setup leaves alone: ours is {FULL}. "
            "Nothing was changed"
        )


def file_of(settings: Path) -> Path:
    """The command that stands beside this settings file."""
    return settings.parent / commands.NAME


def choose(
    args: argparse.Namespace, env: Mapping[str, str], settings: Path, now: Callable[[], datetime]
) -> Extra:
    """Make the command, or bring it up to date, if the arguments or the person say so."""
    file, wanted = file_of(settings), args.reflect
    if wanted is False:
        return remove(env, settings, dry_run=args.dry_run)
    ours = commands.is_ours(file)
    if ours is False:
        return NOTHING
    if ours and not is_exactly_ours(env, file):
        return Extra(f"{file} was edited since and stays as it is") if wanted else NOTHING
    old = read(file)
    if ours and old == _text():
        return Extra(f"{file} is there already") if wanted else NOTHING
    if not ours and wanted is None:
        if args.json or args.dry_run or not attended():
            return NOTHING
        wanted = _asked(file)
    if not (ours or wanted):
        return Extra(f"it stays {FULL}; `reflectd setup claude-code --reflect` adds the short name")
    if args.dry_run:
        return Extra(f"{file} would be {'brought up to date' if ours else 'made'}")
    if ours:
        # an older text of ours: nothing that anybody would want back
        backups.put_back(env, file, old, None)
    backups.write(env, file, b"", _text(), now)
    return Extra(f"{file} {'is of this version now' if ours else 'made'}", changed=True)


def remove(env: Mapping[str, str], settings: Path, *, dry_run: bool = False) -> Extra:
    """Take our command away, if nobody edited it."""
    file = file_of(settings)
    if not commands.is_ours(file):
        return NOTHING
    if not is_exactly_ours(env, file):
        return Extra(f"{file} was edited since and stays: delete it if you don't need it")
    if dry_run:
        return Extra(f"{file} would be removed")
    backups.put_back(env, file, read(file), None)
    return Extra(f"{file} removed", changed=True)


def is_exactly_ours(env: Mapping[str, str], file: Path) -> bool:
    """Whether it is our command, as some ``setup`` wrote it."""
    if file.is_symlink() or not commands.is_ours(file):
        return False
    return backups.before(env, file) == (True, None) or read(file) == _text()


def _text() -> bytes:
    return shipped(SHIPPED).read_bytes()


def _asked(file: Path) -> bool:
    """The person's answer; Ctrl-C and the end of input are a no."""
    say(
        f"\nIn Claude Code the command that reads what you keep correcting is {FULL}. A file of your own "
        f"commands gives it its short name: {file}"
    )
    try:
        answer = input("Add /reflect? [Y/n] ")
    except (EOFError, KeyboardInterrupt):
        print()
        return False
    return answer.strip().lower() in {"", "y", "yes"}

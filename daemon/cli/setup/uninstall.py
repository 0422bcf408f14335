"""``reflectd uninstall``: shows all that reflectd has left on this machine, asks, and removes it.

Exit codes: 0 done, or nothing was there · 1 something could not be removed; the rest is · 2 wrong arguments,
or nobody could be asked. The files of projects (``.reflection``) are named and never touched. The package
cannot remove itself: the command for it is printed.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ... import paths
from ...core.errors import ReflectdError, Unavailable, UserError, words
from ..render import plain, print_json
from ..settings import add_flags, load
from ..terminal import say
from . import traces
from .confirm import agreed

if TYPE_CHECKING:
    import argparse

    from ...paths import Paths
    from .traces import Trace

EPILOG = """examples:
  reflectd uninstall --dry-run          show what would be removed
  reflectd uninstall                    show it, ask, remove it
  reflectd uninstall --yes --json       for scripts
  reflectd uninstall --keep-config      your settings and prompts stay

Close your agents first: an open one starts the daemon again while the package
is there.

exit codes: 0 done, or nothing was there, 1 something could not be removed,
2 wrong arguments, or nobody could be asked"""


def add_parser(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the verb."""
    parser = verbs.add_parser(
        "uninstall",
        help="remove all that reflectd left on this machine",
        epilog=EPILOG,
    )
    parser.add_argument("--dry-run", action="store_true", help="show what would be removed, remove nothing")
    parser.add_argument("--keep-config", action="store_true", help="keep your own settings and prompts")
    parser.add_argument("--yes", action="store_true", help="do not ask")
    parser.add_argument("--json", action="store_true", help="print the outcome as JSON")
    add_flags(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """List, ask, remove. What can't be removed does not keep the rest."""
    where = _where(args)
    found = [
        *traces.settings(os.environ, Path.cwd()),
        *traces.service(os.environ, where),
        *traces.daemon(where),
        *traces.folders(os.environ, where, keep_config=args.keep_config),
    ]
    left, program = list(dict.fromkeys(traces.left(os.environ, where))), _program()
    if not args.json:
        say("\n".join(_listed(found, left)))
    if args.dry_run or not found:
        if args.json:
            print_json(_as_json(found, left, program, dry_run=args.dry_run))
        else:
            say(f"Next: {program}")
        return 0
    refusal = "there is no terminal to ask on: look with --dry-run, then add --yes. Nothing was removed"
    if not agreed(args, "\nRemove all of this?", refusal):
        print("Nothing was removed.")
        return 0
    failed = _remove(found, where)
    if args.json:
        print_json(_as_json(found, left, program, failed=failed))
    else:
        for path, error in failed.items():
            say(f"reflectd: {path}: {error}", sys.stderr)
        say(f"{'The rest is removed' if failed else 'Removed'}. Next: {program}")
    return int(bool(failed))


def _where(args: argparse.Namespace) -> Paths:
    """Wrong settings must not keep anyone from leaving."""
    try:
        return load(args)[1]
    except UserError:
        return paths.resolve(os.environ)


def _remove(found: list[Trace], where: Paths) -> dict[str, str]:
    """Path -> why it could not be removed. The mark keeps open hosts from starting the daemon in between; it
    goes with the state folder.
    """
    failed: dict[str, str] = {}
    if any(trace.kind == "state" for trace in found):
        with suppress(OSError):
            where.stopped.touch(mode=0o600)
    runs = ""
    for trace in found:
        try:
            if runs:
                raise Unavailable(runs)
            trace.remove()
        except (ReflectdError, OSError) as e:
            failed[trace.path] = words(e)
            if trace.kind == "daemon":
                runs = "not removed, because the daemon still uses it"
    return failed


def _listed(found: list[Trace], left: list[str]) -> list[str]:
    if not found:
        lines = ["Nothing of reflectd is on this machine but the program."]
    else:
        lines = ["To be removed:", *(plain(f"  {t.kind:9} {t.path} ({t.what})") for t in found)]
    return lines + (["Not touched:", *(plain(f"  {text}") for text in left)] if left else [])


def _as_json(
    found: list[Trace],
    left: list[str],
    program: str,
    *,
    dry_run: bool = False,
    failed: dict[str, str] | None = None,
) -> dict[str, Any]:
    items = [
        {
            "kind": t.kind,
            "path": t.path,
            "what": t.what,
            "removed": not dry_run and t.path not in (failed or {}),
            "error": (failed or {}).get(t.path),
        }
        for t in found
    ]
    return {"dry_run": dry_run, "items": items, "left": left, "next": program}


def _program() -> str:
    """How the package itself is removed."""
    if (paths.PACKAGE.parent / "pyproject.toml").is_file():
        return f"delete the folder {paths.PACKAGE.parent}, from which reflectd runs"
    prefix = Path(sys.prefix).as_posix()
    tool = "uv tool" if "/uv/tools/" in prefix else "pipx" if "/pipx/venvs/" in prefix else "pip"
    return f"{tool} uninstall reflectd"

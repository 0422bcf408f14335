"""``reflectd uninstall``: shows all that reflectd has left on this machine, asks, and removes it.

Only files with a name of ours are removed. The files of projects (``.reflection``) are named and never
touched. The package cannot remove itself: the command for it is printed.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from msgspec import Struct

from ... import paths
from ...client import request
from ...core.errors import ReflectdError, Unavailable, UserError, words
from ...files.safe import remove_empty
from ...learning.rules.journal_file import FILE
from ...paths import config_file, data_folder, find_socket
from ...service import manager
from ...store.readonly import ReadOnly
from ...store.sessions import folders_of
from ..control.service import Report, plan_for, uninstall
from ..control.start import end
from ..render import plain, print_json
from ..settings import add_flags, look
from ..terminal import agreed, say
from . import agents

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Mapping

    from ...paths import Paths
    from .connect import Host

Kind = Literal["settings", "service", "daemon", "plugins", "socket", "state", "config"]
STATE: Final = re.compile(
    r"reflectd\.(sqlite3|log)\b.*|lock|socket|strict|stopped|silent|served|start-failed(\.told)?|started-by-hook|launchd\.log"
    r"|trust\.json.*|backtest(?:\.sqlite3.*|\.jsonl|\.tmp)?|reflect|cases|diagnostics|judge|lessons|playbooks|run|workspaces|\.reflectd-[0-9a-f]+\.tmp"
)
CONFIG: Final = re.compile(r"config\.toml(\.reflectd-backup-.*)?|prompts|\.reflectd-[0-9a-f]+\.tmp")
DATA: Final = re.compile(r"plugins|backups")
SOCKET: Final = re.compile(r"reflectd\.sock")
_SHELLS: Final = (".bashrc", ".zshrc", ".config/fish/completions/reflectd.fish")


class Trace(Struct, frozen=True):
    """One thing that ``remove`` takes away; it raises ``UserError``, ``Unavailable`` or ``OSError``."""

    kind: Kind
    path: str
    what: str
    remove: Callable[[], object]


def settings(env: Mapping[str, str], folder: Path) -> Iterator[Trace]:
    """Our entries in the person's settings of the hosts, and in all files that ``setup`` edited."""

    def remove(host: Host, file: Path) -> None:
        host.make(env, folder, [host.removal(env, file)])

    for host in agents.HOST.values():
        for file in host.ours_in(env):
            yield Trace("settings", str(file), "our entry", partial(remove, host, file))


def service(env: Mapping[str, str], where: Paths) -> Iterator[Trace]:
    """The service with its files."""
    here, plan = manager.here(env), plan_for(env, where)
    files = manager.files(here, plan).items()
    there = [path.name for path, (_, state) in files if state != "missing"]

    def remove() -> None:
        report = Report("uninstall", here.name)
        uninstall(here, plan, where, report)
        if report.error:
            raise Unavailable(f"{report.error}. Run by hand: {'; '.join(report.by_hand)}")

    if there:
        yield Trace("service", str(here.folder), ", ".join(there), remove)


def daemon(where: Paths) -> Iterator[Trace]:
    """The running daemon."""
    with suppress(Unavailable, UserError):
        status = request(find_socket(where), "GET", "/v1/status", timeout_s=2.0)
        open_hosts = len(status["instances"])
        more = f", {open_hosts} connected: close your agents, they start it again" if open_hosts else ""
        yield Trace("daemon", str(find_socket(where)), f"pid {status['pid']}{more}", partial(end, where))


def folders(env: Mapping[str, str], where: Paths, *, keep_config: bool) -> Iterator[Trace]:
    """Our folders, each with what of ours is in it."""
    about: list[tuple[Kind, Path, re.Pattern[str]]] = [
        ("plugins", data_folder(env), DATA),
        ("socket", where.run_dir, SOCKET),
        ("state", where.state_dir, STATE),
    ]
    if not keep_config:
        about.append(("config", config_file(env).parent, CONFIG))
    for kind, folder, ours in about:
        found = _inside(folder, ours)
        if found or (folder.is_dir() and not any(folder.iterdir())):
            names = ", ".join(path.name for path in found[:8]) + (" …" if len(found) > 8 else "") or "empty"
            yield Trace(kind, str(folder), names, partial(_empty, env, folder, ours))


def untouched(env: Mapping[str, str], where: Paths) -> Iterator[str]:
    """The rest that stays: files of projects and of a person, and lines in start-up files."""
    of_projects = {".reflection": "verdicts and playbook of that project", FILE: "its journal"}
    with suppress(Unavailable), ReadOnly(where.database) as db:
        for folder in folders_of(db):
            for name, what in of_projects.items():
                with suppress(OSError):
                    if (found := Path(folder, name)).exists():
                        yield f"{found} ({what})"
    for kept, ours in ((where.state_dir, STATE), (config_file(env).parent, CONFIG), (data_folder(env), DATA)):
        there = sorted(kept.iterdir()) if kept.is_dir() else []
        yield from (f"{path} (not ours)" for path in there if not ours.fullmatch(path.name))
    for host in agents.HOST.values():
        for file in sorted({*host.loads(env, Path.cwd())} - {*host.ours_in(env)}):
            yield f"{file} (loads reflectd; somebody else's entry)"
    for name in _SHELLS:
        file = Path(env.get("HOME", ""), name)
        with suppress(OSError):
            if "reflectd completion" in file.read_text("utf-8", "replace"):
                yield f"{file} (a line with `reflectd completion`)"


def _inside(folder: Path, ours: re.Pattern[str]) -> list[Path]:
    return sorted(p for p in folder.iterdir() if ours.fullmatch(p.name)) if folder.is_dir() else []


def _empty(env: Mapping[str, str], folder: Path, ours: re.Pattern[str]) -> None:
    """Remove what is ours in the folder, and the folder when nothing else is in it, with those that we may
    have made in a new home. A link is removed, not what it leads to.
    """
    for path in _inside(folder, ours):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    local = Path(env.get("HOME", ""), ".local")
    made = (folder, local / "state", local / "share", local)
    remove_empty(empty for empty in made if empty.is_absolute())


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
    parser = verbs.add_parser("uninstall", epilog=EPILOG)
    parser.add_argument("--dry-run", action="store_true", help="show what would be removed, remove nothing")
    parser.add_argument("--keep-config", action="store_true", help="keep your own settings and prompts")
    parser.add_argument("--yes", action="store_true", help="do not ask")
    add_flags(parser, run, json="print the outcome as JSON")


def run(args: argparse.Namespace) -> int:
    """List, ask, remove. An item that can't be removed does not keep the rest."""
    _, where = look(args)  # wrong settings must not keep anyone from leaving
    found = [
        *settings(os.environ, Path.cwd()),
        *service(os.environ, where),
        *daemon(where),
        *folders(os.environ, where, keep_config=args.keep_config),
    ]
    left, program = list(dict.fromkeys(untouched(os.environ, where))), _program()
    if not args.json:
        say("\n".join(_listed(found, left)))
    failed: dict[str, str] = {}
    removes = bool(found) and not args.dry_run
    if removes:
        refusal = "there is no terminal to ask on: look with --dry-run, then add --yes. Nothing was removed"
        if not agreed(args, "\nRemove all of this?", refusal):
            print("Nothing was removed.")
            return 0
        failed = _remove(found, where)
    if args.json:
        items = [
            {
                "kind": trace.kind,
                "path": trace.path,
                "what": trace.what,
                "removed": removes and trace.path not in failed,
                "error": failed.get(trace.path),
            }
            for trace in found
        ]
        print_json({"dry_run": args.dry_run, "items": items, "left": left, "next": program})
        return int(bool(failed))
    for path, error in failed.items():
        say(f"reflectd: {path}: {error}", sys.stderr)
    done = "The rest is removed. " if failed else "Removed. "
    say(f"{done if removes else ''}Next: {program}")
    return int(bool(failed))


def _remove(found: list[Trace], where: Paths) -> dict[str, str]:
    """Path -> why it stays. The mark ``stopped`` keeps hosts from starting the daemon in between."""
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


def _program() -> str:
    """How the package itself is removed."""
    if (paths.PACKAGE.parent / "pyproject.toml").is_file():
        return f"delete the folder {paths.PACKAGE.parent}, from which reflectd runs"
    prefix = Path(sys.prefix).as_posix()
    tool = "uv tool" if "/uv/tools/" in prefix else "pipx" if "/pipx/venvs/" in prefix else "pip"
    return f"{tool} uninstall reflectd"

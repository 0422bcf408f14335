"""What reflectd has left on this machine, and how each of it is removed: for ``reflectd uninstall``.

Only what has a name of ours is removed. Whatever else lies in our folders is a person's own and stays.
Looking changes nothing.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from ...core.errors import Unavailable, UserError
from ...files.folders import remove_empty
from ...paths import config_file, data_folder
from . import backups, claude_code, command, opencode
from .edit import read

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ...paths import Paths

Kind = Literal["settings", "service", "daemon", "plugins", "socket", "state", "config"]
STATE: Final = re.compile(
    r"reflectd\.(sqlite3|log)\b.*|lock|socket|strict|stopped|silent|served|start-failed(\.told)?|started-by-hook|told-of-learning|launchd\.log"
    r"|trust\.json.*|backtest\.sqlite3.*|reflect|cases|diagnostics|judge|lessons|playbooks|run|workspaces|\.reflectd-[0-9a-f]+\.tmp"
)
CONFIG: Final = re.compile(r"config\.toml(\.reflectd-backup-.*)?|prompts|\.reflectd-[0-9a-f]+\.tmp")
DATA: Final = re.compile(r"plugins|backups")
SOCKET: Final = re.compile(r"reflectd\.sock")
_SHELLS: Final = (".bashrc", ".zshrc", ".config/fish/completions/reflectd.fish")


@dataclass(frozen=True, slots=True)
class Trace:
    """One thing that ``remove`` takes away; it raises ``UserError``, ``Unavailable`` or ``OSError``."""

    kind: Kind
    path: str
    what: str
    remove: Callable[[], object]


def settings(env: Mapping[str, str], folder: Path) -> Iterator[Trace]:
    """The settings files of hosts that name us: the person's, those of ``folder``, and those that ``setup``
    edited.
    """
    edited = backups.edited_files(env)
    for file in dict.fromkeys([*opencode.read_in(env, folder), *edited]):
        if opencode.names_us(file):
            yield Trace("settings", str(file), "our line", partial(opencode.disconnect, env, file))
    beside = [command.file_of(file) for file in claude_code.read_in(env, folder)]
    for file in dict.fromkeys([*beside, *edited]):
        if command.is_exactly_ours(env, file):
            gone = partial(backups.put_back, env, file, read(file), None)
            yield Trace("settings", str(file), "our command", gone)
    for file in dict.fromkeys([*claude_code.read_in(env, folder), *edited]):
        if claude_code.names_us(file):
            yield Trace("settings", str(file), "our entries", partial(claude_code.disconnect, env, file))


def service(env: Mapping[str, str], where: Paths) -> Iterator[Trace]:
    """The service with its files."""
    from ...service import manager, units
    from ..control.service import Report, plan_for, uninstall

    here, plan = manager.here(env), plan_for(env, where)
    files = here.render(plan).items()
    there = [name for name, text in files if units.state(here.folder / name, text) != "missing"]

    def remove() -> None:
        report = Report("uninstall", here.name)
        uninstall(here, plan, where, report)
        if report.error:
            raise Unavailable(f"{report.error}. Run by hand: {'; '.join(report.by_hand)}")

    if there:
        yield Trace("service", str(here.folder), ", ".join(there), remove)


def daemon(where: Paths) -> Iterator[Trace]:
    """The running daemon."""
    from ...client import request
    from ...paths import find_socket
    from ..control.start import end

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


def left(env: Mapping[str, str], where: Paths) -> Iterator[str]:
    """What stays: the files of projects, what a person added to our folders, and lines in start-up files."""
    from ...store.readonly import ReadOnly
    from ...store.sessions import folders_of

    with suppress(Unavailable), ReadOnly(where.database) as db:
        for folder in folders_of(db):
            found = Path(folder, ".reflection")
            with suppress(OSError):
                if found.is_dir():
                    yield f"{found} (verdicts of that project)"
    for kept, ours in (
        (where.state_dir, STATE),
        (config_file(env).parent, CONFIG),
        (data_folder(env), DATA),
    ):
        if kept.is_dir():
            yield from (
                f"{path} (not ours)" for path in sorted(kept.iterdir()) if not ours.fullmatch(path.name)
            )
    for file, line in opencode.loaded(env, Path.cwd()):
        if not line:
            yield f"{file} (the plugin, which somebody put there)"
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

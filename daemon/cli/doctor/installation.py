"""Checks of what is installed: Python, package, command, folders, socket, service. They change nothing."""

from __future__ import annotations

import os
import shutil
import socket
import stat
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from ...core.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ...core.settings import Settings
    from ...paths import Paths

# What the checks of ``reflectd doctor`` are given, and what each of them finds.

Outcome = Literal["ok", "warn", "fail"]


class Check(NamedTuple):
    """One finding; ``mend`` says what to do when it is not ``ok``."""

    name: str
    outcome: Outcome
    text: str
    mend: str = ""


class About(NamedTuple):
    """What the checks look at. ``status`` is the running daemon's answer, None when none answers."""

    env: Mapping[str, str]
    settings: Settings
    where: Paths
    status: dict[str, Any] | None


OLDEST = (3, 11)
SPACE_WARN, SPACE_FAIL = 500 * 1024 * 1024, 20 * 1024 * 1024
CONNECT_S = 2.0


def python() -> Iterator[Check]:
    """Whether Python is new enough."""
    version = ".".join(map(str, sys.version_info[:3]))
    old = sys.version_info < OLDEST
    mend = "install reflectd again with Python 3.11 or newer: uv tool install --python 3.12 reflectd"
    yield Check("python", "fail" if old else "ok", f"{version} ({sys.executable})", mend if old else "")


def package() -> Iterator[Check]:
    """The package has everything that comes with it."""
    from ... import __version__
    from ...paths import PACKAGE, shipped

    try:
        shipped("shims/opencode/index.ts")
        shipped("prompts")
    except UserError as e:
        yield Check("package", "fail", str(e), "uv tool install --reinstall reflectd")
        return
    yield Check("package", "ok", f"reflectd {__version__} in {PACKAGE}")


def command(env: Mapping[str, str]) -> Iterator[Check]:
    """Which ``reflectd`` is found on PATH: the plugin starts that one."""
    found = shutil.which("reflectd", path=env.get("PATH", ""))
    if found is None:
        mend = "add its folder to PATH (uv tool update-shell, pipx ensurepath): the plugin starts it by name"
        yield Check("command", "warn", "there is no `reflectd` on PATH", mend)
        return
    here = Path(sys.argv[0])
    other = here.name == "reflectd" and here.exists() and not here.samefile(found)
    mend = f"this is {here}: remove one of the two, or change the order of PATH" if other else ""
    yield Check("command", "warn" if other else "ok", f"`reflectd` on PATH is {found}", mend)


def settings_text(env: Mapping[str, str]) -> str:
    """Where the settings come from, in one line."""
    from ...paths import config_file

    file = config_file(env)
    return f"{file} is valid" if file.exists() else f"defaults ({file} does not exist)"


def state(about: About) -> Iterator[Check]:
    """Whether the state folder can be used and is closed to other users."""
    yield from _private("state", about.where.state_dir, "Set REFLECTD_STATE_DIR to a folder of yours")


def _private(name: str, folder: Path, other: str) -> Iterator[Check]:
    try:
        found = folder.stat()
    except FileNotFoundError:
        yield Check(name, "ok", f"{folder} is made at the first start")
        return
    if not stat.S_ISDIR(found.st_mode):
        yield Check(name, "fail", f"{folder} is not a folder", f"move it away. {other}")
    elif found.st_uid != os.getuid():
        yield Check(name, "fail", f"{folder} belongs to user {found.st_uid}", f"{other}")
    elif found.st_mode & 0o022:
        yield Check(name, "fail", f"others may write to {folder}", f"chmod 700 {folder}")
    elif found.st_mode & 0o055:
        yield Check(name, "warn", f"others may read {folder}", f"chmod 700 {folder}")
    elif not os.access(folder, os.W_OK | os.X_OK):
        yield Check(name, "fail", f"{folder} cannot be written", f"chmod 700 {folder}")
    else:
        yield Check(name, "ok", str(folder))


def space(about: About) -> Iterator[Check]:
    """Whether the disk has room for the database and the log."""
    folder = next(p for p in (about.where.state_dir, *about.where.state_dir.parents) if p.exists())
    free = shutil.disk_usage(folder).free
    outcome: Outcome = "fail" if free < SPACE_FAIL else "warn" if free < SPACE_WARN else "ok"
    mend = "" if outcome == "ok" else "make room: without it nothing is judged and nothing is sent"
    yield Check("space", outcome, f"{free / 1e9:.1f} GB free at {folder}", mend)


def sockets(about: About) -> Iterator[Check]:
    """The socket: its folder, its permissions, and whether a daemon listens on it."""
    from ...paths import find_socket

    path = find_socket(about.where)
    yield from (c for c in _private("socket", path.parent, "Set REFLECTD_SOCKET") if c.outcome != "ok")
    try:
        found = path.lstat()
    except FileNotFoundError:
        yield Check("socket", "ok", f"{path} (no daemon listens)")
        return
    if not stat.S_ISSOCK(found.st_mode):
        yield Check("socket", "fail", f"{path} is not a socket", "move it away, or set REFLECTD_SOCKET")
    elif found.st_uid != os.getuid():
        yield Check("socket", "fail", f"{path} belongs to user {found.st_uid}", "set REFLECTD_SOCKET")
    elif found.st_mode & 0o077:
        yield Check("socket", "fail", f"others may use {path}", "reflectd stop, then reflectd start")
    elif _listens(path):
        yield Check("socket", "ok", str(path))
    else:
        yield Check("socket", "warn", f"{path} is stale: nobody listens", "reflectd start replaces it")


def service(about: About) -> Iterator[Check]:
    """The service, where it is installed: its files are as this version writes them, its manager runs it."""
    from ...service import manager, units
    from ..control.service import plan_for

    here = manager.here(about.env)
    files = here.render(plan_for(about.env, about.where))
    states = {units.state(here.folder / name, text) for name, text in files.items()}
    why = here.unreachable() if states != {"missing"} else ""
    if states == {"missing"}:
        yield Check("service", "ok", "not installed: the plugin starts the daemon")
    elif states != {"current"}:
        mend = "reflectd service status, reflectd service install"
        yield Check("service", "warn", "its files are not as this version writes them", mend)
    elif why:
        yield Check("service", "ok", f"installed; {here.name} cannot be asked from here: {why}")
    elif about.where.stopped.exists() or here.active():
        yield Check("service", "ok", f"installed, {here.name} runs it")
    else:
        yield Check("service", "warn", f"installed, {here.name} does not run it", "reflectd start")


def _listens(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(CONNECT_S)
        try:
            probe.connect(str(path))
        except OSError:
            return False
    return True

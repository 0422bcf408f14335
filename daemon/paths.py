"""Where files and folders are: functions of an environment mapping. It imports little, so that the CLI starts
fast.

Nothing here makes a folder or reads ``os.environ``; only ``find_socket`` and ``shipped`` look at the disk.
XDG variables that are empty or relative are ignored, as their specification says. A relative path in a
setting of reflectd is a ``UserError``, because the daemon and its clients start in different folders.
"""

from __future__ import annotations

import os
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from msgspec import Struct

from .core.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Mapping

MODULE = __package__
"""The argument for ``python -m``: ``reflectd`` where it is installed; in a clone also ``daemon``, the
folder's name. Nothing in the package spells its own name: one process would load everything twice.
"""

SOCKET_PATH_LIMIT = 104  # bytes of sun_path on macOS, the closing NUL included; Linux has 108

PACKAGE = Path(__file__).resolve().parent
_IN_CHECKOUT = {
    "prompts": "prompts",
    "shims/opencode": "plugin-shim/opencode/src",
    "shims/claude-code": "plugin-shim/claude-code",
    "reflection": ".reflection",
    "examples": "examples",
}


class Paths(Struct, frozen=True):
    """Every path of one user's daemon. Writers make folders 0700 and files 0600."""

    state_dir: Path
    socket: (
        Path  # the address the daemon binds; REFLECTD_SOCKET can put it into another folder than ``run_dir``
    )
    run_dir: Path  # the folder of the default address, for reflectd alone
    socket_chosen: bool = False  # whether REFLECTD_SOCKET or daemon.socket gave ``socket``

    @property
    def database(self) -> Path:
        """The SQLite database with everything that the daemon stores."""
        return self.state_dir / "reflectd.sqlite3"

    @property
    def lock(self) -> Path:
        """The file that a running daemon holds locked, so that there is one daemon per user."""
        return self.state_dir / "lock"

    @property
    def socket_file(self) -> Path:
        """A text file with the running daemon's socket path, which clients read."""
        return self.state_dir / "socket"

    @property
    def strict(self) -> Path:
        """A file that exists in strict mode; the two hooks of Stop of the plugin look at it."""
        return self.state_dir / "strict"

    @property
    def codex_exec(self) -> Path:
        """A file that exists where `codex exec` is judged too; without it the hooks of Codex end at once
        there.
        """
        return self.state_dir / "codex-exec"

    @property
    def stopped(self) -> Path:
        """A file that exists after `reflectd stop`, so that hosts don't start the daemon again."""
        return self.state_dir / "stopped"

    @property
    def served(self) -> Path:
        """A file with the version of the daemon that served last."""
        return self.state_dir / "served"

    @property
    def start_failed(self) -> Path:
        """A file that exists from a daemon's start that failed to the next that works: one line for the
        person, as a JSON text that a hook of Claude Code can pass on.
        """
        return self.state_dir / "start-failed"

    @property
    def log_file(self) -> Path:
        """The log of a daemon without a terminal. Full files are renamed to ``.1`` and ``.2``."""
        return self.state_dir / "reflectd.log"

    @property
    def judge_folder(self) -> Path:
        """The empty folder in which a program that judges is run. It belongs to no project."""
        return self.state_dir / "judge"

    @property
    def diagnostics(self) -> Path:
        """The folder of raw replies that could not be parsed (``log.save_diagnostic``)."""
        return self.state_dir / "diagnostics"

    def fallback_reflection(self, workspace: str | Path) -> Path:
        """The stand-in for ``<workspace>/.reflection`` when the workspace can't be written."""
        from hashlib import sha256

        absolute = os.path.abspath(workspace)  # noqa: PTH100 - without following links, as hosts name it
        name = "".join(c if c.isascii() and (c.isalnum() or c in "-_") else "_" for c in Path(absolute).name)
        digest = sha256(os.fsencode(absolute)).hexdigest()[:12]
        return self.state_dir / "workspaces" / f"{digest}-{name[:40] or 'root'}"


def resolve(env: Mapping[str, str], *, state_dir: str = "", socket: str = "", connects: bool = True) -> Paths:
    """The paths for ``env``. ``state_dir`` and ``socket`` are the settings of these names and win when given.
    ``connects``: False where no daemon is asked, so that the length of the socket's path does not matter.

    Raises ``UserError`` when a path is relative, HOME is needed and missing, or the socket path is too long.
    """
    state = _ours(env, "state folder (daemon.state_dir)", state_dir or env.get("REFLECTD_STATE_DIR", ""))
    if state is None:
        state = _xdg(env, "XDG_STATE_HOME", ".local/state") / "reflectd"
    runtime = env.get("XDG_RUNTIME_DIR", "")
    run_dir = Path(runtime, "reflectd") if runtime.startswith("/") else state / "run"
    address = _ours(env, "socket (daemon.socket)", socket or env.get("REFLECTD_SOCKET", ""))
    path = address or run_dir / "reflectd.sock"
    return Paths(
        state_dir=state,
        socket=check_socket(path) if connects else path,
        run_dir=run_dir,
        socket_chosen=address is not None,
    )


def config_file(env: Mapping[str, str]) -> Path:
    """The person's settings file. It is not in ``Paths``: its settings may replace a path that ``resolve``
    refuses.
    """
    return _xdg(env, "XDG_CONFIG_HOME", ".config") / "reflectd" / "config.toml"


def data_folder(env: Mapping[str, str]) -> Path:
    """The folder of the plugins' copies, which hosts load, and of the backups of the hosts' settings."""
    return _xdg(env, "XDG_DATA_HOME", ".local/share") / "reflectd"


def check_socket(path: Path) -> Path:
    """``path``, or ``UserError`` when the kernel would refuse it for its length."""
    length = len(os.fsencode(path))
    if length >= SOCKET_PATH_LIMIT:
        raise UserError(
            f"the socket path is too long ({length} bytes; it must be under {SOCKET_PATH_LIMIT}): {path}. "
            "Set REFLECTD_SOCKET (for the daemon and its clients) or XDG_RUNTIME_DIR to a shorter path, "
            "in a folder that only you can write to"
        )
    return path


def find_socket(paths: Paths) -> Path:
    """Where a client connects: the chosen address, else the one the daemon wrote down, else the default."""
    if paths.socket_chosen:
        return paths.socket
    try:
        written = paths.socket_file.read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return paths.socket
    return Path(written) if written.startswith("/") and "\0" not in written else paths.socket


def shipped(name: str) -> Path:
    """A file or folder that comes with reflectd: ``prompts/…``, ``shims/<host>/…``, ``reflection/…`` or
    ``examples/…``.

    Installed from a wheel it is inside the package, in a checkout at its place in the repository. Raises
    ``UserError`` when it is in neither (an incomplete installation), and ``ValueError`` for a name that
    leaves these folders.
    """
    wanted = PurePosixPath(name)
    root = next((r for r in _IN_CHECKOUT if wanted.is_relative_to(r)), None)
    if root is None or ".." in wanted.parts:
        raise ValueError(f"not a shipped name: {name!r}")
    packaged = PACKAGE / wanted
    if packaged.exists():
        return packaged
    repository = PACKAGE.parent
    here = repository / _IN_CHECKOUT[root] / wanted.relative_to(root)
    # for an installed package this is site-packages, where a folder `prompts` would be another package's
    if (repository / "pyproject.toml").is_file() and here.exists():
        return here
    raise UserError(f"this installation of reflectd is incomplete, {packaged} is missing: install it again")


def _xdg(env: Mapping[str, str], name: str, below_home: str) -> Path:
    value = env.get(name, "")
    return Path(value) if value.startswith("/") else _home(env) / below_home


def _home(env: Mapping[str, str]) -> Path:
    home = env.get("HOME", "")
    if not home.startswith("/"):
        raise UserError(
            "HOME is not set to an absolute path: set it, or REFLECTD_STATE_DIR and XDG_CONFIG_HOME"
        )
    return Path(home)


def _ours(env: Mapping[str, str], what: str, value: str) -> Path | None:
    if not value:
        return None
    if value == "~" or value.startswith("~/"):
        return _home(env) / value[2:]
    if not value.startswith("/"):
        raise UserError(f"the {what} must be an absolute path, not {value!r}")
    return Path(value)

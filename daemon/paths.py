"""Where things live: pure functions of an environment mapping. Imports are kept light, for hooks and the CLI.

Nothing here creates a folder or reads ``os.environ``. ``find_socket`` and ``shipped`` are the only ones that
look at the disk. XDG variables that are empty or relative are ignored, as their specification says; a
relative path of *ours* is a ``UserError``, because the daemon and its clients start in different folders.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from daemon.core.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Mapping

SOCKET_PATH_LIMIT = 104  # bytes of sun_path on macOS, the closing NUL included; Linux has 108

_PACKAGE = Path(__file__).resolve().parent
_IN_CHECKOUT = {
    "prompts": "prompts",
    "shims/opencode": "plugin-shim/opencode/src",
    "shims/claude-code": "plugin-shim/claude-code",
    "reflection": ".reflection",
}


@dataclass(frozen=True, slots=True)
class Paths:
    """Every path of one user's daemon. Folders are made 0700, files 0600, by whoever writes them."""

    state_dir: Path
    socket: Path  # the address the daemon binds; its folder is not ``run_dir`` when REFLECTD_SOCKET moved it
    run_dir: Path  # ours alone: the folder of the default address
    socket_chosen: bool = False  # REFLECTD_SOCKET or daemon.socket said so

    @property
    def database(self) -> Path:
        """Sessions, outbox, verdicts, ledger, episodes."""
        return self.state_dir / "reflectd.sqlite3"

    @property
    def lock(self) -> Path:
        """One daemon per user holds this."""
        return self.state_dir / "lock"

    @property
    def socket_file(self) -> Path:
        """A text file with the running daemon's socket path, which clients read."""
        return self.state_dir / "socket"

    @property
    def stopped(self) -> Path:
        """There while the person keeps the daemon stopped: hosts don't start it again."""
        return self.state_dir / "stopped"

    @property
    def log_file(self) -> Path:
        """The log of a daemon that has no terminal; rotated to ``.1`` and ``.2``."""
        return self.state_dir / "reflectd.log"

    @property
    def judge_folder(self) -> Path:
        """Where a program that judges is run: nothing is in it, and it is in no project."""
        return self.state_dir / "judge"

    @property
    def diagnostics(self) -> Path:
        """Raw replies that broke the form (``log.save_diagnostic``)."""
        return self.state_dir / "diagnostics"

    def fallback_reflection(self, workspace: str | Path) -> Path:
        """The stand-in for ``<workspace>/.reflection`` when the workspace can't be written."""
        from hashlib import sha256

        absolute = os.path.abspath(workspace)  # noqa: PTH100 - without following links, as hosts name it
        name = "".join(c if c.isascii() and (c.isalnum() or c in "-_") else "_" for c in Path(absolute).name)
        digest = sha256(os.fsencode(absolute)).hexdigest()[:12]
        return self.state_dir / "workspaces" / f"{digest}-{name[:40] or 'root'}"


def resolve(env: Mapping[str, str], *, state_dir: str = "", socket: str = "") -> Paths:
    """The paths for ``env``. ``state_dir`` and ``socket`` are the settings of these names and win when given.

    Raises ``UserError`` when a path is relative, HOME is needed and missing, or the socket path is too long.
    """
    state = _ours(env, "state folder (daemon.state_dir)", state_dir or env.get("REFLECTD_STATE_DIR", ""))
    if state is None:
        state = _xdg(env, "XDG_STATE_HOME", ".local/state") / "reflectd"
    runtime = env.get("XDG_RUNTIME_DIR", "")
    run_dir = Path(runtime, "reflectd") if runtime.startswith("/") else state / "run"
    address = _ours(env, "socket (daemon.socket)", socket or env.get("REFLECTD_SOCKET", ""))
    return Paths(
        state_dir=state,
        socket=check_socket(address or run_dir / "reflectd.sock"),
        run_dir=run_dir,
        socket_chosen=address is not None,
    )


def config_file(env: Mapping[str, str]) -> Path:
    """The person's settings. Apart from ``resolve``, because settings may mend what ``resolve`` refuses."""
    return _xdg(env, "XDG_CONFIG_HOME", ".config") / "reflectd" / "config.toml"


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
    """Where a client connects: the chosen address, else what the daemon wrote down, else the default one."""
    if paths.socket_chosen:
        return paths.socket
    try:
        written = paths.socket_file.read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return paths.socket
    return Path(written) if written.startswith("/") and "\0" not in written else paths.socket


def shipped(name: str) -> Path:
    """A file or folder that comes with reflectd: ``prompts/…``, ``shims/<host>/…`` or ``reflection/…``.

    In a wheel it lies inside the package, in a checkout at its place in the repository. ``UserError`` when it
    is in neither (an incomplete installation); ``ValueError`` for a name that leaves these folders.
    """
    wanted = PurePosixPath(name)
    root = next((r for r in _IN_CHECKOUT if wanted.is_relative_to(r)), None)
    if root is None or ".." in wanted.parts:
        raise ValueError(f"not a shipped name: {name!r}")
    packaged = _PACKAGE / wanted
    if packaged.exists():
        return packaged
    repository = _PACKAGE.parent
    here = repository / _IN_CHECKOUT[root] / wanted.relative_to(root)
    # beside an installed package lies site-packages, whose "prompts" would be somebody else's
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

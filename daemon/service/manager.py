"""The service managers: the person's own systemd manager, and launchd on macOS; nothing here runs as root.

A manager that reads its units from another folder (of another home or user) counts as one that can't be
asked. A command that fails is ``Unavailable`` with the manager's own words.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from .. import paths
from ..core.errors import Unavailable, words
from . import units

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..paths import Paths
    from .units import Plan

COMMAND_S = 90.0
BOTH = (units.SOCKET, units.SERVICE)
PROPERTIES = ("LoadState", "UnitFileState", "ActiveState", "SubState", "Result", "MainPID", "NRestarts")
_WORD = re.compile(r'"(?:[^"\\]|\\.)*"|\S+')  # systemctl quotes words that hold spaces


class Systemd:
    """``systemctl --user``."""

    name = "systemd"
    up_by_hand = ("systemctl --user daemon-reload", f"systemctl --user enable --now {units.SOCKET}")
    down_by_hand = (
        f"systemctl --user disable --now {units.SOCKET}",
        f"systemctl --user stop {units.SERVICE}",
        "systemctl --user daemon-reload",
    )

    def __init__(self, env: Mapping[str, str]) -> None:
        self.folder = paths.config_file(env).parent.parent / "systemd" / "user"
        self._env = dict(env)
        standard = Path(f"/run/user/{os.getuid()}")
        if "XDG_RUNTIME_DIR" not in env and standard.is_dir():  # `su`, `sudo`, cron
            self._env["XDG_RUNTIME_DIR"] = str(standard)

    def render(self, plan: Plan) -> dict[str, str]:
        """The two units."""
        return units.render(plan)

    def unreachable(self) -> str:
        """In systemd's words."""
        if shutil.which("systemctl", path=self._env.get("PATH", os.defpath)) is None:
            return "there is no systemctl on PATH"
        done = self._systemctl("show", "--property=UnitPath", "--value", check=False)
        if done.returncode:
            return done.stderr.strip() or f"systemctl ended with {done.returncode}"
        folders = [re.sub(r"\\(.)", r"\1", word.strip('"')) for word in _WORD.findall(done.stdout)]
        if str(self.folder) not in folders:
            return f"the user manager does not read units from {self.folder}"
        return ""

    def show(self) -> dict[str, dict[str, str]]:
        """The ``PROPERTIES`` of both units."""
        found = {}
        for unit in BOTH:
            said = self._systemctl("show", f"--property={','.join(PROPERTIES)}", unit).stdout
            found[unit] = {k: v for k, _, v in (line.partition("=") for line in said.splitlines()) if v}
        return found

    def active(self) -> bool:
        """Says whether systemd holds the socket open; a connection then starts the daemon."""
        return self.show()[units.SOCKET].get("ActiveState") == "active"

    def pid(self) -> int:
        """The daemon's, 0 when it does not run."""
        return int(self.show()[units.SERVICE].get("MainPID", "0"))

    def install(self) -> None:
        """Read the units again, stop what ran before, then enable and start the socket."""
        self._systemctl("daemon-reload")
        # not checked: when something is wrong, `enable` below says so
        self._systemctl("stop", *BOTH, check=False)
        self._systemctl("reset-failed", *BOTH, check=False)
        self._systemctl("enable", "--now", units.SOCKET)

    def up(self, listening: Path, *, forgive: bool) -> None:
        """Start both units. ``forgive`` also starts them when they failed too often. When the file of the
        socket was deleted, systemd makes it again.
        """
        if forgive:
            self._systemctl("reset-failed", *BOTH, check=False)
        verb = "start" if listening.exists() else "restart"
        self._systemctl(verb, *BOTH)

    def restart(self) -> None:
        """Stop the daemon and start it anew. The socket listens all the while."""
        self._systemctl("reset-failed", *BOTH, check=False)
        self._systemctl("restart", units.SERVICE)

    def down(self) -> None:
        """Stop both in one step, so that the socket can't start the service again in between."""
        self._systemctl("stop", *BOTH)

    def forget(self) -> None:
        """Read the units again, and forget that one of them failed."""
        self._systemctl("daemon-reload")
        self._systemctl("reset-failed", *BOTH, check=False)

    def _systemctl(self, *words: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        return _run(("systemctl", "--user", "--no-pager", *words), self._env, check=check)


class Launchd:
    """``launchctl`` for the session of the person at the screen."""

    name = "launchd"

    def __init__(self, env: Mapping[str, str]) -> None:
        self.folder = Path(env.get("HOME", "/"), "Library", "LaunchAgents")
        self.unit = self.folder / units.FILE
        self._env = dict(env)
        self._domain = f"gui/{os.getuid()}"
        self._job = f"{self._domain}/{units.LABEL}"
        self.up_by_hand = (f"launchctl bootstrap {self._domain} '{self.unit}'",)
        self.down_by_hand = (f"launchctl bootout {self._job}",)

    def render(self, plan: Plan) -> dict[str, str]:
        """The one agent."""
        return units.agent(plan)

    def unreachable(self) -> str:
        """In launchd's words."""
        if shutil.which("launchctl", path=self._env.get("PATH", os.defpath)) is None:
            return "there is no launchctl on PATH"
        done = self._launchctl("print", self._domain, check=False)
        return (done.stderr.strip() or f"launchctl ended with {done.returncode}") if done.returncode else ""

    def show(self) -> dict[str, dict[str, str]]:
        """The state and the process id that `launchctl print` lists."""
        said = self._launchctl("print", self._job, check=False)
        lines = (line.strip().partition(" = ") for line in said.stdout.splitlines())
        wanted = {"state": "ActiveState", "pid": "MainPID", "last exit code": "Result"}
        state = {wanted[k]: v for k, _, v in lines if k in wanted} if said.returncode == 0 else {}
        return {units.LABEL: state}

    def active(self) -> bool:
        """Says whether launchd has loaded the agent."""
        return bool(self.show()[units.LABEL])

    def pid(self) -> int:
        """The daemon's, 0 when it does not run."""
        found = self.show()[units.LABEL].get("MainPID", "0")
        return int(found) if found.isdigit() else 0

    def install(self) -> None:
        """Unload the agent and load its file; launchd starts it at once."""
        self.down()
        self._launchctl("bootstrap", self._domain, str(self.unit))

    def down(self) -> None:
        """Unload the agent; it is fine when launchd had not loaded it."""
        self._launchctl("bootout", self._job, check=False)

    def forget(self) -> None:
        """Nothing to do: after ``down`` launchd knows nothing of the agent."""

    def _launchctl(self, *words: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        return _run(("launchctl", *words), self._env, check=check)


def here(env: Mapping[str, str], platform: str = sys.platform) -> Systemd | Launchd:
    """The manager of this system, whether it runs or not."""
    return Launchd(env) if platform == "darwin" else Systemd(env)


def files(manager: Systemd | Launchd, plan: Plan) -> dict[Path, tuple[str, units.State]]:
    """The service's files: the text of each, and how the one on the disk differs. Raises ``UserError``."""
    wanted = {manager.folder / name: text for name, text in manager.render(plan).items()}
    return {path: (text, units.state(path, text)) for path, text in wanted.items()}


def holding(env: Mapping[str, str], where: Paths) -> Systemd | None:
    """The systemd manager that runs the service for the daemon at ``where``, if it can be asked."""
    found = Systemd(env)
    unit = units.read(found.folder / units.SOCKET)
    if not unit or units.address(unit) not in {str(where.socket), str(paths.find_socket(where))}:
        return None
    return None if found.unreachable() else found


def _run(
    command: tuple[str, ...], env: Mapping[str, str], *, check: bool
) -> subprocess.CompletedProcess[str]:
    try:
        done = subprocess.run(  # noqa: S603 - systemctl or launchctl, constant words and our own paths
            command,
            env={**env, "LC_ALL": "C"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=COMMAND_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as e:
        raise Unavailable(f"`{' '.join(command)}` did not work: {words(e)}") from e
    if check and done.returncode:
        told = done.stderr.strip() or f"it ended with {done.returncode}"
        raise Unavailable(f"`{' '.join(command)}` failed: {told}")
    return done

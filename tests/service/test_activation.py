"""Socket activation, which ``server.listener`` and ``cli.control.serve`` do together: by the real
``systemd-socket-activate``, and by managers that hand over nonsense.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import stat
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from harness.machine import processes
from harness.machine.reflectd import call
from harness.machine.sandbox import REPO, Sandbox, sandbox
from harness.machine.waiting import wait_until


@pytest.fixture
def box() -> Iterator[Sandbox]:
    with sandbox() as box, processes.none_left_over():
        yield box


@contextlib.contextmanager
def activated(box: Sandbox, path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A listening socket at ``path``; who connects starts the daemon, in the same process."""
    env = box.env(PYTHONPATH=str(REPO))
    words = [word for name, value in env.items() for word in ("-E", f"{name}={value}")]
    with (box.root / "activate.log").open("wb") as log:
        process = processes.start(
            ["systemd-socket-activate", f"--listen={path}", *words, sys.executable, "-m", "daemon", "serve"],
            env,
            box.home,
            log,
            log,
        )
    try:
        wait_until(lambda: listens(path), "the socket")
        yield process
    finally:
        processes.end_group(process, gently=0)


def listens(path: Path) -> bool:
    """Whether somebody listens there. Asking it by a connection would start the daemon."""
    accepts = 0x10000  # the flag of a socket that takes connections
    rows = [row.split() for row in Path("/proc/net/unix").read_text().splitlines()[1:]]
    return any(int(row[3], 16) & accepts for row in rows if row[-1] == str(path))


def log(box: Sandbox) -> str:
    return (box.root / "activate.log").read_text()


@pytest.mark.shows("I45")
@pytest.mark.needs("systemd-socket-activate")
def test_a_connection_starts_the_daemon(box: Sandbox) -> None:
    """It serves the inherited socket, privately, under the lock; the socket outlives it."""
    box.socket.parent.chmod(0o700)
    other = box.root / "run" / "other.sock"  # not the daemon's own address: the inherited one counts
    with activated(box, other) as process:
        assert "daemon" in psutil.Process(process.pid).cmdline()[-2]
        assert not (box.state / "lock").exists(), "it runs although nobody connected"
        inode = other.stat().st_ino
        status = call(other, "GET", "/v1/status")
        assert status["pid"] == process.pid
        assert (box.state / "lock").read_text() == f"{process.pid}\n"
        assert (box.state / "socket").read_text() == f"{other}\n"
        assert stat.S_IMODE(other.stat().st_mode) == 0o600
        assert not box.socket.exists()
        assert call(other, "GET", "/v1/status")["pid"] == process.pid
        process.terminate()
        assert process.wait(60) == 0, log(box)
        assert other.stat().st_ino == inode
        assert (box.state / "socket").read_text() == f"{other}\n", "its address lasts as well"
        assert "Traceback" not in log(box)


@pytest.mark.shows("I45")
@pytest.mark.needs("systemd-socket-activate")
def test_the_plugins_start_meets_the_service(box: Sandbox) -> None:
    """`reflectd start --from-shim`, many at once, while a manager holds the socket: one daemon."""
    with activated(box, box.socket) as process:
        command = [sys.executable, "-m", "daemon", "start", "--from-shim"]
        many = [
            subprocess.Popen(
                command,
                env=box.env(PYTHONPATH=str(REPO)),
                cwd=box.home,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
            for _ in range(3)
        ]
        said = [(p.communicate(timeout=60)[0], p.returncode) for p in many]
        assert [(f"pid {process.pid}" in text, code) for text, code in said] == [(True, 0)] * 3, said
        assert call(box.socket, "GET", "/v1/status")["pid"] == process.pid


@pytest.mark.needs("systemd-socket-activate")
def test_the_lock_holds_for_the_service_too(box: Sandbox) -> None:
    """Another daemon holds this state folder: the activated one ends with exit code 2."""
    from harness.machine.reflectd import Daemon

    other = box.root / "run" / "other.sock"
    with Daemon(box) as daemon, activated(box, other) as process:
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(other))
            assert process.wait(60) == 2
        assert "runs already" in log(box)
        assert daemon.status()["degraded"] == ""


SCRIPT = """
import json, os, socket, subprocess, sys
from pathlib import Path
from daemon.core.errors import UserError
from daemon.server.listener import inherited

path, kind, count, pid = sys.argv[1:]
sock = socket.socket(socket.AF_INET if kind == "tcp" else socket.AF_UNIX,
                     socket.SOCK_DGRAM if kind == "datagram" else socket.SOCK_STREAM)
if kind == "tcp":
    sock.bind(("127.0.0.1", 0))
elif kind == "abstract":
    sock.bind("\\0" + path)
else:
    sock.bind(path)
if kind in ("good", "tcp", "abstract", "folder"):
    sock.listen()
if kind == "folder":
    Path(path).parent.chmod(0o777)
if kind == "closed":
    os.closerange(3, 10)
elif kind == "file":
    os.dup2(os.open("/dev/null", os.O_RDONLY), 3)
elif sock.fileno() != 3:
    os.dup2(sock.fileno(), 3)
os.environ |= {"LISTEN_FDS": count, "LISTEN_PID": pid or str(os.getpid()), "LISTEN_FDNAMES": "x"}
try:
    found = inherited(os.environ, os.getpid())
    said = None if found is None else found.getsockname()
except UserError as e:
    said = f"refused: {e}"
left = sorted(n for n in os.environ if n.startswith("LISTEN_"))
print(json.dumps([said, left, os.get_inheritable(3) if said == path else None]), flush=True)
os._exit(0)
"""


def hand_over(box: Sandbox, kind: str, count: str = "1", pid: str = "") -> list[object]:
    """What a process makes of it: the address or the refusal, variables left, inheritable."""
    script = box.root / "hand_over.py"
    script.write_text(textwrap.dedent(SCRIPT))
    done = subprocess.run(
        [sys.executable, str(script), str(box.socket), kind, count, pid],
        env=box.env(PYTHONPATH=str(REPO)),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: list[object] = json.loads(done.stdout)
    return found


def test_what_is_taken(box: Sandbox) -> None:
    """Child processes get neither the variables nor the descriptor."""
    assert hand_over(box, "good") == [str(box.socket), [], False]
    box.socket.unlink()
    assert hand_over(box, "good", pid=str(os.getpid())) == [None, [], None]
    box.socket.unlink()
    assert hand_over(box, "good", count="0") == [None, [], None]


@pytest.mark.parametrize(
    ("kind", "count", "words"),
    [
        ("good", "2", "exactly one"),
        ("good", "x", "exactly one"),
        ("tcp", "1", "ListenStream="),
        ("abstract", "1", "ListenStream="),
        ("datagram", "1", "ListenStream="),
        ("deaf", "1", "ListenStream="),
        ("file", "1", "ListenStream="),
        ("closed", "1", "descriptor 3"),
        ("folder", "1", "others may write"),
    ],
)
def test_what_is_refused(box: Sandbox, kind: str, count: str, words: str) -> None:
    """Only one listening Unix socket in a private folder is accepted; all else is refused with a message."""
    said, left, _ = hand_over(box, kind, count)
    assert isinstance(said, str)
    assert said.startswith("refused: ")
    assert words in said
    assert left == []

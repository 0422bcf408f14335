"""hook.sh as Claude Code runs it, against a loopback socket that answers as the test wants."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import stat
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from daemon.paths import shipped
from harness.machine import processes

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

SCRIPTS = shipped("shims/claude-code") / "scripts"
TOOLS = ("cat", "date", "ls", "mkdir", "rm", "sleep", "tr")
JSON = b'{"systemMessage": "\xc3\xbc \\"quoted\\" $HOME `x` \\\\n"}'


@dataclass(frozen=True, slots=True)
class Request:
    """What came over the socket."""

    line: str
    headers: Mapping[str, str]
    body: bytes


def http(status: int, body: bytes = b"", *fields: bytes) -> bytes:
    """An answer on the wire."""
    head = [b"HTTP/1.1 %d Words" % status, b"Content-Length: %d" % len(body), b"Connection: close", *fields]
    return b"\r\n".join(head) + b"\r\n\r\n" + body


class Listener:
    """Takes requests one after the other and answers each with ``answer``; ``None`` never answers.

    It answers too when it is only asked whether it is there, after ``slow_s`` seconds, and does not note it.
    """

    def __init__(self, path: Path, answer: bytes | None, slow_s: float = 0.0) -> None:
        self.answer = answer
        self._slow_s = slow_s
        self.requests: list[Request] = []
        self.connections = 0
        self._held: list[socket.socket] = []
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.bind(str(path))
        path.chmod(0o600)
        self._socket.listen()
        self._thread = threading.Thread(target=self._work)
        self._thread.start()

    def close(self) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        for link in [*self._held, self._socket]:
            link.close()

    def _work(self) -> None:
        while True:
            try:
                link, _ = self._socket.accept()
            except OSError:
                return
            self.connections += 1
            with contextlib.suppress(OSError):
                self._serve(link)
            if self.answer is not None:
                link.close()

    def _serve(self, link: socket.socket) -> None:
        self._held.append(link)
        data = b""
        while b"\r\n\r\n" not in data:
            more = link.recv(65536)
            if not more:
                return
            data += more
        head, _, body = data.partition(b"\r\n\r\n")
        line, *fields = head.decode().split("\r\n")
        if line.startswith("GET /v1/status "):  # before a long wait; any answer will do
            if self.answer is not None:
                time.sleep(self._slow_s)
                link.sendall(http(200, b"{}"))
            return
        headers = {name.lower(): value for name, _, value in (f.partition(": ") for f in fields)}
        parts = [body]
        left = int(headers["content-length"]) - len(body)
        while left > 0 and (more := link.recv(1 << 20)):
            parts.append(more)
            left -= len(more)
        self.requests.append(Request(line, headers, b"".join(parts)))
        if self.answer is not None:
            link.sendall(self.answer)


@dataclass
class Hook:
    """``shell`` and ``client`` (curl, or python3 where there is no curl); everything else is in ``root``."""

    shell: tuple[str, ...]
    client: str
    root: Path
    env: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.bin, self.state, self.socket = (
            self.root / "bin",
            self.root / "state",
            self.root / "run" / "r.sock",
        )
        self.project = self.root / "my project"
        for folder in (self.bin, self.state, self.socket.parent, self.project):
            folder.mkdir(mode=0o700)
        for tool in TOOLS:
            (self.bin / tool).symlink_to(str(shutil.which(tool)))
        if self.client == "curl":
            (self.bin / "curl").symlink_to(str(shutil.which("curl")))
        else:
            self.program("python3", f'exec "{sys.executable}" "$@"')
        self.env = {
            processes.MARK: processes.RUN,
            "PATH": str(self.bin),
            "HOME": str(self.root),
            "REFLECTD_STATE_DIR": str(self.state),
            "REFLECTD_SOCKET": str(self.socket),
            "REFLECTD_NO_START": "1",
            "CLAUDE_PROJECT_DIR": str(self.project),
            "CLAUDE_CODE_ENTRYPOINT": "cli",
            "CLAUDE_CODE_SESSION_ATTENDED": "1",
            "CLAUDE_PID": "4242",
            "CLAUDE_CODE_MESSAGING_TOKEN": "a-secret-token",
            "CLAUDE_CODE_MESSAGING_SOCKET": "/a/secret/socket",
        }

    def program(self, name: str, script: str) -> Path:
        """A program on PATH."""
        file = self.bin / name
        file.unlink(missing_ok=True)  # a link to the machine's own program is replaced, never followed
        file.write_text(f"#!/bin/sh\n{script}\n")
        file.chmod(0o755)
        return file

    def strict(self) -> None:
        """As a daemon with ``claude_code.strict`` leaves it."""
        (self.state / "strict").touch()

    def __call__(self, *args: str, stdin: bytes = b"{}", below: str = "") -> tuple[int, bytes, bytes]:
        """Exit code, stdout, stderr. ``below``: the argument of a process that starts it as a host would."""
        host = [*self.shell, "-c", '"$@"; exit $?', "host"] if below else []
        done = subprocess.run(
            [*host, *self.shell, str(SCRIPTS / "hook.sh"), *args, *([below] if below else [])],
            env=self.env,
            cwd=self.project,
            input=stdin,
            capture_output=True,
            timeout=60,
            check=False,
        )
        return done.returncode, done.stdout, done.stderr

    @contextlib.contextmanager
    def daemon(
        self, answer: bytes | None = JSON, at: Path | None = None, *, slow_s: float = 0.0
    ) -> Iterator[Listener]:
        """Somebody listens."""
        listener = Listener(at or self.socket, http(200, JSON) if answer is JSON else answer, slow_s)
        try:
            yield listener
        finally:
            listener.close()


SILENT = (0, b"", b"")


@contextlib.contextmanager
def made(shell: str, client: str) -> Iterator[Hook]:
    """One in a short folder of its own (a socket's path has 104 bytes), with odd characters."""
    root = Path(tempfile.mkdtemp(prefix="rd ü'")).resolve()
    try:
        program = (str(shutil.which(shell)), *{"bash": ["--posix"], "busybox": ["sh"]}.get(shell, []))
        yield Hook(program, client, root)
    finally:
        for folder, _, _ in os.walk(root):
            Path(folder).chmod(stat.S_IRWXU)
        shutil.rmtree(root)

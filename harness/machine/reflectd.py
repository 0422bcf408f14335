"""The real daemon as a process, a client for its socket, and a reader of its verdict files."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar, Self

from harness.machine import processes
from harness.machine.forked import FORKER, Forked
from harness.machine.sandbox import REPO, Sandbox
from harness.machine.waiting import PATIENCE_S, wait_until

Json = dict[str, Any]
SERVE = ("-m", "daemon", "serve")


class Daemon:
    """``with Daemon(box) as daemon``: ``reflectd serve`` in the sandbox, answering when the block begins.

    Where ``FORKING`` is set (by the tests) it is a fork of a process that has imported it, unless ``program``
    is another one.
    """

    FORKING: ClassVar[bool] = False

    def __init__(self, box: Sandbox, **env: str) -> None:
        self.box, self._extra = box, env
        self.program: tuple[str, ...] = SERVE
        self._process: subprocess.Popen[bytes] | Forked | None = None
        self._log = box.root / "reflectd.log"
        self._mark = 0

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self, **env: str) -> Self:
        """Start, and wait until it answers. ``env`` is kept for later starts."""
        assert self._process is None, "it runs already"
        self._extra |= env
        where: list[str | Path] = ["--socket", self.box.socket, "--state-dir", self.box.state]
        command: list[str | Path] = [sys.executable, *self.program, *where]
        settings = {"PYTHONPATH": str(REPO), "PYTHONUNBUFFERED": "1"}
        settings["REFLECTD_STUCK_AFTER_S"] = "3600"  # a slow machine is no silent agent
        env = self.box.env(**settings) | self._extra
        with self._log.open("ab") as log, open(os.devnull, "rb") as nothing:
            if self.FORKING and self.program == SERVE:
                streams = [nothing.fileno(), log.fileno(), log.fileno()]
                self._process = FORKER.start(["serve", *map(str, where)], env, self.box.home, streams)
            else:
                self._process = processes.start(command, env, self.box.home, log, log)
        try:
            wait_until(self._answers, "answer from the daemon", self.log)
        except BaseException:
            self.kill9()
            raise
        return self

    def _answers(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, (
            f"the daemon ended with {self._process.returncode}:\n{self.log()}"
        )
        try:
            return bool(self.status()["pid"] == self._process.pid)
        except (OSError, http.client.HTTPException):
            return False

    def kill9(self) -> None:
        """SIGKILL, as a crash or the out-of-memory killer would."""
        if self._process is not None:
            processes.end_group(self._process, gently=0)
            self._process = None

    def stop(self) -> int:
        """SIGTERM; gives the exit status. A daemon that does not end fails the test."""
        if self._process is None:
            return 0
        process, self._process = self._process, None
        process.terminate()
        try:
            return process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            raise AssertionError(
                f"the daemon ignored SIGTERM for {PATIENCE_S:g} s:\n{self.log()[-4000:]}"
            ) from None
        finally:
            processes.end_group(process, gently=0)

    def restart(self, **env: str) -> None:
        self.stop()
        self.start(**env)

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def log(self) -> str:
        """Its stdout and stderr over all starts."""
        return self._log.read_text("utf-8", "replace") if self._log.exists() else ""

    def mark(self) -> None:
        """A test begins here: ``new_log`` starts empty."""
        self._mark = len(self.log())

    def new_log(self) -> str:
        """The log since ``mark``. A traceback in it fails the test."""
        found = self.log()[self._mark :]
        assert "Traceback" not in found, f"the daemon failed:\n{found[:8000]}"
        return found

    def call(self, method: str, path: str, body: Json | None = None) -> Json:
        """One request over the socket; its JSON."""
        return call(self.box.socket, method, path, body)

    def status(self) -> Json:
        return self.call("GET", "/v1/status")

    def spent_by(self, by: str) -> list[Json]:
        """The sums of the ledger, as `reflectd cost --by` prints them."""
        command = [sys.executable, "-m", "daemon", "cost", "--by", by, "--days", "1", "--json"]
        command += ["--state-dir", str(self.box.state)]
        env = self.box.env(PYTHONPATH=str(REPO))
        found: list[Json] = json.loads(subprocess.check_output(command, env=env))["groups"]
        return found

    def session(self, session: str) -> Json:
        """What the daemon knows of a session; empty when nothing."""
        listed = self.call("GET", "/v1/sessions")["sessions"]
        return next((s for s in listed if s["session"] == session), {})

    def verdicts(self, session: str, limit: int = 50) -> list[Json]:
        """All its verdicts on a session, newest first."""
        found: list[Json] = self.call("GET", f"/v1/verdicts?session={session}&limit={limit}")["verdicts"]
        return found

    def wait_verdict(self, session: str, state: str, *, turn: str = "") -> Json:
        """Until the session's verdict file says ``state`` (for ``turn``); gives the file."""

        def hit() -> Json | None:
            self.new_log()
            found = verdict_file(self.box.project, session)
            return found if found and found["state"] == state and turn in {"", found["turn"]} else None

        def seen() -> str:
            return f"{verdict_file(self.box.project, session)}\n--- daemon log\n{self.new_log()[-6000:]}"

        found = wait_until(hit, f"verdict {state!r}", seen)
        assert found is not None
        return found


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: Path) -> None:
        super().__init__("reflectd", timeout=PATIENCE_S)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        try:
            self.sock.connect(str(self._path))
        except OSError:
            self.sock.close()
            raise


def call(path: Path, method: str, route: str, body: Json | None = None) -> Json:
    """One request to a daemon's socket; its JSON. A refusal fails the test."""
    with contextlib.closing(_UnixConnection(path)) as connection:
        data = None if body is None else json.dumps(body)
        connection.request(method, route, data, {"content-type": "application/json"})
        answer = connection.getresponse()
        text = answer.read().decode()
    assert answer.status < 400, f"{method} {route}: {answer.status} {text[:500]}"
    found: Json = json.loads(text)
    return found


def verdict_file(project: Path, session: str) -> Json | None:
    """``.reflection/verdict_<session>.json``; None when there is none. It is never half written."""
    path = project / ".reflection" / f"verdict_{session}.json"
    try:
        found: Json = json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return None
    return found

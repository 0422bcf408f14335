"""Runs the command of ``reflectd watch --exec``: once for each verdict, one at a time, in their order.

A thread runs it, so that ``watch`` prints lines meanwhile. At most ``WAITING`` verdicts wait for it; one more
is left out, with a message. Each run has its own process group, which is killed when its time is over and
when watching ends, so that nothing is left running. A failure is printed on stderr and never stops the
watching.
"""

from __future__ import annotations

import contextlib
import os
import queue
import signal
import subprocess
import sys
import threading

WAITING = 500
END_S = 5.0


class Command:
    """``push`` gives the command one line of JSON; ``close`` kills what runs and forgets what waits."""

    def __init__(self, command: str, timeout_s: float, *, aside: bool) -> None:
        """With ``aside`` the command's output goes to stderr, because ``watch`` prints JSON on stdout."""
        self._command = command
        self._timeout_s = timeout_s
        self._stdout = sys.stderr if aside else None
        self._waiting: queue.Queue[str] = queue.Queue(WAITING)
        self._lock = threading.Lock()
        self._process: subprocess.Popen[str] | None = None
        self._closed = False
        self._thread = threading.Thread(target=self._work, name="reflectd-exec", daemon=True)
        self._thread.start()

    def push(self, line: str) -> None:
        """Run the command for this line, after the lines before it."""
        try:
            self._waiting.put_nowait(line)
        except queue.Full:
            self._say(f"{WAITING} verdicts wait for the command; this one is left out")

    def close(self) -> None:
        """Kill the command that runs, with all processes that it started."""
        with self._lock:
            self._closed = True
            if self._process is not None:
                _kill(self._process)
        with contextlib.suppress(queue.Full):
            self._waiting.put_nowait("")
        self._thread.join(END_S)

    def _work(self) -> None:
        while True:
            line = self._waiting.get()
            if self._closed:
                return
            try:
                self._run(line)
            except OSError as e:
                self._say(f"cannot be run: {e.strerror}")

    def _run(self, line: str) -> None:
        with self._lock:
            if self._closed:
                return
            self._process = process = subprocess.Popen(  # noqa: S602 - the person typed it, as in `sh -c`
                self._command,
                shell=True,
                stdin=subprocess.PIPE,
                stdout=self._stdout,
                env={**os.environ, "REFLECTD_CHILD": "1"},
                start_new_session=True,
                text=True,
                errors="backslashreplace",
            )
        try:
            process.communicate(line + "\n", self._timeout_s)
            if process.returncode and not self._closed:
                self._say(f"ended with {_ending(process.returncode)}")
        except subprocess.TimeoutExpired:
            self._say(f"took longer than {self._timeout_s:g} s and was killed")
        finally:
            with self._lock:
                _kill(process)  # what it left in the background too
                self._process = None
            with contextlib.suppress(OSError):
                process.stdin.close()  # type: ignore[union-attr]  # it is a pipe
            process.wait()

    @staticmethod
    def _say(text: str) -> None:
        print(f"reflectd: --exec: {text}", file=sys.stderr, flush=True)


def _ending(code: int) -> str:
    return f"signal {-code}" if code < 0 else f"exit code {code}"


def _kill(process: subprocess.Popen[str]) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)

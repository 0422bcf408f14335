"""Programs under test, each in its own process group, and a mark by which left-overs are found."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Self

import psutil

from harness.machine.forked import FORKER, Forked
from harness.machine.waiting import PATIENCE_S

MARK = "E2E_RUN"
RUN = uuid.uuid4().hex
"""Every program a test starts carries ``MARK=RUN`` in its environment, and so do its children."""


def left_over() -> list[psutil.Process]:
    """Processes of this test run that still live, whoever adopted them; zombies of ours included."""
    forked = {child.pid for child in FORKER.alive()}
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            zombie = process.status() == psutil.STATUS_ZOMBIE and process.ppid() == os.getpid()
            if zombie or process.pid in forked or process.environ().get(MARK) == RUN:
                found.append(process)
    return found


def of_a_check(folder: Path) -> list[psutil.Process]:
    """The processes of a check that reflectd runs in this folder or below it."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if "REFLECTD_PROOF" in process.environ() and Path(process.cwd()).is_relative_to(folder):
                found.append(process)
    return found


def describe(processes: Sequence[psutil.Process]) -> str:
    """One line per process."""
    lines = []
    for process in processes:
        with contextlib.suppress(psutil.Error):
            lines.append(f"{process.pid} (parent {process.ppid()}): {' '.join(process.cmdline())[:160]}")
    return "\n".join(lines)


def start(
    command: Sequence[str | os.PathLike[str]],
    env: Mapping[str, str],
    cwd: Path,
    stdout: IO[bytes],
    stderr: IO[bytes],
) -> subprocess.Popen[bytes]:
    """Start a program in its own session, without input."""
    return subprocess.Popen(
        [str(part) for part in command],
        cwd=cwd,
        env=dict(env),
        stdin=subprocess.DEVNULL,
        stdout=stdout,
        stderr=stderr,
        start_new_session=True,
    )


def end_group(process: subprocess.Popen[bytes] | Forked, *, gently: float = 5.0) -> None:
    """SIGTERM, then SIGKILL for the whole group. ``gently=0`` kills at once."""
    if gently and process.poll() is None:
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(gently)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait(PATIENCE_S)


class Program:
    """``with`` it: a program in flight that reads ``text``; its group is killed at the end of the block."""

    stays_open = False
    """Its stdin is a pipe instead."""

    def __init__(
        self, folder: Path, command: Sequence[str], text: str, env: Mapping[str, str], cwd: Path
    ) -> None:
        self._folder, self._command, self._text, self._env, self._cwd = folder, command, text, env, cwd
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self._t0 = time.monotonic()
        stem = f"program-{time.monotonic_ns()}"  # several may run at once
        source, self._out, self._err = (self._folder / f"{stem}.{end}" for end in ("in", "out", "err"))
        source.write_text(self._text, encoding="utf-8")
        with self._out.open("wb") as out, self._err.open("wb") as err, source.open("rb") as given:
            self._process = subprocess.Popen(
                self._command,
                cwd=self._cwd,
                env=self._env,
                stdin=subprocess.PIPE if self.stays_open else given,
                stdout=out,
                stderr=err,
                start_new_session=True,
            )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process is not None:
            end_group(self._process, gently=0)

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def is_over(self) -> bool:
        """Whether it has ended."""
        return self._process is not None and self._process.poll() is not None

    def signal(self, number: int) -> None:
        assert self._process is not None
        self._process.send_signal(number)

    def ended(self) -> tuple[int, str, str, float]:
        """Exit status, stdout, stderr and seconds, when it has ended by itself."""
        assert self._process is not None
        try:
            code = self._process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            told = f"{self._command[0]} did not end in {PATIENCE_S:g} s:\n{self.texts()}"
            raise AssertionError(told) from None
        return code, *self.texts(), time.monotonic() - self._t0

    def texts(self) -> tuple[str, str]:
        """Its stdout and stderr so far."""
        out, err = (p.read_text("utf-8", "replace") for p in (self._out, self._err))
        return out, err


@contextlib.contextmanager
def none_left_over() -> Iterator[None]:
    """After the block, nothing that it started lives on (I45). What is still ending is waited for."""
    before = {p.pid for p in left_over()}
    yield
    rest = [p for p in left_over() if p.pid not in before]
    _, rest = psutil.wait_procs(rest, timeout=PATIENCE_S)
    listing = describe(rest)
    for process in rest:
        with contextlib.suppress(psutil.Error):
            process.kill()
    assert not rest, f"left running:\n{listing}"

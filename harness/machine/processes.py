"""Programs under test, each in its own process group, and a mark by which left-overs are found."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import uuid
from typing import IO, TYPE_CHECKING

import psutil

from harness.machine.forked import FORKER, Forked
from harness.machine.waiting import PATIENCE_S

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

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

"""Runs one check in a session of its own, and ends all of it: at its limit, when nobody wants it any more,
and when the daemon dies.

A shell waits for a word from the daemon before it starts the check, so that the run is written down first.
Beside the check a watcher reads from the daemon until the daemon is gone, then kills the process group. A
process that left the group is found by a variable of its environment: after the run, and at the next start.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import secrets
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from msgspec import Struct, to_builtins

from ..core.errors import Unavailable, words
from ..files.safe import write_atomic
from . import tree

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

MARK: Final = "REFLECTD_PROOF"
HEAD: Final = 64_000  # bytes of the output that are kept from its beginning
TAIL: Final = 192_000  # and from its end
PIECE: Final = 65_536
GRACE_S: Final = 1.0  # between SIGTERM and SIGKILL
LAST_S: Final = 0.3  # for what is still in the pipe when the check has ended
NICE: Final = 10
_LAUNCH: Final = f"""exec 3<&0 </dev/null
read -r go <&3 || exit 125
( while read -r more <&3; do :; done; kill -KILL 0 ) >/dev/null 2>&1 &
exec 3<&-
ulimit -c 0 2>/dev/null
shell=$(command -v bash) && exec nice -n {NICE} "$shell" -o pipefail -c "$1"
exec nice -n {NICE} sh -c "$1"
"""
_OURS: Final = re.compile(r"^(?:REFLECTD_|REFLECTION_|ANTHROPIC_|OPENAI_|CLAUDE|CODEX_|OPENCODE)")
_SECRET: Final = re.compile(
    r"KEY|TOKEN|SECRET|PASSW|CREDENTIAL|COOKIE|AUTH(?!OR)_?(?:$|[A-Z])", re.IGNORECASE
)
_HARMLESS: Final = frozenset({"SSH_AUTH_SOCK", "XAUTHORITY", "KEYBOARD", "GPG_KEY"})
_OF_A_REPOSITORY: Final = frozenset(  # git sets them for its hooks: a check would work on that repository
    {"GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX", "GIT_OBJECT_DIRECTORY", "GIT_COMMON_DIR"}
)
Why = Literal["", "timed_out", "not_started"]


class Ran(Struct, frozen=True):
    """How it ended. ``exit``: its exit code, None when it did not end by itself. ``output``: both streams as
    printed, without the middle of a long one.
    """

    exit: int | None
    seconds: float
    output: str
    why: Why = ""


class Written(Struct, frozen=True):
    """The record of a run while it lasts. ``place``: a worktree of ours, ``repository``: whose
    it is; both "" without one.
    """

    id: str
    pid: int
    at: int
    command: str
    folder: str
    place: str = ""
    repository: str = ""


class RunFiles:
    """A file for each run under way: whoever starts next ends what a killed daemon left."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def place(self, identity: str) -> Path:
        """Where a worktree for this run may be."""
        return self._folder / f"{identity}.tree"

    def write(self, run: Written) -> None:
        """Raises ``Unavailable``; then nothing may be run."""
        with contextlib.suppress(OSError):  # the write says what is wrong
            self._folder.mkdir(mode=0o700, exist_ok=True)
        write_atomic(self._folder / f"{run.id}.json", json.dumps(to_builtins(run)), mode=0o600, durable=False)

    def done(self, identity: str) -> None:
        """The run is over, and nothing of it is left."""
        with contextlib.suppress(OSError):
            (self._folder / f"{identity}.json").unlink(missing_ok=True)

    def clear(self) -> list[str]:
        """End what an earlier daemon left running, and remove its worktrees; what that was. Call it before
        the first run.
        """
        found = []
        for path in sorted(self._folder.glob("*.json")):
            try:
                run = Written(**json.loads(path.read_bytes()[:PIECE]))
            except (OSError, ValueError, TypeError):
                run = Written(path.stem, 0, 0, "?", "")
            mark = path.stem  # by its own name: what is in it may be anything
            killed = kill_marked(mark)
            told = f"`{run.command}` in {run.folder}: {killed} processes ended"
            try:
                if run.place:
                    tree.remove(self.place(mark), str(run.repository))
                self.done(mark)
            except (Unavailable, OSError, ValueError, TypeError) as e:  # the next start tries again
                told += f"; {e}"
            found.append(told)
        return found


def identity() -> str:
    """The name of one run."""
    return secrets.token_hex(8)


def environment(env: Mapping[str, str], mark: str) -> dict[str, str]:
    """The daemon's environment without keys, tokens and what is about us or a host."""
    kept = {
        name: value
        for name, value in env.items()
        if name in _HARMLESS or not (name in _OF_A_REPOSITORY or _OURS.search(name) or _SECRET.search(name))
    }
    return {**kept, MARK: mark, "TERM": "dumb"}


async def run(command: str, folder: Path, timeout_s: float, mark: str, started: Callable[[int], None]) -> Ran:
    """Run it to its end or its limit. ``started`` is told the process id before the check begins; what it
    raises ends the run. Cancelled, it ends the whole group before it returns.
    """
    begun = time.monotonic()
    try:
        process = subprocess.Popen(  # noqa: ASYNC220, S603 - a check that may be run; a fork is short
            ["/bin/sh", "-c", _LAUNCH, "reflectd-proof", command],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            cwd=folder, env=environment(os.environ, mark), start_new_session=True, bufsize=0,
        )  # fmt: skip
    except OSError as e:
        return Ran(None, 0.0, words(e), "not_started")
    # asyncio's own process would wait for whatever holds the pipe, also when the check has ended
    output = _Output(process)
    waiting = asyncio.get_running_loop().run_in_executor(None, process.wait)
    try:
        started(process.pid)
        assert process.stdin is not None  # noqa: S101 - it is a pipe
        process.stdin.write(b"go\n")
        await asyncio.wait([waiting], timeout=timeout_s)
        seconds = time.monotonic() - begun
        code = process.returncode if waiting.done() else None
        if code is not None:
            await asyncio.to_thread(output.join, LAST_S)
        why: Why = "timed_out" if not waiting.done() else "not_started" if code in {125, 126, 127} else ""
        return Ran(code if code is not None and code >= 0 else None, seconds, output.text, why)
    finally:
        await asyncio.shield(_end(process, waiting, output, mark))


async def _end(
    process: subprocess.Popen[bytes], waiting: asyncio.Future[int], output: _Output, mark: str
) -> None:
    """End the group and what left it: SIGTERM where it still works, a moment later SIGKILL."""
    if not waiting.done():
        _signal(process.pid, signal.SIGTERM)
        await asyncio.wait([waiting], timeout=GRACE_S)
    _signal(process.pid, signal.SIGKILL)
    await asyncio.wait([waiting])
    await asyncio.to_thread(kill_marked, mark)
    await asyncio.to_thread(output.join, LAST_S)
    for pipe in (process.stdin, process.stdout):
        if pipe is not None and not (pipe is process.stdout and output.is_alive()):
            with contextlib.suppress(OSError):
                pipe.close()


def _signal(group: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


class _Output(threading.Thread):
    """Keeps the beginning and the end of what is printed; all the rest is read and dropped."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        super().__init__(name="proof output", daemon=True)
        self._stream = process.stdout
        self._head = bytearray()
        self._tail: deque[bytes] = deque()
        self._kept = self._dropped = 0
        self._lock = threading.Lock()
        self.start()

    def run(self) -> None:
        """Until nobody holds the pipe any more."""
        assert self._stream is not None  # noqa: S101 - it is a pipe
        with contextlib.suppress(OSError, ValueError):  # it was closed
            while piece := self._stream.read(PIECE):
                with self._lock:
                    self._keep(piece)

    def _keep(self, piece: bytes) -> None:
        room = max(HEAD - len(self._head), 0)
        self._head += piece[:room]
        if rest := piece[room:]:
            self._tail.append(rest)
            self._kept += len(rest)
            while self._kept - len(self._tail[0]) >= TAIL:
                self._dropped += len(self._tail[0])
                self._kept -= len(self._tail.popleft())

    @property
    def text(self) -> str:
        """The kept output as text."""
        with self._lock:
            head, tail = bytes(self._head), b"".join(self._tail)
        gap = f"\n({self._dropped} bytes are left out)\n".encode() if self._dropped else b""
        return (head + gap + tail).decode("utf-8", "replace")


def kill_marked(mark: str) -> int:
    """Kill every process of this user that has our mark in its environment; how many those were. Blocking."""
    killed = 0
    for _ in range(5):  # one that forks meanwhile is found in the next round
        found = [pid for pid in _marked(f"{MARK}={mark}") if pid != os.getpid()]
        for pid in found:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
                killed += 1
        if not found:
            break
        time.sleep(0.02)
    return killed


def _marked(entry: str) -> list[int]:
    if sys.platform != "linux":
        return _marked_by_ps(entry)
    found, wanted = [], entry.encode()
    for place in Path("/proc").iterdir():
        if place.name.isdigit():
            with contextlib.suppress(OSError):
                if wanted in (place / "environ").read_bytes().split(b"\0") and _runs(place):
                    found.append(int(place.name))
    return found


def _runs(place: Path) -> bool:
    """Says whether it is no zombie, which can't be killed again."""
    return (place / "stat").read_text("utf-8", "replace").rpartition(")")[2].split()[0] not in {"Z", "X"}


def _marked_by_ps(entry: str) -> list[int]:
    try:
        done = subprocess.run(
            ["/bin/ps", "-axEww", "-o", "pid=,command="],
            capture_output=True,
            text=True,
            timeout=10,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return []
    lines = (line.split() for line in done.stdout.splitlines())
    return [int(parts[0]) for parts in lines if entry in parts and parts[0].isdigit()]

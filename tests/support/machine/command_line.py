"""The command line in real processes: run one command, and look at what it said."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from harness.machine.forked import FORKER, Forked
from harness.machine.reflectd import Daemon
from harness.machine.sandbox import REPO, Sandbox
from harness.machine.waiting import wait_until
from tests.support.hosts.wire import WireHost, unfinished

Done = subprocess.CompletedProcess[str]
COMMAND = [sys.executable, "-m", "daemon"]
PYTHONS = ("PYTHON", "LANG", "LC_", "COVERAGE")
COMMAND_S = 90.0
"""How long a command may take: far more than ten times what the slowest takes on an idle machine."""


def environment(box: Sandbox, **env: str) -> dict[str, str]:
    """What a command gets: the sandbox's variables and the package of this checkout."""
    return box.env(PYTHONPATH=str(REPO), PYTHONUNBUFFERED="1", PAGER="cat") | env


def reflectd(
    box: Sandbox,
    *args: str | Path,
    stdin: bytes | None = None,
    cwd: Path | None = None,
    cold: bool = False,
    **env: str,
) -> Done:
    """One command in the project, to its end. It never shows a traceback.

    A fork of a process that has imported it. ``cold``, and a variable that Python reads, start a new Python.
    """
    words, folder = list(map(str, args)), cwd or box.project
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        given.write(stdin or b"")
        given.seek(0)
        streams = [given, out, err]
        if cold or any(name.startswith(PYTHONS) for name in env):
            done = subprocess.Popen(
                [*COMMAND, *words],
                env=environment(box, **env),
                cwd=folder,
                stdin=given if stdin is not None else subprocess.DEVNULL,
                stdout=out,
                stderr=err,
            )
            code = _finished(done)
        else:
            numbers = [stream.fileno() for stream in streams]
            code = _finished(FORKER.start(words, environment(box, **env), folder, numbers, session=False))
        printed = []
        for stream in (out, err):
            stream.seek(0)
            printed.append(stream.read().decode("utf-8", "backslashreplace"))
    assert "Traceback" not in printed[1], printed[1]
    return Done([*COMMAND, *words], code, *printed)


def _finished(process: subprocess.Popen[bytes] | Forked) -> int:
    """Its exit code. It is killed when it takes longer than anything takes."""
    try:
        return process.wait(COMMAND_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        raise


def said(done: Done, code: int, *words: str) -> str:
    """What the command printed. Its exit code is ``code`` and all ``words`` are there."""
    text = done.stdout + done.stderr
    assert done.returncode == code, done
    for word in words:
        assert word in text, f"{word!r} is not in:\n{text}"
    return text


def judged(box: Sandbox, daemon: Daemon, session: str, **texts: str) -> None:
    """One session judged incomplete, its feedback delivered, its files written."""
    with WireHost(box.socket, box.project, unfinished(box.project, **texts), f"host-{session}") as host:
        host.send(host.turn(session))
        daemon.wait_verdict(session, "incomplete")
        wait_until(lambda: case_files(box, session), "a case file", daemon.log)


def case_files(box: Sandbox, session: str) -> list[Path]:
    """The cases that the daemon saved of a session, oldest first."""
    return sorted((box.project / ".reflection").glob(f"{session}_*.json"))

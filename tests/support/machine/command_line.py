"""The command line in real processes: run one command, and look at what it said."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

from harness.machine.sandbox import REPO, Sandbox
from harness.machine.waiting import wait_until
from tests.support.hosts.wire import WireHost, unfinished

if TYPE_CHECKING:
    from pathlib import Path

    from harness.machine.reflectd import Daemon

Done = subprocess.CompletedProcess[str]
COMMAND = [sys.executable, "-m", "daemon"]
COMMAND_S = 90.0
"""How long a command may take: far more than ten times what the slowest takes on an idle machine."""


def environment(box: Sandbox, **env: str) -> dict[str, str]:
    """What a command gets: the sandbox's variables and the package of this checkout."""
    return box.env(PYTHONPATH=str(REPO), PYTHONUNBUFFERED="1", PAGER="cat") | env


def reflectd(
    box: Sandbox, *args: str | Path, stdin: bytes | None = None, cwd: Path | None = None, **env: str
) -> Done:
    """One command in the project, to its end. It never shows a traceback."""
    given = {"stdin": subprocess.DEVNULL} if stdin is None else {"input": stdin}
    done = subprocess.run(
        [*COMMAND, *map(str, args)],
        env=environment(box, **env),
        cwd=cwd or box.project,
        capture_output=True,
        timeout=COMMAND_S,
        check=False,
        **given,
    )
    out, err = (stream.decode("utf-8", "backslashreplace") for stream in (done.stdout, done.stderr))
    assert "Traceback" not in err, err
    return Done(done.args, done.returncode, out, err)


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

"""The command ``reflectd``: its two names, and what it does before a verb is imported."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.machine.command_line import environment

if TYPE_CHECKING:
    from harness.machine.sandbox import Sandbox

SCRIPT = Path(sys.executable).with_name("reflectd")


@pytest.mark.parametrize(
    ("args", "code", "words"),
    [
        (["line"], 0, "no daemon"),
        (["line", "--help"], 0, "usage: reflectd line"),
        (["version"], 0, "reflectd "),
        (["--version", "line"], 0, "reflectd "),
        (["status"], 3, "is not running"),
        (["lines"], 2, "there is no verb 'lines'"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_every_verb_is_reached_by_the_script_and_by_the_module(
    box: Sandbox, args: list[str], code: int, words: str
) -> None:
    """The installed command and ``python -m`` do the same, with the exit code of the verb."""
    for command in ([str(SCRIPT)], [sys.executable, "-m", "daemon"]):
        done = subprocess.run(
            [*command, *args],
            env=environment(box),
            cwd=box.project,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == code
        assert words in done.stdout + done.stderr


@pytest.mark.parametrize("where", [">&-", ">/dev/full", ">&- 2>&-"])
@pytest.mark.parametrize("args", ["line", "line --json"])
def test_a_line_that_nobody_can_read_is_no_error(box: Sandbox, args: str, where: str) -> None:
    """A prompt that closed its end, or a full disk: exit code 0, and nothing on standard error."""
    done = shell(box, f"{SCRIPT} {args} {where}")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize(("args", "code"), [("version", 0), ("status", 3), ("--help", 0)])
def test_no_verb_needs_an_output(box: Sandbox, args: str, code: int) -> None:
    """A closed standard output is none of its errors."""
    done = shell(box, f"{SCRIPT} {args} >&-")
    assert ("Traceback" in done.stderr, done.returncode) == (False, code)
    done = shell(box, f"{SCRIPT} {args} >/dev/full")
    assert (done.stdout, done.returncode) == ("", 1)
    assert done.stderr.startswith("reflectd: ")
    assert done.stderr.splitlines()[-1].endswith("No space left on device")
    assert "Traceback" not in done.stderr


def shell(box: Sandbox, command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["/bin/sh", "-c", command],
        env=environment(box),
        cwd=box.project,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )

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

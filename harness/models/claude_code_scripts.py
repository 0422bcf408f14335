"""The usual cases as Claude Code works them off, and how the plugin is switched on for ``-p``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

from harness.hosts.claude_code import ClaudeCode
from harness.machine.sandbox import REPO
from harness.models.claude_code import bash, write
from harness.models.scripts import CLAIM, DONE
from harness.models.server import Step, text

PLUGIN: Final = REPO / "plugin-shim" / "claude-code"
HEADLESS: Final = {"REFLECTD_HEADLESS": "1"}
REFLECTD: Final = Path(sys.executable).with_name("reflectd")
PROGRAM: Final = {"REFLECTD_BIN": str(REFLECTD), "PYTHONPATH": str(REPO)}


def unfinished(claude: ClaudeCode, *then: Step, folder: Path | None = None) -> list[Step]:
    """A file is written, the tests fail, the agent says that all is done (or goes on with ``then``)."""
    path = (folder or claude.box.project) / "hello.py"
    return [write(str(path), "print('hello')\n"), bash("make test"), *(then or (text(CLAIM),))]


def finished(claude: ClaudeCode, *then: Step, folder: Path | None = None) -> list[Step]:
    """All that was asked for is written, the tests pass."""
    path = (folder or claude.box.project) / "hello.py"
    return [write(str(path), "print('hello')\n"), *mended(*then)]


def mended(*then: Step) -> list[Step]:
    """What was left undone is done: the tests pass."""
    return [bash("echo 42 > answer.txt && make test"), *(then or (text(DONE),))]

"""For every verb's tests: a machine of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from harness.machine import processes
from harness.machine.sandbox import Sandbox, sandbox
from tests.support.hosts.claude_code_settings import Desk
from tests.support.machine.command_line import reflectd

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def desk(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Desk:
    """A home with the settings of hosts, and a project, in which the command is run."""
    found = Desk(tmp_path, capsys)
    monkeypatch.chdir(found.project)
    return found


@pytest.fixture
def box() -> Iterator[Sandbox]:
    """A sandbox in which no process may be left when the test ends; a daemon of `reflectd start` is
    stopped.
    """
    with sandbox() as box, processes.none_left_over():
        yield box
        if box.socket.exists():
            reflectd(box, "stop")

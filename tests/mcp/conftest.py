"""For the tests of the MCP server: a machine of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from harness.machine import processes
from harness.machine.sandbox import Sandbox, sandbox
from tests.support.machine.command_line import reflectd

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def box() -> Iterator[Sandbox]:
    """A sandbox in which no process may be left when the test ends; a daemon of `reflectd start` is
    stopped.
    """
    with sandbox() as box, processes.none_left_over():
        yield box
        if box.socket.exists():
            reflectd(box, "stop")

"""``scripts/reflect-apply.py``: the command by another name, with the same consent."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pexpect
import pytest

from harness.machine.sandbox import REPO
from harness.machine.waiting import PATIENCE_S
from tests.support.machine.command_line import environment

if TYPE_CHECKING:
    from harness.machine.sandbox import Sandbox

SCRIPT = [sys.executable, str(REPO / "scripts" / "reflect-apply.py")]


@pytest.mark.full("a pseudo-terminal is driven")
def test_it_asks_as_the_command_does(box: Sandbox) -> None:
    """Without a terminal nothing is written, and a yes at one writes the rule."""
    env = environment(box, TERM="dumb")
    refused = subprocess.run(
        [*SCRIPT, "Use bun"],
        env=env,
        cwd=box.project,
        input=b"y\n",
        capture_output=True,
        timeout=90,
        check=False,
    )
    assert refused.returncode == 2
    assert b"do it on a terminal" in refused.stderr
    assert not (box.project / "CLAUDE.md").exists()
    child = pexpect.spawn(
        SCRIPT[0],
        [*SCRIPT[1:], "Use bun"],
        env=env,  # type: ignore[arg-type]
        cwd=str(box.project),
        encoding="utf-8",
        timeout=PATIENCE_S,
    )
    child.expect_exact("[y/N] ")
    child.send("y\r")
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 0
    assert "**[rule-001]** Use bun (learned" in (box.project / "CLAUDE.md").read_text()

"""The real Claude Code beside a daemon that hangs: it goes on, and nothing of ours is left waiting."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

import psutil
import pytest

from harness.hosts.claude_code import ClaudeCode
from harness.machine import processes
from harness.machine.reflectd import Daemon
from harness.machine.sandbox import REPO
from harness.machine.waiting import PATIENCE_S
from harness.models.server import slow

if TYPE_CHECKING:
    from harness.machine.sandbox import Sandbox
    from harness.models.server import ModelServer

pytestmark = pytest.mark.needs("claude")


@pytest.mark.shows("I35", "I45")
def test_a_daemon_that_hangs_in_the_middle_of_a_turn(own_box: Sandbox, llm: ModelServer) -> None:
    """SIGSTOP while the agent works: ``claude -p`` ends by itself, with its answer and without a word of
    ours, long before a judge's time is over; no hook outlives it; the daemon goes on afterwards.
    """
    held = slow("It says")
    llm.script(held)
    plugin = REPO / "plugin-shim" / "claude-code"
    claude = ClaudeCode(own_box, llm.url, plugin=plugin, REFLECTD_HEADLESS="1")
    with Daemon(own_box) as daemon:
        pid = int(daemon.status()["pid"])
        mine = {pid, *(p.pid for p in processes.left_over())}
        with claude.start("Say it") as running:
            held.wait_started()
            psutil.Process(pid).send_signal(signal.SIGSTOP)
            try:
                held.release("hello.")
                ran = running.wait()
                hooks = [p for p in processes.left_over() if p.pid not in mine]
                _, left = psutil.wait_procs(hooks, PATIENCE_S)
            finally:
                psutil.Process(pid).send_signal(signal.SIGCONT)
        assert (ran.code, ran.stderr) == (0, "")
        assert ran.result.endswith("hello.")
        assert not left, processes.describe(left)
        assert daemon.status()["pid"] == pid
        daemon.new_log()

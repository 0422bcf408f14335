"""How the process of the daemon ends; every test that starts one uses the rest."""

from __future__ import annotations

import subprocess
import sys

import pytest

from harness.machine.sandbox import REPO

ENDING = """
import asyncio, sys, threading
from daemon.cli.control import serve

async def work():
    if sys.argv[1] == "dead":
        reading = asyncio.ensure_future(asyncio.to_thread(threading.Event().wait))
        await asyncio.sleep(0)
        reading.cancel()
    await asyncio.to_thread(print, "worked")
    return 7

code = serve.run_to_the_end(work(), lambda: print("lock given back"))
print("left as usual")
sys.exit(code)
"""


@pytest.mark.shows("I45")
@pytest.mark.parametrize(
    ("disk", "said"), [("dead", "worked\nlock given back\n"), ("fine", "worked\nleft as usual\n")]
)
def test_the_end_waits_for_no_dead_disk(disk: str, said: str) -> None:
    """A thread that never returns from reading a file does not keep the daemon's process."""
    command = [sys.executable, "-c", ENDING, disk]
    found = subprocess.run(command, check=False, capture_output=True, text=True, timeout=120, cwd=REPO)
    assert (found.returncode, found.stdout, found.stderr) == (7, said, "")


def test_threads_take_turns_often() -> None:
    """C1: a long text is read in a thread, which gives the loop its turn after less than a millisecond."""
    script = "import sys; from daemon.cli.control import serve\n"
    script += "async def work(): print(sys.getswitchinterval() < 0.001); return 0\n"
    script += "serve.run_to_the_end(work(), print)"
    command = [sys.executable, "-c", script]
    found = subprocess.run(command, check=True, capture_output=True, text=True, timeout=120, cwd=REPO)
    assert found.stdout == "True\n"

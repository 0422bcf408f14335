"""Every kind of damage to every column of the database: the daemon starts and answers."""

from __future__ import annotations

import re
import subprocess
import sys

from attack.outcome import SHOWN, Deadline, Outcome
from harness.machine.sandbox import REPO


def run(seconds: float, deadline: Deadline) -> Outcome:
    """The test's own list, all of it."""
    del deadline
    command = [sys.executable, "-m", "tests.store.test_damage"]
    try:
        ended = subprocess.run(
            command, check=False, capture_output=True, text=True, timeout=seconds, cwd=REPO
        )
    except subprocess.TimeoutExpired:
        return Outcome("damage", 1, findings=[f"not finished in {seconds:g} s"])
    told = re.search(r"(\d+) damaged starts, (\d+) went wrong", ended.stdout)
    found = Outcome("damage", int(told[1]) if told else 1, int(told[1]) if told else 0)
    if ended.returncode or told is None:
        lines = [line for line in ended.stdout.splitlines() if ", " in line and ": " in line]
        found.findings += lines[-SHOWN:] or [ended.stderr[-2_000:]]
    return found

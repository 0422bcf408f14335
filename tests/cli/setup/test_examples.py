"""``reflectd examples``: the scripts are listed, or copied into a new folder."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

from tests.support.machine.command_line import reflectd

if TYPE_CHECKING:
    from harness.machine.sandbox import Sandbox

SAMPLE = json.dumps({"state": "complete", "session": "ses_1", "title": "Shop", "directory": "/shop"})


def test_the_scripts_are_listed_and_copied(box: Sandbox) -> None:
    """Each with what it does; modules that they share are no scripts. A copy has all that it needs; a folder
    that exists is left alone, with one line that says so.
    """
    said = reflectd(box, "examples").stdout
    assert "desktop.py   Shows a verdict as a desktop notification" in said
    folder = box.root / "mine"
    assert f"copied to {folder}" in reflectd(box, "examples", str(folder)).stdout
    command = [sys.executable, str(folder / "speak.py"), "--dry-run"]
    done = subprocess.run(
        command, input=SAMPLE, env=box.env(), capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    found = json.loads(reflectd(box, "examples", "--json").stdout)
    assert sorted(found["scripts"]) == ["desktop.py", "speak.py", "telegram.py"]
    again = reflectd(box, "examples", str(folder))
    assert again.returncode == 2
    assert again.stderr == f"reflectd: {folder} exists already; name a new folder\n"

"""``make demo``: as a person runs it, in a copy of the clone that holds nothing of ``tests/`` but data."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest

from harness.machine.sandbox import REPO
from harness.machine.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.needs("git")
PARTS = ("daemon", "demo", "prompts", "pyproject.toml", "tests/data/sessions", ".gitignore")


@pytest.fixture
def clone() -> Iterator[Path]:
    """A git repository with what the demo may use. Afterwards it is as it was, and nothing runs in it."""
    root = Path(tempfile.mkdtemp(prefix="rd-")).resolve()  # short: sockets have 104 bytes
    (root / "tmp").mkdir()
    try:
        made = root / "clone"
        for part in PARTS:
            (made / part).parent.mkdir(parents=True, exist_ok=True)
            if (REPO / part).is_dir():
                shutil.copytree(REPO / part, made / part, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(REPO / part, made / part)
        git(made, "init", "-q")
        git(made, "add", ".")
        git(made, "-c", "user.name=A", "-c", "user.email=a@example.org", "commit", "-qm", "First")
        yield made
        assert git(made, "status", "--porcelain") == ""
        assert list((root / "tmp").iterdir()) == []
        assert running_in(root) == []
    finally:
        shutil.rmtree(root, ignore_errors=True)


def git(where: Path, *args: str) -> str:
    return subprocess.run(
        ["git", *args], cwd=where, check=True, capture_output=True, text=True, stdin=subprocess.DEVNULL
    ).stdout


def running_in(root: Path) -> list[str]:
    """Processes that were started with, or stand in, a path below ``root``."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            words = [*process.cmdline(), process.cwd() or ""]
            if any(str(root) in word for word in words):
                found.append(" ".join(words))
    return found


def start(clone: Path, *args: str, **env: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "demo", *args],
        cwd=clone,
        env={"PATH": os.environ["PATH"], "HOME": os.environ["HOME"], "TMPDIR": str(clone.parent / "tmp")}
        | env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def run(clone: Path, *args: str, **env: str) -> tuple[int, str, str]:
    process = start(clone, *args, **env)
    out, err = process.communicate(timeout=60)
    return process.returncode, out, err


@pytest.mark.main("make demo")
def test_shows_both_rounds(clone: Path) -> None:
    """The person sees what the agent claimed, what proves it wrong, what it was told, and how it ended; that
    the judge was ``offline``; the files; and what to do next. Without a terminal there are no colours.
    """
    code, out, err = run(clone, COLUMNS="110")
    assert (code, err) == (0, "")
    wanted = [
        "The judge is `offline`",
        "bash: make test (exit code 2)",
        'says "All done! I added slugify() to text.py."',
        "`make test` failed after the last edit: FAILED (failures=1)",
        "not done, severity HIGH (judge: offline",
        "| ## Reflection-3: Task Incomplete (HIGH)",
        "bash: make test (exit code 0)",
        "not judged (judge: offline",
        "toast: Stopped; no model judged it",
        "verdict_ses_",
        '"state": "unscored"',
        "reflectd setup opencode",
    ]
    places = [out.find(words) for words in wanted]
    assert -1 not in places, f"missing: {[w for w, p in zip(wanted, places, strict=True) if p < 0]}\n{out}"
    assert places == sorted(places)
    assert "\x1b" not in out


def test_json_says_the_same(clone: Path) -> None:
    """Scripts get the verdicts, orders, evidence and files in full."""
    code, out, err = run(clone, "--json")
    assert (code, err) == (0, "")
    found = json.loads(out)
    assert found["judge"] == "offline"
    assert [r["verdict"]["state"] for r in found["rounds"]] == ["incomplete", "unscored"]
    assert [r["order"]["kind"] for r in found["rounds"]] == ["feedback", "toast"]
    assert [[row["open"] for row in r["evidence"]].count(True) for r in found["rounds"]] == [1, 0]
    session = found["rounds"][1]["verdict"]["session"]
    assert found["files"][f"verdict_{session}.json"] == found["rounds"][1]["verdict"]
    assert found["files"][f"verdict_{session[:8]}.json"]["severity"] == "NONE"


def test_a_damaged_recording_is_named(clone: Path) -> None:
    """A failure is a sentence and an exit code, no trace."""
    recording = next((clone / "tests/data/sessions").glob("*.json"))
    whole = recording.read_text("utf-8")
    recording.write_text(whole[:500], "utf-8")
    code, out, err = run(clone)
    recording.write_text(whole, "utf-8")
    assert (code, out) == (1, "")
    assert err.startswith("demo: failed: the recorded session cannot be read")
    assert recording.name in err


def test_a_daemon_that_does_not_start_is_quoted(clone: Path) -> None:
    """The daemon's message is shown, and no file is left."""
    prompt = clone / "prompts" / "judge.txt"
    prompt.rename(clone / "gone.txt")
    code, out, err = run(clone)
    (clone / "gone.txt").rename(prompt)
    assert (code, out) == (1, "")
    assert "the daemon ended at once, with exit code 2" in err
    assert "judge.txt is missing; install reflectd again" in err
    assert "Traceback" not in err


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_stopped_in_the_middle(clone: Path, number: signal.Signals, code: int) -> None:
    """Ctrl-C, or a killed `make`: the daemon goes too, and no trace is printed."""
    process = start(clone)
    wait_until(lambda: list((clone.parent / "tmp").glob("*/home")), "the daemon's home")
    process.send_signal(number)
    _, err = process.communicate(timeout=60)
    assert process.returncode == code
    assert "Traceback" not in err

"""The doctor's findings on the page Health: asked for, bounded in time, and shown as they come."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from daemon import paths
from daemon.web.reads import doctor
from harness.machine.waiting import PATIENCE_S


@pytest.fixture
def where(tmp_path: Path) -> paths.Paths:
    return paths.resolve({"HOME": str(tmp_path)}, state_dir=str(tmp_path), socket=str(tmp_path / "s"))


def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    """A Python that does this instead."""
    script = tmp_path / "python"
    script.write_text(f"#!/bin/sh\n{text}\n")
    script.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(script))


async def test_the_command_itself(where: paths.Paths) -> None:
    """Every check of the command, with its outcome."""
    found = await doctor(where)
    assert found["problem"] == ""
    assert {"package", "state", "daemon"} <= {c["name"] for c in found["checks"]}
    assert {c["outcome"] for c in found["checks"]} <= {"ok", "warn", "fail"}
    assert all(c["text"] for c in found["checks"])


@pytest.mark.parametrize(
    ("text", "longest_s", "problem"),
    [
        ("echo broken >&2", PATIENCE_S, "reflectd doctor said: broken"),
        ('echo "[1]"', PATIENCE_S, "said: "),
        ("exec sleep 600", 0.5, "within"),
    ],
)
async def test_what_is_no_answer(
    where: paths.Paths,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    text: str,
    longest_s: float,
    problem: str,
) -> None:
    """It is said instead, and no process stays."""
    program(tmp_path, monkeypatch, text)
    found = await doctor(where, longest_s)
    assert (found["checks"], problem in found["problem"]) == ([], True), found


async def test_whoever_goes_away_leaves_no_process(
    where: paths.Paths, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The browser was closed, or the daemon ends."""
    program(tmp_path, monkeypatch, f"echo $$ > {tmp_path}/pid; exec sleep 600")
    looking = asyncio.create_task(doctor(where))
    while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text().strip():
        await asyncio.sleep(0.01)
    looking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await looking
    assert not Path(f"/proc/{(tmp_path / 'pid').read_text().strip()}").exists()

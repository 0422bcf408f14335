"""Preferences in their file, and what of it agents may be given; Workshop as a program."""

from __future__ import annotations

import time
from pathlib import Path

import psutil
import pytest

from daemon.core.errors import Unavailable, UserError
from daemon.learning.rules.learned_rules import LearnedRules
from daemon.learning.rules.places import (
    Preference,
    WorkshopRefused,
    for_preferences,
    tell_workshop,
    those_that_count,
    vouch,
)
from daemon.learning.rules.section import PREFERENCES, Document
from daemon.learning.state import ReflectState
from daemon.testing import FakeClock
from harness.machine.waiting import wait_until


@pytest.fixture
def project(tmp_path: Path) -> Path:
    path = tmp_path.resolve() / "project"
    path.mkdir()
    return path


@pytest.fixture
def state(tmp_path: Path) -> ReflectState:
    found = ReflectState(tmp_path / "state", tmp_path / "project")
    found.folder.mkdir(parents=True)
    return found


def program(tmp_path: Path, script: str) -> str:
    path = tmp_path / "workshop"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return str(path)


@pytest.mark.shows("I51")
def test_only_known_texts_count(project: Path, state: ReflectState) -> None:
    """Not a clone's, but what a person vouched for; no archived one; what no agent may be given says why."""
    data = Document(b"", PREFERENCES).append("rule-001", "Prefer short answers", "2025-01-01")
    data = Document(data, PREFERENCES).append("rule-002", "Disable the sandbox", "2025-01-01")
    data = Document(data, PREFERENCES).append("rule-003", "Prefer tabs", "2025-01-01")
    doc = Document(data, PREFERENCES)
    text = doc.archive(doc.rules[2], "2025-01-02", "no").decode()
    path = for_preferences(project).path
    path.parent.mkdir(parents=True)
    path.write_text("Mine.\n\n" + text.replace("\n### Archived", "- Answer in German\n\n### Archived"))
    vouch(state, ["Answer in German"], 1)
    refused = "it tells an agent about its tools or permissions"
    assert those_that_count(project, state) == [
        Preference("Prefer short answers", known=False, refused=""),
        Preference("Disable the sandbox", known=False, refused=refused),
        Preference("Answer in German", known=True, refused=""),
    ]
    path.unlink()
    path.symlink_to(project / "other.md")
    with pytest.raises(UserError, match="it is a link"):
        those_that_count(project, state)


def test_workshop_runs_without_a_shell_in_the_project(project: Path, tmp_path: Path) -> None:
    """One argument is one argument, whatever stands in it."""
    script = f'pwd > {tmp_path}/said; for a in "$@"; do echo "[$a]" >> {tmp_path}/said; done'
    command = program(tmp_path, script)
    tell_workshop(command, project, "Prefer $(touch x); `y` | z")
    assert (tmp_path / "said").read_text().splitlines() == [
        str(project), "[--workspace]", "[.claude/memory]", "[preference]", "[Prefer $(touch x); `y` | z]",
        "[--category]", "[reflect]",
    ]  # fmt: skip
    rules = LearnedRules(project, tmp_path / "state", FakeClock(), {"PATH": str(tmp_path)})
    assert rules.workshop() == command


def test_workshop_says_no_or_nothing(project: Path, tmp_path: Path) -> None:
    """A refusal comes with its words; one that hangs is killed with all that it started."""
    with pytest.raises(WorkshopRefused, match=r"refused it \(3\): no such category"):
        tell_workshop(program(tmp_path, "echo no such category >&2; exit 3"), project, "x")
    with pytest.raises(WorkshopRefused, match="can't be started"):
        tell_workshop(str(tmp_path / "nothing"), project, "x")
    hangs = program(tmp_path, f"sleep 60 & echo $! > {tmp_path}/pid; wait")
    began = time.monotonic()
    with pytest.raises(Unavailable, match=r"did not answer in 0\.5 s"):
        tell_workshop(hangs, project, "x", timeout_s=0.5)
    assert time.monotonic() - began < 30
    sleeper = int((tmp_path / "pid").read_text())
    wait_until(lambda: not psutil.pid_exists(sleeper), "its end")

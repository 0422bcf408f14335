"""Preferences in their file, and what of it agents may be given; Workshop as a program."""

from __future__ import annotations

from pathlib import Path

import psutil
import pytest

from daemon.core.errors import Unavailable, UserError
from daemon.learning.rules.places import (
    Preference,
    WorkshopRefused,
    for_preferences,
    tell_workshop,
    those_that_count,
    vouch,
)
from daemon.learning.rules.section import PREFERENCES, Document
from harness.machine.waiting import wait_until
from tests.learning.rules.projects import Machine


def program(tmp_path: Path, script: str) -> str:
    path = tmp_path / "workshop"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return str(path)


@pytest.mark.shows("I51")
def test_only_known_texts_count(machine: Machine) -> None:
    """Not a clone's, but what a person vouched for; no archived one; what no agent may be given says why."""
    project, state = machine.project, machine.rules.journal.state
    state.folder.mkdir(parents=True)
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


def test_workshop_runs_without_a_shell_in_the_project(machine: Machine, tmp_path: Path) -> None:
    """One argument is one argument, whatever stands in it."""
    script = f'pwd > {tmp_path}/said; for a in "$@"; do echo "[$a]" >> {tmp_path}/said; done'
    command = program(tmp_path, script)
    tell_workshop(command, machine.project, "Prefer $(touch x); `y` | z")
    assert (tmp_path / "said").read_text().splitlines() == [
        str(machine.project), "[--workspace]", "[.claude/memory]", "[preference]",
        "[Prefer $(touch x); `y` | z]", "[--category]", "[reflect]",
    ]  # fmt: skip
    machine.path = str(tmp_path)
    assert machine.rules.workshop() == command


def test_workshop_says_no_or_nothing(machine: Machine, tmp_path: Path) -> None:
    """A refusal comes with its words; one that hangs is killed with all that it started."""
    with pytest.raises(WorkshopRefused, match=r"refused it \(3\): no such category"):
        tell_workshop(program(tmp_path, "echo no such category >&2; exit 3"), machine.project, "x")
    with pytest.raises(WorkshopRefused, match="can't be started"):
        tell_workshop(str(tmp_path / "nothing"), machine.project, "x")
    hangs = program(tmp_path, f"sleep 60 & echo $! > {tmp_path}/pid; wait")
    with pytest.raises(Unavailable, match=r"did not answer in 0\.5 s"):
        tell_workshop(hangs, machine.project, "x", timeout_s=0.5)
    sleeper = int((tmp_path / "pid").read_text())
    wait_until(lambda: not psutil.pid_exists(sleeper), "its end")

"""How a check ended: its exit code, else its own last words."""

from __future__ import annotations

import time

import pytest

from daemon.evidence.actions import Check
from daemon.evidence.commands import read_script
from daemon.evidence.outcomes import judge_check
from tests.support.tables import tables

ROWS = tables("outcomes")


def result(script: str, output: str, exit_code: int | None = 0) -> str:
    """The result of the script's first check."""
    check = next(a for a in read_script(script, "/repo") if isinstance(a, Check))
    return judge_check(check, output, exit_code).result


@pytest.mark.shows("I24")
@pytest.mark.parametrize(("script", "exit_code", "output", "expected"), ROWS["outcomes"])
def test_outcomes(script: str, exit_code: int | None, output: str, expected: str) -> None:
    """Exit code where it speaks, else the runner's last words, else unknown; not run is not failed."""
    assert result(script, output, exit_code) == expected


@pytest.mark.shows("I24")
@pytest.mark.parametrize(("command", "output", "expected"), ROWS["summaries"])
def test_summaries_where_the_exit_code_is_hidden(command: str, output: str, expected: str) -> None:
    """Each runner's own last words count where ``| tail``, ``|| true`` or ``; echo`` hide its code."""
    for mask in ("{} 2>&1 | tail -20", "{} || true", "{}; echo done"):
        assert result(mask.format(command), output) == expected


@pytest.mark.parametrize("unit", ["1 failed, ", "=", "\n", "FAILED a"])
def test_hostile_outputs_are_quick(unit: str) -> None:
    """Only the tail of an output is read."""
    before = time.process_time()
    result("make test | cat", unit * (1_000_000 // len(unit)))
    assert time.process_time() - before < 5

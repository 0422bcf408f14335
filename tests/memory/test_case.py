"""What a reflexion may look at: the lines that decide, within a budget."""

from __future__ import annotations

from dataclasses import replace

import pytest

from daemon.core.cuts import tokens
from daemon.core.evidence import Act, Evidence
from daemon.core.verdict import Severity
from daemon.memory.case import Failure, context_of, failure
from tests.memory.failures import EVIDENCE, OPEN, failed, verdict


@pytest.mark.shows("AC-2.6.1")
def test_a_failure_holds_the_four_inputs() -> None:
    """Query, context, answer, reasoning; and the row that proves it."""
    found = failed(rounds=("round 1: Run the tests.",))
    assert (found.query, found.answer, found.reward) == ("Fix the parser", "All done.", -0.6)
    assert found.context == (
        "E1 [check failed] pytest tests/parser: 1 failed",
        "E2 [write] a.py",
        "A2 pytest → 1 failed",
        "a.py (edited, +3 -1)",
    )
    for part in ("incomplete, severity HIGH", "open: The tests fail.", "round 1", "Run them."):
        assert part in found.reasoning
    assert found.proof == "E1 [check] pytest tests/parser: 1 failed"
    assert found.files == ("a.py",)


def test_the_most_decisive_lines_are_kept() -> None:
    """A budget drops what is routine first."""
    log = tuple(Act(f"A{i}", f"step {i} " + "x" * 200, rank=1) for i in range(200))
    found = context_of(replace(EVIDENCE, log=log), 500)
    assert sum(map(tokens, found)) <= 500
    assert found[0].startswith("E1 ")
    assert "A199" in found[-1] or "a.py" in found[-1]


@pytest.mark.parametrize(("severity", "requests"), [(Severity.NONE, ("Fix it",)), (Severity.HIGH, ("  ",))])
def test_nothing_is_kept_without_words_of_the_person(severity: Severity, requests: tuple[str, ...]) -> None:
    """No words, no task; a verdict of no severity has a reward of its own."""
    found: Failure | None = failure(
        verdict(severity), requests=requests, final="", evidence=Evidence(), directory="/w", host="h"
    )
    assert (found is None) is not bool(requests[0].strip())


def test_without_an_open_row_nothing_is_proven() -> None:
    """Only a model's opinion: the lesson will wait."""
    assert failed(replace(EVIDENCE, rows=(replace(OPEN, open=False),))).proof == ""

"""A judged turn that went badly."""

from __future__ import annotations

from typing import Any

from daemon.core.evidence import Act, Evidence, FileChange, Row
from daemon.core.verdict import Missing, Severity, Verdict
from daemon.memory.case import Failure, failure

OPEN = Row("E1", "check", "pytest tests/parser: 1 failed", "failed", open=True)
EVIDENCE = Evidence(
    rows=(OPEN, Row("E2", "write", "a.py")),
    log=(Act("A1", "ls", rank=3), Act("A2", "pytest", ("1 failed",), rank=0)),
    files=(FileChange("a.py", "edited", ("A1",), 3, 1),),
)


def verdict(severity: Severity = Severity.HIGH, **more: Any) -> Verdict:
    missing = (Missing("The tests fail.", "E1"),)
    return Verdict("s1", "t1", "u1", "incomplete", 7, severity, "Run them.", missing, **more)


def failed(evidence: Evidence = EVIDENCE, **more: Any) -> Failure:
    given = {"requests": ("Fix the parser",), "final": "All done.", **more}
    found = failure(verdict(), evidence=evidence, directory="/w", host="h", **given)
    assert found is not None
    return found

"""How a check ended: its exit code, else its own last words."""

from __future__ import annotations

import time

import pytest

from daemon.evidence.calls.actions import Check
from daemon.evidence.calls.commands import read_script
from daemon.evidence.calls.outcomes import judge_check


def checks(script: str) -> list[Check]:
    return [a for a in read_script(script, "/repo") if isinstance(a, Check)]


@pytest.mark.shows("I24")
@pytest.mark.parametrize(
    ("script", "exit_code", "output", "result"),
    [
        ("pytest", 0, "", "passed"),
        ("pytest", 1, "", "failed"),
        ("pytest", None, "", "unknown"),
        ("pytest", 5, "no tests ran in 0.01s", "unknown"),
        ("pytest", 127, "bash: pytest: command not found", "unknown"),
        ("pytest", 1, "/usr/bin/python: No module named pytest", "unknown"),
        ("pytest", 2, "E   ModuleNotFoundError: No module named 'x'\n1 error in 0.10s", "failed"),
        ("pytest | tail -3", 0, "=== 2 failed, 5 passed in 1.20s ===", "failed"),
        ("pytest | tail -3", 0, "5 passed, 1 warning in 0.12s", "passed"),
        ("pytest | tail -3", 0, "\x1b[31m\x1b[1m1 failed\x1b[0m, 2 passed in 0.12s\x1b[0m", "failed"),
        ("pytest | tail -3", 0, "======= 5 passed in 62.10s (0:01:02) =======", "passed"),
        ("pytest | head -3", 0, "collected 5 items", "unknown"),
        ("pytest || true", 0, "1 failed in 0.1s", "failed"),
        ("pytest; echo $?", 0, "the docs say 3 failed once", "unknown"),
        ("pytest | grep FAILED", 0, "FAILED tests/test_a.py::test_b - assert 1 == 2", "failed"),
        ("python -m unittest; true", 0, "Ran 3 tests in 0.1s\n\nFAILED (failures=1)", "failed"),
        ("python -m unittest; true", 0, "Ran 3 tests in 0.1s\n\nOK", "passed"),
        ("npx jest | cat", 0, "Tests:       1 failed, 5 passed, 6 total", "failed"),
        ("npx jest | cat", 0, "Test Suites: 2 passed, 2 total\nTests:       6 passed, 6 total", "passed"),
        (
            "npx vitest run | cat",
            0,
            " Test Files  1 failed | 2 passed (3)\n      Tests  1 failed | 5 passed (6)",
            "failed",
        ),
        ("npm test | tail", 0, "  5 passing (20ms)\n  1 failing", "failed"),
        ("npm test", 1, 'npm error Missing script: "test"', "unknown"),
        ("npm test", 1, "Error: no test specified", "unknown"),
        ("make test", 2, "make: *** No rule to make target 'test'.  Stop.", "unknown"),
        ("make test | tail", 0, "make: *** [Makefile:3: test] Error 1", "failed"),
        ("cargo test | tail", 0, "test result: FAILED. 1 passed; 1 failed; 0 ignored", "failed"),
        ("cargo test | tail", 0, "test result: ok. 3 passed; 0 failed; 0 ignored", "passed"),
        ("go test ./... | tail", 0, "ok  \texample.com/a\t0.01s\nFAIL\texample.com/b\t0.02s\nFAIL", "failed"),
        ("go test ./... | tail", 0, "ok  \texample.com/a\t0.01s", "passed"),
        ("mvn test | tail", 0, "[INFO] BUILD FAILURE", "failed"),
        ("rspec | tail", 0, "10 examples, 0 failures", "passed"),
        ("ctest | tail", 0, "90% tests passed, 1 tests failed out of 10", "failed"),
        ("npx tsc | head", 0, "src/a.ts(1,2): error TS2322: Type 'a'", "failed"),
        ("mypy . | tail -1", 0, "Found 3 errors in 1 file (checked 2 source files)", "failed"),
        ("ruff check . | tail -1", 0, "All checks passed!", "passed"),
        ("cd nowhere && pytest", 1, "bash: cd: nowhere: No such file or directory", "unknown"),
        ("pytest", None, "bash tool terminated command after exceeding timeout 120000 ms", "unknown"),
        ("pytest", 130, "User aborted the command", "unknown"),
        ("timeout 5 pytest", 124, "", "unknown"),
        ("pytest", 0, "1 failed in 0.1s", "unknown"),
        ("npm install && npm test", 1, "npm ERR! network", "unknown"),
    ],
)
def test_outcomes(script: str, exit_code: int | None, output: str, result: str) -> None:
    """Exit code where it speaks, else the runner's last words, else unknown; not run is not failed."""
    assert judge_check(checks(script)[0], output, exit_code).result == result


@pytest.mark.parametrize(
    "output", ["1 failed, " * 100_000, "=" * 1_000_000, "\n" * 1_000_000, "FAILED a" * 125_000]
)
def test_hostile_outputs_are_quick(output: str) -> None:
    """Only the tail of an output is read."""
    before = time.process_time()
    judge_check(checks("make test | cat")[0], output, 0)
    assert time.process_time() - before < 5

"""How checks end: exit codes, and the last words of the runners."""

from __future__ import annotations

import time

import pytest

from daemon.core.actions import Check
from daemon.core.commands import read_script
from daemon.core.outcomes import judge_check


def checks(script: str) -> list[Check]:
    return [a for a in read_script(script, "/repo") if isinstance(a, Check)]


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
    """I24: exit code where it speaks, else the runner's last words, else unknown; not run is not failed."""
    assert judge_check(checks(script)[0], output, exit_code).result == result


@pytest.mark.parametrize(
    ("command", "output", "result"),
    [
        ("tox", "  py311: FAIL code 1 (2.10 seconds)\n  evaluation failed :( (2.20 seconds)", "failed"),
        ("tox", "  py311: OK (2.10 seconds)\n  congratulations :) (2.20 seconds)", "passed"),
        ("nox -s tests", "nox > Session tests failed.", "failed"),
        ("nox -s tests", "nox > Session tests was successful.", "passed"),
        ("flake8", "a.py:1:1: F401 'os' imported but unused", "failed"),
        ("ruff format --check .", "Would reformat: a.py\n1 file would be reformatted", "failed"),
        (
            "black --check .",
            "would reformat a.py\n1 file would be reformatted, 3 files would be left unchanged.",
            "failed",
        ),
        (
            "pre-commit run -a",
            "ruff.....................................Passed\nmypy.............Failed",
            "failed",
        ),
        ("pyright", "0 errors, 0 warnings, 0 informations", "passed"),
        ("npx mocha", "  12 passing (40ms)\n  2 failing\n\n  1) x", "failed"),
        ("npx ava", "  1 test failed", "failed"),
        ("npx playwright test", "  1 failed\n    a.spec.ts:3:1\n  4 passed (3.2s)", "failed"),
        ("npx playwright test", "  5 passed (3.2s)", "passed"),
        (
            "npx cypress run",
            "    ✖  1 of 2 failed (50%)           00:04        5        4        1",
            "failed",
        ),
        (
            "npx cypress run",
            "    ✔  All specs passed!             00:04        5        5        -",
            "passed",
        ),
        ("bun test", " 5 pass\n 1 fail\nRan 6 tests across 2 files.", "failed"),
        ("bun test", " 5 pass\n 0 fail\nRan 5 tests across 2 files.", "passed"),
        ("deno test", "ok | 5 passed | 0 failed (12ms)", "passed"),
        ("deno test", "FAILED | 4 passed | 1 failed (12ms)", "failed"),
        ("node --test", "\u2139 tests 5\n\u2139 pass 4\n\u2139 fail 1", "failed"),
        ("ng test --watch=false", "Chrome 120: Executed 5 of 5 (1 FAILED) (0.1 secs)", "failed"),
        ("npx eslint .", "✖ 3 problems (2 errors, 1 warning)", "failed"),
        ("npx eslint .", "✖ 1 problem (0 errors, 1 warning)", "passed"),
        (
            "npx prettier --check .",
            "[warn] a.ts\n[warn] Code style issues found in the above file.",
            "failed",
        ),
        ("npx biome check .", "Checked 12 files in 20ms. No fixes applied.\nFound 3 errors.", "failed"),
        ("next build", "Failed to compile.\n\n./a.tsx", "failed"),
        ("vite build", "✓ built in 1.20s", "passed"),
        ("pnpm test", " ELIFECYCLE  Test failed. See above for more details.", "failed"),
        ("yarn test", "error Command failed with exit code 1.", "failed"),
        (
            "cargo nextest run",
            "     Summary [   0.120s] 5 tests run: 4 passed, 1 failed, 0 skipped",
            "failed",
        ),
        ("cargo nextest run", "     Summary [   0.120s] 5 tests run: 5 passed, 0 skipped", "passed"),
        ("cargo build", "error: could not compile `x` (lib) due to 2 previous errors", "failed"),
        ("cargo clippy", "    Finished `dev` profile [unoptimized] target(s) in 0.10s", "passed"),
        ("go vet ./...", "./a.go:3:2: undefined: x", "failed"),
        ("golangci-lint run", "a.go:1:1: unused\n3 issues:\n* errcheck: 3", "failed"),
        ("golangci-lint run", "0 issues.", "passed"),
        ("mvn -q test", "[ERROR] Tests run: 5, Failures: 1, Errors: 0, Skipped: 0", "failed"),
        (
            "mvn test",
            "[INFO] Tests run: 5, Failures: 0, Errors: 0, Skipped: 0\n[INFO] BUILD SUCCESS",
            "passed",
        ),
        (
            "./gradlew test",
            "5 tests completed, 1 failed\n\nFAILURE: Build failed with an exception.",
            "failed",
        ),
        ("./gradlew test", "BUILD SUCCESSFUL in 3s\n4 actionable tasks: 4 executed", "passed"),
        ("sbt test", "[error] Failed: Total 5, Failed 1, Errors 0, Passed 4", "failed"),
        ("sbt test", "[info] Passed: Total 5, Failed 0, Errors 0, Passed 5", "passed"),
        ("dotnet test", "Failed!  - Failed:     1, Passed:     4, Skipped:     0, Total:     5", "failed"),
        ("dotnet test", "Passed!  - Failed:     0, Passed:     5, Skipped:     0, Total:     5", "passed"),
        ("dotnet build", "Build succeeded.\n    0 Warning(s)\n    0 Error(s)", "passed"),
        ("bundle exec rspec", "12 examples, 1 failure", "failed"),
        ("bin/rails test", "5 runs, 9 assertions, 0 failures, 1 errors, 0 skips", "failed"),
        ("bundle exec rubocop", "12 files inspected, 3 offenses detected", "failed"),
        ("bundle exec rubocop", "12 files inspected, no offenses detected", "passed"),
        ("vendor/bin/phpunit", "FAILURES!\nTests: 5, Assertions: 9, Failures: 1.", "failed"),
        ("php artisan test", "  Tests:    1 failed, 5 passed (12 assertions)", "failed"),
        ("php vendor/bin/phpunit", "OK (5 tests, 9 assertions)", "passed"),
        ("vendor/bin/phpstan analyse", " [ERROR] Found 3 errors", "failed"),
        ("mix test", "3 doctests, 12 tests, 1 failure", "failed"),
        ("mix test", "12 tests, 0 failures", "passed"),
        ("swift test", "Executed 5 tests, with 1 failure (0 unexpected) in 0.1 (0.1) seconds", "failed"),
        ("swift test", "✔ Test run with 5 tests passed after 0.001 seconds.", "passed"),
        ("xcodebuild test", "** TEST FAILED **", "failed"),
        ("ctest --test-dir build", "100% tests passed, 0 tests failed out of 12", "passed"),
        ("flutter test", "00:02 +5 -1: Some tests failed.", "failed"),
        ("flutter analyze", "3 issues found. (ran in 1.2s)", "failed"),
        ("zig build test", "All 5 tests passed.", "passed"),
        ("bazel test //...", "Executed 3 out of 3 tests: 2 tests pass and 1 fails locally.", "failed"),
        ("stack test", "Test suite spec: FAIL", "failed"),
        ("prove -l", "Result: FAIL", "failed"),
        ("bats tests", "5 tests, 1 failure", "failed"),
        ("just test", "error: Recipe `test` failed on line 3 with exit code 1", "failed"),
        ("make test", "12 passed in 0.10s\nmake: *** [Makefile:3: lint] Error 1", "failed"),
        ("composer test", "FAILURES!\nTests: 5, Assertions: 9, Failures: 1.", "failed"),
    ],
)
@pytest.mark.parametrize("mask", ["{} 2>&1 | tail -20", "{} || true", "{}; echo done"])
def test_summaries_where_the_exit_code_is_hidden(command: str, output: str, result: str, mask: str) -> None:
    """I24: each runner's own last words count where ``| tail``, ``|| true`` or ``; echo`` hide its code."""
    check = checks(mask.format(command))[0]
    assert judge_check(check, output, 0).result == result


@pytest.mark.parametrize(
    ("script", "kind"),
    [
        ("mvn verify -DskipTests", "build"),
        ("./gradlew check -x test", "build"),
        ("mvn verify", "test"),
        ("npm run test:unit", "test"),
        ("npx nx test app", "test"),
        ("turbo run lint", "lint"),
        ("poe test", "test"),
        ("composer test", "test"),
        ("python -m nose2", "test"),
        ("mix credo", "lint"),
        ("mix format --check-formatted", "lint"),
        ("dotnet format --verify-no-changes", "lint"),
        ("terraform validate", "lint"),
    ],
)
def test_kinds(script: str, kind: str) -> None:
    """What a command looks for; a run that leaves the tests out is no test run."""
    assert [c.kind for c in checks(script)] == [kind]


@pytest.mark.parametrize(
    "script", ["mix format", "dotnet format", "php a.php", "composer install", "nx serve app", "mix deps.get"]
)
def test_no_checks(script: str) -> None:
    """Formatters that write, installs and servers check nothing."""
    assert checks(script) == []


@pytest.mark.parametrize(
    "output", ["1 failed, " * 100_000, "=" * 1_000_000, "\n" * 1_000_000, "FAILED a" * 125_000]
)
def test_hostile_outputs_are_quick(output: str) -> None:
    """Only the tail of an output is read."""
    before = time.perf_counter()
    judge_check(checks("make test | cat")[0], output, 0)
    assert time.perf_counter() - before < 1

"""The last words of each runner, where its exit code is hidden."""

from __future__ import annotations

import pytest

from daemon.evidence.calls.actions import Check
from daemon.evidence.calls.commands import read_script
from daemon.evidence.calls.outcomes import judge_check


def checks(script: str) -> list[Check]:
    return [a for a in read_script(script, "/repo") if isinstance(a, Check)]


@pytest.mark.shows("I24")
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
    """Each runner's own last words count where ``| tail``, ``|| true`` or ``; echo`` hide its code."""
    check = checks(mask.format(command))[0]
    assert judge_check(check, output, 0).result == result

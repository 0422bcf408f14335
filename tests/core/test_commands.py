"""Shell commands to checks and writes: tables of what counts, and longer ones of what must not."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.core.actions import Check, Stash, Write
from daemon.core.commands import final_cwd, read_script
from daemon.core.outcomes import judge_check
from daemon.core.shell import steps
from daemon.core.writes import is_prose, matters, written_by_tool


def checks(script: str) -> list[Check]:
    return [a for a in read_script(script, "/repo") if isinstance(a, Check)]


def writes(script: str) -> list[str]:
    return [a.path for a in read_script(script, "/repo") if isinstance(a, Write)]


@pytest.mark.parametrize(
    ("script", "kind", "tool"),
    [
        ("pytest", "test", "pytest"),
        ("py.test -q", "test", "pytest"),
        ("python -m pytest tests", "test", "pytest"),
        ("python3.12 -W error -m pytest", "test", "pytest"),
        ("python -m unittest discover -v", "test", "pytest"),
        (".venv/bin/pytest -q", "test", "pytest"),
        ("uv run pytest -q", "test", "pytest"),
        ("uv run --with hypothesis python -m pytest", "test", "pytest"),
        ("poetry run pytest", "test", "pytest"),
        ("coverage run -m pytest", "test", "pytest"),
        ("DEBUG=1 PYTHONPATH=. pytest", "test", "pytest"),
        ("timeout 60 pytest", "test", "pytest"),
        ("timeout -k 5 60s pytest", "test", "pytest"),
        ("cd /repo && pytest -q", "test", "pytest"),
        ("bash -c 'cd x && pytest -q'", "test", "pytest"),
        ('sh -lc "pytest -q"', "test", "pytest"),
        ("set -e\ncd x\npytest -q\n", "test", "pytest"),
        ("(cd x && pytest)", "test", "pytest"),
        ("python manage.py test app", "test", "django"),
        ("tox -e py311", "test", "tox"),
        ("nox -s tests", "test", "nox"),
        ("npm test", "test", "script test"),
        ("npm t", "test", "script test"),
        ("npm run -s test", "test", "script test"),
        ("npm --prefix web run build", "build", "script build"),
        ("pnpm -r run lint", "lint", "script lint"),
        ("pnpm --filter web test", "test", "script test"),
        ("yarn test --ci", "test", "script test"),
        ("yarn jest", "test", "jest"),
        ("bun test", "test", "bun"),
        ("bun run build", "build", "script build"),
        ("npm run typecheck", "lint", "script typecheck"),
        ("npm run test:unit", "test", "script test:unit"),
        ("npx jest --ci", "test", "jest"),
        ("npx --yes vitest run", "test", "jest"),
        ("npx tsc --noEmit", "build", "tsc"),
        ("npx eslint .", "lint", "eslint"),
        ("npx playwright test", "test", "playwright"),
        ("cargo test", "test", "cargo"),
        ("cargo +nightly test --all", "test", "cargo"),
        ("cargo build --release", "build", "cargo"),
        ("cargo check", "build", "cargo"),
        ("cargo clippy -- -D warnings", "lint", "clippy"),
        ("cargo test --no-run", "build", "cargo"),
        ("go test ./...", "test", "go"),
        ("go build ./cmd/x", "build", "go"),
        ("go vet ./...", "lint", "vet"),
        ("make", "build", "make"),
        ("make -j4 test", "test", "target test"),
        ("make check", "test", "target check"),
        ("make -C sub build", "build", "target build"),
        ("mvn -q clean test", "test", "maven"),
        ("./gradlew :app:test", "test", "gradle"),
        ("dotnet test", "test", "dotnet"),
        ("dotnet build", "build", "dotnet"),
        ("bundle exec rspec", "test", "rspec"),
        ("vendor/bin/phpunit", "test", "phpunit"),
        ("mix test", "test", "mix"),
        ("swift test", "test", "swift"),
        ("ctest --output-on-failure", "test", "ctest"),
        ("ruff check .", "lint", "ruff"),
        ("uvx ruff@latest check", "lint", "ruff"),
        ("mypy daemon", "lint", "mypy"),
        ("flake8", "lint", "flake8"),
        ("black --check .", "lint", "black-format"),
        ("./run_tests.sh", "test", "script"),
        ("node --test", "test", "node"),
    ],
)
def test_known_runners(script: str, kind: str, tool: str) -> None:
    """The usual runners are found behind prefixes, folders and wrappers."""
    found = checks(script)
    assert [(c.kind, c.tool) for c in found] == [(kind, tool)]


@pytest.mark.parametrize(
    "script",
    [
        "cat pytest.ini",
        "pip install pytest",
        "python -m pip install pytest tox",
        "uv pip install pytest",
        "uv add --dev pytest",
        'echo "run pytest"',
        "echo pytest",
        'git commit -m "fix pytest"',
        'git commit -m "$(cat <<\'EOF\'\nfix "x" && pytest\npytest > out\nEOF\n)"',
        "grep -r pytest .",
        "rg 'cargo test'",
        "which pytest",
        "command -v pytest",
        "type pytest",
        "pytest --version",
        "pytest --help",
        "pytest --collect-only -q",
        "npm install",
        "npm ci",
        "npm run dev",
        "npm run test:watch",
        "npm run build:docker",
        "npm run lint:fix",
        "npm build",
        "npm view jest",
        "npm install --save-dev jest",
        "cargo run",
        "cargo fmt",
        "cargo install cargo-nextest",
        "go run .",
        "go mod tidy",
        "make -n test",
        "make install",
        "make clean",
        "make run",
        "ruff format .",
        "ruff --version",
        "black .",
        "prettier --write .",
        "test -f x",
        "[ -f pytest ]",
        "diff a b",
        "grep foo bar",
        "ls tests",
        "cat <<'EOF' > run.sh\npytest -q\nEOF",
        "# pytest",
        "ls # pytest",
        "python test_x.py",
        "python -c 'import pytest; pytest.main()'",
        "find . -name 'pytest*' -delete",
        "sed -n 1,5p tests/test_a.py",
        "docker build .",
        "tsc --version",
        "vim pytest",
        "gh run watch",
        "watch pytest.log",
        "ps aux | grep pytest",
        "kill $(pgrep pytest)",
        "alias t='pytest -q'",
        "",
        "   ",
        "&& || ;",
        "'unclosed pytest",
    ],
)
def test_hard_negatives(script: str) -> None:
    """What only mentions a runner, asks for its version or looks something up is no check."""
    assert checks(script) == []


@pytest.mark.parametrize(
    ("script", "passes", "fails"),
    [
        ("pytest", True, True),
        ("cd x && pytest 2>&1", True, True),
        ("cd x; pytest", True, True),
        ("pytest && echo ok", True, True),
        ("pytest | tail -5", False, False),
        ("pytest |& tee log", False, False),
        ("pytest || true", False, False),
        ("pytest || echo failed", False, False),
        ("pytest && echo ok || echo bad", False, False),
        ("pytest; echo done", False, False),
        ("pytest\necho done", False, False),
        ("pytest &", False, False),
        ("! pytest", False, False),
        ("if pytest; then echo ok; fi", False, False),
        ("set -o pipefail; pytest | tail -5", True, True),
        ("set -euo pipefail\npytest | tee log\necho ok", True, True),
        ("set -o pipefail; pytest | grep -v x", True, False),
        ("set -e\npytest\necho ok", True, True),
        ("npm install && pytest", True, False),
        ("pytest && git diff --exit-code", True, False),
        ("false || pytest", False, False),
        ("(pytest) || true", False, False),
        ("bash -c 'pytest; true'", False, False),
        ("bash -c 'pytest' | tail", False, False),
        ("bash -c pytest", True, True),
    ],
)
def test_what_the_exit_code_proves(script: str, passes: bool, fails: bool) -> None:
    """I24: a masked exit code proves nothing; behind ``&&`` it proves the pass only, or both."""
    (check,) = checks(script)
    assert (check.proves_pass, check.proves_fail) == (passes, fails)


@pytest.mark.parametrize(
    ("later", "earlier", "covers"),
    [
        ("pytest", "pytest", True),
        ("pytest -q", "pytest -x --tb short", True),
        ("pytest", "pytest tests/test_a.py", True),
        ("pytest tests/", "pytest", True),
        ("pytest tests/test_a.py", "pytest", False),
        ("pytest tests/unit", "pytest tests/unit/test_a.py::test_b", True),
        ("pytest tests/test_a.py", "pytest tests/test_b.py", False),
        ("pytest -k foo", "pytest", False),
        ("pytest", "pytest -k foo", True),
        ("pytest -k foo", "pytest -k foo", True),
        ("pytest -k foo", "pytest -k bar", False),
        ("python -m pytest", "uv run pytest", True),
        ("pytest -n 4 -p no:cacheprovider", "pytest", True),
        ("mypy .", "ruff check .", False),
        ("cargo test", "pytest", False),
        ("npm test", "npx jest src/a.test.js", True),
        ("npx jest", "npm test", True),
        ("npm test", "npx playwright test", False),
        ("npm run lint", "npm test", False),
        ("make test", "pytest", True),
        ("pytest", "make test", True),
        ("go test ./...", "go test ./pkg/a", True),
        ("go test ./pkg/a", "go test ./...", False),
        ("cargo test parser", "cargo test", False),
        ("cargo test", "cargo test parser", True),
        ("cd web && npm test", "cd api && npm test", False),
        ("npm test", "cd api && npm test", True),
        ("cd api && npm test", "npm test", False),
        ("cd /repo && pytest", "pytest", True),
        ('cd "$X" && pytest', "pytest", True),
    ],
)
def test_scopes(later: str, earlier: str, covers: bool) -> None:
    """A run replaces an earlier one of the same kind with the same scope or a narrower one, nothing else."""
    assert checks(later)[0].covers(checks(earlier)[0]) is covers


@pytest.mark.parametrize(
    ("script", "paths"),
    [
        ("echo hi > a.py", ["a.py"]),
        ("cat >> src/b.py <<EOF\nx > y\nEOF", ["src/b.py"]),
        ("printf x | tee -a c.cfg", ["c.cfg"]),
        ("sed -i 's/a/b/' d.py", ["d.py"]),
        ("sed -i.bak -e s/a/b/ d.py", ["d.py"]),
        ("perl -pi -e s/a/b/ d.py", ["d.py"]),
        ("mv a b", ["a", "b"]),
        ("rm -rf src/old", ["src/old"]),
        ("cp a b", ["b"]),
        ("git apply fix.patch", ["fix.patch"]),
        ("git checkout -- a.py", ["a.py"]),
        ("git reset --hard", ["git reset"]),
        ("python - <<'E'\nopen('a.py', 'w').write(x)\nE", ["files, by a python script"]),
        ("python -c \"from pathlib import Path; Path('a').write_text('b')\"", ["files, by a python script"]),
        ("ls 2>/dev/null > list.txt", ["list.txt"]),
    ],
)
def test_shell_writes(script: str, paths: list[str]) -> None:
    """Redirections and the commands that change files are writes."""
    assert writes(script) == paths


@pytest.mark.parametrize(
    "script",
    [
        "pytest 2>&1",
        "pytest > out.txt 2>&1",
        "pytest | tee report.txt",
        "pytest 2> err.txt",
        "sed -n 1,5p a.py",
        "git status",
        "git commit -m 'a > b'",
        "git apply --check x.patch",
        "git restore --staged a.py",
        "git checkout main",
        "git switch -c feature",
        "echo 'a > b'",
        'echo "x >> y"',
        "test 1 -gt 0",
        "awk '$1 > 2' data.csv",
        "cat < in.txt",
        "python -c 'print(open(\"a\").read())'",
        "diff <(ls a) <(ls b)",
    ],
)
def test_no_shell_writes(script: str) -> None:
    """Logs of a check, quoted arrows and reading commands write nothing."""
    assert writes(script) == []


@pytest.mark.parametrize(
    "path", ["/dev/null", "/tmp/x.py", "out.log", "node_modules/a/b.js", "dist/x.js", ".git/x"]
)
def test_by_products_do_not_matter(path: str) -> None:
    """Scratch files, caches and build products are no part of the work."""
    assert not matters(path, "/repo")


def test_a_project_in_a_temporary_folder_matters() -> None:
    """A project may itself live under /tmp."""
    assert matters("/tmp/work/src/a.py", "/tmp/work")
    assert is_prose("docs/README.md")
    assert not is_prose("src/a.py")


def test_stash_is_seen() -> None:
    """Runs between ``git stash`` and its pop judge the old state."""
    found = read_script("git stash && pytest; git stash pop", "/repo")
    assert [type(a) for a in found] == [Stash, Check, Stash]
    assert [a.away for a in found if isinstance(a, Stash)] == [True, False]


def test_edit_tools() -> None:
    """Edit tools name their files in several ways; other tools write nothing."""
    patch = "*** Begin Patch\n*** Update File: a.py\n@@\n*** Add File: b/c.py\n+x\n*** End Patch"
    assert [w.path for w in written_by_tool("apply_patch", {"patchText": patch})] == ["a.py", "b/c.py"]
    assert written_by_tool("Edit", {"file_path": "x.py"}) == (Write("x.py", "edit"),)
    assert written_by_tool("write", {"filePath": 5}) == (Write("a file", "write"),)
    assert written_by_tool("read", {"filePath": "x.py"}) == ()


def test_folder_of_a_lasting_shell() -> None:
    """Where a shell ends up, for hosts that keep it."""
    assert final_cwd("cd a && cd ../b", "/repo") == "/repo/b"
    assert final_cwd("cd $HOME", "/repo") is None
    assert final_cwd("ls", "/repo") == "/repo"


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
    """I24: exit code where it speaks, else the runner's own last words, else unknown; not run is not failed."""
    assert judge_check(checks(script)[0], output, exit_code).result == result


@pytest.mark.parametrize(
    "script",
    [
        "$(" * 500_000,
        '"' * 999_999,
        "(" * 1_000_000,
        "<<A " * 250_000,
        "pytest && " * 100_000,
        "pytest | " * 100_000,
        "cd a; " * 100_000,
        "bash -c '" * 100_000,
        "A=" * 500_000,
        "python " * 100_000,
    ],
)
def test_hostile_scripts_are_quick(script: str) -> None:
    """A megabyte of nonsense costs well under a second."""
    before = time.perf_counter()
    read_script(script, "/repo")
    assert time.perf_counter() - before < 2


@pytest.mark.parametrize(
    "output", ["1 failed, " * 100_000, "=" * 1_000_000, "\n" * 1_000_000, "FAILED a" * 125_000]
)
def test_hostile_outputs_are_quick(output: str) -> None:
    """Only the tail of an output is read."""
    before = time.perf_counter()
    judge_check(checks("make test | cat")[0], output, 0)
    assert time.perf_counter() - before < 1


@given(st.text(alphabet="pytes \n;&|()'\"$`<>\\#A=-{}2", max_size=200))
def test_any_script_is_read(script: str) -> None:
    """No text makes the reader fail, and no step is without content."""
    read_script(script, "/repo")
    assert all(step.words or step.outputs for step in steps(script))

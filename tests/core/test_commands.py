"""Shell commands to checks and writes: tables of what counts, and longer ones of what must not."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.core.actions import Check, Stash
from daemon.core.commands import final_cwd, read_script
from daemon.core.shell import steps


def checks(script: str) -> list[Check]:
    return [a for a in read_script(script, "/repo") if isinstance(a, Check)]


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
        ("docker compose exec -T web pytest", "test", "pytest"),
        ("docker-compose run --rm web npm test", "test", "script test"),
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
        "docker run pytest",
        "docker ps",
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
        ("pytest tests/test_a.py", "pytest /repo/tests/test_a.py", True),
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


def test_stash_is_seen() -> None:
    """Runs between ``git stash`` and its pop judge the old state."""
    found = read_script("git stash && pytest; git stash pop", "/repo")
    assert [type(a) for a in found] == [Stash, Check, Stash]
    assert [a.away for a in found if isinstance(a, Stash)] == [True, False]


def test_folder_of_a_lasting_shell() -> None:
    """Where a shell ends up, for hosts that keep it."""
    assert final_cwd("cd a && cd ../b", "/repo") == "/repo/b"
    assert final_cwd("cd $HOME", "/repo") is None
    assert final_cwd("ls", "/repo") == "/repo"


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


@given(st.text(alphabet="pytes \n;&|()'\"$`<>\\#A=-{}2", max_size=200))
def test_any_script_is_read(script: str) -> None:
    """No text makes the reader fail, and no step is without content."""
    read_script(script, "/repo")
    assert all(step.words or step.outputs for step in steps(script))

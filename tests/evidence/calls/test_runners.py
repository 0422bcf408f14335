"""Commands that are a test, build or lint run: tables of what counts, and longer ones of what must not."""

from __future__ import annotations

import pytest

from daemon.evidence.calls.actions import Check
from daemon.evidence.calls.commands import read_script


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

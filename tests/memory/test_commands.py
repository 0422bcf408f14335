"""When two commands count as the same."""

from __future__ import annotations

import pytest

from daemon.memory.commands import MAX_COMMANDS, below, commands_of

ROOT = "/repo"


def same(stored: str, later: str) -> bool:
    """Whether the later script does again what the stored one did."""
    (first,) = commands_of(stored, ROOT)
    return any(c.is_like(first) for c in commands_of(later, ROOT))


@pytest.mark.parametrize(
    ("stored", "later"),
    [
        ("pytest tests/test_auth.py", "uv run pytest -q --tb=short tests/test_auth.py 2>&1 | tail -20"),
        ("pytest tests/test_auth.py", "cd /repo && python3 -m pytest -x tests/test_auth.py::test_login"),
        ("pytest tests/test_auth.py", "pytest -n 4 /repo/tests/test_auth.py"),
        ("npm run migrate", "CI=1 npm run migrate --silent"),
        ("git push --force origin main", "git push origin main --force"),
        ("git commit -m 'one'", "git add -A && git commit -m 'quite another'"),
        ("cd web && npm run build", "cd /repo/web && npm run build"),
        ("python scripts/seed.py", "python3.12 scripts/seed.py --all"),
        ("make deploy", "sudo make deploy > log.txt"),
    ],
)
def test_the_same(stored: str, later: str) -> None:
    """What wraps a command, how much it prints, and further options don't count."""
    assert same(stored, later)


@pytest.mark.parametrize(
    ("stored", "later"),
    [
        ("pytest tests/test_auth.py", "pytest tests/test_billing.py"),
        ("pytest tests/test_auth.py::test_a", "pytest tests/test_auth.py::test_b"),
        ("npm run migrate", "pnpm run migrate"),
        ("git push --force origin main", "git push origin main"),
        ("cd web && npm run build", "cd api && npm run build"),
        ("alembic upgrade head", "echo 'alembic upgrade head'"),
        ("alembic upgrade head", "alembic upgrade head --help"),
        ("alembic upgrade head", "# alembic upgrade head\nls"),
        ("rm -r build", "grep -r 'rm -r build' ."),
    ],
)
def test_not_the_same(stored: str, later: str) -> None:
    """Another target, folder or program; a command that is only named, shown, or asked for help."""
    assert not same(stored, later)


@pytest.mark.parametrize("script", ["ls -la", "cat a.py | head", "cd src && grep -rn x .", "", "'unclosed"])
def test_looks_hang_on_nothing(script: str) -> None:
    """Nothing goes wrong at a look."""
    assert [c for c in commands_of(script, ROOT) if c.program != "unclosed"] == []


@pytest.mark.parametrize(
    "script",
    ["cd a/b && x 'two words' -k 'a or b' c", "npm run lint:fix -- --max-warnings=0"],
)
def test_its_text_reads_back(script: str) -> None:
    """A trigger is stored as text, and compared as a command."""
    (first,) = commands_of(script, ROOT)
    assert commands_of(first.text) == (first,)


def test_it_is_bounded() -> None:
    """A script of ten thousand commands, and one that is nested, are read in part."""
    assert len(commands_of("\n".join(f"make t{i}" for i in range(10_000)))) == MAX_COMMANDS
    nested = "x"
    for _ in range(50):
        nested = f"bash -c '{nested}'"
    commands_of(nested)


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("/repo", ""),
        ("/repo/a/b/", "a/b"),
        ("/repository/a", None),
        ("/repo/../x", None),
    ],
)
def test_below(path: str, found: str | None) -> None:
    """A path as it stands in the project; None for one elsewhere."""
    assert below(path, ROOT) == found

"""The file with the address of a PostgreSQL: who may read it, and what it may hold."""

from __future__ import annotations

from pathlib import Path

import pytest

from daemon.core.errors import UserError
from daemon.learning.lessons.postgres import named, read_url

GOOD = "postgresql://ada:geheim@db.example:5433/memory?sslmode=require"


def put(folder: Path, text: str, mode: int = 0o600) -> str:
    path = folder / "url"
    path.write_text(text)
    path.chmod(mode)
    return str(path)


def test_the_address(tmp_path: Path) -> None:
    """One line; its name for people has no password."""
    assert read_url(put(tmp_path, f"{GOOD}\n")) == GOOD
    assert named(GOOD) == "PostgreSQL at db.example, database memory"


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o602])
def test_others_may_not_read_it(tmp_path: Path, mode: int) -> None:
    """It may hold a password."""
    with pytest.raises(UserError, match="chmod 600") as told:
        read_url(put(tmp_path, GOOD, mode))
    assert "geheim" not in str(told.value)


@pytest.mark.parametrize(
    "text", ["", "host=db user=ada password=geheim", f"{GOOD}\n{GOOD}", "geheim" * 2_000, "http://geheim"]
)
def test_what_is_no_address(tmp_path: Path, text: str) -> None:
    """Told without repeating it."""
    with pytest.raises(UserError, match="postgresql://USER") as told:
        read_url(put(tmp_path, text))
    assert "geheim" not in str(told.value)


@pytest.mark.parametrize("url", ["postgresql://ada:geheim@[::1/x", "postgresql://h/x?geheim=1"])
def test_what_postgresql_does_not_understand(url: str) -> None:
    """Likewise."""
    with pytest.raises(UserError, match="no address") as told:
        named(url)
    assert "geheim" not in str(told.value)


def test_no_file(tmp_path: Path) -> None:
    """It is named."""
    with pytest.raises(UserError, match="nowhere"):
        read_url(str(tmp_path / "nowhere"))
    (tmp_path / "url").write_bytes(b"\xff\xfe")
    (tmp_path / "url").chmod(0o600)
    with pytest.raises(UserError, match="can't be read"):
        read_url(str(tmp_path / "url"))

"""Which store keeps the episodes: the daemon's own database, or the PostgreSQL of ``store.url_file``."""

from __future__ import annotations

import getpass
from typing import TYPE_CHECKING, Final

from .episodes import SqliteEpisodes
from .episodes_postgres import PostgresEpisodes
from .postgres import read_url

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from .db import Database

KEY: Final = "episodes.key"
"""The file in the state folder with the key of this reader (``readers``)."""


def episodes(
    url_file: str, db: Database, now: Callable[[], int], repository: Callable[[str], str]
) -> SqliteEpisodes | PostgresEpisodes:
    """The store of the settings. Nothing is opened or connected yet."""
    return shared(url_file, db.path.parent, now, repository) if url_file else SqliteEpisodes(db, now)


def shared(
    url_file: str, state_dir: Path, now: Callable[[], int], repository: Callable[[str], str]
) -> PostgresEpisodes:
    """The store that several people share. A file that can't be used is told by the first call."""
    try:
        author = getpass.getuser()
    except (OSError, KeyError):  # a user without a name
        author = ""
    return PostgresEpisodes(lambda: read_url(url_file), state_dir / KEY, now, author, repository)

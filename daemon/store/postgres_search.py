"""One search of the episodes in PostgreSQL, in one statement: the nearest vectors, or the best by words.

Whether a project is small enough for its vectors to be compared one by one is decided by the server, in the
same statement. Anybody who writes to the server chooses how long a row is, so a row and an answer have a
limit (``FITS``, ``bounded``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from .postgres_schema import DIMENSIONS

if TYPE_CHECKING:
    from array import array
    from collections.abc import Mapping

EXACT: Final = 1_000  # vectors that are compared one by one: some 20 ms
WHOSE: Final = (
    "FROM episode_memory AS e "
    "LEFT JOIN episode_states AS s ON s.episode = e.key AND s.reader = %(reader)s "
    "LEFT JOIN episode_states AS w ON w.episode = e.key AND w.reader = e.owner AND w.reader <> %(reader)s"
)
KNOWN: Final = (
    "(CASE WHEN w.state = 'dismissed' OR s.state = 'dismissed' THEN 'dismissed' "
    "WHEN s.state = 'confirmed' THEN 'confirmed' ELSE 'quarantined' END)"
)
_THERE: Final = (  # a folder alone names a project for its owner only
    "((e.project = ANY(%(projects)s) AND e.owner = %(reader)s) "
    "OR (e.repository <> '' AND e.repository = ANY(%(repositories)s)))"
)
HERE: Final = f"(%(projects)s::text[] IS NULL OR {_THERE})"
LIVE: Final = f"{KNOWN} <> 'dismissed'"
ROW_BYTES: Final = 256 * 1024
ANSWER_BYTES: Final = 4 * 1024 * 1024
_TEXTS: Final = (
    "id", "project", "query", "problem", "lesson", "reflection", "triggers", "cites", "files", "proof",
    "author", "session", "turn", "task",
)  # fmt: skip
BYTES: Final = " + ".join((*(f"octet_length(e.{n})" for n in _TEXTS), "coalesce(octet_length(s.mark), 0)"))
FITS: Final = f"{BYTES} <= {ROW_BYTES}"
_ANY: Final = "replace(plainto_tsquery('simple', %(words)s)::text, '&', '|')::tsquery"


def by_words(row: str, given: Mapping[str, Any]) -> str:
    """Score and row of the episodes that have any of the words, best first."""
    return (
        f"SELECT ts_rank(e.words, {_ANY})::float8 AS score, {row} {WHOSE} "
        f"WHERE e.words @@ {_ANY} AND {_here(given)} AND {LIVE} AND {FITS} "
        'ORDER BY score DESC, e.id COLLATE "C" LIMIT %(limit)s'
    )


def nearest(row: str, given: Mapping[str, Any], size: int) -> str:
    """Cosine and row of the nearest vectors of this size, best first."""
    return (
        f"WITH near AS MATERIALIZED ({_near(given, size)}) "
        f"SELECT 1 - (e.embedding <=> %(vector)s::vector) AS score, {row} {WHOSE} "
        f"JOIN near ON near.key = e.key WHERE {LIVE} AND {FITS} "
        'ORDER BY score DESC, e.id COLLATE "C"'
    )


def _here(given: Mapping[str, Any]) -> str:
    """The condition on the project, in the form in which an index of projects is of use."""
    return "TRUE" if given["projects"] is None else _THERE


def bounded(sql: str) -> str:
    """The first rows of a statement, up to ``ANSWER_BYTES``. Its last column is ``row_bytes``."""
    return (
        "SELECT * FROM (SELECT *, sum(row_bytes) OVER (ROWS UNBOUNDED PRECEDING) AS so_far "
        f"FROM ({sql}) AS found) AS counted WHERE so_far <= {ANSWER_BYTES}"
    )


def _near(given: Mapping[str, Any], size: int) -> str:
    """The keys of the nearest vectors: of few by comparing all, of many by the index."""
    of_model = f"e.model = %(model)s AND vector_dims(e.embedding) = {size} AND {_here(given)}"
    nearest = "ORDER BY embedding <=> %(vector)s::vector LIMIT %(limit)s"
    here = f"SELECT e.key, e.embedding {WHOSE} WHERE {of_model} AND {LIVE}"
    if size > DIMENSIONS:
        return f"WITH here AS MATERIALIZED ({here}) SELECT key FROM here {nearest}"
    return (
        f"WITH few AS MATERIALIZED (SELECT count(*) <= {EXACT} AS yes FROM (SELECT 1 "
        f"FROM episode_memory AS e WHERE {of_model} LIMIT {EXACT + 1}) AS counted), "
        f"here AS MATERIALIZED ({here} AND (SELECT yes FROM few)) "
        f"(SELECT key FROM here {nearest}) UNION ALL (SELECT key FROM ({here} AND NOT (SELECT yes FROM few) "
        f"ORDER BY e.embedding::halfvec({size}) <=> %(vector)s::halfvec({size}) LIMIT 2 * %(limit)s) AS many "
        f"{nearest})"
    )


def text(numbers: array[float]) -> str:
    """A vector as pgvector reads it."""
    return f"[{','.join(map(repr, numbers))}]"

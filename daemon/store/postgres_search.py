"""One search of the episodes in PostgreSQL, in two round trips: a prompt waits for it.

The first one asks for the nearest vectors, for how many episodes have each word, and, now and then, what the
server knows of words in general. The second one scores the episodes that say the words which tell something,
and brings all rows. Whether a project is small enough for its vectors to be compared one by one is decided by
the server, in the same statement. Anybody who writes to the server chooses how long a row is, so a row and an
answer have a limit (``FITS``, ``bounded``).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from .episode_words import K1, B, idf, telling, tells_up_to
from .postgres_schema import DIMENSIONS

if TYPE_CHECKING:
    from array import array
    from collections.abc import Mapping, Sequence

    from psycopg import AsyncConnection

EXACT: Final = 1_000  # vectors that are compared one by one: some 20 ms
SMALL: Final = 10_000  # episodes that are counted, not estimated
LARGE: Final = 1_000_000  # episodes of a store that nothing is known of yet
STATISTICS_MS: Final = 600_000  # how long counts of words are believed
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
_STATISTICS: Final = (
    "SELECT reltuples::bigint, CASE WHEN small THEN (SELECT count(*) FROM episode_memory) END, "
    "CASE WHEN small THEN (SELECT coalesce(avg(cardinality(terms)), 0)::float8 FROM episode_memory) END "
    f"FROM (SELECT reltuples, reltuples < {SMALL} AS small FROM pg_class "
    "WHERE oid = 'episode_memory'::regclass) AS estimated"
)
_AVERAGE: Final = (
    "SELECT coalesce(avg(cardinality(terms)), 20)::float8 FROM episode_memory TABLESAMPLE SYSTEM (1)"
)
_FREQUENT: Final = (
    "SELECT word, frequency FROM pg_stats, unnest(most_common_elems::text::text[], most_common_elem_freqs) "
    "AS of_word (word, frequency) WHERE schemaname = current_schema() AND tablename = 'episode_memory' "
    "AND attname = 'terms' AND word IS NOT NULL"
)
_COUNTS: Final = (
    "SELECT word, (SELECT count(*) FROM (SELECT 1 FROM episode_memory WHERE terms @> ARRAY[word] "
    "LIMIT %(enough)s) AS counted) FROM unnest(%(words)s::text[]) AS word"
)
_SAID: Final = (  # the words' own lists first; then BM25 of those that say most
    "best AS (SELECT e.key, e.terms FROM ("
    "SELECT found.key, sum(of_word.weight) AS weight "
    "FROM unnest(%(words)s::text[], %(weights)s::float8[]) AS of_word (word, weight), "
    "LATERAL (SELECT e.key FROM episode_memory AS e WHERE e.terms @> ARRAY[of_word.word]) AS found "
    f"GROUP BY found.key) AS told JOIN (SELECT e.key, e.terms {WHOSE} WHERE {{here}} AND {LIVE}) AS e "
    "ON e.key = told.key ORDER BY told.weight DESC, e.key DESC LIMIT 4 * %(limit)s), "
    "said AS MATERIALIZED (SELECT key, (SELECT sum("
    f"of_word.weight * n * {K1 + 1} / (n + {K1} * ({1 - B} + {B} * cardinality(terms) / %(average)s))) "
    "FROM unnest(%(words)s::text[], %(weights)s::float8[]) AS of_word (word, weight), "
    "LATERAL (SELECT cardinality(array_positions(terms, of_word.word))::float8 AS n) AS counted) AS score "
    "FROM best ORDER BY score DESC, key DESC LIMIT %(limit)s)"
)


@dataclass(frozen=True, slots=True)
class Statistics:
    """About words. ``common``: those that many episodes have → how many; ``average``: words of an episode."""

    at: int = 0
    total: int = 0
    average: float = 0.0
    common: dict[str, int] = field(default_factory=dict)


class Search:
    """One for each store: it remembers what the server said of words. ``row``: the columns of a result."""

    def __init__(self, row: str) -> None:
        self._statistics = Statistics()
        self._row = row

    async def rows(
        self, c: AsyncConnection[Any], words: Sequence[str], given: Mapping[str, Any], now: int
    ) -> list[Any]:
        """BM25, cosine, and the row, of what is near or says these words.

        ``given``: ``reader``, ``projects``, ``repositories``, ``limit``, ``model``, ``size`` and
        ``vector``, None for none. ``now``: epoch ms.
        """
        # not prepared: how a statement is best planned depends on the project and the words
        known = self._statistics
        stale = bool(words) and (now - known.at > STATISTICS_MS or known.total < EXACT)
        rare = [word for word in words if word not in known.common]
        enough = tells_up_to(known.total or LARGE) + 1
        async with c.pipeline():
            near = await c.execute(_near(given), given, prepare=False) if given["size"] else None
            counted = await c.execute(_COUNTS, {"words": rare, "enough": enough}) if rare else None
            general = await c.execute(_STATISTICS) if stale else None
        keys = [key for (key,) in await near.fetchall()] if near is not None else []
        counts = {word: known.common[word] for word in words if word in known.common}
        counts |= dict(await counted.fetchall()) if counted is not None else {}
        if general is not None:
            known = self._statistics = await _statistics(c, await general.fetchone(), now)
        found = telling(counts, known.total)
        if not keys and not found:
            return []
        weights = [idf(counts[word], known.total) for word in found]
        more = {"words": found, "weights": weights, "average": max(known.average, 1.0), "keys": keys}
        found_sql = bounded(self._found(given))
        return await (await c.execute(found_sql, {**given, **more}, prepare=False)).fetchall()

    def _found(self, given: Mapping[str, Any]) -> str:
        """The rows of what is near and of what says the words."""
        return (
            f"WITH {_SAID.format(here=_here(given))} SELECT said.score, CASE WHEN e.model = %(model)s "
            "AND vector_dims(e.embedding) = %(size)s THEN 1 - (e.embedding <=> %(vector)s::vector) END, "
            f"{self._row} {WHOSE} JOIN (SELECT unnest(%(keys)s::bigint[]) AS key UNION SELECT key FROM said) "
            f"AS f ON f.key = e.key LEFT JOIN said ON said.key = e.key WHERE {LIVE} AND {FITS}"
        )

    async def warm(self, c: AsyncConnection[Any], now: int) -> None:
        """Ask what the server knows of words, so that the next search need not."""
        self._statistics = await _statistics(c, await (await c.execute(_STATISTICS)).fetchone(), now)


async def _statistics(c: AsyncConnection[Any], found: Sequence[Any] | None, now: int) -> Statistics:
    """Of a small table counted, of a large one what the server estimates for its own planning."""
    estimate, total, average = found or (0, 0, 0.0)
    if total is not None:
        return Statistics(now, int(total), average)
    async with c.pipeline():
        sampled = await c.execute(_AVERAGE)
        frequent = await c.execute(_FREQUENT)
    (average,) = await sampled.fetchone() or (20.0,)
    common = {word: int(share * estimate) for word, share in await frequent.fetchall()}
    return Statistics(now, int(estimate), average, common)


def _here(given: Mapping[str, Any]) -> str:
    """The condition on the project, in the form in which an index of projects is of use."""
    return "TRUE" if given["projects"] is None else _THERE


def bounded(sql: str) -> str:
    """The first rows of a statement, up to ``ANSWER_BYTES``. Its last column is ``row_bytes``."""
    return (
        "SELECT * FROM (SELECT *, sum(row_bytes) OVER (ROWS UNBOUNDED PRECEDING) AS so_far "
        f"FROM ({sql}) AS found) AS counted WHERE so_far <= {ANSWER_BYTES}"
    )


def _near(given: Mapping[str, Any]) -> str:
    """The keys of the nearest vectors: of few by comparing all, of many by the index."""
    size = given["size"]
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

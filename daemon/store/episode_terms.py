"""Which episodes say the words of a search, in the daemon's own database, and how many say each word.

Counting a frequent word means walking through all episodes that have it, which took most of a search in a
large store. So a count stops where a word says nothing any more, and the counts of frequent words are
remembered until the store has become another one. A count that was cut off is remembered as ``MANY``: the
limit grows with the store. Reads only; what a damaged index raises goes to the caller.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from .episode_words import FEW, asked, telling, tells_up_to

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Sequence

MANY: Final = 2**53  # more than any limit
KEPT: Final = 20_000  # frequent words whose counts are remembered
GROWTH: Final = 0.05  # from so much more or fewer episodes on they are counted again
_encode = msgspec.json.Encoder().encode


class Terms:
    """One for each store. Its owner has a lock."""

    def __init__(self) -> None:
        self._frequent: dict[str, int] = {}
        self._total = 0  # when the first of them was counted

    def said(
        self, c: sqlite3.Connection, words: str, projects: str | None, limit: int
    ) -> list[tuple[int, float]]:
        """Key and BM25 of those that say these words, best first. ``projects``: a JSON list, None for all."""
        wanted = asked(words)
        if not wanted:
            return []
        (total,) = c.execute("SELECT coalesce(max(key), 0) FROM episode_memory").fetchone()  # about
        found = telling(self._counts(c, wanted, total), total)
        if not found:
            return []
        rows = c.execute(
            "SELECT e.key, -bm25(episode_words) AS score FROM episode_words "
            "CROSS JOIN episode_memory AS e ON e.key = episode_words.rowid "
            "WHERE (?1 IS NULL OR e.project IN (SELECT value FROM json_each(?1))) "
            "AND e.state != 'dismissed' AND episode_words MATCH ?2 ORDER BY score DESC LIMIT ?3",
            (projects, " OR ".join(map(_quoted, found)), limit),
        )
        return [(key, float(score)) for key, score in rows]

    def _counts(self, c: sqlite3.Connection, words: Sequence[str], total: int) -> dict[str, int]:
        """How many episodes have each word; of a word that says nothing, only that."""
        if abs(total - self._total) > max(FEW, GROWTH * self._total) or len(self._frequent) > KEPT:
            self._frequent, self._total = {}, total
        known = {word: self._frequent[word] for word in words if word in self._frequent}
        enough = tells_up_to(total) + 1
        counted = {
            word: int(
                c.execute(
                    "SELECT count(*) FROM (SELECT 1 FROM episode_words WHERE episode_words MATCH ? LIMIT ?)",
                    (_quoted(word), enough),
                ).fetchone()[0]
            )
            for word in words
            if word not in known
        }
        counted = {word: MANY if count == enough else count for word, count in counted.items()}
        self._frequent |= {word: count for word, count in counted.items() if count > FEW}
        return known | counted


def _quoted(word: str) -> str:
    """As data in a query: words are letters and digits only."""
    return f'"{word}"'

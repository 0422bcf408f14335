"""The table ``episode_memory`` in the daemon's database (AC-2.6.3), with the vectors of its tasks.

Writes go through the database's one writer; what was learned is stored durably. Reads have a connection of
their own in a thread, so that a long search does not hold up the loop. A search compares the vectors of the
newest ``COMPARED`` episodes of its projects. Lists are JSON texts; one that can't be read any more is empty.
"""

from __future__ import annotations

import asyncio
from array import array
from heapq import nlargest
from operator import itemgetter, mul
from typing import TYPE_CHECKING, Any, Final, get_args

import msgspec

from ...store.db import ConflictError
from ...store.readonly import ReadOnly
from .episodes import COUNTS, Episode, State

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from ...store.db import Database, Row, Statement
    from ...store.readonly import Reads
    from ..embed.vectors import Vector
    from .episodes import Outcome

STATES: Final[tuple[State, ...]] = get_args(State)
COLUMNS: Final = tuple(f for f in Episode.__struct_fields__ if f not in {*COUNTS, "similarity"})
LISTS: Final = frozenset({"triggers", "cites", "files"})
COMPARED: Final = 10_000  # in pure Python about a tenth of a second
_ALL: Final = ", ".join(f"e.{name}" for name in (*COLUMNS, *COUNTS))
_THESE: Final = "id IN (SELECT value FROM json_each(?))"
_HERE: Final = "(?1 IS NULL OR e.project IN (SELECT value FROM json_each(?1)))"
_WANTED: Final = f"{_HERE} AND e.state != 'dismissed' AND (NOT e.theirs OR e.state = 'confirmed')"
decode_list = msgspec.json.Decoder(tuple[str, ...]).decode


class Episodes:
    """One for the daemon. Raises ``Unavailable`` when the database can't be used."""

    def __init__(self, db: Database) -> None:
        self._db = db

    async def add(self, episode: Episode, vector: Vector | None = None) -> bool:
        """Store it. False when there is an episode of this id already; then nothing changes."""
        names = ", ".join(COLUMNS)
        statements = [
            (
                f"INSERT INTO episode_memory ({names}) VALUES ({', '.join('?' * len(COLUMNS))})",
                [(*values(episode).values(),)],
            ),
            _vectors({} if vector is None else {episode.id: vector}),
        ]
        try:
            await self._db.commit(*statements, durable=True)
        except ConflictError:
            return False
        return True

    async def get(self, ids: Collection[str]) -> list[Episode]:
        """Those of these ids that are stored, newest first."""
        return await self._select(f"e.{_THESE}", _json(ids))

    async def page(
        self,
        projects: Collection[str] | None,
        *,
        state: State | None = None,
        after: str = "",
        limit: int = 100,
    ) -> list[Episode]:
        """Those of these projects, of all with None, newest first. ``after``: the last id before the page."""
        where = (
            f"{_HERE} AND (?2 IS NULL OR e.state = ?2) "
            "AND (?3 = '' OR (e.at, e.id) < (SELECT at, id FROM episode_memory WHERE id = ?3))"
        )
        return await self._select(where, _json(projects), state, plain(after), limit=limit)

    async def search(self, vector: Vector, projects: Collection[str] | None, limit: int) -> list[Episode]:
        """The nearest by vector, of the same model only; nothing dismissed, nothing of others that waits."""
        return await asyncio.to_thread(self._near, vector, _json(projects), limit)

    async def settle(self, ids: Collection[str], state: State) -> int:
        """How many are in that state now that were not."""
        put = f"UPDATE episode_memory SET state = ? WHERE state != ? AND {_THESE}"
        return await self._db.commit((put, [(state, state, _json(ids))]), durable=True)

    async def count(self, ids: Collection[str], at: int, outcome: Outcome) -> None:
        """Count an outcome of these."""
        put = f"UPDATE episode_memory SET {outcome} = {outcome} + 1, last = max(last, ?) WHERE id = ?"
        await self._db.commit((put, [(at, plain(id_)) for id_ in ids]))

    async def forget(self, ids: Collection[str]) -> None:
        """Delete them for good, and note that for a shared store; copies of others are dismissed, so that
        they do not come again.
        """
        own = f"FROM episode_memory WHERE NOT theirs AND {_THESE}"
        note = f"INSERT OR IGNORE INTO forgotten_episodes SELECT id {own}"
        dismiss = f"UPDATE episode_memory SET state = 'dismissed' WHERE theirs AND {_THESE}"
        delete = f"DELETE {own}"
        these = [(_json(ids),)]
        await self._db.commit((note, these), (dismiss, these), (delete, these), durable=True)

    async def unembedded(self, model: str, limit: int) -> list[Episode]:
        """Those that have no vector of this model, newest first."""
        without = "NOT EXISTS (SELECT 1 FROM episode_vectors WHERE episode = e.key AND model = ?)"
        return await self._select(without, model, limit=limit)

    async def embed(self, vectors: Mapping[str, Vector]) -> None:
        """Store the vectors of these ids. An earlier vector, of any model, is replaced."""
        await self._db.commit(_vectors(vectors))

    def counts(self, projects: Collection[str] | None = None) -> tuple[dict[str, int], int]:
        """How many in each state, in these projects or in all; and of them those that wait for a person's
        word. Blocks.
        """
        unproven = "total(state = 'quarantined' AND proof = '')"
        sql = f"SELECT state, count(*), {unproven} FROM episode_memory AS e WHERE {_HERE} GROUP BY state"
        with ReadOnly(self._db.path) as db:
            rows = db.read(sql, (_json(projects),))
        numbers = {state: count for state, count, _ in rows if state in STATES}
        return dict.fromkeys(STATES, 0) | numbers, int(sum(n for *_, n in rows))

    async def _select(self, where: str, *parameters: Any, limit: int = -1) -> list[Episode]:  # noqa: ANN401
        newest = f"ORDER BY e.at DESC, e.id DESC LIMIT {limit}"
        rows = await self._read(f"SELECT {_ALL} FROM episode_memory AS e WHERE {where} {newest}", *parameters)
        return [_episode(row) for row in rows]

    async def _read(self, sql: str, *parameters: Any) -> list[Row]:  # noqa: ANN401 - of any column
        def read() -> list[Row]:
            with ReadOnly(self._db.path) as db:
                return db.read(sql, parameters)

        return await asyncio.to_thread(read)

    def _near(self, vector: Vector, here: str | None, limit: int) -> list[Episode]:
        """By cosine, in a thread."""
        with ReadOnly(self._db.path) as db:
            rows = db.read(
                "SELECT v.episode, v.data FROM episode_memory AS e JOIN episode_vectors AS v "
                f"ON v.episode = e.key WHERE {_WANTED} AND v.model = ?2 AND length(v.data) = ?3 "
                f"ORDER BY e.at DESC LIMIT {COMPARED}",
                (here, vector.model, len(vector.data)),
            )
            asked = vector.row
            cosines = ((key, sum(map(mul, array("f", data), asked))) for key, data in rows)
            best = dict(nlargest(limit, cosines, key=itemgetter(1)))
            keys = msgspec.json.encode(list(best)).decode()
            these = "e.key IN (SELECT value FROM json_each(?))"
            sql = f"SELECT {_ALL}, e.key FROM episode_memory AS e WHERE {these}"
            found = [_episode(row, best[key]) for *row, key in db.read(sql, (keys,))]
        return sorted(found, key=lambda e: (-(e.similarity or 0.0), e.id))


def every(db: Reads, project: str) -> list[Episode]:
    """All of a project, newest first, for our own commands and the page."""
    sql = f"SELECT {_ALL} FROM episode_memory AS e WHERE project = ? ORDER BY e.at DESC, e.id DESC"
    return [_episode(row) for row in db.read(sql, (project,))]


def plain(text: str) -> str:
    """As a database can hold it: without lone surrogates and zero bytes."""
    return text.encode("utf-8", "replace").decode().replace("\0", "\N{REPLACEMENT CHARACTER}")


def _vectors(vectors: Mapping[str, Vector]) -> Statement:
    return (
        "INSERT OR REPLACE INTO episode_vectors (episode, model, data) "
        "SELECT key, ?, ? FROM episode_memory WHERE id = ?",
        [(vector.model, vector.data, plain(id_)) for id_, vector in vectors.items()],
    )


def values(episode: Episode) -> dict[str, Any]:
    """Its row, as a database can hold it."""
    found = {name: getattr(episode, name) for name in COLUMNS}
    return {
        name: _json(value) if name in LISTS else plain(value) if isinstance(value, str) else value
        for name, value in found.items()
    }


def _episode(row: Sequence[Any], similarity: float | None = None) -> Episode:
    found = dict(zip((*COLUMNS, *COUNTS), row, strict=True))
    for name in LISTS:
        try:
            found[name] = decode_list(found[name])
        except msgspec.MsgspecError:
            found[name] = ()
    if found["state"] not in STATES:
        found["state"] = "quarantined"
    return Episode(**found | {"theirs": bool(found["theirs"]), "similarity": similarity})


def _json(texts: Collection[str] | None) -> str | None:
    return None if texts is None else msgspec.json.encode(list(dict.fromkeys(map(plain, texts)))).decode()

"""How often a search in PostgreSQL waits for the server, counted on the wire, and what of it is planned."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from daemon.store.episodes_postgres import PostgresEpisodes
from tests.store.episodes import NOW, episode, ids, vector
from tests.support.machine.postgres import Postgres

WAITS = {b"S": "sync", b"Q": "query"}  # the messages after which a client waits


@dataclass
class Wire:
    """Stands between a client and the server. ``waits``: messages after which the client waited."""

    server: Path
    waits: int = 0
    ended: list[asyncio.Event] = field(default_factory=list)

    async def serve(self, client: asyncio.StreamReader, answer: asyncio.StreamWriter) -> None:
        ended = asyncio.Event()
        self.ended.append(ended)
        back, forth = await asyncio.open_unix_connection(str(self.server))
        answers = asyncio.create_task(self._answers(back, answer))
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            kind = b""  # the first message has none
            while True:
                head = await client.readexactly(4)
                forth.write(kind + head + await client.readexactly(int.from_bytes(head, "big") - 4))
                self.waits += kind in WAITS
                kind = await client.readexactly(1)
        forth.close()
        await answers
        ended.set()

    async def _answers(self, back: asyncio.StreamReader, answer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            while said := await back.read(65_536):
                answer.write(said)
        answer.close()


@dataclass
class Site:
    """A store behind the wire. ``now``: epoch ms."""

    wire: Wire
    url: str
    key: Path
    now: int = NOW

    def __post_init__(self) -> None:
        self.store = PostgresEpisodes(lambda: self.url, self.key, lambda: self.now)


@pytest.fixture
async def site(postgres: Postgres, tmp_path: Path) -> AsyncIterator[Site]:
    """With an empty database; the wire ends when its clients have."""
    with tempfile.TemporaryDirectory(prefix="rd-wire-") as folder:
        (behind,) = postgres.folder.glob(".s.PGSQL.*[0-9]")
        wire = Wire(behind)
        server = await asyncio.start_unix_server(wire.serve, str(Path(folder, behind.name)))
        site = Site(wire, postgres.new_database().replace(str(postgres.folder), folder), tmp_path / "key")
        yield site
        await site.store.close()
        for ended in wire.ended:
            await ended.wait()
        server.close()


@pytest.mark.parametrize("by", ["meaning", "words"])
async def test_a_search_waits_once(site: Site, by: str) -> None:
    """Also when it comes again and again; a client may prepare statements that do."""
    store, wire = site.store, site.wire
    for n in range(4):
        await store.add(episode(n, f"the parser of project {n}"), vector(n))
    seen = []
    for _ in range(12):
        wire.waits = 0
        assert 2 in ids(await store.search("parser 2", vector(2) if by == "meaning" else None, ["/p"], 4))
        seen.append(wire.waits)
    assert seen == [1] * 12

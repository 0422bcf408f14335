"""``reflectd memory migrate``: copies every episode, with vector and counts, into the other store.

Nothing is taken out of the store that it comes from. What the other one has already stays as it is there, so
a run that was ended goes on where it was. PostgreSQL is written beside a running daemon; the daemon's own
database is only written while no daemon runs.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

from ...clock import SystemClock
from ...core.errors import Unavailable, UserError
from ...engine.repositories import repository_of
from ...server.listener import Lock
from ...store.choose import shared
from ...store.db import Database
from ...store.episodes import SqliteEpisodes
from ...store.postgres import named, read_url
from ..progress import Progress
from ..render import count, print_json
from ..settings import look
from ..terminal import say

if TYPE_CHECKING:
    import argparse
    from pathlib import Path

    from ...paths import Paths
    from ...store.episodes_postgres import PostgresEpisodes

    Store = SqliteEpisodes | PostgresEpisodes

BLOCK = 200


def migrate(args: argparse.Namespace) -> int:
    """Copy, and say how many. Raises ``UserError`` and ``Unavailable``."""
    settings, where = look(args)
    url_file = args.url_file or settings.store.url_file
    if not url_file:
        raise UserError(
            "name the file with PostgreSQL's address: --url-file FILE, or the setting store.url_file"
        )
    server = named(read_url(url_file))
    began = time.monotonic()
    found = asyncio.run(_copied(where, url_file, args.to, dry_run=args.dry_run))
    seconds = time.monotonic() - began
    if args.json:
        print_json({"to": args.to, **found, "seconds": round(seconds, 1), "dry_run": args.dry_run})
        return 0
    target = server if args.to == "postgres" else str(where.database)
    verb = "would be copied" if args.dry_run else "copied"
    say(f"{count(found['copied'], 'episode')} {verb} to {target}; {found['known']:,} there already")
    if not args.dry_run and args.to == "postgres" and not settings.store.url_file:
        say(f'next: set store.url_file = "{url_file}" and run `reflectd restart`')
    if not args.dry_run and args.to == "sqlite" and settings.store.url_file:
        say("next: unset store.url_file, then `reflectd start`")
    return 0


async def _copied(where: Paths, url_file: str, to: str, *, dry_run: bool) -> dict[str, int]:
    async with AsyncExitStack() as stack:
        server = shared(url_file, where.state_dir, SystemClock().now_ms, repository_of)
        stack.push_async_callback(server.close)
        own = _own(where, stack, write=to == "sqlite" and not dry_run)
        stack.push_async_callback(own.close)
        source, target = (own, server) if to == "postgres" else (server, own)
        found = await copy(source, target, dry_run=dry_run)
        if found["copied"] and not dry_run:
            await server.analyze()
    return found


async def copy(source: Store, target: Store, *, dry_run: bool = False) -> dict[str, int]:
    """Copy what ``target`` does not have. How many it got, and how many it had."""
    counts = await source.counts(None)
    progress = Progress(sum(n for state, n in counts.items() if state != "bytes"))
    copied, known, after = 0, 0, ""
    try:
        while block := await source.copies(after, BLOCK):
            after = block[-1].episode.id
            there = {c.episode.id for c in await target.get([one.episode.id for one in block])}
            new = [one for one in block if one.episode.id not in there]
            if new and not dry_run:
                await target.put(new)
            copied, known = copied + len(new), known + len(there)
            progress.show(copied + known, f"{copied:,} copied")
    finally:
        progress.clear()
    return {"copied": copied, "known": known}


def _own(where: Paths, stack: AsyncExitStack, *, write: bool) -> SqliteEpisodes:
    """The daemon's own database; nobody else holds it while it is written."""
    clock = SystemClock()
    if not write:
        if not where.database.is_file():
            raise Unavailable(f"there is no database at {where.database} yet")
        return SqliteEpisodes(_Unwritten(where.database), clock.now_ms)
    lock = Lock(where.lock)
    lock.acquire()
    stack.callback(lock.release)
    db = Database(where.database, clock.now_ms)
    stack.callback(db.close)
    return SqliteEpisodes(db, clock.now_ms)


class _Unwritten:
    """A database that is only read."""

    def __init__(self, path: Path) -> None:
        self.path = path

    async def commit(self, *_: Any, durable: bool = False) -> int:  # noqa: ANN401, ARG002 - as Database has it
        raise Unavailable("this database is only read here")

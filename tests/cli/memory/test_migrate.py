"""``reflectd memory migrate`` between the two real stores, and two real daemons that share one."""

from __future__ import annotations

import asyncio
import json
import threading
from pathlib import Path

from daemon.client import request
from daemon.clock import SystemClock
from daemon.engine.repositories import repository_of
from daemon.store.choose import shared
from daemon.store.db import Database
from daemon.store.episode_rows import Copy
from daemon.store.episodes import SqliteEpisodes
from harness.machine.reflectd import Daemon
from harness.machine.sandbox import Sandbox, sandbox
from tests.store.episodes import episode, hexed, rich, vector
from tests.support.machine.command_line import reflectd, said
from tests.support.machine.postgres import Postgres

NOW = SystemClock().now_ms


def url_file(box: Sandbox, postgres: Postgres) -> Path:
    path = Path(box.project) / "url"
    path.write_text(postgres.new_database())
    path.chmod(0o600)
    return path


def stored(box: Sandbox, count: int) -> list[Copy]:
    """What is in the daemon's database, after so many episodes were put in."""

    async def put() -> list[Copy]:
        box.state.mkdir(exist_ok=True)
        db = Database(box.state / "reflectd.sqlite3", NOW)
        store = SqliteEpisodes(db, NOW)
        if count:
            await store.add(rich(0))
            await store.put([Copy(episode(n), vector(n % 90)) for n in range(1, count)])
            await store.settle([hexed(3)], "dismissed")
            await store.count_use(hexed(2), "s", NOW(), "given")
        found = await store.copies("", 10_000)
        await store.close()
        db.close()
        return found

    return asyncio.run(put())


def in_postgres(box: Sandbox, url: Path, put: tuple[Copy, ...] = ()) -> list[Copy]:
    """What is there, after these were put in, the last one confirmed."""

    async def read() -> list[Copy]:
        store = shared(str(url), box.state, NOW, repository_of)
        await store.put(put)
        await store.settle([copy.episode.id for copy in put[-1:]], "confirmed")
        found = await store.copies("", 10_000)
        await store.close()
        return found

    return asyncio.run(read())


def test_there_and_back(box: Sandbox, postgres: Postgres) -> None:
    """Everything arrives as it was, also beside a daemon; a second run has nothing to do; and back. A run
    that was ended goes on: what is there already is neither copied again nor changed.
    """
    before, url = stored(box, 450), url_file(box, postgres)
    said(reflectd(box, "memory", "migrate", "--to", "postgres"), 2, "--url-file")
    args = ("memory", "migrate", "--to", "postgres", "--url-file", url)
    url.chmod(0o644)
    said(reflectd(box, *args), 2, "chmod 600")
    url.chmod(0o600)
    said(reflectd(box, *args, "--dry-run"), 0, "450 episodes would be copied")
    assert in_postgres(box, url) == []
    in_postgres(box, url, tuple(before[:13]))
    with Daemon(box):
        done = said(reflectd(box, *args), 0, "437 episodes copied", "13 there already", "store.url_file")
    assert "postgres@" not in done
    after = {c.episode.id: c for c in in_postgres(box, url)}
    changed = after.pop(before[12].episode.id)
    assert changed.episode.state == "confirmed"
    assert after == {c.episode.id: c for c in before if c.episode.id != changed.episode.id}
    again = json.loads(reflectd(box, *args, "--json").stdout)
    assert (again["copied"], again["known"]) == (0, 450)
    back = ("memory", "migrate", "--to", "sqlite", "--url-file", url)
    (box.state / "reflectd.sqlite3").rename(box.state / "old.sqlite3")
    with Daemon(box):
        said(reflectd(box, *back), 2, "reflectd stop")
    said(reflectd(box, *back), 0, "450 episodes copied")
    found = {c.episode.id: c for c in stored(box, 0)}
    assert found == after | {changed.episode.id: changed}


def test_two_daemons_write_at_once(box: Sandbox, postgres: Postgres) -> None:
    """Each finds what the other learned, with its author, quarantined until it is confirmed here."""
    with sandbox() as other:
        url = url_file(box, postgres)
        env = {"REFLECTD_STORE_URL_FILE": str(url)}
        with Daemon(box, **env), Daemon(other, **env):
            made: dict[int, list[str]] = {0: [], 1: []}

            def write(who: int, at: Sandbox) -> None:
                for n in range(5):
                    words = (f"Deploy number {n} of {who}", "Wait for the lock.")
                    # the server of forks serves one thread
                    done = reflectd(at, "memory", "add", *words, "--json", cold=True)
                    made[who].append(json.loads(done.stdout)["episode"]["id"])

            threads = [threading.Thread(target=write, args=pair) for pair in enumerate((box, other))]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            for who, at in enumerate((box, other)):  # each person's own word on their own
                yes = {"ids": made[who], "yes": True}
                request(at.socket, "POST", "/v1/features/memory/settle", yes)
            for who, at in enumerate((box, other)):
                done = reflectd(at, "memory", "stats", "--all", "--json")
                counts = json.loads(done.stdout)["episodes"]
                assert (counts["confirmed"], counts["quarantined"]) == (5, 5)
                theirs = reflectd(at, "memory", "show", made[1 - who][0], "--json")
                shown = json.loads(theirs.stdout)["episode"]
                assert shown["state"] == "quarantined"
                assert shown["author"]

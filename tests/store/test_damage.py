"""Damage inside rows: the daemon starts, answers everything, and keeps what it can't read.

``make attack ONLY=damage`` tries every kind of damage to every column.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import shutil
import sqlite3
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from daemon import log
from daemon.app import Daemon
from daemon.config import from_text
from daemon.core.offers import Offer, compose
from daemon.core.proof import Ended, Known, Proof
from daemon.learning import tables
from daemon.learning.lessons.store import Episodes
from daemon.store import db as databases
from daemon.store import injections, ledger, outbox, proofs, timers
from daemon.store.ledger import DeadLetter, keep_letters
from daemon.store.timers import Pending
from daemon.testing import FakeClock, ScriptedLLM
from tests.learning.lessons.rows import hexed, rich, vector
from tests.support.hosts.opencode_sim import SimDaemon, SimHost, make_daemon
from tests.support.hosts.wire import send
from tests.support.hosts.world import INCOMPLETE

SAMPLE = 24
VALUES: dict[str, str] = {
    "a text": "'garbage'",
    "bad UTF-8": "CAST(X'666fff80c3' AS TEXT)",
    "bytes": "X'00ff7b22'",
    "a number": "9223372036854775807",
    "less than nothing": "-9223372036854775808",
    "infinite": "9e999",
    "JSON of another kind": "CAST('[[1]]' AS BLOB)",
    "deep": "CAST(replace(printf('%5000d', 0), ' ', '[') AS BLOB)",
}
ROUTES = (
    "/v1/status",
    "/v1/sessions",
    "/v1/verdicts",
    "/v1/verdicts?session=ses_a",
    "/v1/why",
    "/v1/why?session=ses_a",
    "/v1/features/memory/stats",
    "/v1/features/memory/search?query=npm&min_similarity=-1",
)


class Harm(NamedTuple):
    """One value in one column of every row of a table."""

    table: str
    column: str
    value: str


async def tell_a_story(folder: Path) -> Path:
    """A database that has a row in every table, with an order under way and a verdict without its file."""
    clock = FakeClock()
    sim = SimDaemon(folder, clock, ScriptedLLM())
    (folder / "work").mkdir()
    host = SimHost(str(folder / "work"), clock)
    await host.connect(await sim.start())
    host.deaf_to = "feedback"
    assert isinstance(sim.provider, ScriptedLLM)
    sim.provider.add(INCOMPLETE, INCOMPLETE)
    for session in ("ses_a", "ses_b"):
        await host.create(session)
        await host.types(session)
        await host.works(session)
        await sim.settle()
    await host.types("ses_b", "more")
    engine, now = sim.daemon.engine, clock.ms
    await engine.intake.switch(on=False, directory="/off")
    later = Pending("ses_a", "nudge", "t", "u", now + 10_000, 10_000, 0)
    await sim.daemon.db.commit(
        timers.put(later),
        *keep_letters([DeadLetter(now, "judge", "ses_a", "p", "m", "why", "raw")]),
        ledger.add(ledger.Entry(now, "judge", "ses_a", "p", "m", 1, 1, 0.5, 1, "ok")),
        ("UPDATE verdicts SET filed = 0", [()]),
        ("INSERT INTO judge_sessions VALUES ('ses_j', ?, ?, 0)", [(str(folder / "work"), now)]),
        (
            "INSERT INTO consents (session, digest, source, kind, label, place, at) "
            "VALUES ('ses_a', 'd', 'm', 'typed', 'typed', '', ?)",
            [(now,)],
        ),
        tables.keep_case("ses_a", "u", "/p", now, b"{}"),
        tables.count("/p", "skipped"),
        tables.tag("/p", "pat-001", "ses_a", "helpful", now, "why"),
        tables.quarantine("/p", "OTHERS", "text", "ses_a", now),
        ("INSERT INTO told_once VALUES ('month 2026-11', ?)", [(now,)]),
        injections.give("ses_a", "start", now, compose([Offer("o", "point", "text")], 100)),
        engine.jobs.statement("task.closed", "k", {"session": "ses_a"}, lane="other", due_ms=now),
    )
    known = Known("make test")
    run = Ended(known, Proof("make test", 0, 1.0, "passed", at=now))
    await sim.daemon.db.commit(
        *proofs.learn("/p", [known], now),
        proofs.ended("/p", "t", known, "passed", (), now),
        proofs.ran("r", "/p", "ses_a", "t", run, "a", "b"),
    )
    episodes = Episodes(sim.daemon.db)
    await episodes.add(rich(1), vector(0))
    await episodes.count([hexed(1)], now, "given")
    await sim.daemon.db.commit(
        ("INSERT INTO forgotten_episodes VALUES ('e')", [()]),
        ("INSERT INTO shared_reader VALUES ('me')", [()]),
    )
    await host.disconnect()
    await sim.kill()
    return sim.daemon.paths.database


def columns(database: Path) -> Iterator[tuple[str, str]]:
    """Every column of every table that has a row."""
    with contextlib.closing(sqlite3.connect(database)) as c:
        for (table,) in c.execute("SELECT name FROM pragma_table_list WHERE type = 'table'").fetchall():
            if table in {"migrations", "unreadable"} or table.startswith("sqlite_"):
                continue
            assert c.execute(f"SELECT count(*) FROM {table}").fetchone() != (0,), f"no row in {table}"
            for _, column, *_ in c.execute(f"PRAGMA table_info({table})"):
                yield table, column


def harms(database: Path) -> list[Harm]:
    return [Harm(t, c, v) for t, c in columns(database) for v in VALUES]


def harm(database: Path, what: Harm) -> bool:
    """Do it. False where the column's type or key makes it impossible."""
    with contextlib.closing(sqlite3.connect(database, isolation_level=None)) as c:
        try:
            c.execute(f"UPDATE {what.table} SET {what.column} = {VALUES[what.value]}")
        except sqlite3.IntegrityError:
            with contextlib.suppress(sqlite3.IntegrityError):  # a key: only one row can have it
                c.execute(
                    f"UPDATE {what.table} SET {what.column} = {VALUES[what.value]} WHERE {what.column} = "
                    f"(SELECT {what.column} FROM {what.table} LIMIT 1)"
                )
                return True
            return False
        return True


def answers(daemon: Daemon, work: str) -> list[str]:
    """What is answered with a bug, of all that clients and hosts ask."""
    socket, found = daemon.paths.socket, []
    hello = {"instance": "host-1", "host": "opencode", "mode": "serve", "pid": 1, "directory": work}
    events = [
        {"seq": 2**40 + n, "t": int(time.time() * 1000), "kind": kind, "data": {"sessionID": "ses_a", **more}}
        for n, (kind, more) in enumerate(
            (("session.idle", {}), ("chat.message", {"messageID": "new", "human": True}))
        )
    ]
    asked: list[tuple[str, str, Any]] = [("GET", route, None) for route in ROUTES]
    asked += [
        ("POST", "/v1/hello", hello),
        ("POST", "/v1/events", {"instance": "host-1", "events": events}),
        ("POST", "/v1/switch", {"on": False, "session": "ses_b"}),
        ("POST", "/v1/results", {"instance": "host-1", "id": "x", "status": "done"}),
    ]
    for method, route, body in [*asked, *asked]:
        answer = send(socket, method, route, body)
        if answer.status in {0, 500, 503}:
            found.append(f"{method} {route}: {answer.status} {answer.body[:200]!r}")
    return found


async def live(folder: Path, database: Path, what: Harm) -> list[str]:
    """What went wrong in a daemon that finds this damage."""
    state = folder / "state"
    state.mkdir(mode=0o700)
    shutil.copy(database, state / database.name)
    if not harm(state / database.name, what):
        return []
    told = folder / "log"
    log.configure(from_text(), told)
    try:
        daemon = make_daemon(folder, FakeClock(), ScriptedLLM())
    except Exception as e:  # whatever stops a start is what the test is about
        return [f"it does not start: {e!r}"]
    up = asyncio.Event()
    serving = asyncio.create_task(daemon.serve(up.set))
    await asyncio.wait([serving, asyncio.create_task(up.wait())], return_when=asyncio.FIRST_COMPLETED)
    found = [] if up.is_set() else ["it does not serve"]
    if up.is_set():
        found += await asyncio.to_thread(answers, daemon, str(folder / "work"))
        daemon.engine.jobs.wake()
        daemon.engine.timers.wake()
        daemon.engine.recover.sweep()
        await asyncio.sleep(0.02)
    daemon.stopping.set()
    await asyncio.gather(serving, return_exceptions=True)
    text = told.read_text("utf-8", "replace") if told.exists() else ""
    return found + [line[:600] for line in text.splitlines() if "bug" in line or "Traceback" in line]


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return asyncio.run(tell_a_story(tmp_path_factory.mktemp("story")))


@pytest.mark.shows("I43")
@pytest.mark.slow("a daemon is started for each damage")
async def test_damaged_rows_never_stop_the_daemon(story: Path, tmp_path: Path) -> None:
    """A sample of all damages to all columns: each start succeeds, and no answer is a bug."""
    every = harms(story)
    assert len(every) > 290
    wrong = {}
    for n, what in enumerate(random.Random().sample(every, SAMPLE)):
        folder = tmp_path / str(n)
        folder.mkdir()
        if found := await live(folder, story, what):
            wrong[what] = found
    log.configure(from_text(), sys.stderr)
    assert wrong == {}


@pytest.mark.shows("I43")
def test_a_damaged_row_is_kept_aside_and_told(story: Path, tmp_path: Path) -> None:
    """Its values are in the table `unreadable`, the rows beside it stay, and the start says so."""
    database = tmp_path / "reflectd.sqlite3"
    shutil.copy(story, database)
    with contextlib.closing(sqlite3.connect(database, isolation_level=None)) as c:
        c.execute("INSERT INTO timers VALUES ('ses_x', 'nudge', 't', 'u', 'tomorrow', X'00ff', 0)")
        before = c.execute("SELECT count(*) FROM timers").fetchone()[0]
    found = databases.Database(database, lambda: 77)
    try:
        assert found.opened.rows == {"timers": 1}
        assert found.opened.aside is None
        assert len(timers.stored(found)) == before - 1
        kept = found.read("SELECT kind, id, at, body FROM unreadable")
        assert kept == [("timers", "'ses_x'", 77, "'ses_x', 'nudge', 't', 'u', 'tomorrow', X'00FF', 0")]
    finally:
        found.close()


@pytest.mark.shows("I43")
def test_an_order_that_cannot_be_read_is_told_once_and_left(story: Path, tmp_path: Path) -> None:
    """It is as good as none, and the others are found."""
    database = tmp_path / "reflectd.sqlite3"
    shutil.copy(story, database)
    with contextlib.closing(sqlite3.connect(database, isolation_level=None)) as c:
        c.execute("UPDATE outbox SET body = CAST('{' AS BLOB) WHERE id = (SELECT min(id) FROM outbox)")
    found, told = databases.Database(database, lambda: 77), list[str]()
    try:
        orders = outbox.Outbox(found, lambda order, **_: told.append(order))
        everything = found.read("SELECT id FROM outbox ORDER BY id")
        assert orders.get(everything[0][0]) is None
        assert orders.get(everything[0][0]) is None
        assert orders.get(everything[1][0]) is not None
        assert told == [everything[0][0]]
        assert orders.is_ours(everything[0][0])
    finally:
        found.close()


@pytest.mark.shows("I43")
@pytest.mark.parametrize("lost", ["DROP TABLE timers", "ALTER TABLE ledger DROP COLUMN account"])
def test_a_database_without_a_table_is_kept_aside(story: Path, tmp_path: Path, lost: str) -> None:
    """All of it is kept, and a new one is begun."""
    database = tmp_path / "reflectd.sqlite3"
    shutil.copy(story, database)
    with contextlib.closing(sqlite3.connect(database, isolation_level=None)) as c:
        c.execute(lost)
    found = databases.Database(database, lambda: 77)
    try:
        assert found.opened.aside is not None
        assert found.opened.aside.exists()
        assert found.read("SELECT count(*) FROM timers") == [(0,)]
    finally:
        found.close()

"""A clock that jumps years ahead and back, while the daemon runs or not: nothing may be deleted."""

from __future__ import annotations

import random
import sqlite3
import time
from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING, Final

from attack.outcome import SHOWN, Deadline, Outcome
from daemon.core.verdict import Verdict
from daemon.store import ledger, verdicts
from harness.machine.sandbox import sandbox
from harness.machine.waiting import wait_until
from tests.support.machine.shifted import ShiftedDaemon

if TYPE_CHECKING:
    from pathlib import Path

    from harness.machine.sandbox import Sandbox

DAY_S: Final = 86_400
JUMPS_DAYS: Final = (5 * 365, 400, 90, 8, 3)
ROWS: Final = 390  # one a day: none is too old
TABLES: Final = ("verdicts", "ledger")


def fill(path: Path) -> None:
    """A verdict and a call for each day."""
    now = int(time.time() * 1000)
    with closing(sqlite3.connect(path)) as db:
        for n in range(ROWS):
            at = now - n * DAY_S * 1000
            call = ledger.Entry(at, "judge", f"ses_{n}", "offline", "", 0, 0, None, 1, "ok")
            for sql, rows in (
                verdicts.add(Verdict(f"ses_{n}", "t", "m", "complete", at), "/w"),
                ledger.add(call),
            ):
                db.executemany(sql, rows)
        db.commit()


def count(path: Path) -> int:
    """The rows that are left."""
    with closing(sqlite3.connect(path)) as db:
        return sum(int(db.execute(f"SELECT count(*) FROM {t}").fetchone()[0]) for t in TABLES)


def looked(path: Path, after_s: float) -> bool:
    """Whether what is too old was looked for at that time."""
    with closing(sqlite3.connect(path)) as db:
        rows = db.execute("SELECT due FROM jobs WHERE kind = 'retention'").fetchall()
    return bool(rows) and abs(rows[0][0] / 1000 - after_s) < 2 * 3600


def attack(jumps: int, seed: int, deadline: Deadline, box: Sandbox) -> Outcome:
    found = Outcome("clock", jumps)
    rng = random.Random(seed)
    database = box.state / "reflectd.sqlite3"
    daemon = ShiftedDaemon(box).start()
    daemon.stop()
    fill(database)
    daemon.start()
    before = count(database)
    while found.done < jumps and not deadline.over and len(found.findings) < SHOWN:
        ahead = rng.choice(JUMPS_DAYS) * DAY_S
        if rng.random() < 0.3:  # it wakes up in the wrong year
            daemon.kill9()
            daemon.new_log()
        daemon.shift(ahead)
        if not daemon.running:
            daemon.start()
        wait_until(partial(looked, database, time.time() + ahead), "look for old rows", daemon.log)
        daemon.shift(0)
        wait_until(partial(looked, database, time.time()), "look after the jump", daemon.log)
        found.done += 1
        left = count(database)
        if left < before:
            found.findings.append(f"{before - left} rows deleted: seed {seed}, jump {found.done}")
            before = left
    found.figures = f"{count(database)} of {2 * ROWS} rows left"
    daemon.stop()
    found.check_log(daemon)
    return found


def run(jumps: int, seed: int, deadline: Deadline) -> Outcome:
    with sandbox() as box:
        return attack(jumps, seed, deadline, box)

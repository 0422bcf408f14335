"""``reflectd prune``, and what ``status`` and ``doctor`` say while nothing is deleted."""

from __future__ import annotations

import json
import sqlite3
import time
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

from attack.clock import DAY_S, ROWS, count, fill, looked
from harness.machine.sandbox import Sandbox
from harness.machine.waiting import wait_until
from tests.support.machine.command_line import reflectd, said
from tests.support.machine.shifted import ShiftedDaemon
from tests.web.browsing import Browser, Read

AHEAD = 20 * DAY_S


def marked(database: Path) -> bool:
    """Whether the daemon has looked for what is too old: before that it can't notice a jump."""
    with closing(sqlite3.connect(database)) as db:
        return bool(db.execute("SELECT 1 FROM told_once WHERE what = 'deleted rows'").fetchall())


@pytest.mark.shows("I52")
def test_a_standstill_is_told_and_a_person_ends_it(box: Sandbox) -> None:
    """The clock goes 20 days ahead and stays there: nothing is deleted; `status`, `doctor` and the dashboard
    say since when and why, `prune` changes nothing, and with `--yes` a day's worth goes, no more.
    """
    database = box.state / "reflectd.sqlite3"
    daemon = ShiftedDaemon(box).start()
    daemon.stop()
    fill(database)
    with daemon:
        wait_until(partial(marked, database), "the first look", daemon.log)
        said(reflectd(box, "prune"), 0, "too old", "nothing", "by itself, once a day")
        assert daemon.status()["standstill"] == []
        daemon.shift(AHEAD)
        wait_until(lambda: daemon.status()["standstill"], "the standstill", daemon.log)
        (stands,) = daemon.status()["standstill"]
        assert (stands["what"], round(stands["off_ms"] / 1000 / DAY_S)) == ("rows", 19)
        assert abs(stands["since"] / 1000 - time.time() - AHEAD) < 3600
        words = ("no old rows are deleted, since", "19 days ahead", "`reflectd prune`")
        said(reflectd(box, "status"), 0, *words)
        page = Read(Browser.inside(daemon).get("/health").text).text
        assert "No old rows are deleted, since" in page
        assert "jumped by 19 days" in page
        checks = json.loads(reflectd(box, "doctor", "--json").stdout)["checks"]
        (check,) = (c for c in checks if c["name"] == "prune")
        assert check["outcome"] == "warn"
        assert all(word in check["text"] for word in words)
        assert "reflectd prune" in check["mend"]
        looks = json.loads(reflectd(box, "prune", "--json").stdout)
        assert (looks["old"], looks["ended"]) == ({"verdicts": 1, "ledger": 1}, [])
        said(reflectd(box, "prune"), 0, "verdicts 1, ledger 1", *words)
        assert daemon.status()["standstill"] == [stands]
        assert count(database) == 2 * ROWS
        said(reflectd(box, "prune", "--yes"), 0, "rows are deleted again")
        wait_until(lambda: count(database) == 2 * ROWS - 2, "a day's worth", daemon.log)
        assert daemon.status()["standstill"] == []
        said(reflectd(box, "prune", "--yes"), 0, "by itself, once a day")
        daemon.shift(AHEAD + 5 * 3600)
        wait_until(partial(looked, database, time.time() + AHEAD + 6 * 3600), "the next look", daemon.log)
        assert count(database) == 2 * ROWS - 2
    said(reflectd(box, "prune"), 1, "no daemon answers")

"""``reflectd cost``."""

from __future__ import annotations

import contextlib
import json
import sqlite3
import time
from typing import Any

import pytest

from harness.machine.reflectd import Daemon
from harness.machine.sandbox import Sandbox
from tests.support.machine.command_line import reflectd, said

NOW = int(time.time() * 1000)
DAY = 86_400_000
COLUMNS = "at, purpose, session, provider, model, input, output, cost, ms, outcome"
CALLS = [
    (NOW, "judge", "ses_a", "anthropic", "m-1", 1000, 100, 0.01, 900, "ok"),
    (NOW, "judge.second", "ses_a", "anthropic", "m-1", 500, 50, 0.005, 900, "ok"),
    (NOW, "judge", "ses_b", "host", "", 2000, 200, None, 900, "ok"),
    (NOW, "judge", "ses_b", "host", "", 0, 0, None, 900, "cancelled"),
    (NOW, "judge", "ses_b", "anthropic", "m-1", 0, 0, None, 900, "error: 529"),
    (NOW, "judge", "ses_c", "offline", "rules", 0, 0, 0.0, 1, "ok"),
    (NOW - 10 * DAY, "judge", "ses_a", "anthropic", "m-1", 10, 1, 5.0, 900, "ok"),
]


def fill_ledger(box: Sandbox, *calls: tuple[Any, ...], columns: str = COLUMNS) -> None:
    """Calls as a daemon with models would have written them."""
    rows = calls or CALLS
    with contextlib.closing(sqlite3.connect(box.state / "reflectd.sqlite3")) as db, db:
        db.executemany(f"INSERT INTO ledger ({columns}) VALUES ({', '.join('?' * len(rows[0]))})", rows)


@pytest.mark.shows("I41")
def test_cost_with_and_without_a_daemon(box: Sandbox) -> None:
    """The same sums whether a daemon runs or not; unknown is unknown with its tokens, never 0."""
    said(reflectd(box, "cost"), 0, "nothing was judged yet", "reflectd setup")
    with Daemon(box):
        fill_ledger(box)
        by_daemon = cost(box)
        text = said(reflectd(box, "cost"), 0, "0.0150", "2,200 tokens", "together", "of 2.00 USD", "500,000")
        assert "5.0" not in text.partition("last 24 hours")[0]
    by_file = cost(box)
    assert by_file == by_daemon
    sums = by_file["sums"]
    counts = {"calls": 6, "rules": 1, "answered": 3, "cancelled": 1, "failed": 1}
    assert counts.items() <= sums.items()
    assert sums["cost"] == pytest.approx(0.015)
    assert (sums["unpriced"], sums["unpriced_tokens"]) == (1, 2200)
    assert by_file["spent_24h"] == {"usd": pytest.approx(0.015), "unpriced_tokens": 2200}


def cost(box: Sandbox, *args: str) -> dict[str, Any]:
    """What ``--json`` prints; what a month is expected to cost changes with the time, so that is left out."""
    found: dict[str, Any] = json.loads(reflectd(box, "cost", "--json", *args).stdout)
    for month in found["month"]:
        assert month.pop("expected") >= month["so_far"]
    return found


def test_cost_by_each_thing(box: Sandbox) -> None:
    """``--by``, ``--session`` and ``--days`` choose what is summed; an unknown price is not 0."""
    with Daemon(box):
        fill_ledger(box)
    for by, names in (
        ("session", ["ses_a", "ses_b", "ses_c"]),
        ("model", ["m-1", "", "rules"]),
        ("purpose", ["judge", "judge.second"]),
    ):
        assert [g["name"] for g in cost(box, "--by", by)["groups"]] == names
    (unknown,) = [g for g in cost(box, "--by", "provider")["groups"] if g["name"] == "host"]
    assert (unknown["cost"], unknown["unpriced_tokens"]) == (None, 2200)
    assert cost(box, "--days", "30", "--session", "ses_a")["sums"]["cost"] == pytest.approx(5.015)
    assert len(cost(box, "--days", "30")["groups"]) == 2
    text = said(reflectd(box, "cost", "--by", "provider"), 0)
    (line,) = [line for line in text.splitlines() if line.startswith("host")]
    assert "2,200 tokens" in line
    assert "0.0000" not in line
    said(reflectd(box, "cost", "--session", "nobody"), 2, "no session begins with 'nobody'")


def test_what_a_person_asked_for_is_shown_apart(box: Sandbox) -> None:
    """Its own account: in the sums, in a group of its own, and below what judging cost; nothing of it counts
    as judging. `status` tells it too.
    """
    with Daemon(box, REFLECTD_OPENAI_BASE_URL="http://127.0.0.1:9", REFLECTD_JUDGE_PROVIDER="auto"):
        fill_ledger(box)
        assert "asked for" not in said(reflectd(box, "cost"), 0)
        row = (NOW, "asked.judge", "ses_d", "anthropic", "m-1", 900, 90, 0.02, 1, "ok", "asked")
        fill_ledger(box, row, columns=f"{COLUMNS}, account")
        by_daemon = cost(box, "--by", "account")
        said(reflectd(box, "cost"), 0, "asked for      0.0200 USD in 24 hours, besides judging")
        said(reflectd(box, "status"), 0, "0.0150 of 2.00 USD", "besides, 0.0200 USD asked for")
    costs = {g["name"]: g["cost"] for g in by_daemon["groups"]}
    assert costs == {"judging": pytest.approx(0.015), "asked": 0.02}
    assert by_daemon["asked_24h"] == {"usd": 0.02, "unpriced_tokens": 0}
    assert by_daemon["learning_7d"]["of_usd"] == pytest.approx(0.0075)
    assert cost(box, "--by", "account") == by_daemon


def test_amounts_in_two_currencies_are_never_added_up(box: Sandbox) -> None:
    """Each in its own place, in sums and in groups. A limit in USD counts the tokens of the others."""
    with Daemon(box):
        fill_ledger(box)
        row = (NOW, "judge", "ses_d", "anthropic", "m-1", 300, 30, 0.5, 1, "ok", "EUR", "/srv/shop")
        fill_ledger(box, row, columns=f"{COLUMNS}, currency, directory")
        found = cost(box, "--by", "project")
        text = said(reflectd(box, "cost", "--by", "project"), 0, "/srv/shop", "0.50 EUR so far")
        assert "0.0150 USD + 0.5000 EUR" in text
    assert cost(box, "--by", "project") == found
    assert found["sums"]["cost"] == pytest.approx(0.015)
    assert found["sums"]["others"] == [["EUR", 0.5]]
    groups = {g["name"]: (g["cost"], g["others"]) for g in found["groups"]}
    assert groups == {"": (pytest.approx(0.015), []), "/srv/shop": (None, [["EUR", 0.5]])}
    assert found["spent_24h"] == {"usd": pytest.approx(0.015), "unpriced_tokens": 2530}


def test_a_month_that_becomes_dear_is_told(box: Sandbox) -> None:
    """What it is expected to cost at its end, against ``MONTH_EUR``, in `cost` and `status`."""
    with Daemon(box, REFLECTD_OPENAI_BASE_URL="http://127.0.0.1:9", REFLECTD_JUDGE_PROVIDER="auto"):
        assert "more than" not in said(reflectd(box, "cost"), 0)
        fill_ledger(box, (NOW, "judge", "ses_d", "anthropic", "m-1", 300, 30, 11.0, 1, "ok"))
        said(reflectd(box, "cost"), 0, "11.00 USD so far", "more than 10.00 USD")
        said(reflectd(box, "status"), 0, "more than 10.00 USD")

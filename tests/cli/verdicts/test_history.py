"""``reflectd history``, and the rounds that ``why`` and ``dispute`` take by their numbers."""

from __future__ import annotations

import asyncio
import json
import shlex
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyte
import pytest

from daemon.core.orders import SendFeedback
from daemon.core.session import Session
from daemon.core.verdict import FinalState, JudgedBy, Missing, Severity, Verdict
from daemon.store import outbox, verdicts
from daemon.store.db import Database
from daemon.store.sessions import Sessions
from harness.machine.reflectd import Daemon
from harness.machine.sandbox import Sandbox
from harness.machine.waiting import wait_until
from tests.cli.reflect.person import ended, typed
from tests.cli.verdicts.folders import judged_in
from tests.support.hosts.wire import WireHost, unfinished
from tests.support.machine.command_line import COMMAND, case_files, judged, reflectd, said

SCREEN = Path(__file__).resolve().parents[2] / "data" / "screens" / "history.txt"
COLUMNS, ROWS = 80, 24


def at(day: int, hour: int, minute: int) -> int:
    """Epoch ms of a moment in January 2026, UTC."""
    return int(datetime(2026, 1, day, hour, minute, tzinfo=UTC).timestamp() * 1000)


def verdict(session: str, turn: str, state: FinalState, ms: int, *missing: str, **more: object) -> Verdict:
    severity = Severity.HIGH if missing else Severity.NONE
    items = tuple(Missing(text, "E1") for text in missing)
    by = JudgedBy("anthropic", "small", 900, 0.002)
    return Verdict(session, "msg_1", turn, state, ms, severity, missing=items, judge=by, **more)  # type: ignore[arg-type]


async def stored(box: Sandbox, sessions: list[Session], found: list[Verdict], directory: str) -> None:
    """Put sessions and verdicts into the database, as the daemon stores them; each prompt had its outcome."""
    db = Database(box.state / "reflectd.sqlite3", lambda: at(6, 8, 0))
    try:
        orders = [
            outbox.Stored(
                outbox.order_id(v.session, v.turn, "feedback"),
                v.session,
                "stale" if v.attempt == 2 else "done",
                "host-1",
                v.at,
                SendFeedback(v.session, v.task, v.turn, "Go on."),
            )
            for v in found
            if v.state == "incomplete"
        ]
        states = {s.id: s for s in sessions}
        await db.commit(
            *(verdicts.add(v, directory) for v in found),
            outbox.add(orders),
            Sessions(db).statement(states, at(6, 8, 0)),
        )
    finally:
        db.close()


def screen(box: Sandbox, *args: str) -> list[str]:
    """The lines that stand on a terminal of 80 x 24 when the command has ended."""
    command = ["sh", "-c", f"{shlex.join([*COMMAND, *args])} 2>/dev/null"]
    code, text = ended(typed(box, [], command=command, columns=COLUMNS, TERM="xterm", TZ="UTC"))
    assert code == 0
    shown = pyte.Screen(COLUMNS, ROWS)
    pyte.Stream(shown).feed(text.replace("\n", "\r\n"))
    return [line.rstrip() for line in shown.display]


@pytest.mark.full("a pseudo-terminal is driven")
def test_the_screen_of_a_night(box: Sandbox) -> None:
    """At 80 x 24: two sessions that went on over midnight, as a person finds them in the morning. A file
    keeps the screen.
    """
    one, two = "ses_58c3f0d91ffeAbCdEfGh", "ses_61aa0b2c7dd1IjKlMnOp"
    found = [
        verdict(one, "t1", "incomplete", at(5, 23, 10), "`pytest -q` failed: 2 of 14", "no tests", attempt=1),
        verdict(one, "t2", "incomplete", at(5, 23, 41), "the page has no link from anywhere", attempt=2),
        verdict(one, "t3", "complete", at(6, 0, 17), attempt=2),
        verdict(
            two, "u1", "incomplete", at(6, 1, 2), "a todo is open: " + "write the migration " * 6, attempt=1
        ),
        verdict(two, "u2", "skipped", at(6, 1, 5), reason="guard:aborted"),
        verdict(two, "u3", "awaiting_user", at(6, 2, 30), feedback="It asks which database to use."),
    ]
    project = "/home/me/shop"
    sessions = [
        Session(id=one, title="Add a login page with tests", directory=project, phase="complete"),
        Session(
            id=two, title="Move the orders to the new tables", directory=project, phase="open", busy=True
        ),
    ]
    asyncio.run(stored(box, sessions, found, project))
    lines = screen(box, "history", "--dir", f"{project}/src/pages")
    assert "\n".join(lines).rstrip().splitlines() == SCREEN.read_text("utf-8").splitlines()


def test_sessions_of_this_project_or_of_all(box: Sandbox) -> None:
    """This project by default, also from a folder in it; ``--all``; one session; the same without daemon."""
    elsewhere, below = box.root / "elsewhere", box.project / "src" / "pages"
    below.mkdir(parents=True)
    said(reflectd(box, "history"), 0, "nothing was judged yet; `reflectd setup`")
    with Daemon(box) as daemon:
        said(reflectd(box, "history"), 0, "nothing in ", str(box.project), "`reflectd history --all`")
        judged(box, daemon, "ses_here", title="A login page")
        judged_in(elsewhere, daemon, "ses_there")
        shown = [reflectd(box, *args).stdout for args in ASKED]
        for folder in (box.project, below):
            words = ("ses_here", "A login page", "1 round", "not done HIGH")
            assert "ses_there" not in said(reflectd(box, "history", cwd=folder), 0, *words)
    assert all(all(name in text for name in ("ses_here", "ses_there")) for text in shown[:2])
    assert "ses_there" in shown[2]
    assert "ses_here" not in shown[2]
    assert [done.stdout for args in ASKED if (done := reflectd(box, *args))] == shown
    said(reflectd(box, "history", "nobody"), 2, "nobody")
    said(reflectd(box, "history", "ses_"), 2, "ses_here", "ses_there")


ASKED = (["history", "--all"], ["history", "--all", "--days", "400"], ["history", "ses_t"])


def test_history_as_json(box: Sandbox) -> None:
    """Each round with its verdict, the outcome of its feedback, and the file of its case."""
    with Daemon(box) as daemon:
        judged(box, daemon, "ses_here")
        found = json.loads(reflectd(box, "history", "--json", "--days", "2").stdout)
        (session,) = found["sessions"]
        (one,) = session["rounds"]
        assert (found["directory"], found["more"]) == (str(box.project), False)
        assert (session["session"], session["rounds_total"]) == ("ses_here", 1)
        assert (one["round"], one["state"], one["order"]["status"]) == (1, "incomplete", "done")
        assert one["case"] == str(case_files(box, "ses_here")[0])


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["--days", "0"], "from 1 to"),
        (["--days", "moon"], "no whole number"),
        (["--limit", "0"], "from 1 to"),
        (["--dir", "x", "--all"], "not allowed"),
    ],
)
def test_wrong_arguments_are_named(box: Sandbox, args: list[str], words: str) -> None:
    """Exit code 2, and what would be right."""
    said(reflectd(box, "history", *args), 2, words)


def test_every_round_can_be_explained_and_disputed(box: Sandbox) -> None:
    """``why`` and ``dispute`` with ``--round``: feedback that was wrong stays within reach
    when the task has gone on, also without a daemon.
    """
    with Daemon(box) as daemon:
        play(box, daemon, 1, "Add a login page with tests")
        play(box, daemon, 2, "Now add a page for orders with tests")
        first, second = case_files(box, "ses_two")
        assert "Before that" in said(
            reflectd(box, "why", "--round", "2", "--full"), 0, "round 2, ", "page for orders"
        )
        text = said(
            reflectd(box, "why", "ses_t", "--round", "1", "--full"), 0, "round 1, ", "login page", str(first)
        )
        assert "orders" not in text
        assert "Before that" not in text
        found = json.loads(reflectd(box, "why", "--round", "1", "--json").stdout)
        assert (found["case_file"], found["rounds_total"]) == (str(first), 2)
        said(reflectd(box, "why", "--round", "3"), 2, "ses_two has 2 rounds", "no round 3")
        said(reflectd(box, "why", "--round", "-7"), 2, "no round -1")
        said(reflectd(box, "dispute", "--round", "1", "--should-be", "complete"), 0, first.name, "login page")
        said(reflectd(box, "dispute", "--round", "3", "--should-be", "complete"), 2, "no round 3")
    said(reflectd(box, "why", "--round", "1", "--full"), 0, "round 1, ", "login page")
    said(reflectd(box, "dispute", "ses_two", "--round", "2", "--should-be", "complete"), 0, second.name)
    said(reflectd(box, "why", "--round", "3"), 2, "no round 3")
    first.unlink()
    gone = reflectd(box, "dispute", "--round", "1", "--should-be", "complete")
    said(gone, 2, "no saved case", "reflectd why")
    said(reflectd(box, "why", "--round", "1", "--full"), 0, "There is no case file")


def play(box: Sandbox, daemon: Daemon, number: int, request: str) -> None:
    """One more task of the session ``ses_two``, judged incomplete; its case is saved."""
    host_says = unfinished(box.project, request=request)

    def answer(order: dict[str, Any]) -> dict[str, Any] | None:
        """With the ids of this task and turn."""
        text = json.dumps(host_says(order)).replace('"msg_2"', f'"msg_{number}_end"')
        found: dict[str, Any] | None = json.loads(text.replace('"msg_1"', f'"msg_{number}"'))
        return found

    with WireHost(box.socket, box.project, answer, f"host-{number}") as host:
        host.send(host.turn("ses_two", f"msg_{number}"))
        wait_until(lambda: len(case_files(box, "ses_two")) == number, "a case", daemon.log)

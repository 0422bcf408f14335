"""``reflectd playbook report``: what the numbers of a real daemon's database tell."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

from daemon.clock import SystemClock
from daemon.core.compose import Offer, compose
from daemon.core.verdict import FinalState, Verdict
from daemon.store import learning, verdicts
from daemon.store.db import Database
from harness.machine.reflectd import Daemon
from harness.machine.sandbox import Sandbox
from tests.support.machine.command_line import reflectd, said


def lived(box: Sandbox) -> None:
    """Forty sessions: half were given a point, all judged; a second verdict of a task counts for nothing."""
    box.state.mkdir(exist_ok=True)
    clock = SystemClock()
    db, now = Database(box.state / "reflectd.sqlite3", clock.now_ms), clock.now_ms()
    project = str(Path(box.project).resolve())
    offer = Offer("point:pat-001:x", "point", "[pat-001] x", directory=project, name="pat-001")
    rows = [learning.tag(project, "pat-001", "given_0", "helpful", now, "why")]
    for i in range(40):
        held = i % 2 == 1
        session = f"{'held' if held else 'given'}_{i}"
        first: FinalState = "incomplete" if held else "complete"
        rows += [
            learning.hold_out(session, project, now)
            if held
            else learning.give(session, "start", now, compose([offer], 100)),
            verdicts.add(Verdict(session, "t", "1", first, now), project),
            verdicts.add(Verdict(session, "t", "2", "complete", now + 1), project),
        ]
    rows.append(learning.cite("given_0", ["pat-001"]))
    asyncio.run(db.commit(*rows))
    db.close()


def test_what_the_points_were_worth(box: Sandbox) -> None:
    """Counts of each point, both sides with their intervals, and a claim that the numbers carry."""
    said(reflectd(box, "playbook", "report"), 1, "no daemon answers")
    with Daemon(box):
        nothing = ("no session was given a point yet", "no task was judged", "no session was held out")
        said(reflectd(box, "playbook", "report"), 0, *nothing)
    lived(box)
    with Daemon(box):
        shown = said(reflectd(box, "playbook", "report"), 0)
        assert "pat-001   given to 20 sessions, cited in 1, helped in 1, harmed in 0" in shown
        assert "with points  20 of 20 tasks complete at their first verdict (84 to 100 %)" in shown
        assert "without      0 of 20 tasks complete at their first verdict (0 to 16 %)" in shown
        assert "sessions with points were complete at their first verdict more often" in shown
        found = json.loads(reflectd(box, "playbook", "report", "--json").stdout)
        assert (found["with_points"]["tasks"], found["held_out"]["complete"]) == (20, 0)

"""What one line tells of a session, with a real daemon, a simulated host and a scripted judge."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from daemon.core.session import Session
from daemon.engine.status import line
from tests.support.hosts.world import COMPLETE, INCOMPLETE, QUESTION, World

if TYPE_CHECKING:
    pass


def told(w: World, session: str = "", directory: str = "") -> tuple[str, int, int]:
    """The state, the round, and how many sessions wait."""
    report = w.sim.daemon.status.line(session, directory or str(w.workspace))
    return report["state"], report["round"], report["waiting"]


async def test_the_line_follows_a_session(w: World) -> None:
    """Nothing known, working, asking, judging, sent back, working, complete; each in one word."""
    assert told(w) == ("none", 0, 0)
    await w.host.create("ses_a")
    assert told(w) == ("idle", 0, 0)
    await w.host.types("ses_a")
    assert told(w) == ("working", 0, 0)
    await w.host.emit("permission.asked", sessionID="ses_a", id="per_1")
    assert told(w) == ("waiting", 0, 1)
    await w.host.emit("permission.replied", sessionID="ses_a", requestID="per_1")
    w.llm.add(INCOMPLETE, COMPLETE)
    w.llm.hold = asyncio.Event()
    await w.host.works("ses_a")
    await w.until_asked()
    assert told(w) == ("judging", 0, 0)
    await w.answered()
    assert told(w)[1] == 1, "it was sent back once"
    await w.host.busy("ses_a")
    assert told(w) == ("working", 1, 0)
    await w.goes_on(says="Now it is done.")
    assert told(w) == ("complete", 1, 0)


async def test_who_waits_is_counted_over_all_folders(w: World) -> None:
    """A session whose turn ended with a question waits, until a person types or it is switched off."""
    for session in ("ses_a", "ses_b"):
        w.llm.add(QUESTION)
        await w.turn(session, says="Which of the two shall I take, the first or the second?")
    assert told(w, "ses_a") == ("waiting", 0, 2)
    assert told(w, directory="/elsewhere") == ("none", 0, 2)
    await w.host.types("ses_a", "The first.")
    assert told(w, "ses_a") == ("working", 0, 1)
    await w.sim.daemon.engine.intake.switch(on=False, session="ses_b", directory="")
    assert told(w, "ses_b") == ("off", 0, 0)
    await w.sim.daemon.engine.intake.switch(on=False, session="", directory=str(w.workspace))
    assert told(w, "ses_a")[0] == "off"


async def test_a_stuck_agent_is_told_of(w: World) -> None:
    """As long as it works on the same task and the person was told that it seems stuck."""
    world = w.sim.daemon.world
    await w.host.types("ses_a")
    for stuck, state in (({"ses_a": "it repeats itself"}, "stuck"), ({"ses_b": "silent"}, "working")):
        assert line(world, stuck, "ses_a", "")["state"] == state


async def test_a_folder_has_the_newest_session_in_it_or_above(w: World) -> None:
    """Those below count as in it; beyond that the nearest folder above; sub-agents and the deleted never."""
    sessions, db = w.sim.daemon.world.sessions, w.sim.daemon.world.db
    stored = [
        Session(id="ses_root", directory="/p"),
        Session(id="ses_deep", directory="/p/a/deep"),
        Session(id="ses_a", directory="/p/a"),
        Session(id="ses_beside", directory="/p/ab"),
        Session(id="ses_child", directory="/p/a", parent="ses_a"),
        Session(id="ses_judge", directory="/p/a", judge=True),
        Session(id="ses_gone", directory="/p/a", deleted=True),
    ]
    for n, s in enumerate(stored):
        await db.commit(sessions.statement({s.id: s}, w.clock.now_ms() + n))
    found = {
        "/p/a": "ses_a",
        "/p/a/deep": "ses_deep",
        "/p/a/deep/er": "ses_deep",
        "/p/a/other": "ses_a",
        "/p/ab/x": "ses_beside",
        "/p/c": "ses_root",
        "/p": "ses_beside",
        "/": "ses_beside",
        "/elsewhere": "",
        "": "ses_beside",
    }
    assert {place: sessions.newest_in(place) for place in found} == found


async def test_a_session_is_named_by_the_beginning_of_its_id(w: World) -> None:
    """Unknown is no error, and of several none is shown."""
    for session in ("ses_one", "ses_two"):
        await w.host.create(session)
    report = w.sim.daemon.status.line("ses_o", "")
    assert (report["session"], report["host"], report["directory"]) == (
        "ses_one",
        "opencode",
        str(w.workspace),
    )
    assert told(w, "nobody")[0] == "none"
    assert told(w, "ses_")[0] == "several"

"""State and decisions reach the database together or not at all, whatever else is stored meanwhile."""

from __future__ import annotations

import asyncio
import errno
import sqlite3
import threading
from pathlib import Path

import pytest

from daemon.core.errors import Unavailable
from daemon.core.session import Session, settled
from daemon.core.verdict import Verdict
from daemon.store import verdicts
from daemon.testing import FakeClock, ScriptedLLM
from tests.support.hosts.opencode_sim import SimDaemon
from tests.support.hosts.world import COMPLETE, INCOMPLETE, World

DECIDED = settled(Session(id="decided", task="t"), "turn", "incomplete", "judged")
VERDICT = Verdict("decided", "t", "turn", "incomplete", 1)


def stored(sim: SimDaemon) -> dict[str, str]:
    """Phase of each stored session."""
    return dict(sim.daemon.db.read("SELECT id, phase FROM sessions"))


def refuse_verdicts(sim: SimDaemon) -> None:
    """The database works, and refuses the verdict of one session."""
    with sqlite3.connect(sim.daemon.paths.database) as c:
        c.execute(
            "CREATE TRIGGER refused BEFORE INSERT ON verdicts WHEN NEW.session = 'decided' "
            "BEGIN SELECT raise(ABORT, 'refused'); END"
        )
    c.close()


@pytest.mark.shows("I21", "I42")
async def test_another_sessions_flush_never_stores_a_decision_without_its_verdict(sim: SimDaemon) -> None:
    """What another session stores in the same moment goes in, the decided state does not."""
    refuse_verdicts(sim)
    persist, sessions = sim.daemon.engine.commit, sim.daemon.world.sessions
    before = Session(id="decided", task="t", phase="judging")
    sessions.put(before)
    await persist.flush()
    decided = persist.change(DECIDED, verdicts.add(VERDICT, "/p"), undo=lambda: sessions.put(before))
    sessions.put(Session(id="other", task="t", phase="open"))
    await persist.flush()
    with pytest.raises(Unavailable):
        await decided
    assert stored(sim) == {"decided": "judging", "other": "open"}
    assert sessions.get("decided") == before
    await persist.flush()
    assert stored(sim)["decided"] == "judging", "nor does a later flush store it"


@pytest.mark.shows("I42")
async def test_a_refused_decision_takes_no_other_with_it(sim: SimDaemon) -> None:
    """Of two decisions in one moment the one that the database refuses fails alone."""
    refuse_verdicts(sim)
    persist, sessions = sim.daemon.engine.commit, sim.daemon.world.sessions
    before = Session(id="decided", task="t", phase="judging")
    good = settled(Session(id="good", task="t"), "turn", "complete", "judged")
    bad = persist.change(DECIDED, verdicts.add(VERDICT, "/p"), undo=lambda: sessions.put(before))
    fine = persist.change(good, verdicts.add(Verdict("good", "t", "turn", "complete", 1), "/p"))
    with pytest.raises(Unavailable):
        await bad
    await fine
    assert stored(sim)["good"] == "complete"
    assert sim.daemon.db.read("SELECT session FROM verdicts") == [("good",)]


@pytest.mark.shows("I21", "I42")
async def test_decisions_made_while_a_refused_one_is_sorted_out(sim: SimDaemon) -> None:
    """At every moment, seen from outside: no decided state without its verdict."""
    refuse_verdicts(sim)
    persist, sessions = sim.daemon.engine.commit, sim.daemon.world.sessions
    before = Session(id="decided", task="t", phase="judging")
    torn, work = list[str](), list[asyncio.Future[None]]()
    with sqlite3.connect(f"file:{sim.daemon.paths.database}?mode=ro", uri=True) as c:
        for n in range(30):
            sessions.put(before)
            bad = persist.change(DECIDED, verdicts.add(VERDICT, "/p"), undo=lambda: sessions.put(before))
            k = 0
            while not bad.done():
                if k < 5:
                    s = settled(Session(id=f"s{n}-{k}", task="t"), "turn", "complete", "judged")
                    row = Verdict(s.id, "t", "turn", "complete", 1)
                    work.append(persist.change(s, verdicts.add(row, "/p")))
                    k += 1
                await asyncio.sleep(0.0005)
                torn += [i for (i,) in c.execute(TORN)]
            with pytest.raises(Unavailable):
                await bad
    c.close()
    await asyncio.gather(*work)
    assert torn == []
    assert "decided" not in [s for s, phase in stored(sim).items() if phase == "incomplete"]


@pytest.mark.shows("I21")
async def test_state_is_never_stored_ahead_of_its_verdict(sim: SimDaemon) -> None:
    """Seen from outside at every moment, with other sessions being stored all the time."""
    persist, sessions = sim.daemon.engine.commit, sim.daemon.world.sessions
    torn: list[str] = []
    with sqlite3.connect(f"file:{sim.daemon.paths.database}?mode=ro", uri=True) as c:
        for n in range(200):
            s = settled(Session(id=f"s{n}", task="t"), "turn", "complete", "judged")
            work = [persist.change(s, verdicts.add(Verdict(s.id, "t", "turn", "complete", n + 1), "/p"))]
            for other in range(3):
                sessions.put(Session(id=f"other{other}", task=str(n)))
                work.append(asyncio.ensure_future(persist.flush()))
                await asyncio.sleep(0)
                torn += [i for (i,) in c.execute(TORN)]
            await asyncio.gather(*work)
    c.close()
    assert torn == []


async def test_events_do_not_wait_for_the_sync_of_a_decision(tmp_path: Path) -> None:
    """No disk sync on the host's path. The decision is over only when it is synced; a disk that refuses fails
    it, and the state stays what the database has.
    """
    sim = SimDaemon(tmp_path, FakeClock(), ScriptedLLM())
    await sim.start()
    await sim.settle()
    persist, sessions, syncs = sim.daemon.engine.commit, sim.daemon.world.sessions, sim.daemon.db._syncs
    goes_on, begun = threading.Event(), threading.Event()

    def refuses(_: int) -> None:
        begun.set()
        assert goes_on.wait(60)
        raise OSError(errno.EIO, "Input/output error")

    syncs._sync = refuses
    undone = list[str]()
    decided = persist.change(DECIDED, verdicts.add(VERDICT, "/p"), undo=lambda: undone.append("undone"))
    await asyncio.to_thread(begun.wait, 60)
    sessions.put(Session(id="other", task="t", phase="open"))
    await persist.flush()
    assert stored(sim) == {"decided": "incomplete", "other": "open"}
    assert not decided.done()
    goes_on.set()
    with pytest.raises(Unavailable, match="synced"):
        await decided
    assert (undone, sessions.get("decided")) == ([], DECIDED)
    await sim.stop()


TORN = (
    "SELECT id FROM sessions WHERE phase = 'complete' "
    "AND NOT EXISTS (SELECT 1 FROM verdicts WHERE verdicts.session = sessions.id)"
)


@pytest.mark.shows("I21", "I42")
async def test_killed_while_a_decision_waits_for_the_disk(tmp_path: Path) -> None:
    """Nothing was stored and nothing was sent; after the restart the turn is judged again."""
    async with World(tmp_path).running() as w:
        await w.host.create("ses_a")
        await w.host.create("ses_b")
        await w.host.types("ses_a")
        await w.sim.settle()
        w.llm.hold = asyncio.Event()
        w.llm.add(INCOMPLETE)
        await w.host.works("ses_a")
        await w.until_asked()
        lock = sqlite3.connect(w.sim.daemon.paths.database, isolation_level=None)
        lock.execute("BEGIN IMMEDIATE")
        w.llm.hold.set()
        await w.until(lambda: w.sim.daemon.engine.commit._active)
        w.host.deaf = True
        typing = asyncio.create_task(w.host.types("ses_b"))
        await asyncio.sleep(0)
        await w.host.disconnect()
        typing.cancel()
        await asyncio.gather(typing, return_exceptions=True)
        killed = asyncio.create_task(w.sim.kill())
        await asyncio.sleep(0)
        lock.execute("ROLLBACK")
        lock.close()
        await killed
        w.llm.hold = None
        w.llm.add(COMPLETE)
        w.host.deaf = False
        w.host.prompts.clear()
        await w.host.connect(await w.sim.start())
        await w.sim.settle()
        assert w.verdict()["state"] in {"complete", "incomplete"}
        rows = w.sim.daemon.db.read("SELECT turn, state FROM verdicts WHERE session = 'ses_a'")
        assert len(rows) == 1

"""Verdict files when many wait at once: whose comes first, and in which order."""

from __future__ import annotations

import asyncio
import json
import os
import threading
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from daemon.core.session import Session
from daemon.core.verdict import Verdict
from daemon.engine.filing import AT_ONCE, CASES_WAITING, READ_MS, Filing
from daemon.files.verdict import Judging, VerdictFiles
from daemon.judge.decide import Decision
from daemon.judge.flow import Opinion
from daemon.store import verdicts
from daemon.testing import make_case
from tests.support.hosts.opencode_sim import SimDaemon

BACKLOG = 300
OPINION = Opinion(None, "nothing was asked")


def said(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text())
    return found


@pytest.mark.shows("I21", "I22")
async def test_a_judged_turn_passes_those_that_failed(sim: SimDaemon, tmp_path: Path) -> None:
    """A host that dies with hundreds of open turns does not hold up another session's file."""
    work, filing = tmp_path / "work", sim.daemon.engine.filing
    for n in range(BACKLOG):
        filing.final(Verdict(f"ses_{n:05d}", "t", "u", "error", 1, reason="its host went away"), str(work))
    filing.begun(Judging("mine", "t", "u", 2), str(work))
    mine = work / ".reflection" / "verdict_mine.json"
    while not mine.exists():
        await asyncio.sleep(0.001)
    assert len(list(mine.parent.glob("verdict_ses_?????.json"))) < BACKLOG // 2
    await filing.drain()
    assert len(list(mine.parent.glob("verdict_ses_?????.json"))) == BACKLOG
    assert not filing.waiting
    assert sim.daemon.world.verdicts.unfiled() == []


@pytest.mark.shows("I21")
async def test_the_newest_of_a_session_is_what_stays(sim: SimDaemon, tmp_path: Path) -> None:
    """Of what waits for one session the newest is written, whatever its lane, and nothing after it."""
    work, filing = tmp_path / "work", sim.daemon.engine.filing
    for n in range(50):
        filing.begun(Judging("mine", "t", f"turn{n}", 2 * n + 1), str(work))
        state = "skipped" if n % 2 else "complete"
        filing.final(Verdict("mine", "t", f"turn{n}", state, 2 * n + 2), str(work))
        if n % 7 == 0:
            await asyncio.sleep(0.002)
    await filing.drain()
    assert said(work / ".reflection" / "verdict_mine.json")["turn"] == "turn49"


@pytest.mark.shows("I22")
async def test_a_verdict_that_a_new_task_made_stale_is_not_written_again(
    sim: SimDaemon, tmp_path: Path
) -> None:
    """A person types before the file is there; a later recovery does not bring the old verdict back."""
    work, filing = tmp_path / "work", sim.daemon.engine.filing
    old = Verdict("mine", "t", "turn", "complete", sim.clock.ms)
    sim.daemon.world.sessions.put(Session(id="mine", task="t", directory=str(work)))
    await sim.daemon.db.commit(verdicts.add(old, str(work)))
    filing.final(old, str(work))
    filing.outdated("mine")
    await filing.drain()
    stale = said(work / ".reflection" / "verdict_mine.json")
    assert filing.recover() == 0
    unfiled = replace(old, turn="turn2", at=old.at + 1)
    await sim.daemon.db.commit(verdicts.add(unfiled, str(work)))
    sim.daemon.world.sessions.put(Session(id="mine", task="t2", directory=str(work)))
    assert filing.recover() == 1
    await filing.drain()
    await sim.settle()
    found = said(work / ".reflection" / "verdict_mine.json")
    assert (found["complete"], found["timestamp"]) == (True, 0) == (stale["complete"], stale["timestamp"])
    assert sim.daemon.world.verdicts.unfiled() == []


@pytest.mark.shows("I22")
async def test_an_alias_is_marked_after_the_verdict_that_wrote_it(sim: SimDaemon, tmp_path: Path) -> None:
    """The agent goes on with its feedback while the disk is slow: no alias stays fresh."""
    work, filing = tmp_path / "work", sim.daemon.engine.filing
    session = "ses_0123456789"
    given = Verdict(session, "t", "u", "incomplete", sim.clock.ms - READ_MS, will_prompt=True)
    filing.final(given, str(work))
    filing.went_on(session)
    await filing.drain()
    assert said(work / ".reflection" / f"verdict_{session}.json")["timestamp"] == given.at
    assert said(work / ".reflection" / f"verdict_{session[:8]}.json")["timestamp"] == 0


class Disks:
    """Folders that do not exist, so that their files go to another place, which hangs for one of them."""

    def __init__(self, sim: SimDaemon, folder: Path) -> None:
        self.folder, self.answers = folder, threading.Event()
        files = VerdictFiles(self.fallback, folder)
        self.filing = Filing(sim.daemon.world, files, hung_s=0.05)
        self.faults = sim.daemon.world.health.faults

    def fallback(self, directory: str) -> Path:
        if directory.startswith("/dead"):
            self.answers.wait()
        return self.folder / directory.strip("/")

    def has(self, directory: str, session: str) -> bool:
        return (self.folder / directory.strip("/") / f"verdict_{session}.json").exists()


@pytest.mark.shows("I21", "I22", "I45")
async def test_projects_on_dead_disks_stop_no_other(sim: SimDaemon, tmp_path: Path) -> None:
    """More dead disks than are written to at once: each fault has a name, other projects' files are written,
    and the end waits for no disk. When the disks answer, their files are written and the faults are over.
    """
    disks = Disks(sim, tmp_path)
    dead = [f"/dead{n}" for n in range(2 * AT_ONCE)]
    for n, folder in enumerate(2 * dead):
        disks.filing.final(Verdict(f"dead{n}", "t", "u", "complete", n + 1), folder)
    disks.filing.final(Verdict("mine", "t", "u", "complete", 99), "/fine")
    while len(sim.daemon.world.health.faults) < len(dead):
        await asyncio.sleep(0.001)
    await disks.filing.drain()
    assert disks.has("/fine", "mine")
    assert sorted(sim.daemon.world.health.faults) == sorted(f"files in {folder}" for folder in dead)
    assert "/dead0" in sim.daemon.world.health.text
    assert not disks.filing.waiting
    disks.answers.set()
    written = {folder: f"dead{n}" for n, folder in enumerate(2 * dead)}
    async with asyncio.timeout(50):  # a slow machine may seem dead once more
        while sim.daemon.world.health.faults or not all(disks.has(*each) for each in written.items()):
            await asyncio.sleep(0.001)
    await disks.filing.drain()
    disks.filing.close()


@pytest.mark.shows("I44")
async def test_cases_that_wait_are_bounded_and_counted(sim: SimDaemon, tmp_path: Path) -> None:
    """Of four thousand cases at once the newest wait, the others are counted and told."""
    disks = Disks(sim, tmp_path)
    disks.filing.begun(Judging("s", "t", "u", 1), "/dead")
    while not sim.daemon.world.health.faults:
        await asyncio.sleep(0.001)
    case = make_case(session="s")
    for n in range(4_000):
        s = Session(id=f"s{n % 5}", directory="/dead")
        verdict = Verdict(s.id, "t", f"u{n}", "complete", n + 1)
        disks.filing.case(case, OPINION, Decision(s, verdict, ()))
    assert disks.filing.status() == {"waiting": CASES_WAITING, "cases_dropped": 4_000 - CASES_WAITING}
    assert "3950 evaluations were not saved" in sim.daemon.world.health.faults["cases"]
    disks.answers.set()
    while disks.filing.status()["waiting"]:
        await asyncio.sleep(0.001)
    await disks.filing.drain()
    assert "cases" not in sim.daemon.world.health.faults
    newest = sorted(int(p.stem.split("_")[1]) for p in (tmp_path / "dead").glob("s?_*.json"))
    assert newest == list(range(4_000 - CASES_WAITING + 1, 4_001))
    disks.filing.close()


@pytest.mark.shows("I21", "I22")
async def test_a_turn_that_was_over_when_the_daemon_was_killed_is_not_left_judging(
    sim: SimDaemon, tmp_path: Path
) -> None:
    """A person types while a turn is judged; killed before the file was written anew, the next daemon writes
    it.
    """
    work, world = tmp_path / "work", sim.daemon.world
    world.sessions.put(Session(id="mine", task="t2", directory=str(work)))
    await sim.daemon.engine.commit.flush()
    sim.daemon.engine.filing.begun(Judging("mine", "t", "turn", sim.clock.ms), str(work))
    await sim.daemon.engine.filing.drain()
    await sim.daemon.db.commit(verdicts.add(Verdict("mine", "t", "turn", "skipped", sim.clock.ms), str(work)))
    await sim.kill()
    await sim.start()
    await sim.settle()
    found = said(work / ".reflection" / "verdict_mine.json")
    assert (found["state"], found["timestamp"]) == ("skipped", 0)
    assert sim.daemon.world.verdicts.unfiled() == []


@pytest.mark.shows("I42")
async def test_temporary_files_of_a_killed_daemon_are_removed(sim: SimDaemon, tmp_path: Path) -> None:
    """At the next start, in the folders used last, and nothing else is."""
    work = tmp_path / "work"
    await sim.daemon.db.commit(
        verdicts.add(Verdict("mine", "t", "turn", "complete", sim.clock.ms), str(work))
    )
    await sim.settle()
    sim.daemon.engine.filing.final(Verdict("mine", "t", "turn", "complete", sim.clock.ms), str(work))
    await sim.daemon.engine.filing.drain()
    elsewhere = sim.daemon.paths.fallback_reflection(str(work))
    elsewhere.mkdir(parents=True)
    inner = sim.daemon.paths.state_dir / "playbooks" / "one"
    inner.mkdir(parents=True)
    kept = [work / ".reflection" / name for name in (".reflectd-notes.tmp", "x.tmp", "config.toml")]
    left = [
        folder / f".reflectd-{n:016x}.tmp"
        for n, folder in enumerate((work / ".reflection", elsewhere, sim.daemon.paths.state_dir, inner))
    ]
    for path in (*kept, *left):
        path.write_text("half")
        os.utime(path, (0, 0))
    new = sim.daemon.paths.state_dir / f".reflectd-{9:016x}.tmp"  # somebody writes it right now
    new.write_text("half")
    await sim.kill()
    await sim.start()
    await sim.settle()
    assert [p for p in left if p.exists()] == []
    assert all(p.exists() for p in (*kept, new))

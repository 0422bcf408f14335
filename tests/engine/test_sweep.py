"""Judge sessions that a crash left behind: swept at a hello, and never one that runs (I37)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.hosts.opencode_sim import SimDaemon, SimHost

if TYPE_CHECKING:
    pass

YOUNG_MS, OLD_MS = 60_000, 700_000


def host_of(sim: SimDaemon, name: str, folder: str = "work") -> SimHost:
    return SimHost(str(sim.folder / folder), sim.clock, name)


async def judged_in(sim: SimDaemon, host: SimHost, session: str) -> None:
    """A judge session of ``host`` is announced."""
    await host.connect(sim.daemon)
    await host.emit("judge.created", sessionID=session)
    await sim.settle()


async def swept_by(sim: SimDaemon, host: SimHost) -> list[list[str]]:
    """The sessions that ``host`` is told to delete when it says hello."""
    before = len(host.orders)
    await host.connect(sim.daemon)
    await sim.settle()
    return [o["data"]["sessions"] for o in host.orders[before:] if o["kind"] == "delete"]


@pytest.mark.shows("I37")
async def test_the_host_that_is_gone(sim: SimDaemon) -> None:
    """Killed while its judge ran; the next host in that folder deletes what it left, once."""
    first, second = host_of(sim, "first"), host_of(sim, "second")
    await judged_in(sim, first, "ses_j")
    await first.disconnect()
    assert await swept_by(sim, second) == [["ses_j"]]
    assert await swept_by(sim, second) == []
    await second.disconnect()


@pytest.mark.shows("I37")
async def test_the_host_that_is_there(sim: SimDaemon) -> None:
    """Another process of that folder must not delete what runs; after ten minutes nothing runs."""
    first, second = host_of(sim, "first"), host_of(sim, "second")
    await judged_in(sim, first, "ses_j")
    sim.clock.ms += YOUNG_MS
    assert await swept_by(sim, second) == []
    sim.clock.ms += OLD_MS
    assert await swept_by(sim, second) == [["ses_j"]]
    await first.disconnect()
    await second.disconnect()


@pytest.mark.shows("I37")
async def test_the_daemon_that_is_gone(sim: SimDaemon) -> None:
    """Nobody waits for what an earlier daemon asked for, although its host lives on."""
    first = host_of(sim, "first")
    await judged_in(sim, first, "ses_j")
    await first.disconnect()
    await sim.kill()
    sim.clock.ms += 1
    await sim.start()
    assert await swept_by(sim, first) == [["ses_j"]]
    await first.disconnect()


@pytest.mark.shows("I37")
async def test_other_folders_and_deleted_ones(sim: SimDaemon) -> None:
    """Only this folder's, and only what the host never reported as deleted."""
    first, second = host_of(sim, "first"), host_of(sim, "second")
    elsewhere = host_of(sim, "third", "other")
    await judged_in(sim, first, "ses_j")
    await judged_in(sim, elsewhere, "ses_k")
    await first.emit("session.deleted", sessionID="ses_j")
    await sim.settle()
    await first.disconnect()
    await elsewhere.disconnect()
    assert await swept_by(sim, second) == []
    await second.disconnect()

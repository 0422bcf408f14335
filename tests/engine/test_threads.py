"""Long texts are read beside the loop, and threads that wait for a dead disk hold up nothing."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
import time
from pathlib import Path

import msgspec
import pytest

from daemon.core.errors import BadReply
from daemon.engine.intake import Wire
from daemon.engine.threads import LARGE, beside, on_disk
from daemon.server import routes
from harness.machine.sandbox import REPO
from tests.engine.features.test_stuck import answer as stuck_answer
from tests.engine.hosts.test_claude_code import World as ClaudeWorld
from tests.support.hosts.opencode_sim import bash
from tests.support.hosts.world import World

LONG = b'"%s' % (b"\\t" * LARGE)  # no JSON: it is looked at twice


@pytest.mark.shows("I53")
async def test_a_long_text_is_read_by_a_thread() -> None:
    """A short one is not: that would cost more than it takes."""
    loop = threading.get_ident()
    assert await beside(LARGE, threading.get_ident) == loop
    assert await beside(LARGE + 1, threading.get_ident) != loop


@pytest.mark.shows("I35")
async def test_what_is_wrong_with_a_long_text_is_told() -> None:
    """The error reaches whoever asked."""
    with pytest.raises(ZeroDivisionError):
        await beside(LARGE + 1, lambda: 1 / 0)


@pytest.mark.shows("I53")
@pytest.mark.parametrize("kind", [routes.Hello, routes.Events, routes.Result, routes.Ask, routes.Switch])
async def test_the_loop_goes_on_while_a_body_is_decoded(kind: type) -> None:
    """A body of megabytes holds up nobody else, of whatever kind it is."""
    reading = asyncio.create_task(routes.read(LONG, kind))
    await asyncio.sleep(0)
    assert not reading.done()
    with pytest.raises(BadReply):
        await reading


@pytest.mark.shows("I53")
async def test_the_loop_goes_on_while_a_hook_is_decoded(tmp_path: Path) -> None:
    """A prompt or an answer of megabytes: other sessions' hooks are answered meanwhile."""
    world = ClaudeWorld(tmp_path)
    claude = (await world.sim.start()).engine.hooked["claude-code"]
    reading = asyncio.create_task(claude.hook("Stop", LONG, {}, strict=False))
    await asyncio.sleep(0)
    assert not reading.done()
    with pytest.raises(BadReply):
        await reading
    await world.sim.stop()


@pytest.mark.shows("I53")
async def test_the_loop_goes_on_while_a_batch_is_read(tmp_path: Path) -> None:
    """Many events with long fields; each counts once, also when the batch is told again meanwhile."""
    async with World(tmp_path).running() as world:
        daemon = world.sim.daemon
        intake, instance = daemon.engine.intake, daemon.engine.instances.get(world.host.id)
        assert instance is not None
        before, seq = intake.events, instance.seq
        batch = []
        for n in range(1, 101):
            info = {"id": f"ses_{n}", "title": "t" * 4_000, "directory": world.host.directory}
            data = msgspec.json.encode({"sessionID": info["id"], "info": info})
            batch.append(Wire(seq + n, 1, "session.created", msgspec.Raw(data)))
        told = [asyncio.create_task(intake.accept(instance, batch)) for _ in range(2)]
        await asyncio.sleep(0)
        assert (intake.events, instance.seq) == (before, seq)
        assert await asyncio.gather(*told) == [seq + 100] * 2
        assert (intake.events, instance.seq) == (before + 100, seq + 100)


async def _longest_s(done: asyncio.Event) -> float:
    """Processor time of the loop's own thread between two rounds of it, at most."""
    longest, before = 0.0, time.thread_time()
    while not done.is_set():
        await asyncio.sleep(0)
        now = time.thread_time()
        longest, before = max(longest, now - before), now
    return longest


@pytest.mark.shows("I53")
async def test_the_loop_goes_on_while_telling_texts_are_searched(tmp_path: Path) -> None:
    """A turn and its calls with a telling name in each row, judged and then looked at as a silent one."""
    async with World(tmp_path).running() as world:
        rows = "password | x\n" * 10_000
        await world.host.types("ses_a", rows)
        world.llm.add("no verdict", "no verdict")
        done = asyncio.Event()
        watch = asyncio.create_task(_longest_s(done))
        await world.goes_on(says=f"{rows}\nNow I will change the", tools=[bash(rows, output=rows)] * 3)
        world.llm.add(stuck_answer("genuinely_stuck"))
        await world.sim.later(31)
        done.set()
        assert await watch < 0.05
        assert len(world.nudges) == 1


@pytest.mark.shows("I35", "I45")
async def test_a_disk_that_hangs_holds_up_no_other() -> None:
    """Each piece has its own thread; the one who asked learns what goes wrong."""
    gate = threading.Event()
    hung = [on_disk(gate.wait) for _ in range(20)]
    assert await on_disk(lambda: 7) == 7
    assert not any(piece.done() for piece in hung)
    gate.set()
    assert await asyncio.gather(*hung) == [True] * 20

    def fails() -> None:
        raise OSError("no")

    with pytest.raises(OSError, match="no"):
        await on_disk(fails)


ENDING = """
import asyncio, threading
from daemon.engine.threads import on_disk

async def main():
    on_disk(threading.Event().wait)
    await asyncio.sleep(0.01)

asyncio.run(main())
print("ended")
"""


@pytest.mark.shows("I45")
def test_a_process_ends_while_a_disk_hangs() -> None:
    """The thread that waits for a dead disk does not keep the process alive."""
    ended = subprocess.run(
        [sys.executable, "-c", ENDING], check=False, capture_output=True, text=True, timeout=120, cwd=REPO
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "ended\n", "")

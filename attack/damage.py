"""Every kind of damage to every column of the database: the daemon starts and answers."""

from __future__ import annotations

import asyncio
import random
import shutil
import tempfile
from pathlib import Path

from attack.outcome import SHOWN, Deadline, Outcome
from tests.store.test_damage import harms, live, tell_a_story


def run(seed: int, deadline: Deadline) -> Outcome:
    """All that the test takes a sample of, in an order of its own, as far as the time goes."""
    with tempfile.TemporaryDirectory(prefix="rda-") as name:
        return asyncio.run(_attacked(Path(name), seed, deadline))


async def _attacked(folder: Path, seed: int, deadline: Deadline) -> Outcome:
    (folder / "story").mkdir()
    story = await tell_a_story(folder / "story")
    every = harms(story)
    random.Random(seed).shuffle(every)
    found = Outcome("damage", len(every))
    for what in every:
        if deadline.over or len(found.findings) >= SHOWN:
            break
        here = folder / str(found.done)
        here.mkdir()
        told = await live(here, story, what)
        found.findings += [f"{what.table}.{what.column}, {what.value}: {line}" for line in told]
        found.done += 1
        shutil.rmtree(here)
    return found

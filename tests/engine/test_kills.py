"""kill -9 at random moments while many sessions work: nothing is lost, nothing is done twice (I21, I42).

``python -m tests.engine.test_kills FIRST COUNT`` runs more of them, each with three kills.
"""

from __future__ import annotations

import asyncio
import json
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import pytest

from daemon.app import FEATURES
from daemon.core.llm import Prompt, Reply
from daemon.core.verdict import Verdict
from daemon.engine.engine import Engine
from daemon.engine.feature import Feature
from daemon.judge.case import Case
from daemon.store.db import Statement
from daemon.store.jobs import Job
from daemon.testing import FakeClock, ScriptedLLM
from tests.support.hosts.opencode_sim import SimDaemon, SimHost, bash
from tests.support.hosts.world import COMPLETE, INCOMPLETE

SESSIONS = tuple(f"ses_{n}" for n in range(6))
KILLS = 3
NOTE = "INSERT INTO unreadable (kind, id, at, body) VALUES (?, ?, 0, '')"
TORN = (
    "SELECT id FROM sessions WHERE phase IN ('complete', 'incomplete', 'stopped', 'unscored') "
    "AND NOT EXISTS (SELECT 1 FROM verdicts WHERE verdicts.session = sessions.id)"
)


class Tally(Feature):
    """Notes each judged turn in the database with its verdict, and has a job for each: a lost or doubled one
    shows.
    """

    name: ClassVar = "tally"
    job_kinds: ClassVar = frozenset({"after"})

    def __init__(self, parts: Engine) -> None:
        super().__init__(parts)
        self.parts = parts

    def deciding(self, verdict: Verdict, case: Case, directory: str) -> Sequence[Statement]:
        key = f"{verdict.session} {verdict.turn}"
        return (NOTE, [("decided", key)]), self.parts.jobs.statement("after", key, lane="after")

    async def work(self, job: Job) -> None:
        await self.parts.jobs.finish(job, (NOTE, [("after", job.key)]))


class Judge(ScriptedLLM):
    """Says something, after a random number of steps of the loop."""

    rng: random.Random

    async def complete(self, prompt: Prompt, deadline_s: float) -> Reply:
        for _ in range(self.rng.randrange(4)):
            await asyncio.sleep(0)
        if prompt.purpose != "judge.second":
            self.script.append(self.rng.choice([INCOMPLETE, INCOMPLETE, COMPLETE]))
        return await super().complete(prompt, deadline_s)


class Story:
    """Six sessions in which people type and press Esc, and agents answer."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.rng = random.Random(seed)
        work = folder / "work"
        work.mkdir()
        self.clock = FakeClock()
        judge = Judge()
        judge.rng = self.rng
        self.sim = SimDaemon(folder, self.clock, judge, features=(*FEATURES, Tally))
        self.host = SimHost(str(work), self.clock)
        self.tasks: dict[str, list[str]] = {i: [] for i in SESSIONS}

    async def act(self, session: str) -> None:
        """What happens next in this session."""
        s, x = self.host.sessions[session], self.rng.random()
        if s.busy and x < 0.12:
            await self.host.escapes(session)
        elif s.busy and x < 0.9:
            await self.answer(session)
        elif not s.busy and (x < 0.35 or not self.tasks[session]):
            self.tasks[session].append(await self.host.types(session))

    async def answer(self, session: str) -> None:
        await self.host.answers(session, tools=(bash("ls"),))
        await self.host.idle(session)

    async def scene(self, steps: int) -> None:
        for _ in range(steps):
            await self.act(self.rng.choice(SESSIONS))
            self.clock.advance(self.rng.choice([0.01, 0.5, 2.0]))
            for _ in range(self.rng.randrange(6)):
                await asyncio.sleep(0)
            if self.rng.random() < 0.3:
                await asyncio.sleep(0.002)

    async def play(self) -> None:
        """Scenes that are cut off by a kill, then quiet, then one last task in each session."""
        await self.host.connect(await self.sim.start())
        for session in SESSIONS:
            await self.host.create(session)
        for _ in range(KILLS):
            scene = asyncio.create_task(self.scene(self.rng.randrange(5, 40)))
            await asyncio.wait([scene], timeout=self.rng.random() * 0.15)
            scene.cancel()
            await asyncio.gather(scene, return_exceptions=True)
            await self.host.disconnect()
            await self.sim.kill()
            await self.host.connect(await self.sim.start())
            if self.rng.random() < 0.5:
                await self.sim.settle()
        await self.host.flush()
        await self.sim.settle()
        for session in SESSIONS:
            while self.host.sessions[session].busy:
                await self.answer(session)
                await self.sim.settle()
        for session in SESSIONS:
            await self.host.types(session, "last")
        while self._jobs():
            self.sim.daemon.engine.jobs.wake()
            await self.sim.settle()

    def _jobs(self) -> list[Any]:
        return self.sim.daemon.db.read("SELECT kind, key FROM jobs WHERE kind != 'retention'")

    def wrong(self) -> list[str]:
        """What must not be: empty when every promise held."""
        db, prompts = self.sim.daemon.db, self.host.prompts
        found = [f"torn: {i}" for (i,) in db.read(TORN)]
        found += [f"prompted while busy or aborted: {p}" for p in prompts if p.was_busy or p.aborted]
        doubled = Counter((p.session, p.turn, p.kind) for p in prompts) + Counter(p.order for p in prompts)
        found += [f"prompted {n} times: {what}" for what, n in doubled.items() if n > 1]
        noted = Counter(db.read("SELECT kind, id FROM unreadable WHERE kind IN ('decided', 'after')"))
        turns = {key for _, key in noted}
        for key in turns:
            for kind in ("decided", "after"):
                found += [f"{kind} {noted[kind, key]} times: {key}"] if noted[kind, key] != 1 else []
        found += [] if turns else ["nothing was judged"]
        found += [f"unfiled: {v.verdict}" for v in self.sim.daemon.world.verdicts.unfiled()]
        for path in (Path(self.host.directory) / ".reflection").glob("verdict_ses_?.json"):
            said = json.loads(path.read_text())
            if said["state"] == "judging":
                found.append(f"left judging: {path.name}")
            elif not db.read("SELECT 1 FROM verdicts WHERE turn = ? AND filed", (said["turn"],)):
                found.append(f"a file without its verdict: {path.name}")
        return found


async def tell(folder: Path, seed: int) -> list[str]:
    """One story; what was wrong with it."""
    story = Story(folder, seed)
    await story.play()
    wrong = story.wrong()
    await story.host.disconnect()
    await story.sim.stop()
    return wrong


@pytest.mark.shows("I21", "I42")
@pytest.mark.parametrize("seed", range(8))
async def test_killed_at_random_moments(tmp_path: Path, seed: int) -> None:
    """No prompt doubled, no state without its verdict, each decision and each of its jobs once."""
    assert await tell(tmp_path, seed) == []


def main(first: int, count: int) -> int:
    """How many of ``count`` stories went wrong."""
    failed = 0
    for seed in range(first, first + count):
        with tempfile.TemporaryDirectory() as folder:
            wrong = asyncio.run(tell(Path(folder), seed))
        failed += bool(wrong)
        print(seed, wrong or "fine", flush=True)
    print(f"{count} stories, {count * KILLS} kills, {failed} failed")
    return failed


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2])) > 0)

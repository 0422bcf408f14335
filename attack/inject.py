"""Another plugin puts messages into a session, with ``noReply: true`` and not marked synthetic: before, while
and after the judge thinks. It may cause no endless feedback, and no judgement may be lost by it.

The engine is the real one; opencode is simulated, so that hours pass in a moment.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import os
import random
from collections import deque
from typing import TYPE_CHECKING, Final

from attack.outcome import SHOWN, Deadline, Outcome
from daemon import config
from daemon.testing import FakeClock, ScriptedLLM
from harness.machine.sandbox import sandbox
from tests.support.hosts.opencode_sim import SimDaemon, SimHost, bash

if TYPE_CHECKING:
    from pathlib import Path

ROUNDS: Final = 30
HOUR_MS: Final = 3_600_000
NO_PROGRESS: Final = 2
PAUSES_S: Final = (1, 30, 300, 1_500)
INCOMPLETE: Final = {"complete": False, "severity": "HIGH", "feedback": "Do it."}
KEPT: Final = {"incomplete", "complete", "stopped", "awaiting_user"}


class Stream:
    """One session: a person types once, and from then on there are only the agent and the plugin."""

    def __init__(
        self, session: str, sim: SimDaemon, host: SimHost, llm: ScriptedLLM, rng: random.Random
    ) -> None:
        self.session, self.sim, self.host, self.llm, self.rng = session, sim, host, llm, rng
        self.progress = rng.random() < 0.5
        self.often = rng.choice((0.2, 0.6, 1.0))
        self.turns: list[str] = []
        self.sent: list[int] = []  # when the agent was prompted (ms)
        self.put_in = 0

    async def puts_in(self) -> None:
        if self.rng.random() < self.often:
            self.put_in += 1
            await self.host.puts_in(self.session, "Context of another plugin")

    async def play(self) -> None:
        """Rounds until nobody sends the agent back. Then a program may begin anew, as often as it likes."""
        await self.host.create(self.session)
        await self.host.types(self.session)
        for n in range(ROUNDS):
            if not self.host.sessions[self.session].busy:
                if not self.progress:
                    return
                await self.host.busy(self.session)
                await self.puts_in()
            await self._round(n)
            self.host.clock.advance(self.rng.choice(PAUSES_S))

    async def _round(self, n: int) -> None:
        said = f"step.txt lacks step {n}" if self.progress else self.rng.choice(("do it", "it is not done"))
        entry = {**INCOMPLETE, "missing": [{"item": said, "cites": "M1"}]}
        self.llm.script = deque([entry] * 4)
        hold = self.llm.hold = asyncio.Event()
        host, before, asked = self.host, len(self.host.prompts), len(self.llm.prompts)
        for _ in range(self.rng.randrange(1, 4)):
            await host.answers(self.session, "", "tool-calls", (bash("make test", 1, "1 failed"),))
            await self.puts_in()
        tools = (bash(f"echo {n} > {'step.txt' if self.progress else 'scratch.md'}"),)
        self.turns.append(await host.answers(self.session, tools=tools))
        await self.puts_in()
        await host.idle(self.session)
        schedule = self.sim.daemon.engine.schedule
        while schedule.task(self.session) is not None and len(self.llm.prompts) == asked:
            await asyncio.sleep(0.0005)
        for _ in range(self.rng.randrange(3)):
            await self.puts_in()
        hold.set()
        await self.sim.settle()
        self.sent += [host.clock.ms] * (len(host.prompts) - before)
        await self.puts_in()

    def findings(self, most: int) -> list[str]:
        found = []
        if not self.sent:
            found.append("nobody was told of the first turn, which is incomplete")
        if not self.progress and len(self.sent) > NO_PROGRESS:
            found.append(f"{len(self.sent)} rounds without progress")
        if any(last - first < HOUR_MS for first, last in zip(self.sent, self.sent[most:], strict=False)):
            found.append(f"more than {most} feedbacks in an hour")
        rows = self.sim.daemon.db.read("SELECT turn, state FROM verdicts WHERE session = ?", (self.session,))
        states: dict[str, str] = dict(rows)
        found += [f"turn {t} has no verdict" for t in self.turns if t not in states]
        found += [f"turn {t} is {states[t]}" for t in self.turns if states.get(t, "stopped") not in KEPT]
        return found


async def attack(streams: int, seed: int, deadline: Deadline, folder: Path) -> Outcome:
    found = Outcome("inject", streams)
    clock, llm, work = FakeClock(), ScriptedLLM(), folder / "work"
    work.mkdir()
    settings = config.from_text("[spend]\ntokens_per_day = 900000000\n")  # a limit would end all judging
    sim, host = SimDaemon(folder, clock, llm, settings), SimHost(str(work), clock)
    await host.connect(await sim.start())
    most = sim.daemon.world.settings.judge.max_per_hour
    put_in = longest = hourly = 0
    while found.done < streams and not deadline.over and len(found.findings) < SHOWN:
        stream = Stream(f"ses_{found.done}", sim, host, llm, random.Random(f"{seed} {found.done}"))
        await stream.play()
        found.findings += [f"seed {seed}, stream {found.done}: {what}" for what in stream.findings(most)]
        found.done += 1
        put_in += stream.put_in
        if stream.progress:
            hourly = max([hourly, *(sum(t - HOUR_MS < s <= t for s in stream.sent) for t in stream.sent)])
        else:
            longest = max(longest, len(stream.sent))
    found.figures = (
        f"{put_in:,} messages put in, {len(host.prompts):,} feedbacks: at most {longest} without progress, "
        f"{hourly} in an hour"
    )
    await host.disconnect()
    await sim.stop()
    return found


def run(streams: int, seed: int, deadline: Deadline) -> Outcome:
    home = os.environ["HOME"]
    with sandbox() as box:
        os.environ["HOME"] = str(box.home)  # the simulated daemon has its socket there
        try:
            with contextlib.redirect_stdout(io.StringIO()) as log:
                found = asyncio.run(attack(streams, seed, deadline, box.root))
        finally:
            os.environ["HOME"] = home
    lines = log.getvalue().splitlines()
    found.findings += [f"log: {line[:600]}" for line in lines if "Traceback" in line or "event=bug" in line]
    return found

"""What a person with the published plugins hears: those readers, before files that the real engine writes.

Time is the injected clock's. ``idles`` gives the idle to the readers first and to the daemon after them, as
it is when both are plugins of one opencode and ours has a socket in between.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from daemon import config
from daemon.core.llm import Prompt, Reply
from daemon.testing import FakeClock, ScriptedLLM, reply
from harness.models.facts_judge import assess
from tests.examples.published import AS_WITHOUT, POLL_S, Reader, Speech, Telegram
from tests.support.hosts.opencode_sim import SimDaemon, SimHost, bash, write

SESSION = "ses_58c3f0d91ffeHq2LmTzXw4Rb7K"
SIBLING = "ses_58c3c7a02ffeJd8NvBpQy1Gs5M"  # the same first eight characters, seconds later
OTHER = "ses_9a01aaaaaffeJd8NvBpQy1Gs5M"
RED = (write("login.py"), bash("pytest -q", 1, "1 failed, 11 passed in 0.4s"))
GREEN = (write("login.py"), bash("pytest -q", 0, "12 passed in 0.4s"))
DONE = "complete"
Heard = list[tuple[str, str]]


class FactsLLM(ScriptedLLM):
    """A model that judges by the rows of the prompt."""

    async def complete(self, prompt: Prompt, deadline_s: float) -> Reply:
        del deadline_s
        return reply(assess(prompt.text), prompt.nonce, self.name)


@dataclass
class Stage:
    """A person, an agent, the daemon, and both plugins in the agent's opencode."""

    sim: SimDaemon
    host: SimHost
    clock: FakeClock
    workspace: Path
    speech: Speech
    telegram: Telegram

    @property
    def readers(self) -> tuple[Reader, ...]:
        return (self.speech, self.telegram)

    async def asks(self, session: str, text: str = "Reject an empty e-mail address on login") -> None:
        if session not in self.host.sessions:
            await self.host.create(session)
        await self.host.types(session, text)
        await self.settle()

    async def works(self, session: str, text: str, *tools: dict[str, Any], seconds: float = 60) -> None:
        """The agent works for so long and stops; both plugins and the daemon are told."""
        await self.passes(seconds)
        await self.host.answers(session, text, tools=tools)
        await self.idles(session)

    async def idles(self, session: str) -> None:
        for reader in self.readers:
            reader.idles(session)
        await self.host.idle(session)

    async def passes(self, seconds: float) -> None:
        """Time passes, half a second after the other; whoever waits looks."""
        await self.settle()
        for _ in range(int(seconds / POLL_S)):
            self.clock.advance(POLL_S)
            for reader in self.readers:
                reader.look()
            await self.settle()

    async def settle(self) -> None:
        """Until all is judged and on disk; while a model thinks, until what is said of that is on disk."""
        llm = self.sim.provider
        if llm is not None and llm.hold is not None and not llm.hold.is_set():
            await asyncio.sleep(0.01)
            await self.sim.daemon.engine.filing.drain()
        else:
            await self.sim.settle()
        await self.sim.daemon.engine.filing.drain()

    def hears(self, speech: Heard, telegram: Heard) -> None:
        """All that was heard so far, and nobody waits any more."""
        assert (self.speech.heard, self.telegram.heard) == (speech, telegram)
        assert [r.waiting for r in self.readers] == [{}, {}]

    def file(self, name: str) -> dict[str, Any]:
        path = self.workspace / ".reflection" / f"verdict_{name}.json"
        found: dict[str, Any] = json.loads(path.read_text("utf-8"))
        return found

    def state(self, session: str = SESSION) -> str:
        return str(self.file(session)["state"])


Open = Callable[..., AbstractAsyncContextManager[Stage]]


@pytest.fixture
def stage(tmp_path: Path) -> Open:
    @asynccontextmanager
    async def opened(llm: ScriptedLLM | None = None, settings: str = "") -> AsyncIterator[Stage]:
        clock, workspace = FakeClock(ms=1_760_000_000_000), tmp_path / "work"
        workspace.mkdir()
        sim = SimDaemon(tmp_path, clock, llm, config.from_text(settings))
        host = SimHost(str(workspace), clock)
        await host.connect(await sim.start())
        yield Stage(sim, host, clock, workspace, Speech(workspace, clock), Telegram(workspace, clock))
        await host.disconnect()
        await sim.stop()

    return opened


SESSIONS = {"A": SESSION, "B": OTHER, "S": SIBLING}
TURNS = {"done": ("Done.", *GREEN), "red": ("Done.", *RED), "question": ("Should spaces count as empty?",)}
STORIES = {  # steps, and what both tell; with a star only Telegram, because speech mutes for good
    "two tasks": ("A types, A done 3, wait 1, A types, A done 3, wait 1, wait 60", "A done, A done"),
    "a task after a fresh verdict": (
        "A types, A done 60, wait 1, A types, A question 5, wait 11",
        "A done, A without",
    ),
    "fixed within seconds": ("A types, A red 60, wait 5, A stirs, A done 5, wait 11", "A done*"),
    "another one was sent back": ("A types, A red 60, B types, B done 3, wait 1", "B done"),
    "a question, then the end": (
        "A types, A question 60, wait 11, A types, A done 5, wait 1",
        "A without, A done",
    ),
    "siblings at once": ("A types, S types, A red 60, S done 1, wait 11", "A without, S without"),
    "a sibling of ten quiet minutes ago": (
        "S types, S done 60, wait 1, sleep 601, A types, A done 5, wait 1",
        "S done, A done",
    ),
    "a sibling seconds after the end": (
        "A types, A done 60, wait 1, A keeps, S types, S question 5, wait 11",
        "A done, S without",
    ),
    "a sibling seconds after the feedback": (
        "A types, A red 60, wait 1, A keeps, S types, S question 5, wait 11",
        "S without",
    ),
}


@pytest.mark.shows("I6", "I15", "I22", "I23")
@pytest.mark.parametrize(("steps", "heard"), STORIES.values(), ids=STORIES)
async def test_what_is_heard(stage: Open, steps: str, heard: str) -> None:
    """A done task once and within a second; while the agent goes on nothing; else as without us."""
    kept: dict[str, Any] = {}
    async with stage(FactsLLM()) as s:
        for who, what, *seconds in (step.split() for step in steps.split(", ")):
            session = SESSIONS.get(who, "")
            match who, what:
                case "wait", _:
                    await s.passes(float(what))
                case "sleep", _:
                    s.clock.advance(float(what))
                case _, "types":
                    await s.asks(session)
                case _, "stirs":
                    await s.host.emit("activity", sessionID=session, bytes=100)
                case _, "keeps":
                    kept[session] = s.file(session)
                case _:
                    await s.works(session, *TURNS[what], seconds=float(seconds[0]))
        ends = [one.split() for one in heard.split(", ")]
        told = [(SESSIONS[who], AS_WITHOUT if how == "without" else DONE) for who, how in ends]
        s.hears([one for one, (_, how) in zip(told, ends, strict=True) if how != "done*"], told)
        assert {session: s.file(session) for session in kept} == kept


@pytest.mark.shows("I11", "I18", "I33")
@pytest.mark.parametrize("state", ["unscored", "error", "stopped", "incomplete"])
async def test_not_judged(stage: Open, state: str) -> None:
    """No usable reply, a failed host, Esc, feedback only observed: as without us, and none mutes."""
    llm = ScriptedLLM() if state == "unscored" else None
    async with stage(llm, 'judge.mode = "observe"' if state == "incomplete" else "") as s:
        await s.asks(SESSION)
        await s.passes(30)
        error = {"name": "APIError", "data": {"message": "overloaded"}}
        match state:
            case "unscored":
                assert llm is not None
                llm.add("no verdict", "no verdict", "no verdict")
                await s.host.answers(SESSION, "Done.", tools=GREEN)
            case "error":
                await s.host.answers(SESSION, "", finish="", error=error)
            case "stopped":
                await s.host.answers(SESSION, "I will now", finish="")
                await s.host.escapes(SESSION)
            case _:
                await s.host.answers(SESSION, "Done.", tools=RED)
        await s.idles(SESSION)
        await s.passes(11)
        assert (s.state(), s.host.prompts) == (state, [])
        without = [(SESSION, AS_WITHOUT)]
        s.hears(without, without)
        assert s.speech.muted == set()


@pytest.mark.shows("I14")
async def test_overtaken_by_the_person(stage: Open) -> None:
    """The person types while the judge thinks: as without us, and nothing of that turn is told as done."""
    llm = ScriptedLLM(hold=asyncio.Event())
    async with stage(llm) as s:
        llm.add({"complete": True, "severity": "NONE"}, {"complete": True, "severity": "NONE"})
        await s.asks(SESSION)
        await s.works(SESSION, "Done.", *GREEN)
        async with asyncio.timeout(60):
            while not llm.prompts:  # a busy machine takes its time to ask
                await asyncio.sleep(0.01)
        await s.passes(2)
        assert s.state() == "judging"
        await s.asks(SESSION, "And the docs")
        await s.passes(10)
        assert s.state() == "skipped"
        without = [(SESSION, AS_WITHOUT)]
        s.hears(without, without)
        assert llm.hold is not None
        llm.hold.set()
        await s.works(SESSION, "Docs too.", *GREEN)
        await s.passes(1)
        s.hears([*without, (SESSION, DONE)], [*without, (SESSION, DONE)])


@pytest.mark.shows("I22")
@pytest.mark.parametrize(("seconds", "heard"), [(8, DONE), (14, AS_WITHOUT)])
async def test_a_judge_that_takes_its_time(stage: Open, seconds: int, heard: str) -> None:
    """Within ten seconds the verdict counts; later the readers have acted as without us, once."""
    llm = ScriptedLLM(hold=asyncio.Event())
    async with stage(llm) as s:
        llm.add({"complete": True, "severity": "NONE"})
        await s.asks(SESSION)
        await s.works(SESSION, "Done.", *GREEN)
        await s.passes(seconds)
        assert llm.hold is not None
        llm.hold.set()
        await s.passes(20)
        assert s.state() == "complete"
        s.hears([(SESSION, heard)], [(SESSION, heard)])

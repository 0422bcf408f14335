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
from daemon.testing import FakeClock, ScriptedLLM
from tests.examples.published import AS_WITHOUT, POLL_S, Reader, Speech, Telegram
from tests.support.hosts.opencode_sim import SimDaemon, SimHost, bash, write

SESSION = "ses_58c3f0d91ffeHq2LmTzXw4Rb7K"
SIBLING = "ses_58c3c7a02ffeJd8NvBpQy1Gs5M"  # the same first eight characters, seconds later
OTHER = "ses_9a01aaaaaffeJd8NvBpQy1Gs5M"
RED = (write("login.py"), bash("pytest -q", 1, "1 failed, 11 passed in 0.4s"))
GREEN = (write("login.py"), bash("pytest -q", 0, "12 passed in 0.4s"))
DONE = "complete"
Heard = list[tuple[str, str]]


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


@pytest.mark.shows("I6", "I22")
async def test_done_is_heard_once_and_at_once(stage: Open) -> None:
    """Each of two tasks is told by both within a second, also when they are seconds apart, and not again."""
    async with stage() as s:
        for told in (1, 2):
            await s.asks(SESSION)
            await s.works(SESSION, "Done.", *GREEN, seconds=3)
            await s.passes(1)
            s.hears([(SESSION, DONE)] * told, [(SESSION, DONE)] * told)
        await s.passes(60)
        s.hears([(SESSION, DONE)] * 2, [(SESSION, DONE)] * 2)


@pytest.mark.shows("I6", "I22")
async def test_a_second_task_soon_after_the_first(stage: Open) -> None:
    """The first task's fresh "complete" is not taken for the second's, whose agent asks."""
    async with stage() as s:
        await s.asks(SESSION)
        await s.works(SESSION, "Done.", *GREEN)
        await s.passes(1)
        await s.asks(SESSION, "Now the same for the sign-up form")
        assert s.file(SESSION[:8])["timestamp"] == 0
        await s.works(SESSION, "Should spaces count as empty?", seconds=5)
        await s.passes(9)
        told = [(SESSION, DONE)]
        assert s.speech.heard == s.telegram.heard == told
        await s.passes(2)
        told.append((SESSION, AS_WITHOUT))
        s.hears(told, told)


@pytest.mark.shows("I22")
async def test_fixed_within_seconds(stage: Open) -> None:
    """While the agent goes on nobody is told. The first round's verdict, still young, is not taken for the
    second's; then Telegram tells once, and speech, muted for the life of its process, stays silent.
    """
    async with stage() as s:
        await s.asks(SESSION)
        await s.works(SESSION, "Done.", *RED)
        await s.passes(5)
        assert s.file(SESSION[:8])["timestamp"] > 0
        assert len(s.host.prompts) == 1
        s.hears([], [])
        await s.host.emit("activity", sessionID=SESSION, bytes=100)
        await s.works(SESSION, "Fixed.", *GREEN, seconds=5)
        await s.passes(11)
        s.hears([], [(SESSION, DONE)])
        assert s.state() == "complete"


@pytest.mark.shows("I23")
async def test_another_session_is_not_muted(stage: Open) -> None:
    """A session that was sent back to work mutes no other one."""
    async with stage() as s:
        await s.asks(SESSION)
        await s.works(SESSION, "Done.", *RED)
        await s.asks(OTHER)
        await s.works(OTHER, "Done.", *GREEN, seconds=3)
        await s.passes(1)
        s.hears([(OTHER, DONE)], [(OTHER, DONE)])


@pytest.mark.shows("I15")
async def test_it_needs_the_person(stage: Open) -> None:
    """A question is told as without us, after the ten seconds; nothing is muted, and the end is told."""
    async with stage() as s:
        await s.asks(SESSION)
        await s.works(SESSION, "Should spaces count as empty?")
        await s.passes(11)
        assert s.state() == "awaiting_user"
        asked = [(SESSION, AS_WITHOUT)]
        s.hears(asked, asked)
        await s.asks(SESSION, "Yes, reject spaces too")
        await s.works(SESSION, "Done.", *GREEN, seconds=5)
        await s.passes(1)
        s.hears([*asked, (SESSION, DONE)], [*asked, (SESSION, DONE)])


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
        told = [(SESSION, AS_WITHOUT)]
        s.hears(told, told)
        assert s.speech.muted == set()


@pytest.mark.shows("I14")
async def test_overtaken_by_the_person(stage: Open) -> None:
    """The person types while the judge thinks: as without us, and nothing of that turn is told as done."""
    llm = ScriptedLLM(hold=asyncio.Event())
    async with stage(llm) as s:
        llm.add({"complete": True, "severity": "NONE"}, {"complete": True, "severity": "NONE"})
        await s.asks(SESSION)
        await s.works(SESSION, "Done.", *GREEN)
        await s.passes(2)
        assert s.state() == "judging"
        await s.asks(SESSION, "And the docs")
        await s.passes(10)
        assert s.state() == "skipped"
        told = [(SESSION, AS_WITHOUT)]
        s.hears(told, told)
        assert llm.hold is not None
        llm.hold.set()
        await s.works(SESSION, "Docs too.", *GREEN)
        await s.passes(1)
        s.hears([*told, (SESSION, DONE)], [*told, (SESSION, DONE)])


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


@pytest.mark.shows("I23")
async def test_siblings_at_the_same_time(stage: Open) -> None:
    """Ids that share eight characters: both are told as without us, and each keeps its own verdict."""
    async with stage() as s:
        await s.asks(SESSION)
        await s.asks(SIBLING)
        await s.works(SESSION, "Done.", *RED)
        await s.works(SIBLING, "Done.", *GREEN, seconds=1)
        await s.passes(11)
        assert (s.state(SESSION), s.state(SIBLING)) == ("incomplete", "complete")
        both = [(SESSION, AS_WITHOUT), (SIBLING, AS_WITHOUT)]
        s.hears(both, both)
        assert s.speech.muted == set()


@pytest.mark.shows("I23")
async def test_a_sibling_long_ago(stage: Open) -> None:
    """After ten quiet minutes of the other one the alias is this session's again."""
    async with stage() as s:
        await s.asks(SIBLING)
        await s.works(SIBLING, "Done.", *GREEN)
        await s.passes(1)
        s.clock.advance(601)
        await s.asks(SESSION)
        await s.works(SESSION, "Done.", *GREEN, seconds=5)
        await s.passes(1)
        told = [(SIBLING, DONE), (SESSION, DONE)]
        s.hears(told, told)


@pytest.mark.shows("I23")
@pytest.mark.parametrize("first", ["done", "sent back"])
async def test_a_sibling_that_begins_seconds_later(stage: Open, first: str) -> None:
    """A young alias neither mutes a sibling that begins now nor stands in for it; the first's file stays."""
    async with stage() as s:
        await s.asks(SESSION)
        await s.works(SESSION, "Done.", *(GREEN if first == "done" else RED))
        await s.passes(1)
        told = [(SESSION, DONE)] if first == "done" else []
        kept = s.file(SESSION)
        await s.asks(SIBLING)
        await s.works(SIBLING, "Should spaces count as empty?", seconds=5)
        await s.passes(11)
        told.append((SIBLING, AS_WITHOUT))
        s.hears(told, told)
        assert s.file(SESSION) == kept

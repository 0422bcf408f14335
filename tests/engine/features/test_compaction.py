"""After a compaction, through the engine: the seed's actions, attempts until idle, people, restarts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from daemon.core.errors import Unavailable
from daemon.store.timers import RANK, Pending
from tests.support.hosts.opencode_sim import bash, write
from tests.support.hosts.world import COMPLETE, QUESTION, UNREADABLE
from tests.support.hosts.world import World as Small

INCOMPLETE = {
    "complete": False,
    "severity": "HIGH",
    "missing": [{"item": "no test covers it", "cites": "Do the thing"}],
    "feedback": "Write the test.",
}
GITHUB = "[compaction]\ngithub = true\n"
QUIET = "[stuck]\nenabled = false\n"  # a silent working session is then not looked at
CONTINUE = "## Reflection-3: Continue after compaction"
ON_REQUEST = "Context compacted: the task goes on when you say so"
CREATED = bash("gh pr create --fill", 0, "https://github.com/acme/shop/pull/12\n")
DUE_S = 2.5
EVER_S = 400


def answer(action: str, confidence: Any = 0.9, message: str = "The thing is half done.") -> dict[str, Any]:
    """What a fast model says about a compacted session."""
    return {"reason": "because", "action": action, "confidence": confidence, "message": message}


class World(Small):
    """With what is asked about a compaction."""

    @property
    def looks(self) -> int:
        """How often a model was asked about a compaction."""
        return sum(p.purpose == "compaction" for p in self.llm.prompts)

    @property
    def pending(self) -> Pending | None:
        """What comes first."""
        timers = self.sim.daemon.engine.timers
        found = (timers.pending("ses_a", kind) for kind in RANK)
        return next((p for p in found if p is not None), None)

    async def incomplete(self, text: str = "Half of it.", **more: Any) -> None:
        """A turn was judged incomplete; the agent works on the feedback."""
        self.llm.add(INCOMPLETE)
        await self.turn(says=text, **more)
        assert self.verdict()["state"] == "incomplete"

    async def looked(self) -> None:
        """Until a model is being asked about the compaction."""
        self.clock.advance(DUE_S)
        self.sim.daemon.engine.timers.wake()
        await self.until(lambda: self.looks)


Make = Callable[..., Any]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """A world with these settings, connected; it ends with the block."""

    return lambda text="": World(tmp_path, text).running()


@pytest.fixture
async def w(make: Make) -> AsyncIterator[World]:
    async with make() as world:
        yield world


# --- the seed's table of actions ----------------------------------------------------------------------


async def test_continue_task(w: World) -> None:
    """Seed's row: a context-aware reminder of the current work, once, in the session's own task."""
    await w.incomplete()
    await w.host.compacts("ses_a")
    w.llm.add(answer("continue_task"))
    await w.sim.later(DUE_S)
    (nudge,) = w.nudges
    assert nudge.startswith(CONTINUE)
    for part in ("> Do the thing", "- no test covers it", "The thing is half done."):
        assert part in nudge
    assert w.host.prompts[-1].task == w.host.human("ses_a")


@pytest.mark.shows("I26")
@pytest.mark.parametrize(
    ("text", "tools", "said", "wanted"),
    [
        (GITHUB, (CREATED,), "Half of it.", "gh pr comment 12 --repo acme/shop"),
        ("", (CREATED,), "Half of it.", ""),
        (GITHUB, (write("a.py"),), "PR #12 is half done.", ""),
        (GITHUB, (bash("gh pr create --fill", 1, "no commits"),), "PR #12 is half done.", ""),
    ],
    ids=["on", "off", "number_only_said", "command_failed"],
)
async def test_needs_github_update(
    make: Make, text: str, tools: tuple[dict[str, Any], ...], said: str, wanted: str
) -> None:
    """Seed's row: with the setting on and a number from a tool's result, else it is `continue_task`."""
    async with make(text) as w:
        await w.incomplete(said, tools=tools)
        await w.host.compacts("ses_a")
        w.llm.add(answer("needs_github_update"))
        await w.sim.later(DUE_S)
        (nudge,) = w.nudges
        assert nudge.startswith("## Reflection-3: Update PR #12" if wanted else CONTINUE)
        assert wanted in nudge
        assert wanted or "comment 12" not in nudge


@pytest.mark.shows("I2")
async def test_task_complete_is_a_toast(w: World) -> None:
    """Seed's row: a finished task gets a success toast and no prompt."""
    await w.incomplete()
    await w.host.compacts("ses_a")
    w.llm.add(answer("task_complete"))
    await w.sim.later(DUE_S)
    await w.sim.later(EVER_S)
    assert (w.nudges, w.looks) == ([], 1)
    assert w.host.toasts == ["Context compacted: the task is complete"]


# --- who began it, and how the task stood -----------------------------------------------------------------


@pytest.mark.shows("I2")
@pytest.mark.parametrize(
    ("replies", "told"),
    [
        ((COMPLETE,), "Context compacted: the task was complete before"),
        ((QUESTION,), "Context compacted: the agent waits for you"),
        ((UNREADABLE, UNREADABLE), ON_REQUEST),
        ((), ON_REQUEST),
    ],
    ids=["complete", "awaiting_user", "unscored", "none"],
)
async def test_a_persons_compaction_of_other_work_is_told(
    w: World, replies: tuple[Any, ...], told: str
) -> None:
    """After `/compact` only a task judged incomplete is helped on; else one toast, no model."""
    await w.host.types("ses_a")
    w.llm.add(*replies)
    if replies:
        await w.goes_on(says="Which one?")
    else:
        await w.host.answers("ses_a", "Let me see.")
    before = len(w.host.toasts)
    await w.host.compacts("ses_a")
    await w.sim.later(DUE_S)
    await w.sim.later(EVER_S)
    assert w.host.toasts[before:] == [told]
    assert (w.host.prompts, w.looks) == ([], 0)


@pytest.mark.shows("I32")
async def test_the_host_continues_by_itself(w: World) -> None:
    """An automatic compaction that the host continues needs nothing; what follows is judged once."""
    await w.host.types("ses_a")
    await w.host.answers("ses_a", "", "tool-calls", (write("a.py"),))
    await w.host.compacts("ses_a", auto=True, continued=True)
    await w.sim.later(DUE_S)
    w.llm.add(COMPLETE)
    await w.goes_on(says="Done.", tools=(write("b.py"),))
    await w.sim.later(EVER_S)
    assert (w.host.prompts, w.host.toasts) == ([], ["Task complete"])
    assert [p.purpose for p in w.llm.prompts] == ["judge"]


# --- attempts until idle --------------------------------------------------------------------------------


@pytest.mark.shows("I10", "I32")
async def test_attempts_while_the_session_is_busy(make: Make) -> None:
    """2 s after it, every 15 s five times, once more after 60 s; then it is given up."""
    async with make(QUIET) as w:
        await w.incomplete()
        start = w.clock.ms
        await w.host.compacts("ses_a", busy=True)
        tried = []
        while (p := w.pending) is not None:
            tried.append((p.due - start) / 1000)
            await w.sim.later((p.due - w.clock.ms) / 1000)
        assert tried == [2, 17, 32, 47, 62, 77, 137]
        await w.host.idle("ses_a")
        await w.sim.later(EVER_S)
        assert (w.nudges, w.looks, w.host.toasts) == ([], 0, [])


@pytest.mark.shows("I32")
async def test_one_look_at_a_time(w: World) -> None:
    """The host tells of it again while the model thinks: no second question, and one order."""
    await w.incomplete()
    await w.host.compacts("ses_a")
    w.llm.hold = asyncio.Event()
    w.llm.add(answer("continue_task"))
    await w.looked()
    await w.host.emit("session.compacted", sessionID="ses_a")
    w.clock.advance(DUE_S)
    w.sim.daemon.engine.timers.wake()
    await w.until(lambda: w.pending is not None and w.pending.tries)
    await w.answered()
    w.host.sessions["ses_a"].busy = False
    await w.host.idle("ses_a")
    await w.sim.later(15)
    assert (len(w.nudges), w.looks, w.pending) == (1, 1, None)
    assert not w.sim.daemon.world.health.text


async def test_it_outranks_a_nudge(w: World) -> None:
    """While a compaction waits to be looked at no other nudge takes its place, and one is sent."""
    await w.incomplete()
    await w.host.compacts("ses_a", busy=True)
    waiting = w.pending
    assert waiting is not None
    other = Pending("ses_a", "nudge", waiting.task, "", w.clock.ms + 1, 30_000)
    assert not w.sim.daemon.engine.timers.arm(other)
    assert w.pending == waiting
    await w.host.idle("ses_a")
    w.llm.add(answer("continue_task"))
    await w.sim.later(DUE_S)
    assert [n.startswith(CONTINUE) for n in w.nudges] == [True]


@pytest.mark.shows("I32")
async def test_a_nudge_that_stood_back_comes_later(make: Make) -> None:
    """Feedback that nothing followed, while a look still waited: nudged after the look found nothing."""
    async with make() as w:
        await w.host.types("ses_a")
        await w.host.answers("ses_a", "", "tool-calls", (write("a.py"),))
        await w.host.compacts("ses_a", auto=True, continued=True)
        await w.sim.later(DUE_S)
        w.host.ignores = True
        w.llm.add(INCOMPLETE)
        await w.goes_on(says="Half of it.")
        assert w.pending.kind == "compaction"
        await w.sim.later(15)
        assert w.pending.kind == "nudge"
        await w.sim.later(31)
        (nudge,) = w.nudges
        assert "feedback above is still open" in nudge
        await w.sim.later(EVER_S)
        assert len(w.nudges) == 1


# --- people ---------------------------------------------------------------------------------------------


@pytest.mark.shows("I11", "I14", "I16", "I32", "I40")
@pytest.mark.parametrize("what", ["types", "escapes", "off", "project_off", "asks", "deleted"])
@pytest.mark.parametrize("when", ["before", "meanwhile"])
async def test_what_ends_it(w: World, what: str, when: str) -> None:
    """A person, Esc, the switch, an open permission, a deletion: nothing is sent, also when it comes while
    the model thinks.
    """
    await w.incomplete()
    await w.host.compacts("ses_a")
    if when == "meanwhile":
        w.llm.hold = asyncio.Event()
        w.llm.add(answer("continue_task"))
        await w.looked()
    if what == "types":
        await w.host.types("ses_a", "wait")
    elif what == "escapes":
        await w.host.escapes("ses_a")
    elif what == "off":
        await w.sim.daemon.engine.intake.switch(on=False, session="ses_a")
    elif what == "project_off":
        await w.sim.daemon.engine.intake.switch(on=False, directory=str(w.workspace))
    elif what == "asks":
        await w.host.emit("permission.asked", sessionID="ses_a", id="per_1")
    else:
        await w.host.emit("session.deleted", sessionID="ses_a")
    if w.llm.hold is not None:
        await w.answered()
    await w.sim.later(DUE_S)
    assert (w.nudges, w.looks) == ([], int(when == "meanwhile"))
    assert not any(o["kind"] == "nudge" for o in w.host.orders)
    assert not any("compacted" in t for t in w.host.toasts)


@pytest.mark.shows("I32")
async def test_work_that_ended_while_the_model_thought(w: World) -> None:
    """The agent went on and stopped again meanwhile; what was decided before it is not sent."""
    await w.incomplete()
    await w.host.compacts("ses_a")
    w.llm.hold = asyncio.Event()
    w.llm.add(answer("continue_task"), COMPLETE)
    await w.looked()
    await w.host.busy("ses_a")
    await w.host.works("ses_a", "It was done already.", tools=(write("a.py"),))
    await w.answered()
    await w.sim.later(EVER_S)
    assert w.nudges == []
    assert w.verdict()["state"] == "complete"


# --- whom it does not concern -----------------------------------------------------------------------------


@pytest.mark.shows("I18", "I30")
@pytest.mark.parametrize(
    "reply",
    [Unavailable("down", "server"), "useless", answer("continue_task", confidence=0.4)],
    ids=["no_model", "prose", "unsure"],
)
async def test_a_failed_or_unsure_look_sends_nothing(w: World, reply: Any) -> None:
    """No model, a failing one, a broken form or too little confidence: nothing is sent, ever."""
    await w.incomplete()
    await w.host.compacts("ses_a")
    w.llm.add(reply, reply)
    await w.sim.later(DUE_S)
    w.llm.script.clear()
    await w.sim.later(EVER_S)
    assert w.looks >= 1
    assert (w.nudges, w.host.toasts) == ([], [])


# --- identity, and what follows ----------------------------------------------------------------------------


@pytest.mark.shows("I8")
async def test_a_context_that_is_full_at_once_is_no_loop(w: World) -> None:
    """Our words led to the next compaction without a tool call: the person is told, no more is sent."""
    await w.host.types("ses_a")
    await w.host.answers("ses_a", "", "tool-calls", (write("a.py"),))
    await w.host.compacts("ses_a", auto=True)
    w.llm.add(answer("continue_task"))
    await w.sim.later(DUE_S)
    assert len(w.nudges) == 1
    for _ in range(3):
        await w.host.answers("ses_a", "", "")
        await w.host.compacts("ses_a", auto=True)
        await w.sim.later(DUE_S)
    assert (len(w.nudges), w.looks) == (1, 1)
    assert set(w.host.toasts) == {ON_REQUEST}


@pytest.mark.shows("I8")
async def test_at_most_sixteen_prompts_for_a_task(w: World) -> None:
    """An agent whose context fills again and again is helped on as often as it gets feedback, no more."""
    await w.host.types("ses_a")
    for n in range(20):
        w.clock.advance(600)  # slow enough for the limit of an hour
        w.host.sessions["ses_a"].busy = True
        await w.host.answers("ses_a", "", "tool-calls", (write(f"{n}.py"),))
        await w.host.compacts("ses_a", auto=True)
        w.llm.add(answer("continue_task"))
        await w.sim.later(DUE_S)
    assert len(w.nudges) == 16


# --- restarts ---------------------------------------------------------------------------------------------


@pytest.mark.shows("I32", "I42")
@pytest.mark.parametrize("arrived", [True, False])
@pytest.mark.slow("daemons are killed and started again")
async def test_killed_while_the_nudge_was_under_way(w: World, arrived: bool) -> None:
    """Committed, no result yet: looked up after the restart; sent if it did not arrive, once."""
    await w.incomplete()
    await w.host.compacts("ses_a")
    w.llm.hold = asyncio.Event()
    w.llm.add(answer("continue_task"))
    await w.looked()
    w.host.deaf = not arrived
    w.llm.hold.set()
    for _ in range(2000):
        if w.sim.daemon.world.outbox.open() and not arrived:
            break
        if w.nudges:
            break
        await asyncio.sleep(0.001)
    if arrived:
        await w.sim.settle()
        w.sim.daemon.db._conn.execute("UPDATE outbox SET status = 'sent'")
        w.host._done.clear()
    await w.killed()
    w.host.deaf = False
    w.llm.hold = None
    await w.host.connect(await w.sim.start())
    await w.sim.settle()
    await w.sim.later(EVER_S)
    assert (len(w.nudges), w.looks) == (1, 1)
    assert w.sim.daemon.world.outbox.open() == []

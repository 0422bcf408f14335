"""`run` mode: what should follow a text, before the host exits (I38)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from daemon.core.cuts import MARK, TEXT
from daemon.core.transcript import Message, Transcript
from daemon.engine.features.gate import as_if_final
from daemon.engine.hosts.host import Instance
from daemon.store import outbox
from tests.support.hosts.world import COMPLETE, INCOMPLETE, World

NOTHING = msgspec.Raw(b"null")


class Run:
    """A world whose host is `opencode run`."""

    def __init__(self, world: World, instance: Instance) -> None:
        self.w = world
        self.instance = instance

    async def says(self, text: str, **more: Any) -> tuple[str, dict[str, Any] | None]:
        """The agent's text is complete (the message is not finished yet): what does the gate say?"""
        message = await self.w.host.answers("ses_a", text, finish="", **more)
        data = {"session": "ses_a", "message": message, "text": text}
        found = await self.w.sim.daemon.engine.intake.ask(self.instance, "gate", data)
        return message, found["feedback"]

    async def finishes(self, message: str) -> None:
        """The step ends with `stop`, the session goes idle."""
        for m in self.w.host.sessions["ses_a"].messages:
            if m["info"]["id"] == message:
                m["info"]["finish"] = "stop"
        await self.w.host.idle("ses_a")
        await self.w.sim.settle()


@pytest.fixture
async def run(tmp_path: Path) -> AsyncIterator[Run]:
    async with World(tmp_path).running("run") as world:
        daemon = world.sim.daemon
        instance = daemon.engine.instances.get(world.host.id)
        assert instance is not None
        await world.host.types("ses_a")
        yield Run(world, instance)


@pytest.mark.shows("I38")
async def test_feedback_is_handed_over_before_the_idle(run: Run) -> None:
    """The order comes with the answer; once sent, the next text is judged and the idle ends it."""
    run.w.llm.add(INCOMPLETE)
    first, order = await run.says("All done.")
    assert order is not None
    assert (order["kind"], order["if"]["turn"]) == ("feedback", first)
    assert order["data"]["text"].startswith("## Reflection-3: Task Incomplete (HIGH)")
    await run.w.sim.daemon.engine.intake.result(order["id"], "done", NOTHING, "")
    await run.w.sim.settle()
    assert run.w.verdict()["state"] == "incomplete"
    run.w.host._add("ses_a", "user", order["data"]["text"], order=order["id"])
    run.w.llm.add(COMPLETE)
    second, nothing = await run.says("Now it is done.")
    assert nothing is None
    await run.finishes(second)
    assert run.w.verdict()["state"] == "complete"
    assert len(run.w.llm.prompts) == 2, "the opinion of the gate is used, not asked for again"


@pytest.mark.shows("I5", "I38")
async def test_a_tool_call_that_follows_takes_the_round_back(run: Run) -> None:
    """Stale: no attempt is counted, no verdict is kept, the next text is judged."""
    run.w.llm.add(INCOMPLETE, INCOMPLETE)
    first, order = await run.says("Let me see.")
    assert order is not None
    await run.w.sim.daemon.engine.intake.result(order["id"], "stale", NOTHING, "a tool call followed")
    await run.w.sim.settle()
    s = run.w.sim.daemon.world.sessions.get("ses_a")
    assert s is not None
    assert (s.attempts, s.final, s.phase, s.prompts) == (0, "", "open", ())
    assert run.w.sim.daemon.db.read("SELECT * FROM verdicts") == []
    assert run.w.sim.daemon.world.outbox.open() == []
    second, again = await run.says("All done.")
    assert again is not None
    assert again["if"]["turn"] == second != first


def test_a_text_of_megabytes_is_cut_as_the_messages_are() -> None:
    """No text may hold up the daemon: what is judged is bounded, and says what is missing."""
    message = Message("m", "assistant", 2, "")
    text = "Half of it is done. " * 400_000
    judged = as_if_final(Transcript("ses_a", (message,)), "m", text).messages[0].text
    assert len(judged) <= TEXT + MARK
    assert judged.startswith("Half of it")
    assert judged.endswith("is done. ")
    assert "characters cut" in judged


@pytest.mark.shows("I21")
async def test_a_host_that_is_gone_still_gets_its_verdict(run: Run) -> None:
    """The process left before the messages could be read; what the gate saw decides."""
    run.w.llm.add(COMPLETE)
    message, nothing = await run.says("All done.")
    assert nothing is None
    del run.w.host.sessions["ses_a"].messages[-1]["info"]["finish"]
    run.w.host.sessions["ses_a"].busy = False
    run.w.host._do = gone  # type: ignore[method-assign]
    await run.w.host.emit("session.idle", sessionID="ses_a")
    await run.w.sim.settle()
    found = run.w.verdict()
    assert (found["state"], found["turn"]) == ("complete", message)


async def gone(_order: dict[str, Any]) -> dict[str, Any]:
    """The simulated host fails every order."""
    return {"status": "failed", "error": "disposed"}


@pytest.mark.shows("I40")
async def test_switched_off_while_the_gate_asks_ends_the_call(run: Run) -> None:
    """Nobody wants to know any more: the call is cancelled, and the host goes on at once."""
    run.w.llm.add(INCOMPLETE)
    run.w.llm.hold = asyncio.Event()
    asked = asyncio.create_task(run.says("All done."))
    await run.w.until_asked()
    await run.w.sim.daemon.engine.intake.switch(on=False, session="ses_a")
    async with asyncio.timeout(5):
        assert (await asked)[1] is None
    await run.w.sim.settle()
    assert run.w.sim.daemon.db.read("SELECT outcome FROM ledger") == [("cancelled",)]


async def test_a_model_is_asked_twice_per_round_at_most(run: Run) -> None:
    """The third text of a round costs nothing."""
    run.w.llm.add(COMPLETE, COMPLETE)
    for text in ("One.", "Two.", "Three."):
        await run.says(text)
    assert len(run.w.llm.prompts) == 2


async def test_the_gate_can_be_switched_off(run: Run) -> None:
    """`run.gate = false` in the project: nothing is asked, the host just exits."""
    folder = run.w.workspace / ".reflection"
    folder.mkdir()
    (folder / "config.toml").write_text("[run]\ngate = false\n")
    run.w.clock.advance(10)
    assert (await run.says("All done."))[1] is None
    assert run.w.llm.prompts == []


async def test_a_failing_judge_opens_the_gate(run: Run) -> None:
    """Every failure is open: garbage twice means nothing follows."""
    run.w.llm.add("no idea", "no idea")
    assert (await run.says("All done."))[1] is None


@pytest.mark.shows("I11")
async def test_an_aborted_task_gets_nothing(run: Run) -> None:
    """Esc before the text: the gate stays open."""
    await run.w.host.emit("session.error", sessionID="ses_a", error={"name": "MessageAbortedError"})
    assert (await run.says("half"))[1] is None
    assert run.w.llm.prompts == []


@pytest.mark.shows("I21")
async def test_an_order_that_was_void_and_is_carried_out_all_the_same(run: Run) -> None:
    """The person pressed Esc while the shim sent it: the verdict has its file all the same."""
    run.w.llm.add(INCOMPLETE)
    _, order = await run.says("All done.")
    assert order is not None
    daemon = run.w.sim.daemon
    await daemon.db.commit(outbox.set_status(order["id"], "expired", run.instance.id, run.w.clock.ms))
    await daemon.engine.intake.result(order["id"], "done", NOTHING, "")
    await run.w.sim.settle()
    assert run.w.verdict()["state"] == "incomplete"
    assert daemon.world.verdicts.unfiled() == []


@pytest.mark.shows("I38")
async def test_only_a_text_that_ended_its_turn_is_a_question(run: Run) -> None:
    """The agent says a sentence before each call, and the call comes while the judge thinks or after it:
    neither takes the question from the text that ends the turn.
    """
    run.w.llm.hold = asyncio.Event()
    run.w.llm.add(INCOMPLETE, INCOMPLETE, COMPLETE, COMPLETE, INCOMPLETE)
    for n in (1, 2):
        thinking = asyncio.ensure_future(run.says("Let me see."))
        await run.w.until_asked(n)
        message = run.w.host.last("ses_a")
        took_back = {"session": "ses_a", "message": message, "text": ""}
        await run.w.sim.daemon.engine.intake.ask(run.instance, "gate", took_back)
        assert (await thinking)[1] is None
    run.w.llm.hold.set()
    for text in ("Now this.", "And that."):
        assert (await run.says(text))[1] is None
        run.w.host.sessions["ses_a"].messages[-1]["info"]["finish"] = "tool-calls"
    second, order = await run.says("All done.")
    assert order is not None
    assert order["if"]["turn"] == second


async def test_a_model_is_asked_six_times_per_round_whatever_follows(run: Run) -> None:
    """An agent that says a sentence before each of many calls, of which the host tells late."""
    run.w.llm.add(*[COMPLETE] * 8)
    for n in range(8):
        await run.says(f"Step {n}.")
        run.w.host.sessions["ses_a"].messages[-1]["info"]["finish"] = "tool-calls"
    assert len(run.w.llm.prompts) == 6


@pytest.mark.shows("I49")
async def test_the_gate_sends_nobody_back_above_the_limit_of_an_hour(run: Run) -> None:
    """The limit counts the prompts of the gate too, and no judge is paid when it is reached."""
    folder = run.w.workspace / ".reflection"
    folder.mkdir()
    (folder / "config.toml").write_text("[judge]\nmax_per_hour = 1\n")
    run.w.clock.advance(10)
    run.w.llm.add(INCOMPLETE, INCOMPLETE)
    _, order = await run.says("All done.")
    assert order is not None
    await run.w.sim.daemon.engine.intake.result(order["id"], "done", NOTHING, "")
    await run.w.sim.settle()
    run.w.host._add("ses_a", "user", order["data"]["text"], order=order["id"])
    assert (await run.says("Now it is done."))[1] is None
    assert len(run.w.llm.prompts) == 1

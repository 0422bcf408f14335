"""Stuck agents through the engine: silence, loops, nudges, timers over restarts (the seed's scenarios)."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from daemon.web import reads
from tests.support.hosts.opencode_sim import bash, write
from tests.support.hosts.world import COMPLETE, INCOMPLETE, UNREADABLE, World


def answer(reason: str, *, nudge: bool = True, confidence: float = 0.9, message: str = "") -> dict[str, Any]:
    """What a fast model says about a silent session."""
    return {
        "reasons": "because",
        "stuck": reason == "genuinely_stuck",
        "reason": reason,
        "confidence": confidence,
        "shouldNudge": nudge and reason == "genuinely_stuck",
        "nudgeMessage": message,
    }


async def unscored(w: World, text: str, **more: Any) -> None:
    """A turn ends, and the judge's replies are useless."""
    w.llm.add(UNREADABLE, UNREADABLE)
    await w.goes_on(says=text, **more)
    assert w.verdict()["state"] == "unscored"


def running(command: str) -> dict[str, Any]:
    """A shell call that has not ended."""
    return {"tool": "bash", "state": {"status": "running", "input": {"command": command}}}


# --- the seed's scenario table ----------------------------------------------------------------------


@pytest.mark.shows("I29")
@pytest.mark.parametrize("command", ["npm install", "make build && pytest -q"])
async def test_a_long_tool_run_is_working(w: World, command: str) -> None:
    """Seed's rows 1 and 5: a tool that runs for minutes is `working`; no call, no word, no nudge."""
    await w.host.types("ses_a")
    await w.host.answers("ses_a", "", finish="", tools=(running(command),))
    for _ in range(5):
        await w.sim.later(90)
    assert (w.llm.prompts, w.host.prompts, w.host.toasts) == ([], [], [])


@pytest.mark.shows("I29")
async def test_a_question_is_waiting_for_the_user(w: World) -> None:
    """Seed's row 2: an agent that asked "which database?" waits for the person; nobody is nudged."""
    await w.host.types("ses_a")
    await unscored(w, "I can do that. Which database should I use?")
    await w.sim.later(31)
    assert (len(w.llm.prompts), w.nudges) == (2, [])
    await w.sim.later(600)
    assert w.nudges == []


@pytest.mark.shows("I31")
async def test_stopped_in_the_middle_of_a_sentence(w: World) -> None:
    """Seed's row 3: tokens, a finish and a completion time do not hide that the answer broke off."""
    await w.host.types("ses_a")
    await unscored(w, "Now I will change the", time={"created": 1, "completed": 2}, tokens=40)
    w.llm.add(answer("genuinely_stuck", message="You broke off before changing the config."))
    await w.sim.later(31)
    (nudge,) = w.nudges
    assert nudge.startswith("## Reflection-3: Continue")
    assert "You broke off before changing the config." in nudge


async def test_rules_that_cannot_tell_start_no_look(tmp_path: Path) -> None:
    """No model judged and nothing proves it (`no_proof`): no fast model is asked, and nobody is nudged."""
    async with World(tmp_path, rules=True).running() as w:
        await w.turn(asks="Add a login page", says="The page is there.", tools=(write("a.py"),))
        assert w.verdict()["reason"].startswith("no_proof: ")
        asked = [order["kind"] for order in w.host.orders]
        for _ in range(5):
            await w.sim.later(90)
        assert asked.count("evaluate") == 1
        assert [order["kind"] for order in w.host.orders] == asked
        assert w.nudges == []


@pytest.mark.shows("I31")
async def test_next_steps_listed_and_stopped(w: World) -> None:
    """Seed's row 4: "Next Steps" that belong to the task, and nothing more."""
    await w.host.types("ses_a")
    await unscored(w, "The model is there.\n\n## Next Steps\n1. Add the route\n2. Add tests")
    w.llm.add(answer("genuinely_stuck"))
    await w.sim.later(31)
    assert len(w.nudges) == 1
    assert "stopped before the task was finished" in w.nudges[0]


# --- when nobody is nudged --------------------------------------------------------------------------


@pytest.mark.shows("I30")
async def test_younger_than_30_seconds_is_not_stuck(w: World) -> None:
    """At 29 s nothing is read or asked; one look later."""
    await w.host.types("ses_a")
    await unscored(w, "Now I will change the")
    asked = len(w.llm.prompts)
    await w.sim.later(29)
    assert (len(w.llm.prompts), w.nudges) == (asked, [])
    w.llm.add(answer("genuinely_stuck"))
    await w.sim.later(2)
    assert len(w.nudges) == 1


@pytest.mark.shows("I30")
@pytest.mark.parametrize(
    "reply",
    ["useless", answer("genuinely_stuck", confidence=0.3), {**answer("working"), "shouldNudge": True}],
)
async def test_a_failed_or_unsure_evaluation_never_nudges(w: World, reply: Any) -> None:
    """A broken form, too little confidence or a contradiction sends nothing."""
    await w.host.types("ses_a")
    await unscored(w, "Now I will change the")
    w.llm.add(reply, reply)
    await w.sim.later(31)
    assert w.nudges == []
    await w.sim.later(300)
    assert w.nudges == []


@pytest.mark.shows("I2")
async def test_a_complete_task_is_left_alone(w: World) -> None:
    """After "complete" no timer is set, however the text ends."""
    w.llm.add(COMPLETE)
    await w.host.types("ses_a")
    await w.goes_on(says="Done. Next, one could also add the")
    await w.sim.later(120)
    assert w.host.prompts == []


@pytest.mark.shows("I10", "I11", "I14", "I16", "I40")
@pytest.mark.parametrize("what", ["types", "escapes", "stops", "off", "asks", "works"])
async def test_what_takes_a_nudge_away(w: World, what: str) -> None:
    """A person, Esc, the switch, a permission or work of its own: dropped."""
    await w.host.types("ses_a")
    await unscored(w, "Now I will change the")
    if what == "types":
        await w.host.types("ses_a", "wait")
    elif what == "escapes":
        await w.host.escapes("ses_a")
    elif what == "stops":
        await w.host.idle("ses_a")  # all that opencode says when an idle session is aborted
    elif what == "off":
        await w.sim.daemon.engine.intake.switch(on=False, session="ses_a")
    elif what == "asks":
        await w.host.emit("permission.asked", sessionID="ses_a", id="per_1")
    else:
        await w.host.busy("ses_a")
    await w.sim.settle()
    asked = len(w.llm.prompts)
    await w.sim.later(31)
    assert (w.nudges, len(w.llm.prompts)) == ([], asked)


# --- a session that works and says nothing ------------------------------------------------------------


@pytest.mark.shows("I10")
async def test_busy_and_silent_the_person_is_told(w: World) -> None:
    """A stuck agent that still counts as working is never prompted; the person is told, once."""
    await w.host.types("ses_a")
    await w.host.answers("ses_a", "Let me", finish="")
    w.llm.add(answer("genuinely_stuck"))
    await w.sim.later(36)
    assert w.host.prompts == []
    assert w.host.toasts == ["The agent seems stuck: because"]
    found = w.verdict()
    assert (found["state"], found["feedback"], found["complete"]) == ("stuck", w.host.toasts[0], False)
    assert w.sim.daemon.status.line("ses_a", "")["state"] == "stuck"
    for _ in range(5):
        await w.sim.later(700)
    assert len(w.host.toasts) == 1


async def test_an_answer_while_the_model_thinks_counts(w: World) -> None:
    """What came while the question was asked makes its answer stale."""
    await w.host.types("ses_a")
    await w.host.answers("ses_a", "Let me", finish="")
    w.llm.add(answer("genuinely_stuck"))
    w.llm.hold = asyncio.Event()
    w.clock.advance(36)
    w.sim.daemon.engine.timers.wake()
    await w.until_asked()
    await w.host.emit("activity", sessionID="ses_a", bytes=100)
    await w.answered()
    assert w.host.toasts == []


async def test_the_answer_is_kept_for_a_minute(w: World) -> None:
    """The same session in the same state is asked about at most once a minute, then ever more seldom."""
    await w.host.types("ses_a")
    await w.host.answers("ses_a", "Let me", finish="")
    for seconds, asked in ((36, 1), (30, 1), (35, 2), (60, 2), (65, 3), (200, 3)):
        w.llm.add(answer("working"))
        await w.sim.later(seconds)
        assert len(w.llm.prompts) == asked, seconds
    assert w.host.toasts == []


@pytest.mark.shows("I33")
@pytest.mark.parametrize("kind", ["retry", "error"])
async def test_trouble_of_the_host_is_not_a_stuck_agent(w: World, kind: str) -> None:
    """Back-off from a failing model, rate limits and context limits are the host's; nobody is nudged."""
    await w.host.types("ses_a")
    if kind == "retry":
        await w.host.emit("session.status", sessionID="ses_a", status={"type": "retry"})
    else:
        error = {"name": "APIError", "message": "rate limit"}
        await w.host.works("ses_a", "", finish="", error=error)
    for _ in range(5):
        await w.sim.later(90)
    assert (w.llm.prompts, w.host.prompts, w.host.toasts) == ([], [], [])


@pytest.mark.shows("I17")
async def test_a_sub_agent_is_not_watched(w: World) -> None:
    """A silent child session is nobody's business, and its parent is working."""
    await w.host.types("ses_a")
    await w.host.create("ses_child", parent="ses_a")
    await w.host.busy("ses_child")
    await w.host.answers("ses_a", "", finish="", tools=(running("task"),))
    await w.sim.later(300)
    assert (w.llm.prompts, w.host.toasts) == ([], [])


# --- loops ------------------------------------------------------------------------------------------


async def _repeats(w: World, times: int) -> None:
    """The same call with the same result, as the shim tells it and as the messages have it."""
    await w.host.answers(
        "ses_a", "Again.", "tool-calls", tuple(bash("npm test", 1, "boom") for _ in range(times))
    )
    for _ in range(times):
        await w.host.emit("tool", sessionID="ses_a", tool="bash", call="c1", result="r1", failed=False)


@pytest.mark.shows("I10")
async def test_a_loop_while_working_is_told_once(w: World) -> None:
    """A working agent that repeats itself is not prompted; the person reads what repeats, once."""
    await w.host.types("ses_a")
    await _repeats(w, 8)
    await w.sim.settle()
    (told,) = w.host.toasts
    assert "npm test" in told
    await w.sim.later(61)
    await _repeats(w, 4)
    await w.sim.settle()
    assert (len(w.host.toasts), w.host.prompts, w.llm.prompts) == (1, [], [])


async def test_status_and_dashboard_name_what_seems_stuck(w: World) -> None:
    """With what the person was told, and only as long as the agent works on this task."""
    daemon = w.sim.daemon
    await w.host.types("ses_a")
    await _repeats(w, 8)
    await w.sim.settle()
    assert daemon.engine.features.status()["stuck"] == {"stuck": {"ses_a": w.host.toasts[0]}}
    page = await reads.now(daemon.site.source, {})
    (section,) = [s for s in page["sections"] if s["name"] == "stuck"]
    assert [(row["session"], row["said"]) for row in section["rows"]] == [("ses_a", w.host.toasts[0])]
    w.llm.add(COMPLETE)
    await w.goes_on(says="Now it is done.")
    assert "stuck" not in daemon.engine.features.status()
    assert "stuck" not in [s["name"] for s in (await reads.now(daemon.site.source, {}))["sections"]]


@pytest.mark.shows("I8")
async def test_a_loop_is_named_once_and_then_costs_nothing(w: World) -> None:
    """Feedback names what repeats; if it goes on, the task is stopped without asking a model again."""
    w.llm.add(INCOMPLETE)
    await w.host.types("ses_a")
    await _repeats(w, 8)
    await w.goes_on(says="Still failing, trying again")
    (prompt,) = w.host.prompts
    assert "You repeat yourself" in prompt.text
    assert "npm test" in prompt.text
    asked = len(w.llm.prompts)
    await _repeats(w, 4)
    await w.goes_on(says="Still failing, trying again")
    assert (len(w.llm.prompts), len(w.host.prompts)) == (asked, 1)
    found = w.verdict()
    assert (found["state"], found["reason"]) == ("stopped", "guard:loop")
    assert "repeats itself" in w.host.toasts[-1]


# --- after feedback ------------------------------------------------------------------------------------


async def _ignored(w: World) -> None:
    """Feedback reached the agent, and it stays idle."""
    w.llm.add(INCOMPLETE)
    await w.host.types("ses_a")
    w.host.ignores = True
    await w.goes_on()
    assert len(w.host.prompts) == 1


@pytest.mark.shows("I8")
async def test_one_nudge_when_nothing_follows_feedback(w: World) -> None:
    """30 s after feedback that nothing followed, one nudge, without a model, and never a second."""
    await _ignored(w)
    await w.sim.later(29)
    assert w.nudges == []
    await w.sim.later(2)
    assert len(w.nudges) == 1
    assert "feedback above is still open" in w.nudges[0]
    for _ in range(4):
        await w.sim.later(60)
    assert len(w.nudges) == 1
    assert len(w.llm.prompts) == 1


@pytest.mark.shows("I4", "I5")
async def test_a_nudge_is_no_human_message(w: World) -> None:
    """A nudge opens no task, resets no counter, and what follows it is judged."""
    await _ignored(w)
    await w.sim.later(31)
    w.llm.add(COMPLETE)
    w.host.ignores = False
    before = w.sim.daemon.world.sessions.get("ses_a")
    await w.host.busy("ses_a")
    await w.goes_on(says="Now it is done.", tools=(write("a.py"),))
    after = w.sim.daemon.world.sessions.get("ses_a")
    assert before is not None
    assert after is not None
    assert (after.task, after.attempts) == (before.task, 1)
    assert w.verdict()["state"] == "complete"


@pytest.mark.shows("I8")
async def test_at_most_three_nudges_for_a_task(w: World) -> None:
    """Nudges are counted per task; then the person is told."""
    await w.host.types("ses_a")
    for n in range(5):
        await w.host.busy("ses_a")
        w.llm.add(INCOMPLETE if n % 2 else UNREADABLE, *([] if n % 2 else [UNREADABLE]))
        await w.goes_on(says="Now I will change the", tools=(bash(f"ls {n}"),))
        w.llm.script.clear()
        w.llm.add(answer("genuinely_stuck"))
        await w.sim.later(31)
        w.llm.script.clear()
    assert len(w.nudges) == 3

"""Stretches: judged turns as one, and sessions of the past as the same."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from daemon.core.evidence import Act, Evidence, FileChange, Row
from daemon.core.transcript import Message, ToolCall, Transcript
from daemon.core.verdict import Missing, Severity, Verdict
from daemon.learning.playbook.questions import BYTES, NOT_JUDGED, TASKS, Past, Stretch, joined, of_past

EVIDENCE = Evidence(
    rows=(Row("E1", "check", "pytest passed"),),
    tool_calls=1,
    writes=1,
    log=(Act("A1", "pytest"), Act("", "a mark")),
    files=(FileChange("a.py", "new"),),
)


def judged(turn: str, task: str = "t1", **more: Any) -> Stretch:
    words = {"requests": (f"do {task}",), "ended": f"ended {turn}", "final": f"final {turn}"}
    return Stretch("s", "/p", task, (turn,), **{**words, "evidence": EVIDENCE, **more})


def made(*turns: Stretch) -> Stretch:
    stretch = joined(turns)
    assert stretch is not None
    return stretch


def test_the_last_turn_of_a_task_shows_all_of_it() -> None:
    """An earlier round of the same task adds its citations and its reward, and nothing twice."""
    first = judged("1", lowest=-0.6, cited=("pat-001",))
    stretch = made(first, judged("2", lowest=1.0, cited=("pat-001", "mis-002")))
    last = judged("2", cited=("pat-001", "mis-002"), lowest=-0.6)
    assert stretch == replace(last, turns=("1", "2"))
    assert joined([]) is None


def test_several_tasks_become_one_with_ids_of_their_own() -> None:
    """No row of one task can be taken for a row of another."""
    stretch = made(judged("1"), judged("2", "t2"), judged("3", "t2"))
    assert stretch.requests == ("do t1", "do t2")
    assert stretch.ended == "T1: ended 1\nT2: ended 3"
    assert [r.id for r in stretch.evidence.rows] == ["T1.E1", "T2.E1"]
    assert [a.id for a in stretch.evidence.log] == ["T1.A1", "", "T2.A1", ""]
    assert (stretch.evidence.tool_calls, len(stretch.evidence.files)) == (2, 2)


def test_which_stretch_is_worth_a_question() -> None:
    """A citation, a low reward, or three calls."""
    for more in ({"cited": ("pat-001",)}, {"lowest": 0.2}, {"evidence": Evidence(tool_calls=3)}):
        assert judged("1", **more).teaches, more
    for reward in (1.0, 0.3):
        assert not judged("1", lowest=reward).teaches, "strictly below 0.3"


# --- sessions of the past ----------------------------------------------------------------------------------

_ids = count()
LINE = "[pat-001] helpful=1 harmful=0 :: Run make db first."


def task(
    request: str = "Do it", *, calls: int = 3, final: str = "Done.", output: str = "ok", **more: str
) -> tuple[Message, ...]:
    """What was asked, some calls, and the answer."""
    n = next(_ids)
    tools = tuple(
        ToolCall(f"c{n}.{i}", "bash", "completed", {"command": f"make step-{i}"}, output, exit=0)
        for i in range(calls)
    )
    return (
        Message(f"u{n}", "user", n, request, human=True),
        Message(f"w{n}", "assistant", n, calls=tools, finish="tool-calls"),
        Message(f"a{n}", "assistant", n, final, finish="stop", **more),  # type: ignore[arg-type]
    )


def past(
    *tasks: tuple[Message, ...],
    name: str = "s",
    given: Mapping[str, set[str]] | None = None,
    verdicts: Mapping[str, Verdict] | None = None,
    seen: frozenset[str] = frozenset(),
) -> Past:
    transcript = Transcript(name, tuple(m for t in tasks for m in t), directory="/repo")
    return of_past(transcript, given or {}, verdicts or {}, seen)


def stretch_of(found: Past) -> Stretch:
    assert found.stretch is not None, found.why
    return found.stretch


def test_all_tasks_of_a_session_become_one_stretch() -> None:
    """Their requests, calls and rows; the title is the first request."""
    found = past(task("First"), task("Second", final="As [pat-002] says."))
    stretch = stretch_of(found)
    assert (stretch.requests, stretch.cited, stretch.directory) == (
        ("First", "Second"),
        ("pat-002",),
        "/repo",
    )
    assert stretch.evidence.tool_calls == 6
    assert stretch.ended.startswith(f"T1: {NOT_JUDGED}")
    assert (found.title, found.why) == ("First", "")


def test_what_a_guard_would_have_ended_teaches_nothing() -> None:
    """Esc, an error of the host, a plan: as in the daemon; and a session of such tasks alone is left out."""
    stopped = task("Stop", error="MessageAbortedError")
    broken = task("Break", error="APIError")
    plan = task("Plan", agent="plan")
    assert stretch_of(past(task("Good"), plan, broken)).requests == ("Good",)
    assert past(stopped).why == "no task of its own was brought to an end"
    assert past().why == "no message that a person typed is in it"
    assert past(task(calls=1)).why == "too little happened"


@pytest.mark.shows("LEARN-17")
def test_a_copy_of_another_session_teaches_nothing_twice() -> None:
    """A fork has the lines of the first session, with the same ids; an older copy has other ids and the same
    words and calls. Only what is its own counts, so that no session confirms what a copy of it taught.
    """
    first = (task("One"), task("Two"))
    seen = past(*first).marks
    assert stretch_of(past(*first, task("Three"), name="fork", seen=seen)).requests == ("Three",)
    renamed = tuple(tuple(replace(m, id=f"new-{m.id}") for m in t) for t in first)
    assert past(*renamed, name="copy", seen=seen).why == "no task of its own was brought to an end"
    assert past(task("One"), task("Two"), seen=seen).stretch, "the same words about other work"


def test_a_verdict_of_then_is_told_and_what_was_given_is_taken_out() -> None:
    """Where the daemon judged it, its verdict counts, and so does its guard; our own words behind a result
    prove nothing, and what the agent wrote stays.
    """
    good, ended = task("Good", final="make db, done.", output=f"ok\n\n{LINE}"), task("Ended")
    turn, other = good[-1].id, ended[-1].id
    bad = Verdict("s", "t", turn, "incomplete", 1, Severity.HIGH, missing=(Missing("The tests fail"),))
    verdicts = {turn: bad, other: Verdict("s", "t", other, "stopped", 1)}
    stretch = stretch_of(past(good, ended, given={c.id: {LINE} for c in good[1].calls}, verdicts=verdicts))
    assert stretch.requests == ("Good",)
    assert stretch.ended == "incomplete, severity HIGH; reward -0.6; open: The tests fail"
    assert (stretch.lowest, stretch.cited) == (-0.6, ())
    assert "make db" in stretch.final
    assert LINE not in repr(stretch.evidence)


@pytest.mark.shows("I46")
def test_secrets_are_taken_out() -> None:
    """Before anything is collected."""
    secret = "ghp_" + "a1B2" * 10
    assert secret not in repr(past(task(f"Use {secret}", final=f"Used {secret}")))


def test_a_long_session_has_bounds() -> None:
    """Its newest tasks count, as many as are sent at once."""
    many = stretch_of(past(*(task(f"Request {i}") for i in range(TASKS + 5))))
    assert (len(many.requests), many.requests[-1]) == (TASKS, f"Request {TASKS + 4}")
    long = "".join(f"line {i} of a long request\n" for i in range(1_200))
    large = stretch_of(past(*(task(f"{i} {long}", final=long) for i in range(TASKS))))
    assert BYTES / 2 < len(msgspec.json.encode(large)) < BYTES * 1.1
    assert 2 < len(large.requests) < TASKS
    assert large.requests[-1].startswith(f"{TASKS - 1} line")

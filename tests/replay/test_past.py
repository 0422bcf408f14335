"""Past sessions as stretches: which tasks teach, and what is known about them."""

from __future__ import annotations

from dataclasses import replace
from itertools import count

import msgspec
import pytest

from daemon.core.transcript import Message, ToolCall, Transcript
from daemon.core.verdict import Missing, Severity, Verdict
from daemon.learning.playbook.reflector import REFLECTOR_TOKENS
from daemon.replay.past import BYTES, NOT_JUDGED, TASKS, Known, Past, past_of, prompt_tokens

_ids = count()
HOST = "claude-code"
LINE = "[pat-001] helpful=1 harmful=0 :: Run make db first."


def task(
    request: str = "Do it", *, calls: int = 3, final: str = "Done.", output: str = "ok", **more: str
) -> tuple[Message, ...]:
    """What was asked, some calls, and the answer."""
    n = next(_ids)
    made = tuple(
        ToolCall(f"c{n}.{i}", "bash", "completed", {"command": f"make step-{i}"}, output, exit=0)
        for i in range(calls)
    )
    return (
        Message(f"u{n}", "user", n, request, human=True),
        Message(f"w{n}", "assistant", n, calls=made, finish="tool-calls"),
        Message(f"a{n}", "assistant", n, final, finish="stop", **more),  # type: ignore[arg-type]
    )


def session(*tasks: tuple[Message, ...], name: str = "s") -> Transcript:
    return Transcript(name, tuple(m for t in tasks for m in t), directory="/repo")


def looked(transcript: Transcript, known: Known | None = None, **more: object) -> Past:
    return past_of(transcript, HOST, known or Known(), **more)  # type: ignore[arg-type]


def test_all_tasks_of_a_session_become_one_stretch() -> None:
    """Their requests, calls and rows, each task with ids of its own; the title is the first request."""
    found = looked(session(task("First"), task("Second", final="As [pat-002] says.")))
    assert found.stretch is not None
    assert found.stretch.requests == ("First", "Second")
    assert found.stretch.evidence.tool_calls == 6
    assert found.stretch.cited == ("pat-002",)
    assert {a.id.split(".")[0] for a in found.stretch.evidence.log if a.id} == {"T1", "T2"}
    assert found.stretch.ended.startswith(f"T1: {NOT_JUDGED}")
    assert (found.title, found.left_out, found.why) == ("First", 0, "")


def test_what_a_guard_would_have_ended_teaches_nothing() -> None:
    """Esc, an error of the host, a plan: as in the daemon; and a session of such tasks alone is left out."""
    stopped = task("Stop", error="MessageAbortedError")
    broken = task("Break", error="APIError")
    plan = task("Plan", agent="plan")
    found = looked(session(task("Good"), plan, broken))
    assert found.stretch is not None
    assert found.stretch.requests == ("Good",)
    assert found.left_out == 2
    assert looked(session(stopped)).why == "no task of its own was brought to an end"
    assert looked(session()).why == "no message that a person typed is in it"
    assert looked(session(task(calls=1))).why == "too little happened"


@pytest.mark.shows("LEARN-17")
def test_a_copy_of_another_session_teaches_nothing_twice() -> None:
    """A fork has the lines of the first session, with the same ids; an older copy has other ids and the same
    words and calls. Only what is its own counts, so that no session confirms what a copy of it taught.
    """
    first = session(task("One"), task("Two"))
    seen = looked(first).marks
    fork = session(first.messages, task("Three"), name="fork")
    assert looked(fork, seen=seen).stretch.requests == ("Three",)  # type: ignore[union-attr]
    renamed = tuple(replace(m, id=f"new-{m.id}") for m in first.messages)
    assert looked(session(renamed, name="copy"), seen=seen).why == "no task of its own was brought to an end"
    same_words = session(task("One"), task("Two"), name="other")
    assert looked(same_words, seen=seen).stretch is not None, "the same words about other work"


def test_it_is_read_again_by_the_tasks_that_were_chosen() -> None:
    """Between the estimate and its turn the session may have grown."""
    first = session(task("One"))
    chosen = looked(first)
    grown = session(first.messages, task("Two"))
    assert looked(grown, only=chosen.tasks).stretch == chosen.stretch


def test_a_verdict_of_then_is_told_and_what_was_given_is_taken_out() -> None:
    """Where the daemon judged it, its verdict counts, and so does its guard; our own words behind a result
    prove nothing, and what the agent wrote stays.
    """
    good, ended = task("Good", final="make db, done.", output=f"ok\n\n{LINE}"), task("Ended")
    turn, other = good[-1].id, ended[-1].id
    bad = Verdict("s", "t", turn, "incomplete", 1, Severity.HIGH, missing=(Missing("The tests fail"),))
    known = Known(
        {c.id: {LINE} for c in good[1].calls}, {turn: bad, other: Verdict("s", "t", other, "stopped", 1)}
    )
    found = looked(session(good, ended), known).stretch
    assert found is not None
    assert found.requests == ("Good",)
    assert found.ended == "incomplete, severity HIGH; reward -0.6; open: The tests fail"
    assert found.lowest == -0.6
    assert found.cited == ()
    assert "make db" in found.final
    assert LINE not in repr(found.evidence)


@pytest.mark.shows("I46")
def test_secrets_are_taken_out() -> None:
    """Before anything is collected."""
    secret = "ghp_" + "a1B2" * 10
    found = looked(session(task(f"Use {secret}", final=f"Used {secret}")))
    assert secret not in repr(found)


def test_a_long_session_has_bounds() -> None:
    """Its newest tasks count, as many as are sent at once; the prompt's size never passes the reflector's."""
    many = looked(session(*(task(f"Request {i}") for i in range(TASKS + 5))))
    assert many.stretch is not None
    assert (len(many.stretch.requests), many.left_out) == (TASKS, 5)
    assert many.stretch.requests[-1] == f"Request {TASKS + 4}"
    long = "".join(f"line {i} of a long request\n" for i in range(1_200))
    large = looked(session(*(task(f"{i} {long}", final=long) for i in range(TASKS))))
    assert large.stretch is not None
    sent = len(msgspec.json.encode(large.stretch))
    assert BYTES / 2 < sent < BYTES * 1.1
    assert 2 < len(large.stretch.requests) < TASKS
    assert large.stretch.requests[-1].startswith(f"{TASKS - 1} line")
    assert large.left_out == TASKS - len(large.stretch.requests)
    template = "{nonce} {transcript} {playbook} {cited_ids}"
    small = prompt_tokens(looked(session(task())).stretch, template)  # type: ignore[arg-type]
    assert 1_100 < small < 2_000 < prompt_tokens(large.stretch, template) <= REFLECTOR_TOKENS

"""A stop of the past: the guards, a session's state from stop to stop."""

from __future__ import annotations

from msgspec.structs import replace

from daemon.core.guards import Limits
from daemon.core.transcript import After, Message, Stop, ToolCall, Transcript
from daemon.replay.stops import Walk, driven, mark_of, rules
from tests.support.questions import SHIPPED

REQUEST = Message("t1", "user", 1, "Add a login page with tests", human=True)


def failed(name: str, at: int = 2) -> tuple[Message, ...]:
    """A turn whose tests failed."""
    calls = (
        ToolCall(f"{name}-w", "write", "completed", {"filePath": "a.py", "content": "x"}, "ok"),
        ToolCall(f"{name}-b", "bash", "completed", {"command": "pytest -q"}, "2 failed in 0.1s", exit=1),
    )
    work = Message(f"{name}-0", "assistant", at, calls=calls, finish="tool-calls", completed=at)
    return work, Message(name, "assistant", at, "All done.", finish="stop", completed=at)


def stop(*messages: Message, after: After = "end") -> Stop:
    return Stop(Transcript("s", messages, directory="/repo"), after)


def test_a_session_goes_on_from_stop_to_stop() -> None:
    """The second round on the same task counts as the second, and a task of the person begins anew."""
    walk, found = Walk("opencode", Limits()), []
    feedback = Message("f1", "user", 3, "## Reflection-3", order="rfl_1")
    first = (REQUEST, *failed("a1"))
    second = (*first, feedback, *failed("a2", 4))
    third = (*second, replace(REQUEST, id="t2", at=5), *failed("a3", 6))
    for messages in (first, second, third):
        prepared = walk.prepare(stop(*messages), SHIPPED)
        assert prepared is not None
        assert prepared.case is not None
        found.append(walk.decide(prepared, driven(prepared.case, rules)))
    assert [(d.verdict.state, d.verdict.attempt) for d in found] == [("incomplete", n) for n in (1, 2, 1)]


def test_the_guards_are_asked() -> None:
    """Esc ends the turn, a plan is the person's turn, and a limit of rounds holds."""
    aborted = Message("a1", "assistant", 2, error="MessageAbortedError")
    planned = Message("a1", "assistant", 2, "A plan.", finish="stop", agent="plan", completed=2)
    for limits, turn, expected in (
        (Limits(), (aborted,), ("stopped", "guard:aborted")),
        (Limits(), (planned,), ("awaiting_user", "guard:plan_agent")),
        (Limits(max_attempts=0), failed("a1"), ("stopped", "guard:max_attempts")),
    ):
        found = Walk("opencode", limits).prepare(stop(REQUEST, *turn), SHIPPED)
        assert found is not None
        assert found.decided is not None
        assert (found.decided.verdict.state, found.decided.verdict.reason) == expected


def test_what_the_daemon_would_not_judge_is_no_result() -> None:
    """A turn that waits for the background, one of a sub-agent, and one that nobody asked for."""
    turn = failed("a1")
    child = Stop(Transcript("s", (REQUEST, *turn), parent="p"), "end")
    for other in (stop(REQUEST, *turn, after="host"), stop(*turn), child):
        assert Walk("opencode", Limits()).prepare(other, SHIPPED) is None


def test_a_copy_has_the_same_mark() -> None:
    """A fork gives messages other ids; what was said, called and when stays."""
    turn = failed("a1")
    own = Transcript("s", (REQUEST, *turn))
    copied = tuple(replace(m, id=f"copy-{m.id}") for m in (REQUEST, *turn))
    assert mark_of(own) == mark_of(Transcript("s2", copied))
    assert mark_of(own) != mark_of(Transcript("s", (replace(REQUEST, text="Other"), *turn)))

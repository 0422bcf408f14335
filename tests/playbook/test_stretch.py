"""Judged turns of a session become one stretch."""

from __future__ import annotations

from typing import Any

from daemon.core.evidence import Act, Evidence, FileChange, Row
from daemon.playbook.stretch import Judged, Stretch, stretch_of

EVIDENCE = Evidence(
    rows=(Row("E1", "check", "pytest passed"),),
    tool_calls=1,
    writes=1,
    log=(Act("A1", "pytest"), Act("", "a mark")),
    files=(FileChange("a.py", "new"),),
)


def judged(turn: str, task: str = "t1", **more: Any) -> Judged:
    known = {
        "session": "s",
        "task": task,
        "turn": turn,
        "at": 1,
        "directory": "/p",
        "host": "opencode",
        "ended": f"ended {turn}",
        "requests": (f"do {task}",),
        "final": f"final {turn}",
        "evidence": EVIDENCE,
    }
    return Judged(**(known | more))


def made(*turns: Judged) -> Stretch:
    found = stretch_of(turns)
    assert found is not None
    return found


def test_the_last_turn_of_a_task_shows_all_of_it() -> None:
    """An earlier round of the same task adds its citations and its reward, and nothing twice."""
    first = judged("1", reward=-0.6, cited=("pat-001",))
    found = made(first, judged("2", reward=1.0, cited=("pat-001", "mis-002")))
    assert found.turns == ("1", "2")
    assert (found.ended, found.final, found.requests) == ("ended 2", "final 2", ("do t1",))
    assert found.evidence == EVIDENCE
    assert found.cited == ("pat-001", "mis-002")
    assert found.lowest == -0.6
    assert stretch_of([]) is None


def test_several_tasks_become_one_with_ids_of_their_own() -> None:
    """No row of one task can be taken for a row of another."""
    found = made(judged("1"), judged("2", "t2"), judged("3", "t2"))
    assert found.requests == ("do t1", "do t2")
    assert found.ended == "T1: ended 1\nT2: ended 3"
    assert [r.id for r in found.evidence.rows] == ["T1.E1", "T2.E1"]
    assert [a.id for a in found.evidence.log] == ["T1.A1", "", "T2.A1", ""]
    assert (found.evidence.tool_calls, len(found.evidence.files)) == (2, 2)


def test_which_stretch_is_worth_a_question() -> None:
    """A citation, a low reward, or three calls."""
    for more in ({"cited": ("pat-001",)}, {"reward": 0.2}, {"evidence": Evidence(tool_calls=3)}):
        assert made(judged("1", **more)).teaches, more
    for reward in (1.0, 0.3):
        assert not made(judged("1", reward=reward)).teaches, "strictly below 0.3"

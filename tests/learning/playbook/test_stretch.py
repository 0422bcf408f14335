"""Stretches: judged turns as one."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from daemon.core.evidence import Act, Evidence, FileChange, Row
from daemon.learning.playbook.questions import Stretch, joined

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

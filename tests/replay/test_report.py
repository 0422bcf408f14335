"""Results of stops, how they are counted, which feedbacks a person looks at, and what the answers say."""

from __future__ import annotations

import json

import pytest

from daemon.cli.judge.report import names
from daemon.replay.report import Answer, Report, Result, precision, sample

DAY = 86_400_000
MONDAY = 1_763_985_600_000  # 2025-11-24, noon UTC


def result(n: int, state: str, **more: object) -> Result:
    known = {"host": "opencode", "project": "/a/shop", "session": f"s{n // 2}", "turn": f"t{n}", "at": MONDAY}
    return Result(**{**known, "state": state, **more})  # type: ignore[arg-type]


def test_stops_are_counted_by_state_and_project() -> None:
    """Each once: the state, the severity of what would have been sent, the project."""
    report = Report("anthropic")
    for r in (
        result(0, "complete", asks=True, calls=1, cost=0.01),
        result(1, "incomplete", severity="HIGH", asks=True, calls=2, cost=0.02, feedback="x"),
        result(2, "awaiting_user", project="/b/shop", at=MONDAY + 7 * DAY),
        result(3, "unscored", project="/b/shop", at=MONDAY + 7 * DAY, asks=True, calls=1, cost=None),
        result(4, "stopped", host="claude-code"),
    ):
        report.add(r)
    found = report.json()
    assert json.loads(json.dumps(found)) == found
    counted = ("sessions", "stops", "complete", "sent", "awaiting", "unscored", "stopped")
    assert [found[name] for name in counted] == [3, 5, 1, 1, 1, 1, 1]
    assert found["severities"] == {"HIGH": 1}
    assert [(n, c.stops) for n, c in report.by_stops()] == [("/a/shop", 3), ("/b/shop", 2)]
    assert (found["days"], found["calls"], found["usd"]) == (2, 4, None), "one price is unknown"
    assert found["hosts"] == {"claude-code": 1, "opencode": 4}
    nothing = Report("offline").json()
    assert (nothing["stops"], nothing["days"], nothing["projects"]) == (0, 0, [])


def test_folders_are_named_by_their_last_part() -> None:
    """Two with the same get numbers; the way to them is not shown."""
    found = names(["/home/ada/shop", "/srv/shop", "/x/blog", ""])
    assert list(found.values()) == ["shop", "shop #2", "blog", "(no folder)"]


def test_a_sample_is_drawn_once() -> None:
    """At most 20, the same each time, in whatever order they come; few are all looked at."""
    marks = [f"m{n}" for n in range(80)]
    chosen = sample(marks)
    assert len(set(chosen)) == 20
    assert sample(reversed(marks)) == chosen
    assert (set(sample(marks[:4])), sample([])) == (set(marks[:4]), [])


@pytest.mark.parametrize(
    ("right", "wrong", "unknown", "sentence", "proposes"),
    [
        (18, 2, 0, "of 41 that would have been sent, 18 of 20 looked at were right: 70–97 %", "act"),  # noqa: RUF001
        (9, 11, 0, "of 41 that would have been sent, 9 of 20 looked at were right: 26–66 %", "observe"),  # noqa: RUF001
        (9, 0, 3, "of 41 that would have been sent, 9 of 9 looked at were right: 70–100 %", "observe"),  # noqa: RUF001
        (0, 0, 5, "of 41 that would have been sent, none was looked at with an answer", "observe"),
    ],
)
def test_what_the_answers_say(right: int, wrong: int, unknown: int, sentence: str, proposes: str) -> None:
    """The share with its interval; acting is proposed from 70 % at its lower end and ten answers on."""
    marks = [f"m{n}" for n in range(41)]
    given: list[Answer] = ["right"] * right + ["complete"] * wrong + ["unknown"] * unknown
    found = precision(marks, dict(zip(marks, given, strict=False)) | {"gone": "right"})
    assert (found.sentence, found.proposes, found.unknown) == (sentence, proposes, unknown)

"""Results of stops, how they are counted, which feedbacks a person looks at, and what the answers say."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from daemon.cli.judge.report import names
from daemon.replay.report import Answer, Report, Result, precision, sample

DAY = 86_400_000
MONDAY = 1_763_985_600_000  # 2025-11-24, noon UTC


def result(n: int, state: str, **more: object) -> Result:
    known = {"host": "opencode", "project": "/a/shop", "session": f"s{n // 2}", "turn": f"t{n}", "at": MONDAY}
    return Result(**{**known, "state": state, **more})  # type: ignore[arg-type]


def test_stops_are_counted_by_state_project_and_week() -> None:
    """Each once: the state, the severity of what would have been sent, the sign, the project, the week."""
    report = Report("anthropic")
    for r in (
        result(0, "complete", sign="went_on", asks=True, calls=1, cost=0.01),
        result(1, "incomplete", severity="HIGH", sign="again", asks=True, calls=2, cost=0.02, feedback="x"),
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
    assert report.signs["sent", "again"] == report.signs["complete", "went_on"] == 1
    assert [(n, c.stops) for n, c in report.by_stops()] == [("/a/shop", 3), ("/b/shop", 2)]
    assert [(n, c.stops) for n, c in report.by_week()] == [("2025-W49", 2), ("2025-W48", 3)]
    assert (found["days"], found["calls"], found["usd"]) == (2, 4, None), "one price is unknown"
    assert found["hosts"] == {"claude-code": 1, "opencode": 4}
    nothing = Report("offline").json()
    assert (nothing["stops"], nothing["days"], nothing["projects"]) == (0, 0, [])


def test_folders_are_named_by_their_last_part() -> None:
    """Two with the same get numbers; the way to them is not shown."""
    found = names(["/home/ada/shop", "/srv/shop", "/x/blog", ""])
    assert list(found.values()) == ["shop", "shop #2", "blog", "(no folder)"]


def sent(mark: str, severity: str, project: str) -> tuple[str, Result]:
    return mark, result(0, "incomplete", severity=severity, project=project)


def candidates(**numbers: int) -> list[tuple[str, Result]]:
    """So many of each severity, in three projects."""
    pairs = [(severity, n) for severity, of in numbers.items() for n in range(of)]
    return [sent(f"{severity}-{n}", severity, f"/p{n % 3}") for severity, n in pairs]


def test_each_severity_has_its_share() -> None:
    """20 of 80: as many of each as its part of all, whatever their order, and the same each time."""
    found = candidates(HIGH=48, MEDIUM=24, LOW=8)
    chosen = sample(found)
    assert Counter(mark.partition("-")[0] for mark in chosen) == {"HIGH": 12, "MEDIUM": 6, "LOW": 2}
    assert sample(reversed(found)) == chosen
    assert len(set(chosen)) == 20


def test_projects_take_turns() -> None:
    """Within one severity no project is left out for another."""
    many = [sent(f"a{n}", "HIGH", "/big") for n in range(100)]
    few = [sent(f"b{n}", "HIGH", "/small") for n in range(10)]
    chosen = sample([*many, *few])
    assert Counter(mark[0] for mark in chosen) == {"a": 10, "b": 10}


def test_few_are_all_looked_at() -> None:
    """With fewer than 20 there is nothing to choose; with none there is nothing."""
    assert sorted(sample(candidates(HIGH=3, LOW=1))) == ["HIGH-0", "HIGH-1", "HIGH-2", "LOW-0"]
    assert sample([]) == []


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

"""Which feedbacks are looked at, and what the answers say."""

from __future__ import annotations

from collections import Counter

import pytest

from daemon.replay.sample import Answer, Candidate, precision, sample


def candidates(**numbers: int) -> list[Candidate]:
    """So many of each severity, in three projects."""
    pairs = [(severity, n) for severity, of in numbers.items() for n in range(of)]
    return [Candidate(f"{severity}-{n}", severity, f"/p{n % 3}") for severity, n in pairs]


def test_each_severity_has_its_share() -> None:
    """20 of 80: as many of each as its part of all, whatever their order, and the same each time."""
    found = candidates(HIGH=48, MEDIUM=24, LOW=8)
    chosen = sample(found)
    assert Counter(mark.partition("-")[0] for mark in chosen) == {"HIGH": 12, "MEDIUM": 6, "LOW": 2}
    assert sample(reversed(found)) == chosen
    assert len(set(chosen)) == 20


def test_projects_take_turns() -> None:
    """Within one severity no project is left out for another."""
    many = [Candidate(f"a{n}", "HIGH", "/big") for n in range(100)]
    few = [Candidate(f"b{n}", "HIGH", "/small") for n in range(10)]
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

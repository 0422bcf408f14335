"""How often the ranker is right at each line."""

from __future__ import annotations

import pytest

from daemon.memory.margin import Outcome, Task, at, curve, kind_of, line_of, outcomes_of, texts_of, trials
from daemon.memory.weights import WITHOUT_MEANING

EXPORT = "Add a CSV export to the orders list"
TASKS = [
    Task("s1", "en", EXPORT, "g1", "Quote the fields.", stored=True, project="p"),
    Task("s2", "en", "Make the Docker image smaller", "g2", "Copy it.", stored=True, project="p"),
    Task("s3", "en", EXPORT, "g3", "Other lesson.", stored=True, project="q"),
    Task("a1", "en", "Orders list: add an export as CSV", "g1", project="p"),
    Task("n1", "en", "Show the orders list to admins only", near_miss_of="g1", project="p"),
    Task("u1", "en", "Tell me a joke"),
]


def test_a_trial_of_each_asked_task() -> None:
    """The lesson of the same task is found in its project; nothing of another project is."""
    tried = trials(TASKS, None)
    assert [t.task.id for t in tried] == ["a1", "n1", "u1"]
    assert {c.episode.id for c in tried[0].found} <= {"s1", "s2"}
    same, near, unrelated = outcomes_of(tried, WITHOUT_MEANING)
    assert (same.kind, near.kind, unrelated.kind) == ("same", "near", "unrelated")
    assert same.first
    assert same.hit == same.best > near.best > unrelated.best == -1
    assert near.hit == -1


def test_vectors_decide_where_words_do_not() -> None:
    """With the vectors of all texts, a task in other words is found by its meaning."""
    asked = Task("a", "en", "zzz", "g2", project="p")
    tasks = [*TASKS[:2], asked, TASKS[5]]
    rows = dict.fromkeys(texts_of(tasks), (1.0, 0.0))
    rows |= {text: (0.0, 1.0) for text in rows if "Docker" in text or text == "zzz"}
    (same, _) = outcomes_of(trials(tasks, rows), WITHOUT_MEANING)
    assert trials(tasks, rows)[0].signals[1].meaning == pytest.approx(1.0)
    assert same.first


def outcome(kind: str, best: float, hit: float = -1.0) -> Outcome:
    task = Task("t", "en", "x", "g" if kind == "same" else None, near_miss_of="g" if kind == "near" else None)
    return Outcome(task, kind_of(task), best, hit, first=hit == best)


def test_the_curve_and_the_line_with_few_false_lessons() -> None:
    """Shares at each line, the highest first; the lowest line that keeps within the limit."""
    outcomes = [outcome("same", 0.9, 0.9), outcome("same", 0.6, 0.5), outcome("near", 0.7)]
    outcomes += [outcome("unrelated", 0.4), outcome("unrelated", -1.0)]
    assert at(outcomes, 0.5) == (0.5, 1.0, pytest.approx(1 / 3), 1.0, 0.0)
    assert [p.line for p in curve(outcomes)] == [0.9, 0.7, 0.6, 0.5, 0.4]
    assert line_of(outcomes, 0.1).line == 0.9
    assert line_of(outcomes, 0.4).line == 0.5
    assert line_of(outcomes, 1.0, 0.0).line == 0.5
    assert line_of([outcome("near", 1.0)]).line == 1.0

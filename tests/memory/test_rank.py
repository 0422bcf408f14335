"""Which lessons belong in front of a task."""

from __future__ import annotations

from dataclasses import replace

import pytest

from daemon.core.episodes import Candidate, Episode, Trigger
from daemon.memory.rank import Query, Ranked, rank, worth_showing

TASKS = {
    "login": "Fix the redirect after the login",
    "export": "Add a CSV export to the orders list",
    "docker": "Make the Docker image smaller",
    "retry": "Retry failed webhooks three times",
}
NEAR = {"export": 0.72, "login": 0.1, "docker": 0.05, "retry": 0.12}


def episode(id_: str, **more: object) -> Episode:
    return replace(Episode(id_, "p", TASKS[id_], -0.5, "", "Quote the fields.", ""), **more)


def found(near: dict[str, float] | None = None) -> list[Candidate]:
    return [Candidate(episode(id_), near[id_] if near else None) for id_ in TASKS]


def order(ranked: list[Ranked]) -> list[str]:
    return [r.candidate.episode.id for r in ranked]


@pytest.mark.shows("AC-2.6.4")
@pytest.mark.parametrize("near", [NEAR, None], ids=["vectors", "words"])
def test_the_same_task_comes_first_and_is_shown(near: dict[str, float] | None) -> None:
    """In the same project, in other words; the others stay below the line."""
    ranked = rank(Query("Orders list: please add an export as CSV", "p"), found(near))
    assert order(ranked)[0] == "export"
    assert order(worth_showing(ranked)) == ["export"]
    assert ranked[0].why
    assert [r.score for r in ranked] == sorted((r.score for r in ranked), reverse=True)


@pytest.mark.parametrize("text", ["What time is it in Tokyo?", "go on", "", "🙂", "x" * 100_000])
def test_something_else_gets_nothing(text: str) -> None:
    """Nothing is shown for a continuation, a question, or a text without words, however long."""
    assert worth_showing(rank(Query(text, "p"), found())) == rank(Query(text, "p"), []) == []


def test_another_language_meets_by_its_concepts() -> None:
    """What the words mean counts, not how they are written."""
    ranked = rank(Query("Füge der Bestellliste einen Export als CSV hinzu", "p"), found())
    assert order(ranked)[0] == "export"


@pytest.mark.parametrize(
    ("query", "more"),
    [
        (Query("Look at this", "p", files=("src/Login.py",)), {"files": ("src/login.py",)}),
        (Query("Look at this", "p", errors=("KeyError",)), {"triggers": (Trigger("error", "KeyError"),)}),
        (Query("Look at `parse_all`", "p"), {"query": "Something is wrong in `parse_all`"}),
    ],
    ids=["file", "error", "name"],
)
def test_what_is_in_common_counts(query: Query, more: dict[str, object]) -> None:
    """The same file, error or name raises the score of an episode that is alike otherwise."""
    plain = replace(
        episode("login"), query=str(more.get("query", TASKS["login"])).replace("parse_all", "it_all")
    )
    both = [Candidate(plain), Candidate(replace(episode("login", **more), id="mine"))]
    ranked = rank(query, both)
    assert order(ranked)[0] == "mine"
    assert ranked[0].score > ranked[1].score


def test_another_project_counts_less() -> None:
    """The same task in two projects: this one's lesson comes first."""
    both = [Candidate(episode("login", project="q", id="other"), 0.8), Candidate(episode("login"), 0.8)]
    assert order(rank(Query("Fix the redirect after login", "p"), both)) == ["login", "other"]


def test_an_episode_without_a_vector_yet_is_not_lost() -> None:
    """While vectors are made anew, words stand in for the one that is missing."""
    some = [replace(c, similarity=None) if c.episode.id == "export" else c for c in found(NEAR)]
    assert order(rank(Query("Add a CSV export to the orders list", "p"), some))[0] == "export"


def test_never_more_than_three() -> None:
    """Four episodes of one task: three are shown at most."""
    many = [Candidate(replace(episode("export"), id=f"e{n}"), 0.99) for n in range(4)]
    ranked = [replace(r, margin=0.1) for r in rank(Query(TASKS["export"], "p"), many)]
    assert len(worth_showing(ranked)) == 3

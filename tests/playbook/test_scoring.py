"""Counting and pruning."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given

from daemon.playbook.points import each, migrated
from daemon.playbook.scoring import apply_tags, harms, of_session, prune, update
from tests.playbook.books import COUNTS, LEGACY, TAGS, Json, book, names, point, said


@pytest.mark.shows("INV-SCORE-003")
@pytest.mark.parametrize(
    ("helpful", "harmful", "pruned"),
    [(0, 0, 0), (0, 2, 0), (0, 3, 1), (1, 4, 1), (10, 4, 0), (3, 3, 0), (5, 6, 1), (0, 100, 1)],
)
def test_the_decision_table_of_pruning(helpful: int, harmful: int, pruned: int) -> None:
    """The eight rows of the contract."""
    playbook = book(point("pat-001", "t", helpful, harmful))
    assert [p["name"] for p in prune(playbook)] == ["pat-001"] * pruned
    assert names(playbook) == ([] if pruned else ["pat-001"])


@pytest.mark.shows("INV-SCORE-003")
@given(helpful=COUNTS, harmful=COUNTS)
def test_inv_score_003_a_point_without_ratings_is_never_pruned(helpful: int, harmful: int) -> None:
    """Exactly `harmful >= 3 and harmful > helpful`, so never 0 and 0."""
    assert harms(point("a", "t", helpful, harmful)) is (harmful >= 3 and harmful > helpful)
    assert not harms(point("a", "t"))


@pytest.mark.shows("INV-REFL-003", "INV-SCORE-001", "INV-SCORE-002")
@given(data=LEGACY, tags=TAGS)
def test_inv_refl_003_tags_only_count_up(data: Json, tags: list[Json]) -> None:
    """Each counter grows by the number of its tags, and nothing else changes."""
    playbook = migrated(data).playbook
    before = copy.deepcopy(playbook)
    apply_tags(playbook, tags)
    for (_, new), (_, old) in zip(each(playbook), each(before), strict=True):
        for counter in ("helpful", "harmful"):
            assert new[counter] == old[counter] + sum(
                t["name"] == old["name"] and t["tag"] == counter for t in tags
            )
            new[counter] = old[counter]
    assert playbook == before


@pytest.mark.shows("INV-REFL-004")
@given(data=LEGACY, tags=TAGS)
def test_inv_refl_004_a_second_call_counts_again(data: Json, tags: list[Json]) -> None:
    """Each call is one session; the same tags twice count twice."""
    once, twice = migrated(data).playbook, migrated(data).playbook
    start = {p["name"]: p["helpful"] for _, p in each(once)}
    apply_tags(once, tags)
    apply_tags(twice, tags)
    apply_tags(twice, tags)
    for (_, a), (_, b) in zip(each(once), each(twice), strict=True):
        assert b["helpful"] - start[b["name"]] == 2 * (a["helpful"] - start[a["name"]])


@pytest.mark.shows("REQ-REFL-007")
@pytest.mark.parametrize(
    "bad", [None, "x", [None], [3], [{}], [{"name": ["x"], "tag": "helpful"}], {"name": "pat-001"}]
)
def test_req_refl_007_tags_of_another_form_change_nothing(bad: Any) -> None:
    """They are named, and no exception is raised."""
    playbook = book(point("pat-001", "t"))
    told = apply_tags(playbook, bad)
    assert playbook == book(point("pat-001", "t"))
    assert len(told) == (len(bad) if isinstance(bad, list) else 0)


def test_one_session_counts_once_for_each_point_that_it_was_given() -> None:
    """What the daemon counts: the first tag of each point in the session, none of any other."""
    tags = [
        {"name": "pat-001", "tag": "helpful"},
        {"name": "pat-001", "tag": "harmful"},
        {"name": "pat-002", "tag": "harmful"},
        {"name": ["pat-001"]},
        "pat-001",
    ]
    assert of_session(tags, {"pat-001", "pat-003"}) == [{"name": "pat-001", "tag": "helpful"}]
    assert of_session("pat-001", {"pat-001"}) == []


def test_an_update_adds_then_counts_then_prunes() -> None:
    """The contract's order: a new point is never pruned in the call that adds it."""
    playbook = book(point("pat-001", "old", 0, 2), point("pat-002", "fine", 1, 0))
    told = update(playbook, {
        "new_key_points": ["new", {"text": "in its place", "section": "mistakes to avoid"}, "FINE ", "", 7],
        "evaluations": [
            {"name": "pat-001", "rating": "harmful"},
            {"name": "pat-002", "rating": "neutral"},
            {"name": "oth-001", "rating": "helpful"},
            {"name": "pat-404", "rating": "helpful"},
        ],
    })  # fmt: skip
    assert names(playbook) == ["pat-002", "mis-001", "oth-001"]
    assert said(playbook) == ["fine", "in its place", "new"]
    assert playbook["sections"]["OTHERS"][0]["helpful"] == 1
    assert len(told) == 4

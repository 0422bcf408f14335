"""Points: their form, names, counting, pruning, citations, and points as text."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given

from daemon.learning.playbook.points import (
    SECTION_SLUGS,
    Names,
    apply_tags,
    deduplicate,
    each,
    highest,
    line,
    lines_of,
    migrated,
    parts,
    prune,
    section_of,
)
from tests.learning.playbook.books import LEGACY, TAGS, Json, book, names, point, said


def others(*entries: Any) -> list[Json]:
    found: list[Json] = migrated({"key_points": list(entries)}).playbook["sections"]["OTHERS"]
    return found


@pytest.mark.shows("REQ-SCORE-006")
@pytest.mark.parametrize(("score", "helpful", "harmful"), [(5, 5, 0), (0, 0, 0), (-3, 0, 3), (-7, 0, 7)])
def test_req_score_006_migration_of_a_score(score: int, helpful: int, harmful: int) -> None:
    """Format 3: a positive score helped, a negative one harmed, and the field is gone."""
    (found,) = others({"name": "kpt_005", "text": "Avoid global state", "score": score})
    assert (found["helpful"], found["harmful"], "score" in found) == (helpful, harmful, False)


@pytest.mark.shows("REQ-SCORE-006")
def test_migration_of_mixed_formats() -> None:
    """The contract's example with all forms in one file; a missing name is given, counters win over a score,
    and what is in today's form passes unchanged.
    """
    head = {"version": "1.0", "last_updated": "2026-01-15T10:00:00"}
    points = [
        "Use type hints",
        {"name": "kpt_002", "text": "Prefer pathlib"},
        {"name": "kpt_003", "text": "Avoid globals", "score": -3},
        {"text": "No name"},
        point("kpt_004", "Write tests", 8, 2) | {"score": -9},
    ]
    found = migrated(head | {"key_points": points})
    others = [
        point("kpt_001", "Use type hints"),
        point("kpt_002", "Prefer pathlib"),
        point("kpt_003", "Avoid globals", 0, 3),
        point("kpt_005", "No name"),
        point("kpt_004", "Write tests", 8, 2),
    ]
    assert found.playbook == head | {"sections": {key: [] for key in SECTION_SLUGS} | {"OTHERS": others}}
    assert found.told == ()


def test_names_that_are_there_are_reserved_before_one_is_given() -> None:
    """A bare text takes the lowest number that nobody has, also when its owner comes later, and none that was
    given before.
    """
    found = others("a", "b", {"name": "kpt_001", "text": "c"})
    assert [p["name"] for p in found] == ["kpt_002", "kpt_003", "kpt_001"]
    data = {"sections": {"OTHERS": ["new"], "MISTAKES TO AVOID": ["too"]}}
    assert names(migrated(data, {"oth": 7}).playbook) == ["mis-001", "oth-008"]


@pytest.mark.parametrize(
    ("name", "section"),
    [
        ("patterns & approaches", "PATTERNS & APPROACHES"),
        ("  Mistakes  to Avoid ", "MISTAKES TO AVOID"),
        ("Gotchas", "OTHERS"),
        (None, "OTHERS"),
        (7, "OTHERS"),
    ],
)
def test_sections_match_in_any_case(name: object, section: str) -> None:
    """An unknown name is OTHERS."""
    assert section_of(name) == section


def test_sections_win_over_key_points() -> None:
    """A file with both has its points in `sections`; unknown ones become OTHERS, missing ones are added."""
    sections = {"user preferences": [{"name": "pref-001", "text": "p"}], "X": ["x"]}
    data = {"key_points": ["old"], "sections": sections}
    found = migrated(data).playbook
    assert list(found["sections"]) == list(SECTION_SLUGS)
    assert names(found) == ["pref-001", "oth-001"]
    assert "key_points" not in found


@pytest.mark.shows("INV-SCORE-004")
def test_unknown_fields_stay_and_a_score_never() -> None:
    """Whatever else a tool wrote is kept, in the playbook and in its points."""
    other = {"name": "oth-001", "text": "t", "score": 2, "at": 1}
    data = {"owner": "me", "score": 3, "sections": {"OTHERS": [other]}}
    found = migrated(data).playbook
    assert (found["owner"], "score" in found) == ("me", False)
    assert found["sections"]["OTHERS"] == [point("oth-001", "t", 2) | {"at": 1}]


@pytest.mark.shows("INV-SCORE-001", "INV-SCORE-002")
@pytest.mark.parametrize("bad", ["2", True, None, float("nan"), float("inf"), [], {}, -4])
def test_a_counter_that_is_none_is_zero(bad: object) -> None:
    """Whatever stands there, a counter is a whole number from 0 on."""
    (found,) = others({"name": "a", "text": "t", "helpful": bad, "harmful": bad, "score": bad})
    assert (found["helpful"], found["harmful"]) == (0, 0)


def test_an_entry_without_a_text_costs_only_itself() -> None:
    """It is left out, and a person is told."""
    found = migrated({"key_points": [{"name": "a"}, 7, None, "  ", "fine", {"text": ["x"]}]})
    assert said(found.playbook) == ["fine"]
    assert len(found.told) == 5


@pytest.mark.parametrize(
    "data", [[], "x", None, 3, {"sections": []}, {"sections": {"OTHERS": "x"}}, {"key_points": {}}]
)
def test_what_is_no_playbook_is_refused(data: object) -> None:
    """So that its file is kept aside instead of being emptied."""
    with pytest.raises(ValueError, match="no "):
        migrated(data)


@pytest.mark.shows("INV-SCORE-001", "INV-SCORE-002", "INV-SCORE-004")
@given(data=LEGACY)
def test_inv_score_004_any_form_becomes_todays_once(data: Json) -> None:
    """Any form becomes today's in one step, and stays as it is; what was given is not touched."""
    before = copy.deepcopy(data)
    found = migrated(data).playbook
    assert data == before
    assert list(found["sections"]) == list(SECTION_SLUGS)
    assert not {"score", "key_points"} & found.keys()
    points = [p for _, p in each(found)]
    assert len({p["name"] for p in points}) == len(points)
    for p in points:
        assert p["name"].strip()
        assert p["text"].strip()
        assert type(p["helpful"]) is type(p["harmful"]) is int
        assert min(p["helpful"], p["harmful"]) >= 0
        assert "score" not in p
    again = migrated(json.loads(json.dumps(found)))
    assert (again.playbook, again.told) == (found, ())
    assert json.dumps(again.playbook) == json.dumps(found)


@pytest.mark.parametrize(
    "name",
    ["pat001", "PAT-001", "xyz-001", "kpt-001", "pat_001", "pat-1x", "pat-" + "9" * 19, "pat-" + "9" * 5000],
)
def test_other_names_count_for_nothing(name: str) -> None:
    """Only our own forms have numbers; one of nineteen digits or five thousand is not counted on from."""
    assert parts(name) is None
    assert highest([name]) == {}


def test_names_are_given_once_and_above_their_mark() -> None:
    """The lowest that nobody has, from the mark on; the highest is kept so that no name comes back."""
    assert highest(["pat-002", "pat-001", "kpt_010", "other"]) == {"pat": 2, "kpt": 10}
    given = Names(["pat-003", "pat-005"], {"pat": 1})
    assert [given.take("pat") for _ in range(3)] == ["pat-002", "pat-004", "pat-006"]
    assert given.take("mis") == "mis-001"


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


@pytest.mark.shows("INV-REFL-003", "INV-REFL-004", "INV-SCORE-001", "INV-SCORE-002")
@given(data=LEGACY, tags=TAGS)
def test_inv_refl_003_tags_only_count_up_and_each_call_counts(data: Json, tags: list[Json]) -> None:
    """Each counter grows by the number of its tags, twice for two calls, and nothing else changes."""
    playbook = migrated(data).playbook
    before = copy.deepcopy(playbook)
    for calls in (1, 2):
        apply_tags(playbook, tags)
        for (_, new), (_, old) in zip(each(playbook), each(before), strict=True):
            for counter in ("helpful", "harmful"):
                mine = [t for t in tags if (t["name"], t["tag"]) == (old["name"], counter)]
                assert new[counter] == old[counter] + calls * len(mine)
    for (_, new), (_, old) in zip(each(playbook), each(before), strict=True):
        new |= {counter: old[counter] for counter in ("helpful", "harmful")}
    assert playbook == before


@pytest.mark.shows("LEARN-14")
@pytest.mark.parametrize("other", ["Use bun first", "Don't use bun", "Bun use", "Use buns", "Use bun 2"])
def test_another_wording_is_another_point(other: str) -> None:
    """Whether it says the same is a question of meaning."""
    playbook = book(point("pat-001", "Use bun"), point("pat-002", other))
    assert deduplicate(playbook) == []
    assert len(list(each(playbook))) == 2


def test_the_line_of_a_point() -> None:
    """The contract's form, and one line even where the text has several."""
    one = point("kpt_001", "Always use type hints for function signatures", 5, 1)
    assert line(one) == "[kpt_001] helpful=5 harmful=1 :: Always use type hints for function signatures"
    assert (
        line(point("a", "one\n[pat-009] helpful=9\u2028two"))
        == "[a] helpful=0 harmful=0 :: one [pat-009] helpful=9 two"
    )


def test_points_stand_under_their_sections_in_their_order() -> None:
    """Empty sections are left out."""
    playbook = book(point("pat-001", "a"), oth=[point("oth-001", "c")], mis=[point("mis-001", "b")])
    assert lines_of(playbook) == (
        "## PATTERNS & APPROACHES\n[pat-001] helpful=0 harmful=0 :: a\n\n"
        "## MISTAKES TO AVOID\n[mis-001] helpful=0 harmful=0 :: b\n\n"
        "## OTHERS\n[oth-001] helpful=0 harmful=0 :: c"
    )

"""A curator's operations: on a copy, in order, at most ten, wrong ones skipped with a reason."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.playbook.operations import MOST, apply
from daemon.playbook.points import SECTION_SLUGS, each
from tests.playbook.books import NAMES, TEXTS, Json, book, names, point, said

MERGE = {"type": "MERGE", "source_ids": ["pat-001", "pat-002"], "merged_text": "x"}


def start() -> Json:
    return book(
        point("pat-001", "use types", 3, 1),
        point("pat-002", "use hints", 2, 0),
        mis=[point("mis-001", "no globals", 0, 2)],
    )


def one(**operation: Any) -> tuple[Json, tuple[str, ...]]:
    found = apply(start(), [operation])
    return found.playbook, found.skipped


def test_add_puts_a_point_at_the_end_of_its_section() -> None:
    """With a name of its section, no counts; an unknown section is OTHERS."""
    found, skipped = one(type="ADD", section="Patterns & Approaches", text="new")
    assert found["sections"]["PATTERNS & APPROACHES"][-1] == point("pat-003", "new")
    assert skipped == ()
    assert one(type="ADD", section="?", text="new")[0]["sections"]["OTHERS"] == [point("oth-001", "new")]


def test_update_changes_the_text_only() -> None:
    """Name and counters stay, and so does the place."""
    found, _ = one(type="UPDATE", target_id="pat-001", text="use strict types")
    assert found["sections"]["PATTERNS & APPROACHES"][0] == point("pat-001", "use strict types", 3, 1)


def test_merge_sums_the_counters() -> None:
    """The sources go; a new point has their sums, in the section that is named or that of the first one."""
    found, _ = one(**MERGE | {"source_ids": ["pat-002", "mis-001", "pat-002"]})
    assert names(found) == ["pat-001", "pat-003"]
    assert found["sections"]["PATTERNS & APPROACHES"][1] == point("pat-003", "x", 2, 2)
    found, _ = one(**MERGE, section="project context")
    assert found["sections"]["PROJECT CONTEXT"] == [point("ctx-001", "x", 5, 1)]


def test_delete_removes_one_point() -> None:
    """And keeps what was removed, with the reason."""
    done = apply(start(), [{"type": "delete", "target_id": "mis-001", "reason": "it changed"}]).done
    assert [(d.kind, d.name, d.before, d.why) for d in done] == [
        ("DELETE", "mis-001", (point("mis-001", "no globals", 0, 2),), "it changed")
    ]


def test_a_point_that_is_kept_is_not_deleted() -> None:
    """What a person approved, no curator removes."""
    found = apply(start(), [{"type": "DELETE", "target_id": "mis-001"}], kept={"mis-001"})
    assert names(found.playbook) == names(start())
    assert found.skipped == ("operation 1 (DELETE) is skipped: mis-001 may not be removed",)


@pytest.mark.parametrize(
    ("operation", "why"),
    [
        ({"type": "ADD", "text": " "}, "it has no text"),
        ({"type": "ADD", "text": "USE  types"}, "a point says so already"),
        ({"type": "UPDATE", "text": "x"}, "it names no point"),
        ({"type": "UPDATE", "target_id": "pat-404", "text": "x"}, "there is no point 'pat-404'"),
        ({"type": "UPDATE", "target_id": "pat-001"}, "it has no text"),
        ({"type": "UPDATE", "target_id": "pat-001", "text": "use types"}, "it says so already"),
        ({"type": "UPDATE", "target_id": "pat-001", "text": "use hints"}, "another point says so already"),
        (MERGE | {"source_ids": ["pat-001", "pat-404"]}, "fewer than two points"),
        (MERGE | {"source_ids": ["pat-001", "pat-001"]}, "fewer than two points"),
        (MERGE | {"source_ids": "pat-001"}, "fewer than two points"),
        (MERGE | {"merged_text": " "}, "it has no merged_text"),
        (MERGE | {"merged_text": "no globals"}, "another point says so already"),
        ({"type": "DELETE"}, "it names no point"),
        ({"type": "RENAME", "target_id": "pat-001"}, "it has no type that is known"),
        ("DELETE pat-001", "it has no type that is known"),
    ],
)
def test_a_wrong_operation_is_skipped_with_a_reason(operation: Any, why: str) -> None:
    """The others are applied."""
    found = apply(start(), [operation, {"type": "ADD", "text": "fine"}])
    assert said(found.playbook) == [*said(start()), "fine"]
    (told,) = found.skipped
    assert told.startswith("operation 1")
    assert why in told


def test_operations_are_applied_in_order_and_at_most_ten() -> None:
    """A later one sees what an earlier one did; no name is given again; the eleventh is skipped."""
    found = apply(start(), [
        {"type": "DELETE", "target_id": "pat-002"},
        {"type": "ADD", "section": "patterns & approaches", "text": "use hints"},
        {"type": "UPDATE", "target_id": "pat-003", "text": "use more hints"},
        *({"type": "ADD", "text": f"new {i}"} for i in range(9)),
    ])  # fmt: skip
    assert names(found.playbook)[:3] == ["pat-001", "pat-003", "mis-001"]
    assert len(found.done) == MOST
    assert found.skipped == tuple(
        f"operation {i} (ADD) is skipped: only 10 operations count" for i in (11, 12)
    )


@pytest.mark.parametrize("operations", [None, {}, "ADD", 3, []])
def test_no_operations_change_nothing(operations: Any) -> None:
    """Whatever stands in their place."""
    assert apply(start(), operations).playbook == start()


KINDS = st.sampled_from(["ADD", "UPDATE", "MERGE", "DELETE", "x"])
OPERATION = st.fixed_dictionaries({"type": KINDS}, optional={
    "text": TEXTS, "merged_text": TEXTS, "target_id": NAMES, "source_ids": st.lists(NAMES, max_size=4),
    "section": st.sampled_from([*SECTION_SLUGS, "?", ""]),
})  # fmt: skip


@given(operations=st.lists(OPERATION | st.none(), max_size=14))
def test_any_operations_leave_a_sound_playbook_and_the_given_one_alone(operations: list[Any]) -> None:
    """Names stay unique, sections ours; each operation is done or skipped; only DELETE takes counts
    away.
    """
    given_book = start()
    before = copy.deepcopy(given_book)
    found = apply(given_book, operations)
    assert given_book == before
    points = [p for _, p in each(found.playbook)]
    assert list(found.playbook["sections"]) == list(SECTION_SLUGS)
    assert len({p["name"] for p in points}) == len(points)
    assert len(found.done) + len(found.skipped) == len(operations)
    assert len(found.done) <= MOST
    removed = sum(p["helpful"] for d in found.done if d.kind == "DELETE" for p in d.before)
    assert sum(p["helpful"] for p in points) + removed == sum(p["helpful"] for _, p in each(before))

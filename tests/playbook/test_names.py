"""Names of points: counted per section, never two of one name."""

from __future__ import annotations

import pytest

from daemon.playbook.names import Names, highest, next_name, parts


def test_the_next_name_is_above_the_highest() -> None:
    """A gap is not filled: its name belonged to a point that somebody may still cite."""
    names = ["pat-001", "pat-007", "mis-009", "kpt_012", 3]
    entries = [*({"name": name} for name in names), "text"]
    assert next_name(entries, "pat") == "pat-008"
    assert next_name(entries, "kpt") == "kpt_013"
    assert next_name([], "oth") == "oth-001"
    assert next_name([{"name": "pat-999"}], "pat") == "pat-1000"
    assert next_name([{"name": "pat-1000000"}], "pat") == "pat-1000001"
    assert next_name([{"name": "pat-" + "9" * 18}], "pat") == "pat-001", "there is none above it"


@pytest.mark.parametrize(
    "name",
    ["pat001", "PAT-001", "xyz-001", "kpt-001", "pat_001", "pat-1x", "pat-" + "9" * 19, "pat-" + "9" * 5000],
)
def test_other_names_count_for_nothing(name: str) -> None:
    """Only our own forms have numbers; one of nineteen digits or five thousand is not counted on from."""
    assert parts(name) is None
    assert next_name([{"name": name}], "pat") == "pat-001"


def test_names_are_given_once_and_above_their_mark() -> None:
    """The lowest that nobody has, from the mark on; the highest is kept so that no name comes back."""
    assert highest(["pat-002", "pat-001", "kpt_010", "other"]) == {"pat": 2, "kpt": 10}
    given = Names(["pat-003", "pat-005"], {"pat": 1})
    assert [given.take("pat") for _ in range(3)] == ["pat-002", "pat-004", "pat-006"]
    assert given.take("mis") == "mis-001"

"""Points with the same text become one."""

from __future__ import annotations

import pytest

from daemon.playbook.dedup import deduplicate
from daemon.playbook.points import by_name, each
from tests.playbook.books import book, point


def test_points_with_the_same_text_become_the_first() -> None:
    """Across sections, with the sum of the counters; a second run finds nothing."""
    playbook = book(
        point("pat-001", "Use bun", 1, 2), point("mis-001", "use  BUN.", 3), point("pat-002", "other")
    )
    ((kept, gone),) = deduplicate(playbook)
    assert (kept["name"], [p["name"] for p in gone]) == ("pat-001", ["mis-001"])
    assert set(by_name(playbook)) == {"pat-001", "pat-002"}
    assert (kept["helpful"], kept["harmful"]) == (4, 2)
    assert deduplicate(playbook) == []


@pytest.mark.parametrize("other", ["Use bun first", "Don't use bun", "Bun use", "Use buns", "Use bun 2"])
def test_another_wording_is_another_point(other: str) -> None:
    """Whether it says the same is a question of meaning."""
    playbook = book(point("pat-001", "Use bun"), point("pat-002", other))
    assert deduplicate(playbook) == []
    assert len(list(each(playbook))) == 2

"""Progress between two rounds of feedback."""

from __future__ import annotations

from dataclasses import replace

import pytest

from daemon.core.session import Progress, moved

STOOD = Progress("f1", "c1", ("a", "b"))


@pytest.mark.shows("I8")
@pytest.mark.parametrize(
    ("now", "is_progress"),
    [
        (STOOD, False),
        (replace(STOOD, files="f2"), False),  # of a file that no open item cites
        (replace(STOOD, files="f2", cited="c2"), True),
        (replace(STOOD, files="f2", items=("a", "c")), True),
        (replace(STOOD, checks="c2"), True),
        (replace(STOOD, items=("a",)), True),
        (replace(STOOD, items=()), True),
        (replace(STOOD, items=("a", "b", "c")), False),  # one more is open
        (replace(STOOD, items=("c",)), False),  # others instead: nothing says that these are done
    ],
)
def test_what_moves_a_task(now: Progress, *, is_progress: bool) -> None:
    """Checks, an open item that is gone, and files: while all items are open, only the files they cite."""
    assert moved(STOOD, now) is is_progress

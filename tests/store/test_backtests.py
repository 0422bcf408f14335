"""What a back-test keeps: one fact a line, whole after a kill."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
from msgspec import Raw

from daemon.core.errors import Unavailable
from daemon.store.backtests import FILE, Backtests, Label, Paid, answers

FACTS = (
    Paid("anthropic", "v1", "m1", Raw(b"{}"), '{"x":1}'),
    Label("offline", "m1", "right"),
)


def state(kept: Backtests) -> tuple[object, ...]:
    return kept.paid, kept.labels


def test_what_was_kept_is_there_the_next_time(tmp_path: Path) -> None:
    """Of each kind the last line counts; only the person may read the file, and reading makes none."""
    assert answers(tmp_path) == []
    assert list(tmp_path.iterdir()) == []
    kept = Backtests(tmp_path)
    for fact in (*FACTS, Label("offline", "m1", "complete")):
        kept.add(fact)
    assert state(Backtests(tmp_path)) == state(kept)
    assert answers(tmp_path) == [("offline", "complete")]
    assert stat.S_IMODE((tmp_path / FILE).stat().st_mode) == 0o600


@pytest.mark.parametrize("cut", [1, 9])
def test_a_line_that_a_kill_cut_off_costs_only_itself(tmp_path: Path, cut: int) -> None:
    """The next line begins on its own, and what stood before counts."""
    for fact in FACTS:
        Backtests(tmp_path).add(fact)
    path = tmp_path / FILE
    path.write_bytes(path.read_bytes()[:-cut])
    Backtests(tmp_path).add(Label("offline", "m2", "complete"))
    kept = Backtests(tmp_path)
    assert (len(kept.paid), kept.labels["offline", "m2"]) == (1, "complete")
    assert (("offline", "m1") in kept.labels) == (cut == 1)


def test_a_file_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    """Bad input: a folder in its place, and bytes that are no line."""
    (tmp_path / FILE).write_bytes(b"no JSON at all\n\xff\n")
    assert state(Backtests(tmp_path)) == ({}, {})
    (tmp_path / FILE).unlink()
    (tmp_path / FILE).mkdir()
    with pytest.raises(Unavailable, match=FILE):
        Backtests(tmp_path)

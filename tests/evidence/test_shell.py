"""Scripts to steps, down to characters that look like spaces and are none to a shell."""

from __future__ import annotations

import pytest

from daemon.evidence.shell import steps


@pytest.mark.parametrize("odd", ["\xa0", "\x0b", "\x0c", "\x1c", "\x85", "\u2003", "\u2028", "\u3000"])
def test_an_odd_space_is_part_of_a_word(odd: str) -> None:
    """A pasted no-break space in a command does not hang the reader; a shell sees no separator there."""
    (step,) = steps(f"pytest{odd}-q tests")
    assert step.words == (f"pytest{odd}-q", "tests")
    assert [s.words for s in steps(f"{odd} ; make test")] == [(odd,), ("make", "test")]

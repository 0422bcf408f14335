"""What both hosts' readers share of JSON."""

from __future__ import annotations

import time

from daemon.hosts.wire import mend

TEXT = rb"a line\n\"quoted\"\tand more " * 40_000


def seconds(wire: bytes) -> float:
    """Processor time of mending it, the least of three."""

    def once() -> float:
        began = time.thread_time()
        mend(wire)
        return time.thread_time() - began

    return min(once() for _ in range(3))


def test_a_half_character_costs_no_search_of_every_escape() -> None:
    """A megabyte of escapes with one lone surrogate takes about as long as the same text without escapes. A
    search that stops at each escape takes eighty times as long.
    """
    half = rb"\ud83d"
    plain = TEXT.replace(b"\\", b" ")
    assert mend(TEXT + half) == TEXT + rb"\ufffd"
    assert seconds(TEXT + half) < 8 * seconds(plain + half)

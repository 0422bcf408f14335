"""Positions and counts of what the calls wrote."""

from __future__ import annotations

from daemon.evidence.collect import read
from tests.support.transcripts import TEST, bash, edit


def test_positions_and_counts() -> None:
    """Documents and scratch files are no code; what a script wrote can't be named."""
    work = read((edit("a.md"), edit("src/a.py"), bash("echo x > /tmp/y"), TEST), "/repo")
    assert (len(work.writes), work.code_writes, work.last_code, work.blind_writes) == (2, 1, 2, False)
    assert read((bash("python -c \"open('a', 'w').write('b')\""),), "/repo").blind_writes

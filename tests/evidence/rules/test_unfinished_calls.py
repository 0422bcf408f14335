"""What the calls themselves left unfinished; ``calls/test_stubs`` and ``test_failures`` show the finding."""

from __future__ import annotations

import pytest

from tests.support.transcripts import TEST, bash, edit, evidence_of

LOST = "Could not find oldString in the file."


@pytest.mark.shows("I24")
def test_failed_edit_is_open() -> None:
    """An edit failed, its file was never changed, and the text is silent about it."""
    (row,) = evidence_of("Change a and b", edit("/repo/a.py"), edit("/repo/b.py", error=LOST), TEST).open
    assert "b.py" in row.detail


KILLED = bash(
    "python train.py --config small.yaml",
    "epoch 3/10\nbash tool terminated command after exceeding timeout",
    None,
)


TRAIN = "Add label smoothing, then train with small.yaml"


@pytest.mark.shows("I24")
def test_killed_is_open() -> None:
    """The run that was asked for was killed and is reported as done."""
    (row,) = evidence_of(TRAIN, edit("/repo/train.py"), KILLED, final="The model is trained.").open
    assert "train.py" in row.detail

"""Edits that failed and commands that were killed: open, until something makes them good again."""

from __future__ import annotations

import pytest

from daemon.core.evidence import Row
from daemon.core.transcript import ToolCall
from tests.support.transcripts import TEST, bash, edit, evidence_of, read, write

ASK = "Change a and b"
LOST = "Could not find oldString in the file."
STOPPED = "epoch 3/10\nbash tool terminated command after exceeding timeout"
TRAIN = "Add label smoothing, then train with small.yaml"
KILLED = bash("python train.py --config small.yaml", STOPPED, None)


def left(*calls: ToolCall, ask: str = ASK, final: str = "Done.") -> tuple[Row, ...]:
    """The rows that are open."""
    return evidence_of(ask, *calls, final=final).open


@pytest.mark.shows("I24")
def test_what_failed_is_open() -> None:
    """A file that an edit never changed, a wanted run that was killed: the text is silent about it."""
    (row,) = left(edit("/repo/a.py"), edit("/repo/b.py", error=LOST), TEST)
    assert "b.py" in row.detail
    (row,) = left(edit("/repo/train.py"), KILLED, ask=TRAIN, final="The model is trained.")
    assert "train.py" in row.detail


@pytest.mark.parametrize(
    ("calls", "final"),
    [
        ((edit("/repo/b.py"),), "Done."),
        ((write("/repo/b.py", "b = 2\n"),), "Done."),
        ((bash("sed -i s/1/2/ b.py"),), "Done."),
        ((bash("python - <<'E'\nopen('b.py', 'w').write('b')\nE"),), "Done."),
        ((read("/repo/b.py", "a = 2"),), "Done."),
        ((), "a.py is changed; b.py already had it."),
        ((), "a.py is changed. I couldn't change b.py."),
    ],
)
def test_failed_edit_made_good(calls: tuple[ToolCall, ...], final: str) -> None:
    """A later write, a look or a word about it: the failure proves nothing by itself."""
    assert not left(edit("/repo/a.py"), edit("/repo/b.py", error=LOST), *calls, TEST, final=final)


@pytest.mark.parametrize(
    ("calls", "ask", "final"),
    [
        ((KILLED, bash("python train.py --config small.yaml", "epoch 10/10")), TRAIN, "Trained."),
        ((KILLED,), TRAIN, "The run timed out in epoch 3."),
        ((KILLED,), "Fix the typo in the help", "Fixed."),
        ((bash("npm run dev", "ready\nCommand timed out after 10s", None),), "Fix dev server", "It starts."),
        ((bash("timeout 5 python small.py train", "ok", 124),), TRAIN, "It starts."),
    ],
)
def test_killed_but_no_proof(calls: tuple[ToolCall, ...], ask: str, final: str) -> None:
    """Run again, said, not asked for, or a server that is stopped that way."""
    assert not left(edit("/repo/train.py"), *calls, ask=ask, final=final)


@pytest.mark.shows("I24")
def test_a_killed_image_build() -> None:
    """A look at the images afterwards doesn't make a killed build good; a second build does."""
    killed = bash("docker build -t shop:dev .", "#9 58.72 transforming...\nKilled\n", 137)
    look = bash("docker images shop", "shop 1.4")
    again = bash("docker build -t shop:dev --memory 4g .", "naming to shop:dev")
    told = "The build was killed for lack of memory."
    for after, final, is_open in (
        (look, "It is built.", True),
        (again, "It is built.", False),
        (look, told, False),
    ):
        calls = (edit("/repo/Dockerfile"), killed, after)
        ask = "Switch the Dockerfile to node:22 and build it as shop:dev"
        assert bool(left(*calls, ask=ask, final=final)) is is_open

"""A lock on a folder, between two processes and within one."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from daemon.core.errors import Unavailable
from daemon.files.alone import alone


def test_the_second_waits_or_is_told(tmp_path: Path) -> None:
    """Without words for it the second waits; with them it is refused at once. Neither leaves a file."""
    folder, entered = tmp_path / "state", threading.Event()

    def second() -> None:
        with alone(folder):
            entered.set()

    with alone(folder):
        waiting = threading.Thread(target=second)
        waiting.start()
        with (
            pytest.raises(Unavailable, match="somebody else is at it"),
            alone(folder, busy="somebody else is at it"),
        ):
            pass
        assert not entered.is_set()
    waiting.join()
    assert entered.is_set()
    with alone(folder, busy="nobody"):
        assert list(folder.iterdir()) == []


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    """It is named."""
    (tmp_path / "file").write_text("")
    with pytest.raises(Unavailable, match="can't use the state folder"), alone(tmp_path / "file" / "state"):
        pass

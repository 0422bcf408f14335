"""The lines that ``daemon.log`` writes for systemd's journal: a priority instead of a time."""

from __future__ import annotations

from pathlib import Path

import pytest

from daemon import log
from daemon.core.settings import Log, Settings


def logged(path: Path, settings: Settings) -> list[str]:
    with path.open("w+") as stream:
        log.configure(settings, stream)
        logger = log.get("engine")
        logger.debug("a")
        logger.info("b", note="two\nlines")
        logger.warning("c")
        try:
            raise ValueError("d")
        except ValueError:
            logger.exception("d")
        stream.seek(0)
        return stream.read().splitlines()


@pytest.mark.parametrize("debug", [False, True])
def test_the_journal_gets_priorities(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, debug: bool) -> None:
    """`journalctl -p err` finds errors; one event stays one line, also when debugging; no second time."""
    path = tmp_path / "stderr"
    path.touch()
    found = path.stat()
    monkeypatch.setenv("JOURNAL_STREAM", f"{found.st_dev}:{found.st_ino}")
    lines = logged(path, Settings(log=Log("debug" if debug else "info")))
    assert [line[:3] for line in lines] == [*(["<7>"] if debug else []), "<6>", "<4>", "<3>"]
    assert lines[-3] == r'<6>level=info part=engine event=b note="two\nlines"'.replace('"', "")
    assert [line for line in lines if "timestamp" in line] == []


@pytest.mark.parametrize("variable", ["", "1:1", "nonsense"])
def test_another_stream_gets_times(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str) -> None:
    """Every child process inherits the variable; only the stream that it names is the journal."""
    monkeypatch.setenv("JOURNAL_STREAM", variable)
    lines = logged(tmp_path / "stderr", Settings())
    assert len(lines) == 3
    assert all(line.startswith("timestamp=") for line in lines)

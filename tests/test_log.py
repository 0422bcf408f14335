"""The daemon's log: redacted, bounded, and never in the way of what it tells about."""

from __future__ import annotations

import errno
import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

from daemon import log
from daemon.core.settings import Log, Settings

SECRET = "ghp_" + "abcdefghij0123456789abcdefghij012345"


def lines(settings: Settings | None = None) -> io.StringIO:
    """A stream that is logged to."""
    stream = io.StringIO()
    log.configure(settings or Settings(), stream)
    return stream


def test_an_event_is_one_logfmt_line_with_fixed_first_fields() -> None:
    """One event, one line, even when its values hold line ends: a log can be cut and counted by lines."""
    stream = lines()
    log.get("engine").info("decided", reason="guard:abort", session="ses_1", note="two\nlines", sent=False)
    (line,) = stream.getvalue().splitlines()
    stamp, _, rest = line.partition(" ")
    assert stamp.startswith("timestamp=20")
    assert stamp.endswith("Z")
    assert rest.startswith("level=info part=engine event=decided session=ses_1 ")
    assert "reason=guard:abort" in rest
    assert "sent=false" in rest
    assert r"note=two\nlines" in rest


def test_an_exception_keeps_its_trace_on_one_line() -> None:
    """The trace of a bug is in the log, quoted, and its end is kept when it is long."""
    stream = lines()
    try:
        raise ValueError("x" * 20_000 + " the end")
    except ValueError:
        log.get("engine").exception("bug")
    (line,) = stream.getvalue().splitlines()
    assert "level=error" in line
    assert "the end" in line
    assert len(line) < 2 * log.VALUE_CHARS


@pytest.mark.shows("I46")
def test_no_secret_reaches_the_log() -> None:
    """Not in the event, a text, a list, a mapping, an exception, an object, or under a secret's name."""
    stream = lines()
    logger = log.get("engine")
    event = f"event {SECRET}"
    logger.info(event, text=f"DB_PASSWORD={SECRET}", many=[SECRET, {"password": "hunter2"}])
    logger.info("x", path=Path(f"/tmp/{SECRET}"), api_key="hunter2", error=OSError(SECRET))
    try:
        raise ValueError(SECRET)
    except ValueError:
        logger.exception("bug")
    text = stream.getvalue()
    assert SECRET not in text
    assert "hunter2" not in text
    assert text.count("[redacted:") >= 7


@pytest.mark.shows("I46")
def test_no_half_of_a_secret_stands_where_a_value_is_cut() -> None:
    """The cut comes after the redaction."""
    stream = lines()
    for shift in range(0, len(SECRET), 7):
        log.get("x").info("long", text="-" * (log.VALUE_CHARS - shift) + SECRET + "-" * 5000)
    assert SECRET[:12] not in stream.getvalue()
    assert max(len(line) for line in stream.getvalue().splitlines()) < log.VALUE_CHARS + 300


@pytest.mark.shows("I34")
def test_a_terminal_is_not_controlled_by_what_is_logged() -> None:
    """Escape sequences of a transcript arrive as text."""
    for debug in (False, True):
        stream = lines(Settings(log=Log("debug" if debug else "info")))
        log.get("x").info("x", a="\x1b[2Jgone", b=["\x1b]0;t\x07"], c="\x9b2J")
        assert not {"\x1b", "\x07", "\x9b"} & set(stream.getvalue())


@pytest.mark.parametrize(
    ("settings", "kept"),
    [
        (Settings(), ["info", "warning", "error"]),
        (Settings(log=Log(level="error")), ["error"]),
        (Settings(log=Log(level="debug")), ["debug", "info", "warning", "error"]),
    ],
)
def test_the_level_decides_what_is_kept(settings: Settings, kept: list[str]) -> None:
    """log.level is the least urgent line."""
    stream = lines(settings)
    logger = log.get("x")
    for level in ("debug", "info", "warning", "error"):
        getattr(logger, level)(f"said-{level}")
    assert [word for word in stream.getvalue().replace("=", " ").split() if word.startswith("said-")] == [
        f"said-{level}" for level in kept
    ]


def test_one_instance_can_be_debugged_alone() -> None:
    """hello's ``debug`` flag: that instance's logger keeps its debug lines, its sibling's doesn't."""
    stream = lines()
    log.get("engine").bind(debug=True, session="ses_1").debug("guards", asked=9)
    log.get("engine").bind(session="ses_2").debug("guards", asked=9)
    (line,) = stream.getvalue().splitlines()
    assert "session=ses_1" in line
    assert "debug=" not in line


def test_a_logger_made_before_the_set_up_follows_it() -> None:
    """Modules may hold a logger from their import on."""
    early = log.get("early")
    stream = lines()
    early.info("now")
    assert "part=early" in stream.getvalue()


def test_the_file_is_private_appended_to_and_made_with_its_folder(tmp_path: Path) -> None:
    """A log is read by its owner only, and a restart goes on where the last run ended."""
    path = tmp_path / "state" / "reflectd.log"
    for run in ("first", "second"):
        log.configure(Settings(), path)
        log.get("x").info(run)
    first, second = path.read_text().splitlines()
    assert "event=first" in first
    assert "event=second" in second
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700


@pytest.mark.shows("I44")
def test_the_log_is_bounded_on_disk(tmp_path: Path) -> None:
    """Three files of 5 MB at most, no line lost at a turn, the newest in the file without a number."""
    path = tmp_path / "reflectd.log"
    for number in ("", ".1", ".2"):
        path.with_name(path.name + number).write_bytes(b"x" * (log.FILE_BYTES - 10) + b"\n")
    log.configure(Settings(), path)
    log.get("x").info("after the turn")
    log.get("x").info("and one more")
    files = sorted(tmp_path.iterdir())
    assert [file.name for file in files] == ["reflectd.log", "reflectd.log.1", "reflectd.log.2"]
    assert all(file.stat().st_size <= log.FILE_BYTES for file in files)
    first, second = path.read_text().splitlines()
    assert "after the turn" in first
    assert "and one more" in second


def test_a_log_that_cant_be_written_hurts_nobody(tmp_path: Path) -> None:
    """A full disk, a vanished folder, a closed terminal, a value without a text: the daemon goes on."""

    class Broken:
        def __str__(self) -> str:
            raise RuntimeError("no")

    class Full(io.StringIO):
        def write(self, text: str) -> int:
            raise OSError(errno.ENOSPC, "no space left", text)

    (tmp_path / "file").write_text("")
    log.configure(Settings(), tmp_path / "file" / "reflectd.log")
    log.get("x").error("nowhere to go")
    log.configure(Settings(), Full())
    log.get("x").error("disk full")
    stream = lines()
    log.get("x").info("still here", value=Broken(), lone="\ud800")
    assert "RuntimeError" in stream.getvalue()
    stream.close()
    log.get("x").error("closed")


@pytest.mark.shows("I46", "I48")
def test_a_diagnostic_is_redacted_private_and_whole(tmp_path: Path) -> None:
    """The raw reply is kept for a person, without secrets, and no temporary file is left."""
    path = log.save_diagnostic(tmp_path / "diagnostics", "judge/ses_1\x00../x", f"reply {SECRET} end")
    assert path is not None
    assert path.parent == tmp_path / "diagnostics"
    assert path.read_text() == "reply [redacted:github] end"
    assert path.stat().st_mode & 0o777 == 0o600
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.shows("I44")
def test_diagnostics_are_bounded_in_number_and_size(tmp_path: Path) -> None:
    """The newest fifty are kept, each cut; a name used twice is one file."""
    for number in range(log.DIAGNOSTICS + 5):
        path = log.save_diagnostic(tmp_path, f"reply-{number}", "x")
        assert path is not None
        os.utime(path, ns=(number, number))
    log.save_diagnostic(tmp_path, "last", "x" * 10_000_000)
    log.save_diagnostic(tmp_path, "last", "y" * 10_000_000)
    names = {file.name for file in tmp_path.iterdir()}
    assert len(names) == log.DIAGNOSTICS
    assert "reply-5.txt" not in names
    assert {"reply-54.txt", "last.txt"} <= names
    assert (tmp_path / "last.txt").stat().st_size < log.DIAGNOSTIC_CHARS + 100


def test_a_diagnostic_that_cant_be_kept_is_none(tmp_path: Path) -> None:
    """A folder that can't be made costs the diagnostic, not the judgement."""
    (tmp_path / "file").write_text("")
    assert log.save_diagnostic(tmp_path / "file" / "x", "name", "text") is None


def test_the_command_line_does_not_pay_for_structlog() -> None:
    """Start-up is fast: paths and settings load without structlog, asyncio or tomllib."""
    code = "import sys, daemon.paths, daemon.config; print([m for m in sys.modules if m in sys.argv[1:]])"
    heavy = ["structlog", "asyncio", "tomllib", "difflib", "logging"]
    done = subprocess.run([sys.executable, "-c", code, *heavy], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"

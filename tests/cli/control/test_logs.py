"""``reflectd logs``: the verb, and ``log_lines``, which reads and writes its lines."""

from __future__ import annotations

import json
import signal
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from daemon import log
from daemon.cli.control.logs import Journal, Wanted, read
from daemon.cli.render import Paint
from daemon.core.errors import Unavailable
from daemon.core.settings import Log, Settings
from harness.machine import processes
from harness.machine.sandbox import Sandbox
from harness.machine.waiting import wait_until
from tests.support.machine.command_line import COMMAND, environment, reflectd, said


def test_logs_without_a_log(box: Sandbox) -> None:
    """Exit code 1: where it looked, and what writes one."""
    said(reflectd(box, "logs"), 1, str(box.state / "reflectd.log"), "reflectd start")


def test_logs_that_are_no_text(box: Sandbox) -> None:
    """Bad input: bytes that are not UTF-8 are replaced, and the rest is shown."""
    (box.state / "reflectd.log").write_bytes(b"\xff\xfe one\nlast line")
    said(reflectd(box, "logs"), 0, "last line")


def line(at: float, level: str, text: str) -> str:
    """A line as the daemon writes it."""
    return f"timestamp={datetime.fromtimestamp(at, UTC):%Y-%m-%dT%H:%M:%S.%fZ} level={level} part=x {text}\n"


def test_logs_chosen_by_level_age_and_session(box: Sandbox) -> None:
    """Each alone and together; of what was rotated away too; with ``-n`` the last of those."""
    now = time.time()
    (box.state / "reflectd.log.1").write_text(line(now - 90_000, "error", "event=old session=ses_a1"))
    (box.state / "reflectd.log").write_text(
        line(now - 7_000, "info", "event=begun session=ses_a1")
        + line(now - 6_000, "warning", 'event="slow answer" session=ses_b1 error="a \\"b\\""')
        + "  a line of another form\n"
        + line(now - 100, "debug", "event=done session=ses_a2")
    )
    for args, events in (
        ([], ["old", "begun", "slow answer", "  a line of another form", "done"]),
        (["-n", "2"], ["  a line of another form", "done"]),
        (["--level", "warning"], ["old", "slow answer", "  a line of another form"]),
        (["--level", "error"], ["old"]),
        (["--session", "ses_a"], ["old", "begun", "done"]),
        (["--session", "ses_a", "-n", "1"], ["done"]),
        (["--since", "5min"], ["done"]),
        (["--since", "2h", "--session", "ses_a1"], ["begun"]),
        (["--session", "nobody"], []),
    ):
        found = [json.loads(x) for x in reflectd(box, "logs", "--json", *args).stdout.splitlines()]
        assert [f["event"] for f in found] == events, args
    shown = said(reflectd(box, "logs", TZ="UTC-5"), 0)
    when = time.strftime("%H:%M:%S", time.gmtime(now - 6_000 + 5 * 3_600))
    assert f'{when} warning x: slow answer session=ses_b1 error="a "b""' in shown
    said(reflectd(box, "logs", "--since", "soon"), 2, "'soon' is no time")
    said(reflectd(box, "logs", "--level", "loud"), 2)


def test_logs_without_such_a_line_say_so(box: Sandbox) -> None:
    """On standard error, so that a pipe gets nothing; a typo in a session's id is not taken for silence."""
    (box.state / "reflectd.log").write_text(line(time.time(), "info", "event=turn session=ses_a"))
    done = reflectd(box, "logs", "--session", "ses_typo")
    assert (done.returncode, done.stdout) == (0, "")
    assert "no line of the log" in done.stderr


def test_a_line_of_the_daemon_is_read_again(tmp_path: Path) -> None:
    """What ``daemon.log`` writes, when it debugs too: level, session, and a traceback below its line."""
    for debug in (False, True):
        path = tmp_path / f"{debug}.log"
        log.configure(Settings(log=Log("debug" if debug else "info")), path)
        logger = log.get("store")
        try:
            raise ValueError("a = b")
        except ValueError:
            logger.exception("it broke", session="ses_1")
        logger.info("it works \x1b[2J")
        records = [read(x) for x in path.read_text().splitlines()]
        heads = [r for r in records if r.level]
        assert [(r.level, r.session) for r in heads] == [("error", "ses_1"), ("info", "")]
        assert abs(heads[0].at - time.time()) < 3_600
        wanted = Wanted("error", "ses", 0)
        shown = "\n".join(x for r in records if wanted(r) for x in r.lines(Paint(width=60)))
        assert "it broke" in shown
        assert "ValueError: a = b" in shown
        assert "it works" not in shown
        assert "\x1b" not in shown


def test_logs_of_the_journal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The message of each entry with the journal's time; what comes later begins after the last of them."""
    entries = [
        {
            "__CURSOR": "c1",
            "__REALTIME_TIMESTAMP": "1795000000500000",
            "MESSAGE": "level=info part=x event=on",
        },
        {"__CURSOR": "c2", "__REALTIME_TIMESTAMP": "1795000001000000", "MESSAGE": [104, 105, 255]},
    ]
    program = tmp_path / "journalctl"
    told = "\n".join(map(json.dumps, entries))
    program.write_text(f"#!/bin/sh\necho \"$@\" >> {tmp_path}/asked\ncat <<'END'\n{told}\nEND\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    journal = Journal()
    first, second = journal.there(7)
    assert (first.at, first.level, first.fields()["event"]) == (1795000000.5, "info", "on")
    assert (second.at, second.level, second.text) == (1795000001.0, "", "hi\ufffd")
    assert len(list(journal.coming())) == 2
    last, coming = (tmp_path / "asked").read_text().splitlines()
    assert last.endswith("--output=json --lines=7")
    assert coming.endswith("--follow --no-tail --after-cursor=c2")
    program.unlink()
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Unavailable, match="journalctl cannot be started"):
        list(journal.there(1))


def test_logs_go_on_as_lines_come(box: Sandbox) -> None:
    """``--follow``: what is chosen, and after the file was rotated what the new one gets."""
    path = box.state / "reflectd.log"
    path.write_text(line(time.time(), "info", "event=first") + line(time.time(), "error", "event=bad"))
    out = box.root / "logs.out"
    with out.open("wb") as file:
        following = processes.start(
            [*COMMAND, "logs", "-f", "--level", "error"], environment(box), box.project, file, file
        )
    try:
        wait_until(lambda: "bad" in out.read_text(), "the last lines", out.read_text)
        with path.open("a") as file_now:
            file_now.write(
                line(time.time(), "info", "event=quiet") + line(time.time(), "error", "event=worse")
            )
        wait_until(lambda: "worse" in out.read_text(), "a new line", out.read_text)
        path.rename(path.with_name("reflectd.log.1"))
        path.write_text(line(time.time(), "critical", "event=worst"))
        wait_until(lambda: "worst" in out.read_text(), "the new file", out.read_text)
        following.send_signal(signal.SIGINT)
        assert following.wait(60) == 130
    finally:
        processes.end_group(following, gently=0)
    assert "first" not in out.read_text()
    assert "quiet" not in out.read_text()

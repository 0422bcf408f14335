"""``reflectd watch`` and, with ``--exec``, ``watch_exec``: one runs inside the other."""

from __future__ import annotations

import contextlib
import json
import re
import signal
import time
from pathlib import Path
from typing import Any, Self

import psutil
import pytest

from daemon.cli.render import Paint
from daemon.cli.verdicts.watch import told
from harness.machine import processes
from harness.machine.reflectd import Daemon
from harness.machine.sandbox import Sandbox
from harness.machine.waiting import wait_until
from tests.cli.verdicts.folders import judged_in
from tests.support.machine.command_line import COMMAND, environment, judged, reflectd, said

NOW = int(time.time() * 1000)


class Watching:
    """``reflectd watch`` in a process; ``lines`` grows, ``end`` is Ctrl-C."""

    def __init__(self, box: Sandbox, *args: str, cwd: Path | None = None) -> None:
        self._out, self._err = box.root / "watch.out", box.root / "watch.err"
        with self._out.open("wb") as out, self._err.open("wb") as err:
            self.process = processes.start(
                [*COMMAND, "watch", *args], environment(box), cwd or box.project, out, err
            )
        wait_until(lambda: "watching" in self.errors, "watching", lambda: self.errors)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        processes.end_group(self.process, gently=0)

    @property
    def lines(self) -> list[str]:
        return self._out.read_text("utf-8").splitlines()

    @property
    def errors(self) -> str:
        found = self._err.read_text("utf-8")
        assert "Traceback" not in found, found
        return found

    def wait_lines(self, count: int) -> list[str]:
        wait_until(lambda: len(self.lines) >= count, f"{count} lines", lambda: f"{self.lines}\n{self.errors}")
        return self.lines

    def end(self, number: int = signal.SIGINT) -> int:
        self.process.send_signal(number)
        return self.process.wait(60)


def test_watch_prints_a_line_per_verdict(box: Sandbox) -> None:
    """Of this folder and what is below it, not of another; a line for people, or JSON; Ctrl-C is 130."""
    below = box.project / "below"
    below.mkdir()
    with Daemon(box) as daemon, Watching(box, cwd=below) as people:
        assert f"watching {box.project};" in people.errors, "from a folder below the project is watched"
        for seen, folder in enumerate((box.root / "beside", below, box.project)):
            judged_in(folder, daemon, f"ses_{folder.name}")
            lines = people.wait_lines(seen)
        assert [re.search(r"ses_(\w+)", line)[1] for line in lines] == ["below", "project"]  # type: ignore[index]
        assert all("not done HIGH" in line and "pytest" in line for line in lines), lines
        assert people.end() == 130
        for args, words in (
            (["--dir", "."], f"watching {below};"),
            (["ses_new"], "watching sessions whose id begins with ses_new in every folder"),
        ):
            with Watching(box, *args, cwd=below) as other:
                assert words in other.errors
        daemon.new_log()


def test_watch_everywhere_names_the_project(box: Sandbox) -> None:
    """``--all``: each line has its project; the command runs for each, not for verdicts from before."""
    ran = box.root / "ran"
    with Daemon(box) as daemon:
        judged(box, daemon, "ses_old")
        with Watching(box, "--all", "--exec", f"echo >> {ran}") as watching:
            for number, folder in enumerate((box.home / "elsewhere", box.project)):
                judged_in(folder, daemon, f"ses_{number}", title="A title")
            lines = watching.wait_lines(2)
            wait_until(lambda: ran.exists() and len(ran.read_text()) == 2, "two runs")
        for line, place in zip(lines, ("~/elsewhere  ses_0", f"{box.project}  ses_1"), strict=True):
            assert f"  {place}  " in line
            assert "not done HIGH (feedback)" in line
        daemon.new_log()


def test_watch_as_json_everywhere(box: Sandbox) -> None:
    """``--all --verbose --json``: judging and verdicts of every folder, each line an object."""
    with Daemon(box) as daemon, Watching(box, "--all", "--verbose", "--json") as watching:
        judged_in(box.root / "elsewhere", daemon, "ses_else")
        judging, verdict = [json.loads(line) for line in watching.wait_lines(2)][:2]
        assert (judging["kind"], judging["state"]) == ("judging", "judging")
        assert (verdict["kind"], verdict["state"], bool(verdict["feedback"])) == (
            "verdict",
            "incomplete",
            True,
        )
        assert watching.end(signal.SIGTERM) == 143
        daemon.new_log()


def test_watch_needs_a_daemon_and_survives_its_restart(box: Sandbox) -> None:
    """Exit code 1 when none is there at the start; later it says so and connects again."""
    said(reflectd(box, "watch"), 1, "reflectd start")
    said(reflectd(box, "watch", "--exec", "no-such-program -x"), 2, "there is no command no-such-program")
    with Daemon(box) as daemon, Watching(box) as watching:
        daemon.stop()
        wait_until(lambda: "the daemon is gone" in watching.errors, "a word", lambda: watching.errors)
        daemon.start()
        wait_until(lambda: watching.errors.count("watching") == 2, "watching again", lambda: watching.errors)
        judged(box, daemon, "ses_after")
        assert "ses_after" in watching.wait_lines(1)[0]


def test_exec_gets_each_verdict_in_order(box: Sandbox) -> None:
    """One command at a time, with JSON on stdin and REFLECTD_CHILD set; watching goes on after a failure."""
    out = box.root / "got"
    command = f'cat >> {out}; printf "%s\\n" "$REFLECTD_CHILD" >> {out}.child; exit 3'
    with Daemon(box) as daemon, Watching(box, "--exec", command) as watching:
        for n in range(3):
            judged(box, daemon, f"ses_{n}")
        child = Path(f"{out}.child")
        wait_until(
            lambda: child.exists() and child.read_text().count("1") == 3, "three", lambda: watching.errors
        )
        found = [json.loads(line) for line in out.read_text().splitlines()]
        assert [(f["session"], f["state"], f["kind"]) for f in found] == [
            (f"ses_{n}", "incomplete", "verdict") for n in range(3)
        ]
        wait_until(
            lambda: watching.errors.count("exit code 3") == 3, "what became of each", lambda: watching.errors
        )
        assert len(watching.lines) == 3


@pytest.mark.shows("I45")
def test_exec_leaves_nothing_behind(box: Sandbox) -> None:
    """A command that takes too long, or still runs at the end, is killed with all it started."""
    pids = box.root / "pids"
    command = f"sleep 600 & echo $! >> {pids}; echo $$ >> {pids}; wait"

    def started() -> list[int]:
        return [int(line) for line in pids.read_text().split()] if pids.exists() else []

    with Daemon(box) as daemon, Watching(box, "--exec", command, "--exec-timeout", "1") as watching:
        judged(box, daemon, "ses_slow")
        wait_until(lambda: "longer than 1 s" in watching.errors, "the time limit", lambda: watching.errors)
        assert len(started()) == 2
        wait_until(lambda: not any(map(alive, started())), "no sleep", lambda: str(started()))
    pids.unlink()
    with Daemon(box) as daemon, Watching(box, "--exec", command) as watching:
        judged(box, daemon, "ses_last")
        wait_until(lambda: len(started()) == 2, "the command", lambda: watching.errors)
        assert watching.end(signal.SIGHUP) == 129
        wait_until(lambda: not any(map(alive, started())), "no sleep", lambda: str(started()))


def alive(pid: int) -> bool:
    with contextlib.suppress(psutil.NoSuchProcess):
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    return False


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ({"kind": "skip", "guard": "child", "reason": "a child\x1b[2J"}, ["left alone: child"]),
        (
            {"kind": "verdict", "state": "unscored", "reason": "unscored: no reply"},
            ["not judged", "no reply"],
        ),
        ({"kind": "verdict", "state": "complete", "judge": {"cost": 0.0123}}, ["done", "0.0123 USD"]),
        ({"kind": "verdict", "state": "stopped", "reason": "guard:aborted"}, ["you stopped it"]),
        ({"kind": "judging"}, ["judging"]),
        ({"kind": "verdict", "at": 10**30, "state": 5, "judge": 7, "title": None}, ["?"]),
    ],
    ids=str,
)
def test_a_line_of_watch(entry: dict[str, Any], words: list[str]) -> None:
    """When, which session (a beginning of its id that can be typed again), and what; one safe line."""
    line = told({"session": "ses_58c3f0d91ffeHq2L", "at": NOW} | entry, Paint())
    assert "ses_58c3f0d91ffe " in line + " "
    assert [w for w in words if w not in line] == []
    assert not set(line) & {"\x1b", "\n"}

"""``reflectd judge --past`` and its older spelling: the real command on files of past sessions."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from typing import Any

import pytest

from daemon.cli.judge.sessions import files_of
from harness.machine.sandbox import REPO, Sandbox
from harness.machine.waiting import PATIENCE_S
from tests.cli.judge.corpus import session, sessions
from tests.support.hosts.claude_code_past import folder_of
from tests.support.machine.command_line import COMMAND, environment, reflectd, said

Json = dict[str, Any]
DATA = REPO / "tests" / "data"
WATCHED = """
import resource, sys
seen = []
watched = ("socket.", "subprocess.")
sys.addaudithook(lambda event, _: seen.append(event) if event.startswith(watched) else None)
from daemon.cli.main import main
code = main(sys.argv[1:])
print(seen, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024, file=sys.stderr)
sys.exit(code)
"""


def report(box: Sandbox, *args: str, **env: str) -> Json:
    """The report as JSON."""
    done = reflectd(box, "backtest", "--json", *args, **env)
    assert (done.returncode, done.stderr) == (0, ""), done
    found: Json = json.loads(done.stdout)
    return found


def watched(box: Sandbox, *args: str) -> tuple[str, int]:
    """The sockets and programs that the command opened, and its peak memory in MB."""
    given = {"env": environment(box), "cwd": box.project, "capture_output": True, "timeout": PATIENCE_S}
    command = [sys.executable, "-c", WATCHED, "judge", "--past", *args]
    done = subprocess.run(command, text=True, check=True, **given)
    opened, _, peak = done.stderr.strip().rpartition(" ")
    return opened, int(peak)


def begins(box: Sandbox, *args: str) -> subprocess.Popen[str]:
    """The command, while it runs."""
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    given = {"env": environment(box), "cwd": box.project, "start_new_session": True}
    return subprocess.Popen([*COMMAND, "backtest", *args], text=True, **given, **pipes)


@pytest.mark.main("a back-test")
def test_the_report(box: Sandbox) -> None:
    """Sessions, stops, each state with its share, severities, figures of a day, projects."""
    sessions(box, 6)
    text = said(reflectd(box, "backtest"), 0, "6 sessions, 7 stops in 6 files", "the fixed rules, for free")
    for words in ("done  ", "sent back as", "HIGH 4", "a day  ", "by project"):
        assert words in text
    found = report(box)
    assert (found["sessions"], found["stops"], found["sent"], found["complete"]) == (6, 7, 4, 0)
    assert (found["calls"], found["usd"], found["judge"], found["problems"]) == (0, 0.0, "offline", [])
    assert [p["project"] for p in found["projects"]] == [str(box.project.resolve())]


def test_recorded_sessions_of_both_hosts(box: Sandbox) -> None:
    """A folder with transcripts and exports; what is neither is named, and costs only itself."""
    found = report(box, str(DATA / "exports"))
    assert (found["hosts"], found["sent"], found["complete"]) == ({"opencode": 2}, 1, 0)
    folder = box.root / "mixed"
    folder.mkdir()
    for path in (*(DATA / "claude").glob("*.jsonl"), *(DATA / "exports").glob("*.json")):
        (folder / path.name).write_bytes(path.read_bytes())
    (folder / "noise.jsonl").write_bytes(b"\x00\xff\n[[[[\n" * 100)
    (folder / "broken.json").write_text("{", "utf-8")
    (folder / "other.json").write_text('{"a": 1}', "utf-8")
    os.mkfifo(folder / "pipe.jsonl")
    mixed = report(box, str(folder))
    assert mixed["hosts"] == {"claude-code": 10, "opencode": 2}
    names = [os.path.basename(p["file"]) for p in mixed["problems"]]
    assert names == ["broken.json", "other.json", "pipe.jsonl"]
    said(reflectd(box, "backtest", str(folder)), 0, "left out", "pipe.jsonl", "is not a regular file")


def test_no_socket_and_no_program(box: Sandbox) -> None:
    """With the rules nothing is sent anywhere: no program is started, and no socket is opened but the one on
    which a daemon would say where an opencode is open.
    """
    (path, _) = sessions(box, 2)
    assert watched(box, str(path.parent), "--json")[0] == "[]"
    assert watched(box, "--json")[0] == "['socket.__new__']"


@pytest.mark.main("a back-test")
def test_memory_is_flat(box: Sandbox) -> None:
    """Ten times as many sessions take no more memory."""
    sessions(box, 30)
    few = watched(box, "--json")[1]
    sessions(box, 300)
    assert watched(box, "--json")[1] < few + 12


def test_only_the_last_days(box: Sandbox) -> None:
    """--days leaves out older files unread, and older stops."""
    old = session(box, 1)
    new = session(box, 2)
    now = time.time()
    os.utime(new, (now, now))
    newer = files_of({"HOME": str(box.home)}, None, int(now * 1000) - 86_400_000)
    assert [f.name for f in newer] == [str(new)]
    assert report(box)["stops"] == 2
    said(reflectd(box, "backtest", "--days", "1", str(old.parent)), 0, "0 stops in 1 file", "No agent came")
    os.utime(new, (1, 1))
    said(reflectd(box, "backtest", "--days", "1"), 2, "no session so new")


def test_wrong_use_is_named(box: Sandbox) -> None:
    """No session, no such folder, flags that do not go together."""
    said(reflectd(box, "backtest"), 2, "there is no session in", "opencode export")
    said(reflectd(box, "backtest", "/nowhere"), 2, "there is no /nowhere")
    folder_of(box).mkdir(parents=True)
    for args, words in (
        (["--days", "0"], "--days must be from 1"),
        (["--label"], "run it on a terminal"),
        (["--label", "--json"], "run it on a terminal"),
        (["--provider", "auto"], "judged by the rules, or by one of anthropic"),
    ):
        said(reflectd(box, "judge", "--past", *args), 2, words)
    said(reflectd(box, "judge", "--past", "--last"), 2, "--last or --past")
    said(reflectd(box, "judge", "x", "--days", "3"), 2, "go with --past")


def test_no_setting_and_no_session_is_changed(box: Sandbox) -> None:
    """It makes its own lock in the state folder, and nothing else."""
    sessions(box, 2)
    before = {p: p.read_bytes() for p in box.home.rglob("*") if p.is_file()}
    reflectd(box, "backtest")
    after = {p: p.read_bytes() for p in box.home.rglob("*") if p.is_file() and box.state not in p.parents}
    assert after == {p: data for p, data in before.items() if box.state not in p.parents}
    assert {p.name for p in box.state.iterdir()} == {"backtest"}

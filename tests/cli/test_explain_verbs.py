"""``why``, ``watch``, ``cost``, ``doctor`` and ``completion`` in real processes, before a real daemon."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import signal
import sqlite3
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import psutil
import pytest

from daemon.cli.main import VERBS
from daemon.cli.render import Paint
from daemon.cli.watch import told
from tests.support import processes
from tests.support.reflectd import Daemon
from tests.support.sandbox import REPO, Sandbox, sandbox
from tests.support.waiting import wait_until
from tests.support.wire_host import WireHost, unfinished

if TYPE_CHECKING:
    from collections.abc import Iterator

Done = subprocess.CompletedProcess[str]
COMMAND = [sys.executable, "-m", "daemon"]
NOW = int(time.time() * 1000)
DAY = 86_400_000


@pytest.fixture
def box() -> Iterator[Sandbox]:
    with sandbox() as box, processes.none_left_over():
        yield box


def environment(box: Sandbox, **env: str) -> dict[str, str]:
    return box.env(PYTHONPATH=str(REPO), PYTHONUNBUFFERED="1") | env


def reflectd(box: Sandbox, *args: str, cwd: Path | None = None, **env: str) -> Done:
    """One command; it never shows a trace."""
    done = subprocess.run(
        [*COMMAND, *args],
        env=environment(box, **env),
        cwd=cwd or box.project,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=40,
        check=False,
    )
    assert "Traceback" not in done.stderr, done.stderr
    return done


def said(done: Done, code: int, *words: str) -> str:
    text = done.stdout + done.stderr
    assert done.returncode == code, done
    for word in words:
        assert word in text, f"{word!r} is not in:\n{text}"
    return text


def judged(box: Sandbox, daemon: Daemon, session: str, **texts: str) -> None:
    """One session judged incomplete, its feedback delivered, its files written."""
    with WireHost(box.socket, box.project, unfinished(box.project, **texts), f"host-{session}") as host:
        host.send(host.turn(session))
        daemon.wait_verdict(session, "incomplete")
        wait_until(lambda: case_files(box, session), 15, "a case file", daemon.log)


def case_files(box: Sandbox, session: str) -> list[Path]:
    return sorted((box.project / ".reflection").glob(f"{session}_*.json"))


# --- why -----------------------------------------------------------------------------------------


def test_why_tells_the_whole_story(box: Sandbox) -> None:
    """State, evidence, reply, decision, feedback with its outcome, and cost; by the beginning of an id."""
    with Daemon(box) as daemon:
        judged(box, daemon, "ses_told_1", request="Add a login page with tests")
        for args in (["why"], ["why", "ses_t"], ["why", "ses_told_1"]):
            text = said(reflectd(box, *args), 0, "ses_told_1", "incomplete", "HIGH", str(box.project))
        for part in ("Asked", "Evidence", "Reply 1 (offline rules", "Decision", "Cost", "fixed rules, free"):
            assert part in text
        for words in ("Add a login page with tests", "pytest -q", "it reached the agent", "Task Incomplete"):
            assert words in text
        assert str(case_files(box, "ses_told_1")[0]) in text
        found = json.loads(reflectd(box, "why", "--json").stdout)
        assert found["case"]["case"]["session"] == found["session"]["session"] == "ses_told_1"
        assert found["verdicts"][0]["order"]["status"] == "done"


def test_why_prefers_this_folder(box: Sandbox) -> None:
    """The newest verdict of this folder, else the newest of all; ``--dir`` names another."""
    elsewhere = box.root / "elsewhere"
    elsewhere.mkdir()
    with Daemon(box) as daemon:
        judged(box, daemon, "ses_here")
        with WireHost(box.socket, elsewhere, unfinished(elsewhere), "host-2") as host:
            host.send(host.turn("ses_there"))
            wait_until(lambda: daemon.verdicts("ses_there"), 20, "a verdict", daemon.log)
        for args, cwd, session in (
            ([], box.project, "ses_here"),
            ([], elsewhere, "ses_there"),
            (["--dir", str(elsewhere)], box.project, "ses_there"),
            ([], box.home, "ses_there"),
        ):
            found = json.loads(reflectd(box, "why", "--json", *args, cwd=cwd).stdout)
            assert found["session"]["session"] == session


def test_why_of_what_is_not_there(box: Sandbox) -> None:
    """Exit code 2: unknown, or several begin like that, and which; 1 without daemon and files."""
    said(reflectd(box, "why"), 1, "reflectd start", str(box.project))
    with Daemon(box) as daemon:
        said(reflectd(box, "why"), 2, "no session was judged yet")
        with WireHost(box.socket, box.project) as host:
            for session in ("ses_one", "ses_two"):
                host.send([host.event("session.status", sessionID=session, status={"type": "busy"})])
            said(reflectd(box, "why", "ses_"), 2, "ses_one, ses_two")
            said(reflectd(box, "why", "nobody"), 2, "nobody", "reflectd status")
            said(reflectd(box, "why", "ses_one"), 0, "ses_one", "busy", "none yet")
        daemon.new_log()


def test_why_without_a_daemon(box: Sandbox) -> None:
    """The newest case file of this folder, and it says so; a session chooses among them."""
    with Daemon(box) as daemon:
        judged(box, daemon, "ses_first")
        judged(box, daemon, "ses_second")
    done = reflectd(box, "why")
    said(done, 0, "ses_second", "pytest -q", "Decision")
    assert "no daemon" in done.stderr
    said(reflectd(box, "why", "ses_fir"), 0, "ses_first")
    said(reflectd(box, "why", "ses_third"), 1, "ses_third")
    found = json.loads(reflectd(box, "why", "--json").stdout)
    assert (found["daemon"], found["case"]["case"]["session"]) == (False, "ses_second")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "null",
        "[1]",
        '{"version": 2}',
        "[" * 100_000,
        "\ufeff{}",
        '{"version": 1}',
        '{"version": 1, "case": 7, "prompts": {}, "replies": [null, {"text": 5}], "verdict": []}',
        '{"version": 1, "case": {"evidence": {"rows": [1, {}]}, "requests": "x"}, "verdict": {"at": 1e308}}',
        '{"version": 1, "verdict": {"state": {}, "at": "x", "judge": 1, "missing": [5], "next_actions": 1}}',
    ],
    ids=lambda t: repr(t[:40]),
)
def test_why_reads_a_strange_file(box: Sandbox, text: str) -> None:
    """Bad input: a case file comes with a clone; whatever is in it, no trace and no crash."""
    box.file(f".reflection/ses_x_{NOW}.json", text)
    assert reflectd(box, "why").returncode in {0, 1}


def test_why_does_not_follow_what_is_no_file(box: Sandbox) -> None:
    """A pipe or a link in the place of a case file is not opened: it would hang, or show another file."""
    folder = box.project / ".reflection"
    folder.mkdir()
    os.mkfifo(folder / f"ses_pipe_{NOW}.json")
    said(reflectd(box, "why"), 1, "not a regular file")
    secret = box.root / "secret.json"
    secret.write_text('{"version": 1, "why": "a secret"}')
    (folder / f"ses_pipe_{NOW}.json").unlink()
    (folder / f"ses_link_{NOW}.json").symlink_to(secret)
    assert "a secret" not in said(reflectd(box, "why"), 1)


def test_what_others_wrote_cannot_drive_the_terminal(box: Sandbox) -> None:
    """Escape sequences of a request or an agent's text are shown, not sent."""
    evil = "\x1b]0;owned\x07\x1b[2JAdd a page\u202e"
    with Daemon(box) as daemon:
        judged(box, daemon, "ses_evil", request=evil, final=evil, output=f"1 failed {evil}", title=evil)
        for args in (["why", "--full"], ["status"]):
            text = said(reflectd(box, *args), 0)
            assert not set(text) & {"\x1b", "\x07", "\u202e"}
        assert "Add a page" in reflectd(box, "why").stdout


def test_colours_only_on_a_terminal(box: Sandbox) -> None:
    """Not in a pipe, and not with NO_COLOR."""
    with Daemon(box) as daemon:
        judged(box, daemon, "ses_colour")
        assert "\x1b[" not in reflectd(box, "why").stdout
        for env, coloured in (({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)):
            assert ("\x1b[" in on_a_terminal(box, "why", **env)) is coloured


def on_a_terminal(box: Sandbox, *args: str, **env: str) -> str:
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [*COMMAND, *args],
        env=environment(box, **({"TERM": "xterm"} | env)),
        cwd=box.project,
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=subprocess.PIPE,
    )
    os.close(theirs)
    text = b""
    with contextlib.suppress(OSError):  # EIO: the other end is closed
        while data := os.read(ours, 65536):
            text += data
    os.close(ours)
    _, errors = process.communicate(timeout=20)
    assert process.returncode == 0, errors
    return text.decode()


def test_why_shows_no_other_sessions_case(box: Sandbox) -> None:
    """A session whose id begins another's is explained by its own case file."""
    with Daemon(box) as daemon:
        judged(box, daemon, "ses_1")
        judged(box, daemon, "ses_10")
        found = json.loads(reflectd(box, "why", "ses_1", "--json").stdout)
        assert found["case_file"] == str(case_files(box, "ses_1")[0])
        assert found["case"]["case"]["session"] == "ses_1"


# --- watch ---------------------------------------------------------------------------------------


class Watching:
    """``reflectd watch`` in a process; ``lines`` grows, ``end`` is Ctrl-C."""

    def __init__(self, box: Sandbox, *args: str) -> None:
        self._out, self._err = box.root / "watch.out", box.root / "watch.err"
        with self._out.open("wb") as out, self._err.open("wb") as err:
            self.process = processes.start(
                [*COMMAND, "watch", *args], environment(box), box.project, out, err
            )
        wait_until(lambda: "watching" in self.errors, 20, "watching", lambda: self.errors)

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
        wait_until(
            lambda: len(self.lines) >= count, 30, f"{count} lines", lambda: f"{self.lines}\n{self.errors}"
        )
        return self.lines

    def end(self, number: int = signal.SIGINT) -> int:
        self.process.send_signal(number)
        return self.process.wait(15)


def test_watch_prints_a_line_per_verdict(box: Sandbox) -> None:
    """Of this folder and what is below it, not of another; a line for people, or JSON; Ctrl-C is 130."""
    below, beside = box.project / "below", box.root / "beside"
    below.mkdir()
    beside.mkdir()
    with Daemon(box) as daemon, Watching(box) as people:
        for folder in (beside, below, box.project):
            with WireHost(box.socket, folder, unfinished(folder), f"host-{folder.name}") as host:
                host.send(host.turn(f"ses_{folder.name}"))
                wait_until(partial(daemon.verdicts, f"ses_{folder.name}"), 20, "a verdict", daemon.log)
        lines = people.wait_lines(2)
        assert [
            name for line in lines for name in ("ses_below", "ses_project", "ses_beside") if name in line
        ] == [
            "ses_below",
            "ses_project",
        ]
        assert all("incomplete HIGH (sent)" in line and "pytest" in line for line in lines)
        assert people.end() == 130
        daemon.new_log()


def test_watch_as_json_everywhere(box: Sandbox) -> None:
    """``--all --verbose --json``: judging and verdicts of every folder, each line an object."""
    with Daemon(box) as daemon, Watching(box, "--all", "--verbose", "--json") as watching:
        elsewhere = box.root / "elsewhere"
        elsewhere.mkdir()
        with WireHost(box.socket, elsewhere, unfinished(elsewhere)) as host:
            host.send(host.turn("ses_else"))
            found = [json.loads(line) for line in watching.wait_lines(2)]
        assert [(f["kind"], f["state"]) for f in found[:2]] == [
            ("judging", "judging"),
            ("verdict", "incomplete"),
        ]
        assert found[1]["feedback"]
        assert watching.end(signal.SIGTERM) == 143
        daemon.new_log()


def test_watch_needs_a_daemon_and_survives_its_restart(box: Sandbox) -> None:
    """Exit code 1 when none is there at the start; later it says so and connects again."""
    said(reflectd(box, "watch"), 1, "reflectd start")
    with Daemon(box) as daemon, Watching(box) as watching:
        daemon.stop()
        wait_until(lambda: "the daemon is gone" in watching.errors, 20, "a word", lambda: watching.errors)
        daemon.start()
        wait_until(
            lambda: watching.errors.count("watching") == 2, 20, "watching again", lambda: watching.errors
        )
        judged(box, daemon, "ses_after")
        assert "ses_after" in watching.wait_lines(1)[0]


def test_exec_gets_each_verdict_in_order(box: Sandbox) -> None:
    """One at a time, its JSON on stdin, REFLECTD_CHILD set; a failing one is told and stops nothing."""
    out = box.root / "got"
    command = f'cat >> {out}; printf "%s\\n" "$REFLECTD_CHILD" >> {out}.child; exit 3'
    with Daemon(box) as daemon, Watching(box, "--exec", command) as watching:
        for n in range(3):
            judged(box, daemon, f"ses_{n}")
        child = Path(f"{out}.child")
        wait_until(
            lambda: child.exists() and child.read_text().count("1") == 3, 20, "three", lambda: watching.errors
        )
        found = [json.loads(line) for line in out.read_text().splitlines()]
        assert [(f["session"], f["state"], f["kind"]) for f in found] == [
            (f"ses_{n}", "incomplete", "verdict") for n in range(3)
        ]
        assert watching.errors.count("exit code 3") == 3
        assert len(watching.lines) == 3


def test_exec_leaves_nothing_behind(box: Sandbox) -> None:
    """I45: a command over its time is killed with what it started, and so is the one that runs at the end."""
    pids = box.root / "pids"
    command = f"sleep 600 & echo $! >> {pids}; echo $$ >> {pids}; wait"

    def started() -> list[int]:
        return [int(line) for line in pids.read_text().split()] if pids.exists() else []

    with Daemon(box) as daemon, Watching(box, "--exec", command, "--exec-timeout", "1") as watching:
        judged(box, daemon, "ses_slow")
        wait_until(
            lambda: "longer than 1 s" in watching.errors, 20, "the time limit", lambda: watching.errors
        )
        assert len(started()) == 2
        wait_until(lambda: not any(map(alive, started())), 10, "no sleep", lambda: str(started()))
    pids.unlink()
    with Daemon(box) as daemon, Watching(box, "--exec", command) as watching:
        judged(box, daemon, "ses_last")
        wait_until(lambda: len(started()) == 2, 20, "the command", lambda: watching.errors)
        assert watching.end(signal.SIGHUP) == 129
        wait_until(lambda: not any(map(alive, started())), 10, "no sleep", lambda: str(started()))


def alive(pid: int) -> bool:
    with contextlib.suppress(psutil.NoSuchProcess):
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    return False


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        (
            {"kind": "skip", "guard": "child_session", "reason": "a child\x1b[2J"},
            ["left alone: child_session"],
        ),
        ({"kind": "verdict", "state": "unscored", "reason": "unscored: no reply"}, ["unscored", "no reply"]),
        ({"kind": "verdict", "state": "complete", "judge": {"cost": 0.0123}}, ["complete", "0.0123 USD"]),
        (
            {"kind": "verdict", "state": "stopped", "reason": "guard:aborted", "judge": None},
            ["guard:aborted"],
        ),
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


@pytest.mark.parametrize(
    "args", [["--dir", "x", "--all"], ["--exec", "true", "--exec-timeout", "0"]], ids=" ".join
)
def test_watch_with_wrong_arguments(box: Sandbox, args: list[str]) -> None:
    """Exit code 2."""
    said(reflectd(box, "watch", *args), 2)


# --- cost ----------------------------------------------------------------------------------------

CALLS = [
    (NOW, "judge", "ses_a", "anthropic", "m-1", 1000, 100, 0.01, 900, "ok"),
    (NOW, "judge.second", "ses_a", "anthropic", "m-1", 500, 50, 0.005, 900, "ok"),
    (NOW, "judge", "ses_b", "host", "", 2000, 200, None, 900, "ok"),
    (NOW, "judge", "ses_b", "host", "", 0, 0, None, 900, "cancelled"),
    (NOW, "judge", "ses_b", "anthropic", "m-1", 0, 0, None, 900, "error: 529"),
    (NOW, "judge", "ses_c", "offline", "rules", 0, 0, 0.0, 1, "ok"),
    (NOW - 10 * DAY, "judge", "ses_a", "anthropic", "m-1", 10, 1, 5.0, 900, "ok"),
]


def fill_ledger(box: Sandbox) -> None:
    """Calls as a daemon with models would have written them."""
    with contextlib.closing(sqlite3.connect(box.state / "reflectd.sqlite3")) as db, db:
        db.executemany("INSERT INTO ledger VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", CALLS)


def test_cost_with_and_without_a_daemon(box: Sandbox) -> None:
    """I41: the same sums from the daemon and from its file; unknown is unknown with its tokens, never 0."""
    said(reflectd(box, "cost"), 1, "no database")
    with Daemon(box):
        fill_ledger(box)
        by_daemon = cost(box)
        text = said(reflectd(box, "cost"), 0, "0.0150", "2,200 tokens", "together", "of 2.00 USD", "500,000")
        assert "5.0" not in text.partition("last 24 hours")[0]
    done = reflectd(box, "cost", "--json")
    assert "no daemon" in done.stderr
    by_file = cost(box)
    assert by_file == by_daemon
    sums = by_file["sums"]
    assert (sums["calls"], sums["rules"], sums["answered"], sums["cancelled"], sums["failed"]) == (
        6,
        1,
        3,
        1,
        1,
    )
    assert sums["cost"] == pytest.approx(0.015)
    assert (sums["unpriced"], sums["unpriced_tokens"]) == (1, 2200)
    assert by_file["spent_24h"] == {"usd": pytest.approx(0.015), "unpriced_tokens": 2200}


def cost(box: Sandbox, *args: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(reflectd(box, "cost", "--json", *args).stdout)
    return found


def test_cost_by_each_thing(box: Sandbox) -> None:
    """``--by``, ``--session`` and ``--days`` choose what is summed; what no one knows is not 0."""
    with Daemon(box):
        fill_ledger(box)
    names = {
        by: [g["name"] for g in cost(box, "--by", by)["groups"]] for by in ("session", "model", "purpose")
    }
    assert names == {
        "session": ["ses_a", "ses_b", "ses_c"],
        "model": ["m-1", "", "rules"],
        "purpose": ["judge", "judge.second"],
    }
    (unknown,) = [g for g in cost(box, "--by", "provider")["groups"] if g["name"] == "host"]
    assert (unknown["cost"], unknown["unpriced_tokens"]) == (None, 2200)
    assert cost(box, "--days", "30", "--session", "ses_a")["sums"]["cost"] == pytest.approx(5.015)
    assert len(cost(box, "--days", "30")["groups"]) == 2
    text = said(reflectd(box, "cost", "--by", "provider"), 0)
    (line,) = [line for line in text.splitlines() if line.startswith("host")]
    assert "2,200 tokens" in line
    assert "0.0000" not in line
    said(reflectd(box, "cost", "--session", "nobody"), 0, "nothing was judged")


@pytest.mark.parametrize(
    "args", [["--days", "0"], ["--days", "401"], ["--days", "x"], ["--by", "moon"]], ids=" ".join
)
def test_cost_with_wrong_arguments(box: Sandbox, args: list[str]) -> None:
    """Exit code 2."""
    said(reflectd(box, "cost", *args), 2)


# --- doctor --------------------------------------------------------------------------------------


def checks(box: Sandbox, *args: str, **env: str) -> tuple[int, dict[str, list[tuple[str, str, str]]]]:
    """Exit code, and the findings by name: (outcome, text, mend)."""
    done = reflectd(box, "doctor", "--json", *args, **env)
    found: dict[str, list[tuple[str, str, str]]] = {}
    for c in json.loads(done.stdout)["checks"]:
        found.setdefault(c["name"], []).append((c["outcome"], c["text"], c["mend"]))
    return done.returncode, found


def outcomes(found: dict[str, list[tuple[str, str, str]]], name: str) -> list[str]:
    return [c[0] for c in found[name]]


def test_doctor_of_a_healthy_installation(box: Sandbox) -> None:
    """Exit code 0; daemon, socket, database and plugin line are seen and fine."""
    said(reflectd(box, "setup", "opencode"), 0)
    box.state.chmod(0o700)
    with Daemon(box), WireHost(box.socket, box.project):
        code, found = checks(box)
        said(reflectd(box, "doctor"), 0, "ok", "1 connected")
    assert code == 0
    for name in ("python", "package", "settings", "state", "space", "socket", "daemon", "plugin", "database"):
        assert outcomes(found, name) == ["ok"], found[name]


def test_doctor_finds_what_is_wrong(box: Sandbox) -> None:
    """Exit code 1; each finding says what to do."""
    box.state.chmod(0o777)
    box.socket.write_text("no socket")
    settings = box.home / ".config" / "opencode" / "opencode.json"
    settings.write_text(json.dumps({"plugin": ["file:///gone/plugin-shim/opencode/src/index.ts"]}))
    (box.state / "reflectd.sqlite3").write_bytes(b"garbage" * 1000)
    stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime())
    lines = [
        f"timestamp={stamp}.1Z level=error part=daemon event=bug",
        "timestamp=2001-01-01T00:00:00Z level=error event=old",
    ]
    (box.state / "reflectd.log").write_text("\n".join(lines))
    code, found = checks(box, REFLECTD_JUDGE_PROVIDER="anthropic")
    assert code == 1
    for name in ("state", "socket", "plugin", "database", "providers"):
        assert "fail" in outcomes(found, name), found[name]
        assert all(mend for outcome, _, mend in found[name] if outcome != "ok")
    assert outcomes(found, "daemon") == outcomes(found, "log") == ["warn"]
    assert "1 errors" in found["log"][0][1]
    assert "ANTHROPIC_API_KEY" in found["providers"][0][2]
    said(reflectd(box, "doctor"), 1, "failed", "->", "chmod 700")


def test_doctor_tells_wrong_settings(box: Sandbox) -> None:
    """A wrong setting is a finding with its name, not a refusal to look."""
    code, found = checks(box, REFLECTD_JUDGE_PROVDER="x")
    assert (code, outcomes(found, "settings")) == (1, ["fail"])
    assert "REFLECTD_JUDGE_PROVIDER" in found["settings"][0][1]
    assert outcomes(found, "python") == ["ok"]


def test_doctor_sees_a_stale_socket_and_a_stopped_daemon(box: Sandbox) -> None:
    """What a crash and what `reflectd stop` leave behind are not the same."""
    with Daemon(box) as daemon:
        daemon.kill9()
    code, found = checks(box)
    assert (code, outcomes(found, "socket")) == (0, ["warn"])
    assert "stale" in found["socket"][0][1]
    (box.state / "stopped").touch()
    assert "reflectd stop" in checks(box)[1]["daemon"][0][1]


def test_doctor_never_shows_a_key(box: Sandbox) -> None:
    """I46: a key is known to be there, and nothing of it is printed."""
    key = "sk-ant-api03-" + "k" * 40
    env = {"ANTHROPIC_API_KEY": key, "OPENAI_API_KEY": key, "REFLECTD_JUDGE_PROVIDER": "auto"}
    for args in (["doctor"], ["doctor", "--json"]):
        text = said(reflectd(box, *args, **env), 0, "anthropic, then openai")
        assert "kkkk" not in text


def test_doctor_online_without_an_api(box: Sandbox) -> None:
    """Nothing is set up: nothing is called; a closed port is told as what it is."""
    assert outcomes(checks(box, "--online")[1], "online") == ["ok"]
    key = {"ANTHROPIC_API_KEY": "k", "REFLECTD_ANTHROPIC_BASE_URL": "http://127.0.0.1:9"}
    code, found = checks(box, "--online", **key)
    assert (code, outcomes(found, "online")) == (1, ["fail"])
    assert "base_url" in found["online"][0][2]


# --- completion ----------------------------------------------------------------------------------


def completed(box: Sandbox, line: str, **env: str) -> list[str]:
    """What bash offers for the last word of ``line``."""
    words = line.split(" ")
    script = f"""
reflectd() {{ {sys.executable} -m daemon "$@"; }}
source <(reflectd completion bash)
COMP_WORDS=({" ".join(f"'{w}'" for w in words)}); COMP_CWORD={len(words) - 1}
_reflectd
printf '%s\\n' "${{COMPREPLY[@]}}"
"""
    done = subprocess.run(
        ["bash", "--norc", "-c", script],
        env=environment(box, **env),
        cwd=box.project,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=40,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.split()


def test_bash_completes(box: Sandbox) -> None:
    """Verbs, verbs below verbs, flags, choices, settings' values, folders; nothing where nothing is known."""
    (box.project / "a folder").mkdir()
    assert set(completed(box, "reflectd ")) == set(VERBS)
    assert completed(box, "reflectd wa") == ["watch"]
    assert completed(box, "reflectd setup o") == ["opencode"]
    assert completed(box, "reflectd setup opencode --dr") == ["--dry-run"]
    assert completed(box, "reflectd cost --by p") == ["purpose", "provider"]
    assert completed(box, "reflectd serve --judge-mode ") == ["act", "observe"]
    assert completed(box, "reflectd why --dir a") == ["a", "folder"]
    assert completed(box, "reflectd logs -n ") == []
    assert completed(box, "reflectd watch ses") == []  # no daemon: silent


def test_bash_completes_sessions(box: Sandbox) -> None:
    """Ids the daemon knows, for words and for ``--session``; one that a shell would run is not offered."""
    with Daemon(box), WireHost(box.socket, box.project) as host:
        evil = f"$(touch {box.project}/owned)"
        for session in ("ses_abc", "ses_xyz", evil, "`touch owned`", "a;b", "x\ny"):
            host.send([host.event("session.status", sessionID=session, status={"type": "busy"})])
        assert sorted(completed(box, "reflectd why ")) == ["ses_abc", "ses_xyz"]
        assert completed(box, "reflectd why ses_a") == ["ses_abc"]
        assert completed(box, "reflectd off --session ses_x") == ["ses_xyz"]
        assert not (box.project / "owned").exists()


@pytest.mark.needs("fish")
def test_fish_completes(box: Sandbox) -> None:
    """The script in a real fish: verbs, choices, flags."""
    (box.root / "r.fish").write_text(reflectd(box, "completion", "fish").stdout)
    for line, wanted in (("wa", "watch"), ("cost --by pu", "purpose"), ("setup opencode --dr", "--dry-run")):
        script = f"source {box.root}/r.fish; complete -C 'reflectd {line}'"
        done = subprocess.run(
            ["fish", "--no-config", "-c", script],
            env=environment(box),
            capture_output=True,
            text=True,
            check=True,
        )
        assert [found.partition("\t")[0] for found in done.stdout.splitlines()] == [wanted]


@pytest.mark.needs("zsh")
def test_zsh_reads_its_script(box: Sandbox) -> None:
    """The script is one that a real zsh can parse."""
    text = reflectd(box, "completion", "zsh").stdout
    done = subprocess.run(
        ["zsh", "-f", "-n"], input=text, env=environment(box), capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_names_every_verb(box: Sandbox, shell: str) -> None:
    """Each script knows every verb and the flags of each."""
    text = said(reflectd(box, "completion", shell), 0, *VERBS, "exec-timeout", "completion --sessions")
    assert "@" not in text.replace('"${', "").replace("$@", "").replace("[@]", "")


@pytest.mark.parametrize("args", [[], ["tcsh"], ["bash", "--sessions"]], ids=" ".join)
def test_completion_with_wrong_arguments(box: Sandbox, args: list[str]) -> None:
    """Exit code 2."""
    said(reflectd(box, "completion", *args), 2)

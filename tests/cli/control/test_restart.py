"""``reflectd restart``, what ``start`` and ``doctor`` say of a daemon that is out of date or does not start,
and the daemon that leaves for an upgrade (``engine.upgrade``, ``cli.control``).
"""

from __future__ import annotations

import http.server
import json
import os
import shutil
import subprocess
import sys
import threading
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from daemon import __version__
from harness.machine.reflectd import Daemon
from harness.machine.sandbox import REPO, Sandbox
from harness.machine.waiting import PATIENCE_S, wait_until
from harness.models.api_servers import Says
from tests.support.hosts.wire import WireHost, unfinished
from tests.support.machine.command_line import reflectd, said

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NEXT = "99.1.0"
ANSWER = {"complete": True, "severity": "NONE", "feedback": "", "missing": [], "next_actions": []}


def installed(box: Sandbox) -> Path:
    """The package as it is installed, in a folder of its own, under the name that it has there."""
    site = box.root / "site"
    package = site / "reflectd"
    shutil.copytree(REPO / "daemon", package, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(REPO / "prompts", package / "prompts")
    return package


def upgrade(package: Path, version: str = NEXT) -> None:
    """What an installer does: files take the place of others."""
    old = (package / "__init__.py").read_text()
    new = package / "new.tmp"
    new.write_text(old.replace(f'"{__version__}"', f'"{version}"'))
    new.replace(package / "__init__.py")


class Model:
    """A server like OpenAI's whose answers wait until ``go`` is set."""

    def __init__(self) -> None:
        self.asked = 0
        self.begun, self.go = threading.Event(), threading.Event()
        model = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                model.asked += 1
                model.begun.set()
                assert model.go.wait(PATIENCE_S)
                data = json.dumps(Says(json.dumps(ANSWER)).openai(body)).encode()
                self.send_response(200)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_: object) -> None:
                """Nothing is printed."""

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/v1"


@contextmanager
def slow_model() -> Iterator[Model]:
    model = Model()
    thread = threading.Thread(target=model.server.serve_forever)
    thread.start()
    try:
        yield model
    finally:
        model.go.set()
        model.server.shutdown()
        thread.join()
        model.server.server_close()


def asks(model: Model) -> dict[str, str]:
    """The settings with which this model judges."""
    return {
        "REFLECTD_JUDGE_PROVIDER": "openai",
        "REFLECTD_OPENAI_BASE_URL": model.url,
        "REFLECTD_OPENAI_MODEL": "m",
    }


def test_an_upgrade_replaces_the_daemon_but_never_while_a_turn_is_judged(box: Sandbox) -> None:
    """The program on the disk is replaced while a model judges: the turn is judged to its end by the old
    daemon, which only then leaves; the plugin that started it starts the new one.
    """
    package = installed(box)
    with slow_model() as model:
        daemon = Daemon(box, PYTHONPATH=str(package.parent), **asks(model))
        daemon.program = ("-m", "reflectd", "serve", "--from-shim")
        with daemon, WireHost(box.socket, box.project, unfinished(box.project)) as host:
            before = daemon.status()
            host.send(host.turn("ses_judged"))
            assert model.begun.wait(PATIENCE_S), daemon.log()
            upgrade(package)
            wait_until(lambda: "leaves for it at a quiet moment" in daemon.log(), "notice", daemon.log)
            assert daemon.status()["upgrade"] == {"waiting": True, "problem": ""}
            said(reflectd(box, "start"), 0, "its program was replaced", "next quiet moment")
            model.go.set()
            verdict = wait_until(lambda: daemon.verdicts("ses_judged"), "a verdict", daemon.log)[0]
            assert daemon.status()["pid"] == before["pid"]
            wait_until(lambda: not box.socket.exists(), "its end", daemon.log)
            lock = box.state / "lock"
            wait_until(lambda: lock.read_text() == "", "the lock given back", daemon.log)
        with daemon:
            assert daemon.status()["version"] == NEXT
            assert daemon.verdicts("ses_judged") == [verdict]


def test_a_daemon_that_a_person_started_stays(box: Sandbox) -> None:
    """Nobody would start the next one in its terminal, with its flags and keys: it says so."""
    package = installed(box)
    daemon = Daemon(box, PYTHONPATH=str(package.parent))
    daemon.program = ("-m", "reflectd", "serve")
    with daemon:
        upgrade(package)
        wait_until(lambda: daemon.status()["upgrade"]["problem"], "the problem", daemon.log)
        said(reflectd(box, "start"), 0, "goes on as it was", f"nobody would start {NEXT}", "restart")


def test_a_program_that_can_not_be_used_is_not_left_for(box: Sandbox) -> None:
    """The daemon goes on as it was and says why; for mended files it leaves."""
    package = installed(box)
    good = (package / "app.py").read_text()
    daemon = Daemon(box, PYTHONPATH=str(package.parent))
    daemon.program = ("-m", "reflectd", "serve", "--from-shim")
    with daemon:
        before = daemon.status()
        (package / "app.py").write_text("import nothing_that_there_is\n")
        upgrade(package)
        wait_until(lambda: daemon.status()["upgrade"]["problem"], "the problem", daemon.log)
        said(reflectd(box, "start"), 0, "goes on as it was", "nothing_that_there_is")
        findings = json.loads(reflectd(box, "doctor", "--json").stdout)["checks"]
        (warned,) = (c for c in findings if c["name"] == "daemon" and c["outcome"] == "warn")
        assert "nothing_that_there_is" in warned["text"]
        with WireHost(box.socket, box.project, unfinished(box.project)) as host:
            host.send(host.turn("ses_still"))
            wait_until(lambda: daemon.verdicts("ses_still"), "a verdict", daemon.log)
        assert daemon.status()["started_at"] == before["started_at"]
        (package / "app.py").write_text(good)
        upgrade(package, "99.2.0")
        wait_until(lambda: not box.socket.exists(), "its end", daemon.log)


@pytest.mark.shows("I45")
@pytest.mark.parametrize("broken", ["imports", "serves"])
def test_a_new_program_that_does_not_start_is_named(box: Sandbox, broken: str) -> None:
    """The daemon left for it, or was ended: `start`, `status`, `doctor` and a hook of Claude Code name what
    is wrong, and which version ran before. The first daemon that serves ends that.
    """
    package = installed(box)
    program = Daemon(box, PYTHONPATH=str(package.parent))
    program.program = ("-m", "reflectd", "serve")
    with program:
        assert (box.state / "served").read_text() == f"{__version__}\n"
    upgrade(package)
    app = package / "app.py"
    good = app.read_text()
    if broken == "imports":
        app.write_text("import nothing_that_there_is\n")
    else:
        served = "        routes = Routes("
        assert served in good
        app.write_text(good.replace(served, "        routes = {}['nothing_that_there_is']("))
    words = (
        f"reflectd {NEXT} does not start",
        "nothing_that_there_is",
        f"install reflectd {__version__} again",
    )
    new = subprocess.run(
        [sys.executable, "-m", "reflectd", "start", "--from-shim"],
        env=box.env(PYTHONPATH=str(package.parent)),
        cwd=box.home,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    said(new, 1, *words)
    said(reflectd(box, "status"), 3, *words)
    assert words[0] in json.loads(reflectd(box, "status", "--json").stdout)["start_failed"]
    checks = json.loads(reflectd(box, "doctor", "--json").stdout)["checks"]
    (failed,) = (c for c in checks if c["name"] == "daemon")
    assert failed["outcome"] == "fail"
    assert all(word in failed["text"] for word in words)
    hook = REPO / "plugin-shim" / "claude-code" / "scripts" / "hook.sh"
    heard = []
    for event in ("UserPromptSubmit", "SessionStart", "UserPromptSubmit"):
        done = subprocess.run(
            ["sh", hook, event],
            env=box.env(REFLECTD_NO_START="1"),
            input="{}",
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        heard.append((done.returncode, done.stdout))
    assert [code for code, _ in heard] == [0, 0, 0]
    assert all(word in json.loads(heard[0][1])["systemMessage"] for word in words)
    assert [out for _, out in heard[1:]] == ["", ""], "it is told once"
    app.write_text(good)
    with program:
        assert not [p.name for p in box.state.iterdir() if "failed" in p.name]


@pytest.mark.shows("I43")
def test_going_back_after_an_upgrade_that_changed_the_database(box: Sandbox) -> None:
    """This reflectd judged a turn, a newer one brought its database up to date and was killed: this one names
    the copy from before that, and with the copy in place it has its verdicts again.
    """
    package = installed(box)
    upgrade(package)
    schema = package / "store" / "migrations.py"
    more = '("9999_next", ("ALTER TABLE verdicts ADD COLUMN next TEXT",))'
    schema.write_text(f"{schema.read_text()}\n\nMIGRATIONS = (*MIGRATIONS, {more})\n")
    older, newer = Daemon(box), Daemon(box, PYTHONPATH=str(package.parent))
    newer.program = ("-m", "reflectd", "serve")
    for daemon, session in ((older, "ses_before"), (newer, "ses_after")):
        with daemon, WireHost(box.socket, box.project, unfinished(box.project), f"host-{session}") as host:
            host.send(host.turn(session))
            wait_until(partial(daemon.verdicts, session), "a verdict", daemon.log)
            assert daemon.verdicts("ses_before")
            daemon.kill9()
    database = box.state / "reflectd.sqlite3"
    copy = box.state / f"{database.name}.before-9999_next"
    words = ("newer reflectd", f"go back to {copy.name}", "its -wal and -shm away", "docs/upgrade.md")
    said(reflectd(box, "start"), 1, *words)
    said(reflectd(box, "status"), 3, *words)
    (box.state / "newer").mkdir()
    for suffix in ("", "-wal", "-shm"):
        file = box.state / f"{database.name}{suffix}"
        file.rename(box.state / "newer" / file.name)
    shutil.copyfile(copy, database)
    with older:
        assert older.status()["version"] == __version__
        assert older.verdicts("ses_before")
        assert not older.verdicts("ses_after")
        assert not (box.state / "start-failed").exists()


def test_settings_that_do_not_start_are_named(box: Sandbox) -> None:
    """A setting that a new version does not know is such a reason."""
    file = box.home / ".config" / "reflectd" / "config.toml"
    file.parent.mkdir(parents=True)
    file.write_text("nonsense = 1\n")
    said(reflectd(box, "start", "--from-shim"), 2, "nonsense")
    assert "unknown setting nonsense" in json.loads((box.state / "start-failed").read_text())
    file.unlink()
    said(reflectd(box, "start"), 0, "started")
    assert not (box.state / "start-failed").exists()


def test_restart_starts_the_next_one_as_this_one_was_started(box: Sandbox) -> None:
    """A daemon that a host started stays one; one that does not run is started."""
    said(reflectd(box, "restart"), 0, "started")
    said(reflectd(box, "stop"), 0)
    (box.state / "stopped").unlink()
    said(reflectd(box, "start", "--from-shim"), 0, "started")
    before = status(box)
    said(reflectd(box, "restart"), 0, "started")
    after = status(box)
    assert after["by_host"] is True
    assert after["pid"] != before["pid"]
    assert after["started_at"] > before["started_at"]
    assert (box.state / "socket").read_text() == f"{box.socket}\n"
    said(reflectd(box, "serve"), 2, "runs already")
    said(reflectd(box, "stop"), 0, f"stopped (pid {after['pid']})")
    assert not box.socket.exists()
    said(reflectd(box, "restart", "--socket", "relative"), 2, "absolute")


def test_restart_of_another_installations_daemon(box: Sandbox) -> None:
    """It is ended, and this installation's daemon takes its place; hosts may start daemons as before."""
    package = installed(box)
    env = {"PYTHONPATH": str(package.parent)}
    upgrade(package, "0.0.1")
    daemon = Daemon(box, **env)
    daemon.program = ("-m", "reflectd", "serve")
    with daemon:
        pid = daemon.status()["pid"]
        said(reflectd(box, "start"), 0, f"it is 0.0.1, and this program {__version__}", "restart")
        findings = json.loads(reflectd(box, "doctor", "--json").stdout)["checks"]
        assert ("warn", "reflectd restart") in {
            (c["outcome"], c["mend"]) for c in findings if c["name"] == "daemon"
        }
        said(reflectd(box, "restart"), 0, f"reflectd {__version__} started")
        assert status(box)["pid"] != pid
        assert not (box.state / "stopped").exists()


def test_older_settings_are_named(box: Sandbox) -> None:
    """`start` and `doctor` say which settings changed since the daemon read them, until it is restarted."""
    file = box.home / ".config" / "reflectd" / "config.toml"
    file.parent.mkdir(parents=True)
    file.write_text('toasts = false\n[judge]\nmode = "observe"\n')
    said(reflectd(box, "start"), 0, "started")
    assert "older" not in said(reflectd(box, "start"), 0, "runs already")
    file.write_text('# the same but for one\n[judge]\nmode = "observe"\n')
    said(reflectd(box, "start"), 0, "older settings", str(file), "(toasts)", "`reflectd restart`")
    file.write_text('[judge]\nmode = "act"\n')
    said(reflectd(box, "start"), 0, "(judge.mode, toasts)")
    said(reflectd(box, "doctor"), os.EX_OK, "older settings", "-> reflectd restart")
    said(reflectd(box, "restart"), 0, "started")
    assert "older" not in said(reflectd(box, "start"), 0, "runs already")
    assert status(box)["mode"] == "act"


def status(box: Sandbox) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(reflectd(box, "status", "--json").stdout)
    return found

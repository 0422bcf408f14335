"""The plugin as people get it: set up by `reflectd setup`, started with its daemon, or bundled for npm."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from harness.hosts.opencode import OpencodeServe, binary
from harness.machine import reflectd
from harness.machine.sandbox import REPO, SHIM, Sandbox, sandbox
from harness.machine.waiting import PATIENCE_S, wait_until
from harness.models.scripts import HEADING, REQUEST, finished, unfinished
from harness.models.server import ModelServer
from tests.e2e.conftest import JUDGE

REFLECTD = Path(sys.executable).with_name("reflectd")


def run(box: Sandbox, *arguments: str) -> str:
    """One `reflectd` command in the sandbox; its output."""
    done = subprocess.run(
        [REFLECTD, *arguments],
        check=False,
        env=box.env(),
        cwd=box.project,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def answers(box: Sandbox) -> bool:
    """A daemon answers on the sandbox's socket."""
    try:
        return bool(reflectd.call(box.socket, "GET", "/v1/status")["pid"])
    except OSError:
        return False


def round_trip(box: Sandbox, host: OpencodeServe, llm: ModelServer) -> None:
    """Incomplete → feedback → complete, through whatever plugin the host loaded."""
    session = host.create_session()
    llm.script(*unfinished(), *finished(), session=session.id)
    session.prompt(REQUEST)
    _, feedback = session.wait_users(2)
    assert feedback["parts"][0]["text"].startswith(HEADING)
    host.wait_toast("Task complete")
    found = wait_until(
        lambda: (v := reflectd.verdict_file(box.project, session.id)) and v["state"] == "complete" and v,
        "complete verdict",
    )
    assert found


@pytest.mark.shows("I45")
@pytest.mark.main("one command sets it up")
def test_one_line_and_everything_works(llm: ModelServer) -> None:
    """One command adds the line, opencode starts the daemon, `stop` holds, `--remove` leaves no trace."""
    with sandbox(**JUDGE.env) as box:
        config = box.home / ".config" / "opencode" / "opencode.json"
        config.parent.mkdir(parents=True, exist_ok=True)
        config.write_text('{\n  // mine\n  "theme": "dark",\n}\n')
        before = config.read_text()
        run(box, "setup", "opencode")
        copy = box.home / ".local" / "share" / "reflectd" / "plugins" / "opencode"
        assert copy.as_uri() in config.read_text()
        assert str(REPO) not in config.read_text()
        assert "// mine" in config.read_text()
        entry = copy / "index.ts"
        entry.write_text(entry.read_text() + "\n// of an older version\n")
        box.socket.parent.chmod(0o700)
        env = {"REFLECTD_NO_START": "0", "REFLECTD_BIN": str(REFLECTD), "PYTHONPATH": str(REPO)}
        try:
            with OpencodeServe(box, llm.url, plugin=False, **env) as host:
                host.create_session()  # the first request loads the plugins
                wait_until(lambda: answers(box), "daemon started by the plugin", host.printed)
                assert entry.read_bytes() == (SHIM / "index.ts").read_bytes(), "the start refreshed it"
                round_trip(box, host, llm)
                run(box, "stop")
                said = run(box, "start", "--from-shim")  # what the plugin runs when nobody answers
                assert "was stopped by `reflectd stop`" in said
                assert not answers(box)
                assert host.printed_since_ready() == "", "nothing on the host's terminal (I34)"
        finally:
            run(box, "stop")
        run(box, "setup", "opencode", "--remove")
        assert config.read_text() == before
        assert not [path for path in box.home.rglob("*") if path.name == "reflectd"]


def test_two_copies_of_the_plugin_are_one(llm: ModelServer) -> None:
    """A global and a project's line: each event counts once, or a second idle would be an Esc."""
    with sandbox(**JUDGE.env) as box, reflectd.Daemon(box) as daemon:
        copy, loaded = box.root / "copy", box.root / "loaded"
        shutil.copytree(SHIM, copy)
        with (copy / "index.ts").open("a") as index:
            index.write(f"\nawait Bun.write({json.dumps(str(loaded))}, 'yes')\n")
        with OpencodeServe(box, llm.url, config={"plugin": [SHIM.as_uri(), copy.as_uri()]}) as host:
            round_trip(box, host, llm)
            assert loaded.read_text() == "yes"
            assert len(daemon.status()["instances"]) == 1
            assert len(host.toasts()) == 1


def test_the_bundle_for_npm(llm: ModelServer) -> None:
    """The single file that npm gets does the same as the sources."""
    bundle = REPO / "plugin-shim" / "opencode" / "dist" / "reflectd.js"
    text = bundle.read_text("utf-8")
    wanted = {line.split('"')[1] for line in text.splitlines() if line.startswith("import ") and '"' in line}
    assert all(name.startswith("node:") for name in wanted), f"run-time dependencies: {wanted}"
    with (
        sandbox(**JUDGE.env) as box,
        reflectd.Daemon(box),
        OpencodeServe(box, llm.url, plugin=False, config={"plugin": [bundle.as_uri()]}) as host,
    ):
        round_trip(box, host, llm)


def test_the_shim_in_its_own_runtime() -> None:
    """The shim's own tests, in the JavaScript runtime that opencode brings along."""
    with sandbox() as box:
        env = box.env(BUN_BE_BUN="1", REFLECTD_NO_START="0")
        done = subprocess.run(
            [binary(), "test", "--timeout", "120000", "test"],
            check=False,
            cwd=REPO / "plugin-shim" / "opencode",
            env={k: v for k, v in env.items() if not k.startswith("REFLECTD_")},
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
        )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert " 0 fail" in done.stdout + done.stderr

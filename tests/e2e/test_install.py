"""The plugin as people get it: set up by `reflectd setup`, started with its daemon, or bundled for npm."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tests.support import reflectd
from tests.support.opencode import OpencodeServe, binary
from tests.support.sandbox import REPO, SHIM, sandbox
from tests.support.scripts import HEADING, REQUEST, finished, unfinished
from tests.support.waiting import stays, wait_until

if TYPE_CHECKING:
    from tests.support.model_server import ModelServer
    from tests.support.sandbox import Sandbox

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
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def answers(box: Sandbox) -> bool:
    """A daemon answers on the sandbox's socket."""
    try:
        return bool(reflectd.call(box.socket, "GET", "/v1/status", timeout=2)["pid"])
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
        20,
        "complete verdict",
    )
    assert found


def test_one_line_and_everything_works(llm: ModelServer) -> None:
    """The outcome: one command adds the line, opencode starts the daemon itself, the session is judged; after
    `reflectd stop` nobody starts it again, and `setup --remove` leaves no trace (I45).
    """
    with sandbox() as box:
        config = box.home / ".config" / "opencode" / "opencode.json"
        config.parent.mkdir(parents=True, exist_ok=True)
        config.write_text('{\n  // mine\n  "theme": "dark",\n}\n')
        before = config.read_text()
        run(box, "setup", "opencode")
        assert SHIM.as_uri() in config.read_text()
        assert "// mine" in config.read_text()
        box.socket.parent.chmod(0o700)
        env = {"REFLECTD_NO_START": "0", "REFLECTD_BIN": str(REFLECTD), "PYTHONPATH": str(REPO)}
        try:
            with OpencodeServe(box, llm.url, plugin=False, **env) as host:
                host.create_session()  # the first request loads the plugins
                wait_until(lambda: answers(box), 30, "daemon started by the plugin", host.printed)
                round_trip(box, host, llm)
                run(box, "stop")
                stays(lambda: not answers(box), 3, "no daemon")
                assert host.printed_since_ready() == "", "nothing on the host's terminal (I34)"
        finally:
            run(box, "stop")
        run(box, "setup", "opencode", "--remove")
        assert "reflectd" not in config.read_text()
        assert "// mine" in before


def test_the_bundle_for_npm(llm: ModelServer) -> None:
    """The single file that npm gets does the same as the sources."""
    bundle = REPO / "plugin-shim" / "opencode" / "dist" / "reflectd.js"
    text = bundle.read_text("utf-8")
    wanted = {line.split('"')[1] for line in text.splitlines() if line.startswith("import ") and '"' in line}
    assert all(name.startswith("node:") for name in wanted), f"run-time dependencies: {wanted}"
    with (
        sandbox() as box,
        reflectd.Daemon(box),
        OpencodeServe(box, llm.url, plugin=False, config={"plugin": [bundle.as_uri()]}) as host,
    ):
        round_trip(box, host, llm)


def test_the_shim_in_its_own_runtime() -> None:
    """The shim's own tests, in the JavaScript runtime that opencode brings along."""
    with sandbox() as box:
        env = box.env(BUN_BE_BUN="1", REFLECTD_NO_START="0")
        done = subprocess.run(
            [binary(), "test", "test"],
            check=False,
            cwd=REPO / "plugin-shim" / "opencode",
            env={k: v for k, v in env.items() if not k.startswith("REFLECTD_")},
            capture_output=True,
            text=True,
            timeout=100,
        )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert " 0 fail" in done.stdout + done.stderr

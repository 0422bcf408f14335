"""What end-to-end tests of silent agents share: the fast model's answers, and what was seen of them."""

from __future__ import annotations

import contextlib
import json
import re
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from harness.hosts.opencode import OpencodeServe, Session
from harness.machine import processes
from harness.machine.reflectd import Daemon
from harness.machine.sandbox import REPO, Sandbox
from harness.machine.waiting import PATIENCE_S, wait_until
from harness.models.server import Request
from tests.support.machine.state import database

Json = dict[str, Any]

# what keeps an agent from starting: the host takes the message and begins no turn
DEAF = """
import { existsSync } from "node:fs"
export default {
  id: "deaf",
  server: async ({ client }) => {
    const start = client.session.promptAsync.bind(client.session)
    client.session.promptAsync = (call) =>
      existsSync(FILE) ? start({ ...call, body: { ...call.body, noReply: true } }) : start(call)
    return {}
  },
}
"""


def says(reason: str, message: str = "") -> Callable[[Request], str]:
    """What the fast model answers about a silent session."""

    def reply(request: Request) -> str:
        nonce = re.search(r"^--- what the person asked last (\S+)$", request.prompt, re.MULTILINE)
        assert nonce, f"no question about a silent session:\n{request.prompt[:2000]}"
        answer = {
            "reasons": "scripted",
            "nonce": nonce[1],
            "stuck": reason == "genuinely_stuck",
            "reason": reason,
            "confidence": 0.9,
            "shouldNudge": reason == "genuinely_stuck",
            "nudgeMessage": message,
        }
        return json.dumps(answer)

    return reply


def deaf(box: Sandbox) -> Path:
    """While this file is there, prompts of ours start no turn (in a host with ``deaf_plugin``)."""
    return box.root / "deaf"


def deaf_plugin(box: Sandbox) -> str:
    """A second plugin of the real host, as an address for its settings."""
    plugin = box.root / "deaf.js"
    plugin.write_text(DEAF.replace("FILE", json.dumps(str(deaf(box)))), "utf-8")
    return plugin.as_uri()


def connected(host: OpencodeServe, daemon: Daemon) -> None:
    """Until the shim has said hello to this daemon."""
    host.sessions()
    wait_until(lambda: daemon.status()["instances"], "hello of the shim", daemon.log)


def looks(daemon: Daemon, session: str) -> list[str]:
    """The log's lines on what was found of a silent session."""
    return [line for line in daemon.new_log().splitlines() if "stuck?" in line and session in line]


def wait_look(daemon: Daemon, session: str, words: str) -> None:
    """Until a silent session was looked at, and the log says ``words`` of it."""
    wait_until(lambda: words in " ".join(looks(daemon, session)), f"look: {words!r}", daemon.new_log)


def stored(daemon: Daemon, query: str, session: str) -> str:
    """What the database says of a session; empty when there is no row."""
    with database(daemon.box) as db:
        row = db.execute(query, (session,)).fetchone()
    return str(row[0]) if row else ""


def pending(daemon: Daemon, session: str) -> str:
    """The kind of the stored action that waits for its time; empty when there is none."""
    return stored(daemon, "SELECT kind FROM timers WHERE session = ?", session)


def known(daemon: Daemon, session: str) -> Json:
    """The session as the daemon stored it; what is as ever is left out."""
    found = stored(daemon, "SELECT CAST(state AS TEXT) FROM sessions WHERE id = ?", session)
    state: Json = json.loads(found or "{}")
    return state


def wait_pending(daemon: Daemon, session: str, kind: str) -> None:
    wait_until(lambda: pending(daemon, session) == kind, f"pending {kind!r}", daemon.new_log)


def running(session: Session) -> bool:
    """A tool call has begun and not ended."""
    parts = (p for m in session.messages() for p in m["parts"] if p["type"] == "tool")
    return any(p["state"]["status"] == "running" for p in parts)


@contextlib.contextmanager
def watching(daemon: Daemon) -> Iterator[Callable[[], list[Json]]]:
    """`reflectd watch --json` of the project: gives what it has printed."""
    box = daemon.box
    out = box.root / "watch.out"
    command = [sys.executable, "-m", "daemon", "watch", "--json", "--dir", str(box.project)]
    env = box.env(PYTHONPATH=str(REPO), PYTHONUNBUFFERED="1")
    with out.open("wb") as to, (box.root / "watch.err").open("wb") as err:
        process = processes.start(command, env, box.home, to, err)
    try:
        wait_until(lambda: (box.root / "watch.err").stat().st_size, "word of watch")
        yield lambda: [json.loads(line) for line in out.read_text("utf-8").splitlines()]
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE_S) == 130
    finally:
        processes.end_group(process, gently=0)

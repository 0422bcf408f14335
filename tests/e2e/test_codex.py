"""The real Codex CLI with our hooks and the real daemon: rounds, Esc, restarts, headless runs."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.hosts.codex import Codex, CodexTui, said_by, session_of, shell, write
from harness.machine.reflectd import Daemon, verdict_file
from harness.machine.sandbox import REPO, Sandbox
from harness.models.scripts import CLAIM, DONE, HEADING, REQUEST
from harness.models.server import ModelServer, Step, text

pytestmark = pytest.mark.needs("codex")
SCRIPT = REPO / "plugin-shim" / "claude-code" / "scripts" / "hook.sh"
EVENTS = {
    "SessionStart": 20, "UserPromptSubmit": 5, "PostToolUse": 5, "SubagentStop": 5, "Stop": 600, "Interrupt": 3,
    "SessionEnd": 3,
}  # fmt: skip


def hooks() -> dict[str, object]:
    def of(event: str, seconds: int) -> list[dict[str, object]]:
        handler = {"type": "command", "command": f"'{SCRIPT}' {event} codex", "timeout": seconds}
        return [{"hooks": [handler]}]

    return {"hooks": {event: of(event, seconds) for event, seconds in EVENTS.items()}}


@pytest.fixture
def codex(box: Sandbox, llm: ModelServer) -> Codex:
    for name in ("answer.txt", "hello.py"):
        (box.project / name).unlink(missing_ok=True)
    made = Codex(box, llm.url)
    made.write_hooks(hooks())
    return made


def unfinished(*then: Step) -> list[Step]:
    return [write("hello.py", "print('hello')\n"), shell("make test"), *(then or (text(CLAIM),))]


def mended(*then: Step) -> list[Step]:
    return [shell("echo 42 > answer.txt && make test"), *(then or (text(DONE),))]


def test_the_round_trip(codex: Codex, daemon: Daemon, llm: ModelServer) -> None:
    """The turn is judged, goes on with feedback, and passes, as one task."""
    llm.script(*unfinished(), *mended())
    ran = codex.run(REQUEST)
    assert (ran.code, said_by(ran)) == (0, [CLAIM, DONE]), ran.stdout + daemon.new_log()
    session = session_of(ran)
    assert HEADING in llm.of("main", session)[3].prompt
    daemon.wait_verdict(session, "complete")
    second, first = daemon.verdicts(session)
    assert (first["state"], second["state"]) == ("incomplete", "complete")
    assert first["task"] == second["task"]

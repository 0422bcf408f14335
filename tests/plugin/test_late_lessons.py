"""hook.sh at Claude Code's tool calls: it asks only where a lesson waits, and holds nothing up."""

from __future__ import annotations

import json
import shutil
import time
from typing import TYPE_CHECKING

import pytest

from daemon.learning.lessons import give as lesson_marks
from tests.plugin.hook_runs import JSON, SCRIPTS, SILENT, Hook, http, made

if TYPE_CHECKING:
    from collections.abc import Iterator

SESSION = "11d38aeb-476b-4e19-9ff7-d5fad70ae767"
SHELLS = [shell for shell in ("dash", "bash", "busybox") if shutil.which(shell)] or ["sh"]


def body(command: str) -> bytes:
    return json.dumps(
        {"session_id": SESSION, "tool_name": "Bash", "tool_input": {"command": command}}
    ).encode()


@pytest.fixture(params=SHELLS)
def hook(request: pytest.FixtureRequest) -> Iterator[Hook]:
    """In a session for which a lesson waits."""
    with made(request.param, "python3") as found:
        found.env["CLAUDE_CODE_SESSION_ID"] = SESSION
        lesson_marks.mark(found.state, SESSION, waits=True)
        yield found


def test_where_a_lesson_waits_the_daemon_is_asked(hook: Hook) -> None:
    """The body goes out byte for byte, and the answer is printed."""
    sent = body("alembic upgrade head" * 50_000)
    with hook.daemon() as daemon:
        assert hook("PreToolUse", stdin=sent) == (0, JSON + b"\n", b"")
    assert daemon.requests[0].line.split()[:2] == ["POST", "/v1/hooks/PreToolUse"]
    assert daemon.requests[0].body == sent


def test_any_other_call_asks_nothing(hook: Hook) -> None:
    """No mark, no session: the socket is not touched."""
    with hook.daemon() as daemon:
        for session in ("another-session", "", "../../etc/passwd", "a b", f"{SESSION}*"):
            hook.env["CLAUDE_CODE_SESSION_ID"] = session
            assert hook("PreToolUse", stdin=body("alembic upgrade head")) == SILENT
        del hook.env["CLAUDE_CODE_SESSION_ID"]
        assert hook("PreToolUse", stdin=body("alembic upgrade head")) == SILENT
        hook.env["CLAUDE_CODE_SESSION_ID"] = SESSION
        lesson_marks.mark(hook.state, SESSION, waits=False)
        assert hook("PreToolUse", stdin=body("alembic upgrade head")) == SILENT
    assert daemon.connections == 0


@pytest.mark.parametrize("status", [204, 400, 409, 422, 500])
def test_never_a_denial(hook: Hook, status: int) -> None:
    """Whatever the daemon's status, the exit code is 0: the call runs (2 would deny it)."""
    with hook.daemon(http(status, b"## Reflection-3: no")):
        assert hook("PreToolUse", stdin=body("alembic upgrade head")) == SILENT


@pytest.mark.shows("I35")
def test_a_daemon_that_hangs_or_is_away_holds_up_nothing(hook: Hook) -> None:
    """A second at most; then the daemon is taken for silent, and is not asked at the next calls."""
    with hook.daemon(None):
        began = time.monotonic()
        assert hook("PreToolUse", stdin=body("alembic upgrade head")) == SILENT
        assert time.monotonic() - began < 20  # without the limit it would be for ever
    assert (hook.state / "silent").exists()
    hook.socket.unlink()
    with hook.daemon() as daemon:
        assert hook("PreToolUse", stdin=body("alembic upgrade head")) == SILENT
    assert daemon.connections == 0


@pytest.mark.shows("I35")
def test_a_prompt_waits_a_second_for_a_daemon_that_hangs(hook: Hook) -> None:
    """Then it is taken for silent, and the next hooks wait for half of that."""
    with hook.daemon(None):
        assert hook("UserPromptSubmit", stdin=body("x")) == SILENT
    assert (hook.state / "silent").exists()
    assert "UserPromptSubmit) seconds=1 ;;" in (SCRIPTS / "hook.sh").read_text()

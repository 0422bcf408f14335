"""Codex's hook calls as events."""

from __future__ import annotations

import json
from typing import Any

import pytest

from daemon.core import events as ev
from daemon.core.errors import BadReply
from daemon.hosts.codex.hooks import EVENTS, events_of, parse_hook

SESSION = "01a20000-0000-7000-8000-000000000001"


def body(event: str, **more: Any) -> bytes:
    told = {
        "session_id": SESSION,
        "cwd": "/home/ann/shop",
        "transcript_path": "/home/x/rollout.jsonl",
        "turn_id": "t1",
    }
    return json.dumps(told | {"hook_event_name": event, "permission_mode": "default"} | more).encode()


def kinds(event: str, **more: Any) -> list[str]:
    return [type(e).__name__ for e in events_of(parse_hook(event, body(event, **more), {}), 7)]


@pytest.mark.parametrize(
    ("event", "more", "expected"),
    [
        ("SessionStart", {"source": "startup"}, ["SessionSeen"]),
        ("SessionStart", {"source": "compact"}, ["SessionSeen", "SessionCompacted"]),
        ("UserPromptSubmit", {"prompt": "Fix it"}, ["HumanMessaged", "SessionBusied"]),
        (
            "UserPromptSubmit",
            {"prompt": "x rfl_0123456789abcdef0123"},
            ["SyntheticMessaged", "SessionBusied"],
        ),
        ("UserPromptSubmit", {"prompt": "Look", "agent_id": "a"}, ["ActivitySeen"]),
        ("PreToolUse", {"tool_name": "request_user_input"}, ["PersonAsked"]),
        ("PreToolUse", {"tool_name": "Bash"}, ["ActivitySeen"]),
        ("PermissionRequest", {"tool_name": "Bash"}, ["PersonAsked"]),
        ("PostToolUse", {"tool_name": "Bash"}, ["PersonAnswered", "ActivitySeen"]),
        ("Stop", {"stop_hook_active": True}, ["PersonAnswered", "SessionIdled"]),
        ("SubagentStop", {"agent_id": "a"}, ["ActivitySeen"]),
        ("Interrupt", {}, ["TurnAborted", "PersonAnswered", "SessionIdled"]),
        ("SessionEnd", {"reason": "other"}, ["PersonAnswered", "SessionIdled", "SessionEnded"]),
    ],
)
def test_what_a_hook_tells(event: str, more: dict[str, Any], expected: list[str]) -> None:
    """Whatever it tells, ``stop_hook_active`` decides nothing: Codex sets it back within a turn."""
    assert kinds(event, **more) == expected


def test_a_task_is_named_as_in_the_file() -> None:
    """By the turn that the prompt opened; a plan is one."""
    hook = parse_hook("UserPromptSubmit", body("", prompt="Fix it", permission_mode="plan"), {})
    assert events_of(hook, 7)[0] == ev.HumanMessaged(SESSION, 7, "t1", "plan")
    assert events_of(hook, 7, "prompt-7")[0] == ev.HumanMessaged(SESSION, 7, "prompt-7", "plan")


def test_headers() -> None:
    """Who started the hook, and whether a headless run is to be judged."""
    hook = parse_hook("Stop", body("Stop"), {"X-CC-Pid": "12", "x-cc-headless": "1"})
    assert (hook.pid, hook.headless) == (12, True)
    assert parse_hook("Stop", body("Stop"), {"X-CC-Pid": "²"}).pid == 0


@pytest.mark.parametrize(
    "bad",
    [
        b"", b"[]", b"{}", b'{"session_id":""}', b'{"session_id":7}', b'{"session_id":"a\\nb"}',
        json.dumps({"session_id": "x" * 201}).encode(), b'{"session_id":"x","cwd":"relative"}',
        b'{"session_id":"x","transcript_path":7}', b'{"session_id":"x","transcript_path":"/a\\u0000b"}',
    ],
)  # fmt: skip
def test_what_is_no_hook(bad: bytes) -> None:
    """One clear error."""
    with pytest.raises(BadReply, match="hook Stop of Codex"):
        parse_hook("Stop", bad, {})


def test_unknown_hooks_and_fields() -> None:
    """An unknown field is skipped, an unknown hook refused."""
    assert "Stop" in EVENTS
    assert kinds("Stop", something={"new": [1]}) == ["PersonAnswered", "SessionIdled"]
    with pytest.raises(BadReply):
        parse_hook("Dance", body("Dance"), {})

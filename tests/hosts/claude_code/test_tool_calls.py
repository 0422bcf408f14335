"""The tool call of a hook, as Claude Code 2.1.330 and 2.1.197 send it."""

from __future__ import annotations

import json

import pytest

from daemon.core.errors import BadReply
from daemon.hosts.claude_code.tool_calls import TAIL, call_of
from daemon.memory.triggers import failed

BASH = {
    "session_id": "s",
    "cwd": "/p/web",
    "tool_name": "Bash",
    "tool_input": {"command": "npm run build", "description": "scripted"},
    "tool_use_id": "toolu_1",
}


def test_before_it_ran() -> None:
    """Its arguments, and the folder that the shell is in."""
    found = call_of("PreToolUse", json.dumps(BASH).encode())
    assert (found.id, found.tool, found.status, found.exit) == ("toolu_1", "Bash", "running", None)
    assert found.input["command"] == "npm run build"
    assert found.input["workdir"] == "/p/web"
    assert not failed(found)


def test_after_it_failed() -> None:
    """The exit code stands in the error, before what was printed."""
    said = {
        **BASH,
        "error": "Exit code 3\nout\nModuleNotFoundError: No module named 'x'",
        "is_interrupt": False,
    }
    found = call_of("PostToolUseFailure", json.dumps(said).encode())
    assert (found.status, found.exit) == ("error", 3)
    assert found.error.endswith("No module named 'x'")
    assert failed(found)


def test_an_edit_has_no_folder() -> None:
    """Its path is absolute."""
    edit = {**BASH, "tool_name": "Edit", "tool_input": {"file_path": "/p/a.py"}}
    assert call_of("PreToolUse", json.dumps(edit).encode()).input == {"file_path": "/p/a.py"}


@pytest.mark.shows("I36")
def test_odd_bodies() -> None:
    """Other types give an empty call, what is no JSON is refused, a long error keeps its tail."""
    odd = {"tool_name": 7, "tool_input": [1], "error": {"x": 1}, "cwd": None, "tool_use_id": None}
    found = call_of("PreToolUse", json.dumps(odd).encode())
    assert (found.tool, found.input, found.error) == ("", {}, "")
    long = {**BASH, "error": "Exit code 1\n" + "x" * 50_000 + "END"}
    found = call_of("PostToolUseFailure", json.dumps(long).encode())
    assert (len(found.error), found.error[-3:], found.exit) == (TAIL, "END", 1)
    with pytest.raises(BadReply):
        call_of("PreToolUse", b"[")

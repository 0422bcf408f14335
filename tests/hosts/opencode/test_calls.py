"""A tool call as opencode's plugin tells of it when it has ended."""

from __future__ import annotations

import json

import pytest

from daemon.core.errors import BadReply
from daemon.hosts.opencode.calls import TAIL, parse_call
from daemon.memory.triggers import failed


def test_a_command_that_ended() -> None:
    """Its arguments, output and exit code."""
    told = {"tool": "bash", "callID": "c1", "args": {"command": "make test"}, "output": "1 failed", "exit": 2}
    found = parse_call(json.dumps(told))
    assert (found.id, found.tool, found.status, found.exit) == ("c1", "bash", "completed", 2)
    assert (found.input, found.output) == ({"command": "make test"}, "1 failed")
    assert failed(found)


def test_a_tool_that_threw() -> None:
    """Its error; there is no output."""
    found = parse_call(json.dumps({"tool": "edit", "args": {"filePath": "a.py"}, "error": "not found"}))
    assert (found.status, found.error, found.output) == ("error", "not found", "")


@pytest.mark.parametrize("data", ["null", "{}", '{"tool": 7}', "[1]", "{"])
def test_no_call(data: str) -> None:
    """It is refused, with words."""
    with pytest.raises(BadReply):
        parse_call(data)


@pytest.mark.shows("I36", "I44")
def test_other_types_and_long_texts() -> None:
    """What has another type is left out, of a long text the tail stays."""
    told = {"tool": "bash", "callID": 1, "args": "x", "output": "a" * 50_000 + "END", "exit": "3", "more": 1}
    found = parse_call(json.dumps(told))
    assert (found.id, found.input, found.exit) == ("", {}, None)
    assert (len(found.output), found.output[-3:]) == (TAIL, "END")

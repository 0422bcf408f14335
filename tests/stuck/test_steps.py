"""A session as steps: what is kept of a call, and how two calls compare."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from daemon.core.transcript import ToolCall
from daemon.stuck.signals import step_of, steps
from tests.stuck.samples import NOT_FOUND, quiet, session, tool
from tests.support.transcripts import bash, edit, read


def test_names_are_short_single_lines_without_secrets() -> None:
    """A name goes into prompts, toasts and files."""
    header = "curl -H 'Authorization: Bearer sk-ant-api03-" + "a" * 40
    step = step_of(bash(header + "' \\\n https://x.y\n" * 30))
    assert len(step.what) <= 120
    assert "\n" not in step.what
    assert "aaaaaaaa" not in step.what
    assert step_of(bash("npm   test\n")).what == "bash `npm test`"


def test_what_a_step_holds() -> None:
    """A write with its file, a failure, a command: other spaces make no difference, another folder does."""
    wrote = step_of(edit("src/a.py", "a", "b"))
    assert (wrote.kind, wrote.writes, wrote.failed, wrote.target) == ("call", True, False, "src/a.py")
    assert not step_of(edit("src/a.py", "a", "b", NOT_FOUND)).writes
    assert step_of(bash("sed -i s/a/b/ x.c")).writes
    assert step_of(bash("make  all")).call == step_of(bash("make all")).call
    there = replace(bash("make all"), input={"command": "make all", "workdir": "/b"})
    assert step_of(there).call != step_of(bash("make all")).call
    assert step_of(bash("make", "a.c:3: error", 2)).result != step_of(bash("make", "a.c:9: error", 2)).result
    assert step_of(bash("x", "1")).result != step_of(replace(bash("x", "1"), cut=9)).result


@pytest.mark.shows("I29")
def test_calls_that_still_run_are_no_steps() -> None:
    """A pending or running tool says nothing yet."""
    running = [replace(read("a.py"), status=status) for status in ("pending", "running")]
    assert steps(session(*running)) == ()
    assert quiet(*running * 9)


def test_deep_and_odd_arguments() -> None:
    """Arguments that JSON can't take still make a step, the same one each time."""
    deep: Any = "x"
    for _ in range(5_000):
        deep = [deep]
    circle: dict[str, Any] = {}
    circle["again"] = circle
    for odd in (deep, circle, {1: "a", "b": 2}, {"\ud83d": "\ud83d"}):
        call = ToolCall("c", "\ud83d", "completed", {"value": odd}, "\ud83d")
        assert step_of(call).call == step_of(call).call
    assert json.dumps(step_of(tool("\ud83d")).what)

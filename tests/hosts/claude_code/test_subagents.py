"""The calls of a sub-agent, from files of the form that Claude Code 2.1.330 writes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from daemon.core.transcript import Message, ToolCall, Transcript
from daemon.hosts.claude_code.transcript import with_sub_agents
from daemon.hosts.past import SUB_AGENT

if TYPE_CHECKING:
    from pathlib import Path

Json = dict[str, Any]


def line(kind: str, uuid: str, parent: str | None, content: object, **more: object) -> Json:
    """A line of a sub-agent's file: each is a side chain of the session."""
    message: Json = {"role": kind, "content": content}
    if kind == "assistant":
        message |= {"id": f"msg_{uuid}", "model": "claude-x", "stop_reason": "tool_use"}
    return {
        "parentUuid": parent,
        "isSidechain": True,
        "agentId": "a1",
        "type": kind,
        "message": message,
        "uuid": uuid,
        "timestamp": "2026-11-22T15:37:09.939Z",
        "cwd": "/p",
        "sessionId": "s",
        "version": "2.1.330",
        **more,
    }


def ran(n: int, command: str, printed: str, *, code: int = 0) -> list[Json]:
    """A shell call and its result."""
    use = [{"type": "tool_use", "id": f"t{n}", "name": "Bash", "input": {"command": command}}]
    shown = f"Exit code {code}\n{printed}" if code else printed
    result = [{"type": "tool_result", "tool_use_id": f"t{n}", "content": shown, "is_error": bool(code)}]
    own = {} if code else {"toolUseResult": {"stdout": printed, "stderr": "", "interrupted": False}}
    return [line("assistant", f"a{n}", f"u{n - 1}", use), line("user", f"u{n}", f"a{n}", result, **own)]


def written(path: Path, lines: list[Json]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(each) + "\n" for each in lines), encoding="utf-8")
    return path


def asked(*agents: str) -> Transcript:
    """A task that started these sub-agents."""
    calls = tuple(ToolCall(f"c{i}", "Agent", "completed", agent=agent) for i, agent in enumerate(agents))
    return Transcript(
        "s",
        (Message("m1", "user", text="Have it done", human=True), Message("m2", "assistant", calls=calls)),
    )


START = [line("user", "u0", None, "Write the part")]


def calls_of(path: Path) -> tuple[ToolCall, ...]:
    """The calls in a sub-agent's file ``agent-a1.jsonl`` beside the session's file."""
    (call,) = with_sub_agents(asked("a1"), path.parents[1].with_suffix(".jsonl")).calls
    return call.inner


def test_the_calls_in_their_order(tmp_path: Path) -> None:
    """Exit codes and outputs as in the session's own file."""
    path = tmp_path / "s" / "subagents" / "agent-a1.jsonl"
    written(path, [*START, *ran(1, "ls", "a.py"), *ran(2, "make", "no", code=2)])
    first, second = calls_of(path)
    assert (first.tool, first.input["command"], first.output, first.exit) == ("Bash", "ls", "a.py", 0)
    assert (second.output, second.exit) == ("no", 2)


def test_a_file_that_is_not_there_or_is_none(tmp_path: Path) -> None:
    """Nothing is known of the sub-agent then, and nothing fails."""
    path = tmp_path / "s" / "subagents" / "agent-a1.jsonl"
    assert calls_of(path) == ()
    path.mkdir(parents=True)
    assert calls_of(path) == ()
    path.rmdir()
    path.write_bytes(b"\xff\x00 no json\n{}\n[1]\n" + b"{" * 5_000)
    assert calls_of(path) == ()


def test_only_the_end_of_a_large_file(tmp_path: Path) -> None:
    """The last calls are what a judge needs most."""
    count = 40
    lines = [*START, *(each for n in range(1, count) for each in ran(n, f"echo {n}", "x" * 100_000))]
    path = written(tmp_path / "s" / "subagents" / "agent-a1.jsonl", lines)
    assert path.stat().st_size > SUB_AGENT
    (call,) = with_sub_agents(asked("a1"), tmp_path / "s.jsonl").calls
    found = [c.input["command"] for c in call.inner]
    assert found[-1] == f"echo {count - 1}"
    assert "echo 1" not in found
    assert call.inner_cut, "the judge is told that not all of its calls were read"


def test_the_calls_stand_in_the_call_that_started_it(tmp_path: Path) -> None:
    """Beside the session's file, in a folder of its name; a call without an agent stays as it is."""
    session = tmp_path / "s.jsonl"
    written(tmp_path / "s" / "subagents" / "agent-a1.jsonl", [*START, *ran(1, "ls", "a.py")])
    found = with_sub_agents(asked("a1", "", "gone"), session)
    assert [[inner.input["command"] for inner in c.inner] for c in found.calls] == [["ls"], [], []]


def test_an_id_is_no_path(tmp_path: Path) -> None:
    """A transcript may come from anywhere: an id with a slash is not followed."""
    written(tmp_path / "agent-x.jsonl", [*START, *ran(1, "ls", "a.py")])
    found = with_sub_agents(asked("../../agent-x", "a/../x"), tmp_path / "s.jsonl")
    assert not any(c.inner for c in found.calls)

"""``reflectd mcp`` as a client sees it: the official client over stdio, the real daemon and its database."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import psutil
import pytest
from mcp import Client, StdioServerParameters

from daemon.core.verdict import Verdict
from daemon.store import verdicts
from harness.machine.reflectd import Daemon
from harness.machine.sandbox import Sandbox
from harness.machine.waiting import wait_until
from harness.models.api_servers import MODEL, Says, llm_server
from tests.api.test_memory import Evaluates
from tests.support.hosts.wire import WireHost
from tests.support.machine.command_line import COMMAND, environment

REFLECTION = (
    "Problem: The parser's tests were not run after the last edit.\n"
    "Lesson: Run the parser's tests after each edit of the grammar file."
)
TASK = "Fix the parser so that nested lists work"
TOOLS = {"store_episode", "evaluate_answer", "generate_reflection", "search_episodes", "get_verdict"}


@pytest.fixture
def daemon(box: Sandbox) -> Iterator[Daemon]:
    """One whose memory is on."""
    with Daemon(box, REFLECTD_MEMORY_ENABLED="1") as found:
        yield found


@asynccontextmanager
async def client(box: Sandbox, **env: str) -> AsyncIterator[Client]:
    """The official client with our server as its child."""
    server = StdioServerParameters(
        command=COMMAND[0], args=[*COMMAND[1:], "mcp"], env=environment(box, **env), cwd=str(box.project)
    )
    async with Client(server) as found:
        yield found


async def call(of: Client, tool: str, **arguments: Any) -> Any:
    """What the tool answers, as JSON."""
    done = await of.call_tool(tool, arguments)
    assert not done.is_error, done.content
    found = done.structured_content
    assert found is not None
    return found.get("result", found)


async def refused(of: Client, tool: str, **arguments: Any) -> str:
    """What the tool says when it refuses."""
    done = await of.call_tool(tool, arguments)
    assert done.is_error
    return "".join(getattr(part, "text", "") for part in done.content)


async def read(of: Client, uri: str) -> Any:
    """A resource, as JSON."""
    (part,) = (await of.read_resource(uri)).contents
    return json.loads(part.text)  # type: ignore[union-attr] # a text resource


@pytest.mark.shows("AC-2.6.3", "AC-2.6.4")
@pytest.mark.needs("embeddings")
@pytest.mark.usefixtures("daemon")
async def test_a_lesson_is_kept_and_found_again(box: Sandbox) -> None:
    """``store_episode``, then the rows that the requirements name, by tool and by resource. What is stored
    waits for a yes.
    """
    async with client(box) as mcp:
        assert {tool.name for tool in (await mcp.list_tools()).tools} == TOOLS
        made = await call(mcp, "store_episode", query=TASK, reward=-0.6, reflection=REFLECTION)
        assert made["episode"]["state"] == "quarantined"
        (row,) = await call(mcp, "search_episodes", query=TASK, min_similarity=-1.0)
        assert {k: row[k] for k in ("query", "reward", "reflection")} == {
            "query": TASK,
            "reward": -0.6,
            "reflection": REFLECTION,
        }
        assert "similarity" in row
        uri = "memory://episode-memory?query=Fix%20the%20parser%20so%20that%20nested%20lists%20work"
        assert [r["query"] for r in await read(mcp, f"{uri}&min_similarity=-1&top_k=1")] == [TASK]
        assert await read(mcp, "memory://episode-memory") == []


async def test_an_answer_is_judged_and_reflected_on(box: Sandbox) -> None:
    """``evaluate_answer`` and ``generate_reflection``, with the model of the person's settings.
    An empty query is refused in words.
    """
    bad = {"reward": -0.4, "reasoning": "The year stands nowhere in the context."}
    asked = {"query": "When was it built?", "context": ["It has two wheels."], "answer": "In 1702."}
    async with llm_server() as api:
        settings = {
            "REFLECTD_JUDGE_PROVIDER": "anthropic",
            "ANTHROPIC_API_KEY": "sk-ant-api03-1234567890abcdefghijKLMNOP",
            "ANTHROPIC_BASE_URL": api.url,
            "REFLECTD_ANTHROPIC_MODEL": MODEL["anthropic"],
        }
        async with client(box, **settings) as mcp:
            api.script(Evaluates(bad))
            found = await call(mcp, "evaluate_answer", **asked)
            assert (found["reward"], found["reasoning"]) == (bad["reward"], bad["reasoning"])
            api.script(Says(REFLECTION))
            said = await call(mcp, "generate_reflection", **asked, evaluation_result=bad)
            assert said["full_reflection"] == REFLECTION
            assert said["lesson"] == "Run the parser's tests after each edit of the grammar file."
            assert "query" in await refused(mcp, "evaluate_answer", **{**asked, "query": ""})


@pytest.mark.usefixtures("daemon")
@pytest.mark.main("lessons for MCP clients")
async def test_lessons_stay_in_their_project(box: Sandbox, tmp_path: Path) -> None:
    """A server that was started in another folder neither finds nor changes them."""
    other = tmp_path / "other"
    other.mkdir()
    async with client(box) as mcp:
        await call(mcp, "store_episode", query=TASK, reward=-0.6, reflection=REFLECTION)
    command = StdioServerParameters(
        command=COMMAND[0], args=[*COMMAND[1:], "mcp", "--dir", str(other)], env=environment(box)
    )
    async with Client(command) as mcp:
        assert await call(mcp, "search_episodes", query=TASK, min_similarity=-1.0) == []


@pytest.mark.usefixtures("daemon")
async def test_playbook_and_rules_are_read(box: Sandbox) -> None:
    """Two resources: what works here, and what the person wants."""
    (box.project / "CLAUDE.md").write_text(
        "## Learned Rules (via /reflect)\n"
        "<!-- Auto-managed by /reflect - manual edits may be overwritten -->\n\n"
        "### Active Rules\n- Use bun, not npm\n"
    )
    async with client(box) as mcp:
        assert (await read(mcp, "memory://playbook"))["points"] == []
        rules = (await read(mcp, "memory://rules"))["rules"]
    assert [rule["text"] for rule in rules] == ["Use bun, not npm"]


@pytest.mark.usefixtures("daemon")
async def test_without_a_verdict_the_tool_says_so(box: Sandbox) -> None:
    """An error in words, not a crash."""
    async with client(box) as mcp:
        assert "nothing" in await refused(mcp, "get_verdict") or "no session" in await refused(
            mcp, "get_verdict", session="ses_none"
        )
        assert await call(mcp, "search_episodes", query="x") == []


async def test_a_verdict_of_another_project_is_not_given(
    box: Sandbox, daemon: Daemon, tmp_path: Path
) -> None:
    """Neither as the newest of all nor by its id; a query that is too long is not answered "no daemon"."""
    other = tmp_path / "other"
    other.mkdir()
    with WireHost(box.socket, other) as host:
        host.send(host.turn("ses_other"))
        wait_until(lambda: daemon.session("ses_other")["task"] == "msg_1", "turn")
        async with client(box) as mcp:
            for session in ("ses_other", "ses_oth"):
                assert "no session of this project" in await refused(mcp, "get_verdict", session=session)
            assert "too long" in await refused(mcp, "search_episodes", query="x" * 2_000_000)
    with closing(sqlite3.connect(box.state / "reflectd.sqlite3")) as db:
        db.executemany(*verdicts.add(Verdict("ses_old", "t", "m", "complete", 1), str(other)))
        db.commit()
    async with client(box) as mcp:
        assert "nothing was judged here" in await refused(mcp, "get_verdict")


async def test_without_a_daemon_each_tool_says_what_to_do(box: Sandbox) -> None:
    """The server lives, and works as soon as a daemon runs."""
    async with client(box) as mcp:
        assert "reflectd start" in await refused(mcp, "search_episodes", query="x")
        with Daemon(box, REFLECTD_MEMORY_ENABLED="1"):
            assert await call(mcp, "search_episodes", query="x") == []


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM], ids=["kill -9", "SIGTERM"])
def test_no_server_outlives_its_client(box: Sandbox, end: signal.Signals) -> None:
    """The client is gone, so the pipe is closed, and the server ends by itself."""
    program = (
        "import subprocess, sys, time\n"
        "child = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE, stdout=subprocess.PIPE)\n"
        "print(child.pid, flush=True)\n"
        "time.sleep(600)\n"
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", program, *COMMAND, "mcp"],
        env=environment(box),
        cwd=box.project,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    assert parent.stdout is not None
    with parent.stdout:
        server = psutil.Process(int(parent.stdout.readline()))
        os.kill(parent.pid, end)
        parent.wait()
        wait_until(
            lambda: not server.is_running() or server.status() == psutil.STATUS_ZOMBIE, "end of the server"
        )

"""Reflexion with a real daemon, a host on its socket and a model on loopback in Anthropic's wire format."""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import pytest

from harness.machine.processes import none_left_over
from harness.machine.reflectd import Daemon
from harness.machine.sandbox import Sandbox, sandbox
from harness.machine.waiting import wait_until
from harness.models.api_servers import MODEL, LlmServer, Says, Step, llm_server
from tests.support.hosts.wire import Json, WireHost

if TYPE_CHECKING:
    from collections.abc import Iterator

    from aiohttp import web

    from harness.models.api_servers import Wire

KEY = "sk-ant-api03-1234567890abcdefghijKLMNOP"
TASK = "Fix the parser so that its tests pass"
PROBLEM = "The agent said it was done while the tests failed."
LESSON = "The parser's tests need the fixture file in tests/data; run them before the work counts as done."
SAID = f"Problem: {PROBLEM}\nLesson: {LESSON}"
BAD = {
    "complete": False,
    "severity": "HIGH",
    "feedback": "The tests fail.",
    "missing": [{"text": "The tests of the parser fail.", "cites": "the parser"}],
}
EARNED = 5_000_000


@dataclass(frozen=True)
class Judges(Step):
    """A verdict, with the nonce of its call."""

    says: Json
    asked: list[Json] = field(default_factory=list)

    async def play(self, wire: Wire, body: Json, request: web.Request) -> web.StreamResponse:
        nonce = re.search(r"The marker of this data is (\w+)\.", json.dumps(body))
        assert nonce is not None, body
        self.asked.append(body)
        said = json.dumps({"nonce": nonce[1], **self.says})
        return await replace(Says(), text=said, input=EARNED).play(wire, body, request)


@dataclass(frozen=True)
class Reflects(Step):
    """A reflexion; what was asked is kept."""

    text: str = SAID
    asked: list[Json] = field(default_factory=list)

    async def play(self, wire: Wire, body: Json, request: web.Request) -> web.StreamResponse:
        self.asked.append(body)
        return await replace(Says(), text=self.text, input=600, output=150).play(wire, body, request)


@pytest.fixture
def box() -> Iterator[Sandbox]:
    with sandbox() as box, none_left_over():
        yield box


@dataclass
class Site:
    """A daemon that may ask a model on loopback, and a host."""

    box: Sandbox
    daemon: Daemon
    server: LlmServer

    def messages(self, order: Json) -> Json | None:
        """What the host answers: a task whose tests failed."""
        if order["kind"] != "read":
            return {"status": "done"}
        now, session = int(time.time() * 1000), order["session"]
        state = {
            "status": "completed",
            "input": {"command": "pytest -q tests/parser"},
            "output": "E   ParserError: no fixture\n1 failed in 0.1s",
            "exit": 1,
        }
        call = {"type": "tool", "id": "p1", "callID": "c1", "tool": "bash", "state": state}
        request = {"info": {"id": "msg_1", "role": "user", "time": {"created": now - 900}}}
        answer = {"id": "msg_2", "role": "assistant", "finish": "stop", "time": {"created": now - 800}}
        data = {
            "missing": False,
            "busy": False,
            "session": {"id": session, "title": "t", "directory": str(self.box.project)},
            "messages": [
                {**request, "parts": [{"type": "text", "id": "p9", "text": TASK}]},
                {"info": answer, "parts": [call, {"type": "text", "id": "p8", "text": "All done."}]},
            ],
            "todos": [],
        }
        return {"status": "done", "data": data}

    def fails(self, session: str) -> None:
        """A session whose task is judged to be bad, and is over."""
        with WireHost(self.box.socket, self.box.project, self.messages, instance=f"host-{session}") as host:
            host.send(host.turn(session))
            self.daemon.wait_verdict(session, "incomplete")
            host.send([host.event("session.deleted", sessionID=session)])

    def stored(self) -> int:
        return int(self.status()["episodes"].get("quarantined", 0))

    def status(self) -> Json:
        found: Json = self.daemon.status()["features"]["memory"]
        return found


@asynccontextmanager
async def remembers(box: Sandbox, **env: str) -> AsyncIterator[Site]:
    async with llm_server() as server:
        access = {
            "ANTHROPIC_API_KEY": KEY,
            "ANTHROPIC_BASE_URL": server.url,
            "REFLECTD_ANTHROPIC_MODEL": MODEL["anthropic"],
            "REFLECTD_JUDGE_PROVIDER": "anthropic",
            "REFLECTD_MEMORY_ENABLED": "true",
            "REFLECTD_JUDGE_SECOND_LOOK": "never",
            "REFLECTD_SPEND_TOKENS_PER_DAY": "900000000",
        }
        daemon = Daemon(box, **access | env)
        await asyncio.to_thread(daemon.start)
        try:
            yield Site(box, daemon, server)
            assert server.left == 0, "a scripted step was not asked for"
        finally:
            await asyncio.to_thread(daemon.stop)


@pytest.mark.shows("AC-2.6.1", "AC-2.6.3", "SUBTASK-4.1")
async def test_judged_reflected_and_stored(box: Sandbox) -> None:
    """Test case 1: the Haiku API is asked with the verbatim prompt, at 0.7, for at most 1000 tokens, by the
    model of the requirements; the episode is stored, and the status shows it.
    """
    reflects = Reflects()
    async with remembers(box) as site:
        site.server.script(Judges(BAD), reflects)
        await asyncio.to_thread(site.fails, "ses_1")
        await asyncio.to_thread(wait_until, lambda: site.stored() == 1, "the episode", site.daemon.log)
        (asked,) = reflects.asked
        assert (asked["temperature"], asked["max_tokens"]) == (0.7, 1_000)
        text = asked["messages"][0]["content"]
        assert "(Reward Score: -0.60)" in text
        assert f"- Query: {TASK}\n" in text
        assert "pytest -q tests/parser" in text
        assert "- Generated Answer: All done.\n" in text
        assert "- Evaluation Reasoning: incomplete, severity HIGH" in text
        assert site.status()["stored"] == 1

"""The contract of ``claude-cli``: the real Claude Code, newest and oldest supported, and a scripted model."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from daemon.core.errors import BadReply, Fault, ReflectdError, Unavailable
from daemon.core.policy import POLICIES
from daemon.llm.claude_cli import THINKING_TOKENS, TOO_OLD, ClaudeCliProvider
from harness.hosts.claude_code import ClaudeCode, Version, binary
from harness.machine.processes import MARK, RUN, none_left_over
from harness.machine.sandbox import sandbox
from harness.machine.waiting import PATIENCE_S
from harness.models.claude_code import said, structured
from harness.models.server import Fail, ModelServer, Step, fail, slow, text
from tests.llm.samples import LONG, SCHEMA, prompt

pytestmark = [pytest.mark.needs("claude"), pytest.mark.slow("each call starts the real Claude Code")]

TOKEN = "sk-ant-oat01-dummy-of-the-tests"


@pytest.fixture(scope="module")
def model() -> Iterator[ModelServer]:
    with ModelServer() as running:
        yield running


@pytest.fixture
def llm(model: ModelServer) -> Iterator[ModelServer]:
    model.reset()
    yield model
    asked = [r.prompt[:200] for r in model.unscripted]
    model.reset()
    assert not asked, f"asked for more than was scripted: {asked}"


@pytest.fixture(params=["new", "old"])
def version(request: pytest.FixtureRequest) -> Version:
    return request.param


@pytest.fixture
def claude(llm: ModelServer, version: Version) -> Iterator[ClaudeCode]:
    """A person's Claude Code whose own settings name the model's address. Nothing is left running (I45)."""
    with sandbox() as box, none_left_over():
        address = {"env": {"ANTHROPIC_BASE_URL": llm.url.removesuffix("/v1")}}
        yield ClaudeCode(box, llm.url, version, settings=address)


def provider(claude: ClaudeCode, program: Path | None = None, **env: str) -> ClaudeCliProvider:
    """As the daemon makes it, logged in; in an environment that names another address and another key."""
    elsewhere = {"ANTHROPIC_BASE_URL": "http://127.0.0.1:9", "ANTHROPIC_API_KEY": "sk-ant-api03-another"}
    seen = claude.env | elsewhere | {"CLAUDE_CODE_OAUTH_TOKEN": TOKEN, "CLAUDECODE": "1"} | env
    folder = claude.box.state / "judge"
    return ClaudeCliProvider(program or binary(claude.version), "sonnet", folder, seen)


async def failure(made: ClaudeCliProvider, **changes: Any) -> ReflectdError:
    with pytest.raises(ReflectdError) as caught:
        await made.complete(prompt(**{"schema": SCHEMA, **changes}), LONG)
    return caught.value


# --- what is sent and what comes back ---------------------------------------------------------------


@pytest.mark.shows("I27")
@pytest.mark.main("Claude Code judges")
async def test_one_answer(claude: ClaudeCode, llm: ModelServer) -> None:
    """One request on the person's login, without tools; object, usage and cost; no session is left."""
    llm.judge(structured(complete=True, why="seen"))
    made = provider(claude)
    reply = await made.complete(prompt(schema=SCHEMA, max_tokens=1_234), LONG)
    assert reply.data == {"complete": True, "why": "seen"}
    assert json.loads(reply.text) == reply.data
    assert (reply.provider, reply.usage.input, reply.usage.output) == ("claude-cli", 100, 10)
    assert reply.usage.cost
    assert reply.model.startswith("claude-sonnet-")
    assert made.model_for(prompt()) == ("anthropic", reply.model)
    (asked,) = llm.requests
    assert asked.kind == "judge"
    assert asked.model == reply.model
    assert "Judge." in asked.system
    assert said(asked) == ["The evidence."]
    assert asked.body["max_tokens"] == made.most_tokens(prompt(max_tokens=1_234)) == 1_234 + THINKING_TOKENS
    headers = {k.lower(): v for k, v in asked.headers.items()}
    assert headers["authorization"] == f"Bearer {TOKEN}"
    assert "x-api-key" not in headers
    assert not [*(claude.config / "projects").rglob("*.jsonl")]


async def test_text_where_no_object_is_wanted(claude: ClaudeCode, llm: ModelServer) -> None:
    """Without a schema the answer is text, and what looks like an object is not taken for data."""
    llm.judge(text('{"complete": true}'))
    reply = await provider(claude).complete(prompt(tier="fast"), LONG)
    assert (reply.text, reply.data) == ('{"complete": true}', None)
    assert "haiku" in llm.requests[0].model


@pytest.mark.shows("I46")
async def test_files_named_in_the_text_are_not_attached(claude: ClaudeCode, llm: ModelServer) -> None:
    """``@name`` in a transcript stays a text; alone, Claude Code would send the file's content."""
    secret = claude.box.home / "secret.txt"
    secret.write_text("the-content-of-the-file\n", encoding="utf-8")
    near = claude.box.state / "judge" / "near.txt"
    near.parent.mkdir()
    near.write_text("the-content-of-the-file\n", encoding="utf-8")
    named = f'See @{secret} and @near.txt and @"near.txt" and @./ please'
    llm.judge(structured(complete=True, why="seen"))
    await provider(claude).complete(prompt(text=named, schema=SCHEMA), LONG)
    (asked,) = llm.requests
    assert said(asked) == [named]
    assert "the-content-of-the-file" not in asked.everything


@pytest.mark.parametrize("typed", ["/compact", "/cost", " /nosuch thing", "!touch banged", "# remember"])
async def test_a_text_is_never_a_command(claude: ClaudeCode, llm: ModelServer, typed: str) -> None:
    """A transcript that begins like something a person types is only a text."""
    llm.judge(structured(complete=True, why="seen"))
    await provider(claude).complete(prompt(text=typed, schema=SCHEMA), LONG)
    (asked,) = llm.requests
    assert typed.strip() in said(asked)[-1]
    assert not [*(claude.box.state / "judge").iterdir()]


# --- failures -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("steps", "fault", "words"),
    [
        ([fail(401, "no")] * 4, "auth", "/login"),
        ([fail(404, "no such model")] * 3, "model", "Check the model's name"),
        ([fail(429, "slow down")], "rate_limit", "wait"),
        ([fail(500)], "server", "try later"),
        ([fail(529)], "overloaded", "overloaded"),
        ([text("I won't.", stop="refusal")] * 3, "refused", "refused to answer"),
        ([fail(400, "Your credit balance is too low")] * 9, "billing", "used up"),
    ],
)
async def test_failures_have_their_fault(
    claude: ClaudeCode, llm: ModelServer, steps: list[Step], fault: Fault, words: str
) -> None:
    """A fault with words for a person; Claude Code does not try again where our policy decides."""
    llm.judge(*steps)
    failed = await failure(provider(claude))
    assert isinstance(failed, Unavailable)
    assert failed.fault == fault, str(failed)
    assert words in str(failed)
    assert str(failed).startswith("claude-cli: ")
    if fault in POLICIES["judge"].retry:
        assert len(llm.requests) == len(steps) == 1
    if not isinstance(steps[0], Fail):
        assert failed.usage is not None
        assert failed.usage.input


@pytest.mark.shows("I18")
@pytest.mark.parametrize(
    ("steps", "words"),
    [
        ([structured(complete="perhaps")] * 3, "wanted form"),
        ([text("I think th", stop="max_tokens")] * 6, "cut off"),
        ([text("")] * 3, "empty"),
    ],
)
async def test_replies_that_break_the_form(
    claude: ClaudeCode, llm: ModelServer, steps: list[Step], words: str
) -> None:
    """What is no answer of the form is a bad reply, and what it took is known."""
    llm.judge(*steps)
    failed = await failure(provider(claude))
    assert isinstance(failed, BadReply), repr(failed)
    assert words in str(failed)
    assert failed.usage is not None
    assert failed.usage.input >= 100


async def test_nobody_is_logged_in(claude: ClaudeCode, llm: ModelServer) -> None:
    """Without a login nothing is asked, and the person is told what to do; no key is taken instead."""
    failed = await failure(provider(claude, CLAUDE_CODE_OAUTH_TOKEN=""))
    assert isinstance(failed, Unavailable)
    assert failed.fault == "auth"
    assert "/login" in str(failed)
    assert not llm.requests


@pytest.mark.shows("I45")
async def test_a_cancelled_call_is_killed(claude: ClaudeCode, llm: ModelServer) -> None:
    """When the person types, the call ends at once, with its process."""
    held = slow("Thinking")
    llm.judge(held)
    call = asyncio.create_task(provider(claude).complete(prompt(schema=SCHEMA), LONG))
    await asyncio.to_thread(held.wait_started)
    with none_left_over():
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
    await asyncio.to_thread(held.wait_hung_up)


ASK = """
import asyncio, os, sys
from pathlib import Path
from daemon.core.llm import Prompt
from daemon.llm.claude_cli import ClaudeCliProvider

made = ClaudeCliProvider(Path(sys.argv[1]), "sonnet", Path(sys.argv[2]))
asyncio.run(made.complete(Prompt("judge", "judge", "You judge.", "The data."), 60))
"""


@pytest.mark.shows("I45")
@pytest.mark.needs("setpriv")
async def test_a_call_goes_with_a_killed_daemon(claude: ClaudeCode, llm: ModelServer) -> None:
    """``kill -9`` of whoever asked ends the call too."""
    held = slow("Thinking")
    llm.judge(held)
    command = [sys.executable, "-c", ASK, str(binary(claude.version)), str(claude.box.state / "judge")]
    env = claude.env | {"CLAUDE_CODE_OAUTH_TOKEN": TOKEN, "PYTHONPATH": os.pathsep.join(sys.path)}
    with none_left_over(), subprocess.Popen(command, env=env) as asking:
        await asyncio.to_thread(held.wait_started)
        asking.send_signal(signal.SIGKILL)
        asking.wait(PATIENCE_S)
    await asyncio.to_thread(held.wait_hung_up)


@pytest.mark.shows("I45")
async def test_a_call_that_takes_too_long_is_killed(claude: ClaudeCode) -> None:
    """At its deadline the call is over and its process gone."""
    with none_left_over(), pytest.raises(Unavailable) as caught:
        await provider(claude).complete(prompt(schema=SCHEMA), 0.05)
    assert caught.value.fault == "timeout"


# --- programs that are not what they should be ----------------------------------------------------------


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("cat > /dev/null; echo \"error: unknown option '--safe-mode'\" >&2; exit 1", TOO_OLD),
        ("echo oops; exit 3", "exit code 3: oops"),
        ("exit 0", "exit code 0"),
        ("head -c 3000000 /dev/zero | tr '\\0' x; exit 1", "exit code 1: xxx"),
        ("", "Install Claude Code"),
    ],
)
async def test_a_program_that_is_no_claude(script: str, words: str, tmp_path: Path) -> None:
    """An old version, another program of that name, or none any more: one line that says what to do."""
    program = tmp_path / "claude"
    if script:
        program.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
        program.chmod(0o755)
    made = ClaudeCliProvider(program, "sonnet", tmp_path / "judge", {"PATH": "/usr/bin:/bin"})
    failed = await failure(made, text="x" * 500_000)
    assert isinstance(failed, Unavailable)
    assert words in str(failed)
    assert len(str(failed)) < 400


@pytest.mark.shows("I45")
async def test_children_of_the_program_go_with_it(tmp_path: Path) -> None:
    """The whole group is killed, also a child that holds the pipes after the program has ended."""
    program, sleep = tmp_path / "claude", shutil.which("sleep")
    program.write_text(f"#!/bin/sh\n{sleep} 300 &\ntouch {tmp_path}/started\nexit 0\n", encoding="utf-8")
    program.chmod(0o755)
    env = {"PATH": "/usr/bin:/bin", MARK: RUN}
    made = ClaudeCliProvider(program, "sonnet", tmp_path / "judge", env)
    with none_left_over(), pytest.raises(Unavailable):
        await made.complete(prompt(), 1.0)
    assert (tmp_path / "started").exists()

"""``reflectd judge --past --provider``: the estimate, a yes, a model on loopback, through the daemon."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime

import pexpect
import pytest

from harness.machine.reflectd import Daemon
from harness.machine.sandbox import Sandbox
from harness.machine.waiting import wait_until
from harness.models.api_servers import Fails, Hangs, LlmServer, Says, llm_server
from tests.cli.judge.corpus import session, sessions
from tests.cli.reflect.model import Answers, with_a_key
from tests.cli.reflect.person import at_a_terminal, ended, typed
from tests.support.hosts.claude_code_past import begun as begun_at
from tests.support.hosts.claude_code_past import kept
from tests.support.machine.command_line import Done, reflectd, said

DONE = {"complete": True, "severity": "NONE", "feedback": "", "missing": [], "next_actions": []}
OPEN = {
    "complete": False,
    "severity": "MEDIUM",
    "feedback": "The rounding of prices below zero is still wrong.",
    "missing": [{"item": "prices below zero", "cites": "run the tests"}],
    "next_actions": ["Handle prices below zero"],
}


@asynccontextmanager
async def site(box: Sandbox, **more: str) -> AsyncIterator[tuple[LlmServer, dict[str, str], Daemon]]:
    """A model's API, the settings that lead to it, and a daemon."""
    async with llm_server() as server:
        env = with_a_key(server.url) | more
        process = Daemon(box, **env)
        await asyncio.to_thread(process.start)
        try:
            yield server, env, process
            assert server.left == 0, "a scripted step was not asked for"
        finally:
            await asyncio.to_thread(process.stop)


ASK = ["judge", "--past", "--provider", "anthropic"]


def begun(box: Sandbox, env: dict[str, str], *args: str) -> pexpect.spawn[str]:
    """The command at a terminal."""
    return typed(box, [*ASK, *args], columns=110, **env)


async def answered(box: Sandbox, env: dict[str, str], answer: str, *args: str) -> tuple[int, str]:
    """Exit code and screen; ``answer`` to the question, nothing typed where it is empty."""
    answers = [answer] if answer else []
    code, screen = await asyncio.to_thread(at_a_terminal, box, [*ASK, *args], *answers, columns=110, **env)
    return code, " ".join(screen.split())


async def run(box: Sandbox, env: dict[str, str], *args: str) -> Done:
    """The command where no terminal is."""
    return await asyncio.to_thread(reflectd, box, *ASK, *args, **env)


@pytest.mark.full("a pseudo-terminal is driven")
async def test_no_model_without_a_yes(box: Sandbox) -> None:
    """The estimate asks nobody; without a terminal, with a no and with --json nothing is asked."""
    sessions(box, 3)
    async with site(box) as (_, env, _):
        told = ("to ask", "3 stops", "3 to 6 calls", "tokens in", "it ends before 2.00 USD")
        said(await run(box, env), 2, *told, "there is no terminal to ask on", "Nothing was asked")
        said(await run(box, env, "--json"), 2, "there is no terminal to ask on")
        code, screen = await answered(box, env, "n")
        assert (code, "Nothing was asked." in screen) == (1, True)
        openai = ["judge", "--past", "--provider", "openai"]
        said(await asyncio.to_thread(reflectd, box, *openai), 2, "nobody can be asked yet", "openai")


@pytest.mark.full("a pseudo-terminal is driven")
async def test_two_at_once_pay_once(box: Sandbox) -> None:
    """While one waits for its yes or asks, another one asks nobody."""
    for n in (1, 2):
        session(box, n, passed=True)
    async with site(box) as (server, env, _):
        server.script(*[Answers(DONE)] * 2)
        first = begun(box, env)
        await asyncio.to_thread(first.expect, r"\[y/N\] ")
        code, screen = await answered(box, env, "")
        assert (code, "another `reflectd judge --past` runs" in screen) == (1, True), screen
        first.send("y\r")
        assert (await asyncio.to_thread(ended, first))[0] == 0
        code, screen = await answered(box, env, "")
        assert (code, "[y/N]" in screen) == (0, False), screen


@pytest.mark.full("a pseudo-terminal is driven")
async def test_a_model_judges_after_a_yes(box: Sandbox) -> None:
    """Each stop once, with a second look before feedback; what was paid for is not paid for again, also when
    a session grew or the case is kept.
    """
    for n in (1, 2, 3):
        session(box, n, passed=True)
    look = Answers({"defended": False, "why": "it is open"})
    async with site(box) as (server, env, _):
        server.script(Answers(DONE), Answers(OPEN), look, Answers(DONE))
        code, screen = await answered(box, env, "y")
        assert code == 0
        for words in ("3 sessions, 3 stops", "Anthropic", "done 2 67%", "sent back 1 33%", "4.0 calls"):
            assert words in screen
        assert "Still open" not in screen
        code, screen = await answered(box, env, "")
        assert (code, "3 sessions, 3 stops" in screen) == (0, True)
        found = json.loads((await run(box, env, "--json")).stdout)
        assert (found["judge"], found["calls"], found["sent"], found["tokens"]) == ("anthropic", 4, 1, 480)
        rules = json.loads((await asyncio.to_thread(reflectd, box, "backtest", "--json")).stdout)
        assert (rules["judge"], rules["calls"], rules["sent"]) == ("offline", 0, 0)
        session(box, 3, passed=True, then="Thanks, now the changelog")
        server.script(Answers(DONE))  # only for the new stop
        code, screen = await answered(box, env, "y")
        assert (code, "about 1 stop?" in screen, "3 sessions, 4 stops" in screen) == (0, True, True)
        path = session(box, 4, passed=True)
        (path.parent / "fork.jsonl").write_bytes(path.read_bytes())
        server.script(Answers(DONE))  # a copy is not asked about
        code, screen = await answered(box, env, "y")
        assert (code, "about 1 stop?" in screen, "4 sessions, 5 stops" in screen) == (0, True, True)
        os.utime(path, (1, 1))  # read anew, and nothing is left to ask: there is no question, and no call
        code, screen = await answered(box, env, "")
        assert (code, "4 sessions, 5 stops" in screen) == (0, True)


@pytest.mark.full("a pseudo-terminal is driven")
async def test_only_the_last_days_are_asked_about(box: Sandbox) -> None:
    """An older stop of the same session is asked about when it is wanted, and the newer one not again."""
    story = begun_at(box, 1)
    for n, stamp in enumerate(("2020-01-01T10:00:00.000Z", datetime.now(UTC).isoformat())):
        first = len(story.lines)
        story.human(f"Fix the rounding in shop{n}.py and run the tests")
        story.tool("Write", {"file_path": f"{story.cwd}/shop{n}.py", "content": "x = 1"}, "ok")
        story.bash("pytest -q", "5 passed in 0.1s")
        story.say(f"The rounding {n} is fixed.")
        for line in story.lines[first:]:
            line["timestamp"] = stamp
    path = kept(box, story)
    now = time.time()
    os.utime(path, (now, now))
    async with site(box) as (server, env, _):
        server.script(Answers(DONE))
        code, screen = await answered(box, env, "y", "--days", "2")
        assert (code, "about 1 stop?" in screen, "1 session, 1 stop" in screen) == (0, True, True)
        server.script(Answers(DONE))
        code, screen = await answered(box, env, "y")
        assert (code, "about 1 stop?" in screen, "1 session, 2 stops" in screen) == (0, True, True)


@pytest.mark.full("a pseudo-terminal is driven")
async def test_no_more_calls_than_were_agreed_to(box: Sandbox) -> None:
    """Replies that break the form cost calls; where the estimate is used up, what is left is said."""
    session(box, 1, passed=True)
    async with site(box, REFLECTD_FAST_MODELS="claude-sonnet-5") as (server, env, _):
        broken = Says("no JSON at all")
        server.script(broken, broken)
        code, screen = await answered(box, env, "y")
        assert (code, "not judged 1 100%" in screen) == (0, True), "two calls: that is what was agreed to"
        session(box, 2, passed=True)
        server.script(broken, Answers(OPEN))
        code, screen = await answered(box, env, "y")
        for words in ("more calls than the estimate said", "1 session, 1 stop"):
            assert (code, words in screen) == (0, True), screen


@pytest.mark.full("a pseudo-terminal is driven")
async def test_through_the_daemon_it_is_in_the_ledger(box: Sandbox) -> None:
    """Where a daemon runs it asks: account `asked`, purpose `asked.judge`; no host hears of it."""
    session(box, 1, passed=True)
    async with site(box) as (server, env, daemon):
        server.script(Answers(DONE))
        code, screen = await answered(box, env, "y")
        assert (code, "it ends before 2.00 USD" in screen) == (0, True)
        wait_until(lambda: daemon.spent_by("account"), "a row", daemon.log)
        groups = daemon.spent_by("account")
        assert [(g["name"], g["answered"]) for g in groups] == [("asked", 1)]
        purposes = daemon.spent_by("purpose")
        assert [g["name"] for g in purposes] == ["asked.judge"]
        assert daemon.call("GET", "/v1/verdicts?limit=5")["verdicts"] == []
        assert daemon.call("GET", "/v1/sessions")["sessions"] == []


@pytest.mark.full("a pseudo-terminal is driven")
async def test_a_limit_ends_it_and_keeps_what_was_done(box: Sandbox) -> None:
    """The caps hold, named; the rest waits for another day."""
    for n in (1, 2):
        session(box, n, passed=True)
    async with site(box, REFLECTD_SPEND_TOKENS_PER_DAY="4000") as (server, env, _):
        server.script(Answers(DONE))
        code, screen = await answered(box, env, "y")
        assert (code, "It ended early: " in screen, "limit" in screen) == (1, True, True)
        said(await run(box, env), 2, "1 stop;")


@pytest.mark.full("a pseudo-terminal is driven")
async def test_a_model_that_is_silent_ends_it(box: Sandbox) -> None:
    """A refusal of the API is told, nothing is stored as unscored, and later it goes on."""
    session(box, 1, passed=True)
    async with site(box) as (server, env, _):
        server.script(Fails(401))
        code, screen = await answered(box, env, "y")
        assert (code, "It ended early: anthropic" in screen) == (1, True)
        server.script(Answers(DONE))
        code, screen = await answered(box, env, "y")
        assert (code, "done 1 100%" in screen) == (0, True)


@pytest.mark.full("a pseudo-terminal is driven")
async def test_ctrl_c_and_a_kill_pay_for_nothing_twice(box: Sandbox) -> None:
    """Ended while the second stop is asked about: the first one stays, the call ends with the command."""
    for n in (1, 2):
        session(box, n, passed=True)
    async with site(box) as (server, env, daemon):
        server.script(Answers(DONE), Hangs())
        child = begun(box, env)
        await asyncio.to_thread(child.expect, r"\[y/N\] ")
        child.send("y\r")
        await asyncio.to_thread(wait_until, lambda: server.left == 0, "the second call", daemon.log)
        child.send("\x03")
        assert (await asyncio.to_thread(ended, child))[0] == 130

        def counted() -> bool:
            groups = daemon.spent_by("account")
            return [(g["answered"], g["cancelled"]) for g in groups] == [(1, 1)]

        await asyncio.to_thread(wait_until, counted, "the end of the call", daemon.log)
        server.script(Answers(DONE))
        code, screen = await answered(box, env, "y")
        assert (code, "Ask the model about 1 stop?" in screen, "done 2 100%" in screen) == (0, True, True)


async def test_nobody_to_ask(box: Sandbox) -> None:
    """It says so before anything is asked: a provider that the daemon does not have, and no daemon."""
    session(box, 1, passed=True)
    async with site(box, REFLECTD_JUDGE_PROVIDER="offline") as (_, env, _):
        said(await run(box, env), 2, "nobody can be asked yet", "anthropic")
    said(await run(box, {}), 2, "nobody can be asked yet", "reflectd start")

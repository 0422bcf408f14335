"""The real ``claude -p`` with the real plugin and the real daemon: rounds, wakes, sub-agents, compaction."""

from __future__ import annotations

import re

import pytest

from harness.hosts.claude_code import ClaudeCode, Version
from harness.machine.reflectd import Daemon, verdict_file
from harness.machine.sandbox import Sandbox
from harness.machine.waiting import wait_until
from harness.models.claude_code import said
from harness.models.claude_code_scripts import HEADLESS, PLUGIN, mended, unfinished
from harness.models.scripts import CLAIM, DONE, HEADING, REQUEST
from harness.models.server import SUMMARY, ModelServer, text

pytestmark = pytest.mark.needs("claude")
ORDER = re.compile(r"\(reflectd (rfl_[0-9a-f]{20})\)")


@pytest.fixture
def clean(box: Sandbox) -> Sandbox:
    """The module's machine, its project as it was: Claude Code does not write over a file it did not read."""
    for name in ("answer.txt", "hello.py"):
        (box.project / name).unlink(missing_ok=True)
    return box


@pytest.fixture(params=["new", "old"])
def version(request: pytest.FixtureRequest) -> Version:
    return request.param


@pytest.fixture
def claude(clean: Sandbox, llm: ModelServer, version: Version) -> ClaudeCode:
    return ClaudeCode(clean, llm.url, version, plugin=PLUGIN)


@pytest.fixture
def newest(clean: Sandbox, llm: ModelServer) -> ClaudeCode:
    return ClaudeCode(clean, llm.url, plugin=PLUGIN)


def states(daemon: Daemon, session: str) -> list[str]:
    """Its verdicts, oldest first."""
    return [v["state"] for v in reversed(daemon.verdicts(session))]


@pytest.mark.shows("I2", "I5", "I6", "I39")
@pytest.mark.main("feedback arrives, newest and oldest Claude Code")
def test_the_round_trip(claude: ClaudeCode, daemon: Daemon, llm: ModelServer) -> None:
    """In both versions the turn is judged, woken with feedback, and passes, as one task."""
    llm.script(*unfinished(claude), *mended())
    ran = claude.run(REQUEST, **HEADLESS)
    assert (ran.code, ran.result, ran.stderr) == (0, DONE, "")
    woken = said(llm.of("main", ran.session)[3])[-1]
    assert f"{HEADING} (HIGH)" in woken
    (order,) = ORDER.findall(woken)
    assert f"order={order} kind=feedback status=done" in daemon.new_log()
    found = daemon.wait_verdict(ran.session, "complete")
    second, first = daemon.verdicts(ran.session)
    assert (first["state"], second["state"], found["attempt"]) == ("incomplete", "complete", 1)
    typed = next(line for line in claude.transcript(ran.session) if line.get("promptId"))
    assert first["task"] == second["task"] == typed["promptId"]


def test_each_message_of_an_sdk_session_has_one_result(
    claude: ClaudeCode, daemon: Daemon, llm: ModelServer
) -> None:
    """A program that holds the session open reads one result for each message, when the task is done."""
    llm.script(*unfinished(claude), *mended(), text("It prints hello."))
    with claude.serve(**HEADLESS) as session:
        session.say(REQUEST)
        wait_until(lambda: session.results, "the first result")
        session.say("What does hello.py do?")
        wait_until(lambda: len(session.results) > 1, "the second result", lambda: session.results)
        ran = session.end()
        assert session.results == [DONE, "It prints hello."]
    assert (ran.code, ran.stderr) == (0, "")
    assert states(daemon, llm.of("main")[0].session)[:2] == ["incomplete", "complete"]


@pytest.mark.shows("I7")
@pytest.mark.main("carried over a compaction")
def test_an_automatic_compaction(newest: ClaudeCode, daemon: Daemon, llm: ModelServer) -> None:
    """Between two rounds the agent is given what was asked and what is open; the task goes on."""
    llm.script(*unfinished(newest, text(CLAIM, tokens_in=60_000)), *mended())
    ran = newest.run(REQUEST, CLAUDE_AUTOCOMPACT_PCT_OVERRIDE="2", **HEADLESS)
    assert (ran.code, ran.result, ran.stderr) == (0, DONE, "")
    assert llm.of("compaction", ran.session)
    after = llm.of("main", ran.session)[3].everything
    assert SUMMARY in after
    assert f"word for word:\\n> {REQUEST}\\nWhat was still open when the last turn was checked:\\n- " in after
    second, first = daemon.verdicts(ran.session)
    assert (first["state"], second["state"]) == ("incomplete", "complete")
    assert first["task"] == second["task"]


@pytest.mark.main("headless is judged only where wanted")
def test_not_judged_unless_wanted(claude: ClaudeCode, daemon: Daemon, llm: ModelServer) -> None:
    """``-p`` waits for us, so nobody who did not ask for it is judged: no verdict, no session, no wait."""
    llm.script(*unfinished(claude))
    ran = claude.run(REQUEST)
    assert (ran.code, ran.result, ran.stderr) == (0, CLAIM, "")
    assert daemon.session(ran.session) == {}
    assert verdict_file(claude.box.project, ran.session) is None

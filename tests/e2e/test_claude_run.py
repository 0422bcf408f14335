"""The real ``claude -p`` with the real plugin and the real daemon: rounds, wakes, sub-agents, compaction."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from harness.hosts.claude_code import ClaudeCode, Version
from harness.machine.reflectd import Daemon, verdict_file
from harness.machine.waiting import wait_until
from harness.models.claude_code import bash, said, sub_agent
from harness.models.claude_code_scripts import HEADLESS, PLUGIN, PROGRAM, finished, mended, unfinished
from harness.models.scripts import CLAIM, DONE, HEADING, REQUEST, UNDEFENDED, verdict
from harness.models.server import SUMMARY, slow, text
from tests.support.hosts.witness import a_later_host

if TYPE_CHECKING:
    from harness.machine.sandbox import Sandbox
    from harness.models.server import ModelServer

pytestmark = pytest.mark.needs("claude")
ORDER = re.compile(r"\(reflectd (rfl_[0-9a-f]{20})\)")
WAKES = 8


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
    """In both versions the plugin loads, the turn is judged and woken with feedback, and passes then; both
    rounds are of one task.
    """
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


@pytest.mark.shows("I5")
def test_at_most_eight_wakes(own_box: Sandbox, llm: ModelServer) -> None:
    """Each round gets something else done, so nothing else stops it; the ninth wake, which would empty the
    result of ``-p``, never comes.
    """
    newest = ClaudeCode(own_box, llm.url, plugin=PLUGIN)
    for n in range(WAKES + 1):
        llm.script(bash(f"echo {n} > part{n}.txt; make test"), text(f"Part {n} is done."))
        missing = [(f"part {n} of the tests does not pass", "make test must pass")]
        llm.api(verdict(complete=False, severity="HIGH", missing=missing), UNDEFENDED)
    with Daemon(own_box, REFLECTD_JUDGE_PROVIDER="openai", REFLECTD_OPENAI_BASE_URL=llm.url) as daemon:
        ran = newest.run(REQUEST, **HEADLESS)
        assert (ran.code, ran.result) == (0, f"Part {WAKES} is done.")
        heard = [r for r in llm.of("main", ran.session) if HEADING in said(r)[-1]]
        assert len({ORDER.findall(said(r)[-1])[-1] for r in heard}) == WAKES
        assert daemon.wait_verdict(ran.session, "stopped")["reason"] == "guard:max_attempts"
        assert states(daemon, ran.session) == [*["incomplete"] * WAKES, "stopped"]


def test_a_claim_against_a_red_run_of_a_turn_without_edits(
    newest: ClaudeCode, daemon: Daemon, llm: ModelServer
) -> None:
    """Without a model: a red `make test` and "tests pass now" is proof, though the turn edited nothing."""
    llm.script(bash("make test"), text("The tests pass now."), *mended())
    ran = newest.run("Run make test; it must pass", **HEADLESS)
    assert (ran.code, ran.result) == (0, DONE)
    assert states(daemon, ran.session)[0] == "incomplete"


@pytest.mark.shows("I16")
def test_a_sub_agent_in_the_background(claude: ClaudeCode, daemon: Daemon, llm: ModelServer) -> None:
    """The Stop while it runs is not judged; the one after it is, once, as the same task."""
    held = slow("Looking")
    llm.agents(held)
    llm.script(sub_agent("Look it up", run_in_background=True), text("Started."), *finished(claude))
    with claude.start(REQUEST, **HEADLESS) as running:
        held.wait_started()
        session = llm.of("main")[0].session
        wait_until(
            lambda: any("Started." in file.read_text("utf-8") for file in claude.transcripts()),
            what="end of the first turn",
        )
        a_later_host(daemon)
        assert not daemon.verdicts(session)
        task = daemon.session(session)["task"]
        held.release("Found.")
        ran = running.wait()
    assert (ran.code, ran.result, ran.stderr) == (0, DONE, "")
    (only,) = daemon.verdicts(session)
    assert (only["state"], only["task"]) == ("complete", task)


@pytest.mark.shows("I7")
@pytest.mark.main("carried over a compaction")
def test_an_automatic_compaction(newest: ClaudeCode, daemon: Daemon, llm: ModelServer) -> None:
    """The context is compacted between two rounds: what was asked and what is open is given to the agent
    beside the summary; the task goes on and its next round passes.
    """
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


@pytest.mark.shows("I7", "I9")
def test_a_compaction_by_hand(claude: ClaudeCode, daemon: Daemon, llm: ModelServer) -> None:
    """``/compact`` is no task and is not judged; the open task is given back with what comes next."""
    llm.script(*unfinished(claude), text("Shall I write answer.txt for you, or will you?"))
    first = claude.run(REQUEST, **HEADLESS)
    before = daemon.session(first.session)
    known = states(daemon, first.session)
    assert known[0] == "incomplete"
    compacted = claude.run("/compact", "--resume", first.session, **HEADLESS)
    assert (compacted.code, compacted.stderr) == (0, "")
    assert daemon.session(first.session)["task"] == before["task"]
    assert states(daemon, first.session) == known
    llm.script(*mended())
    assert claude.run("Go on", "--resume", first.session, **HEADLESS).result == DONE
    assert f"word for word:\\n> {REQUEST}" in llm.of("main", first.session)[-1].everything
    assert daemon.session(first.session)["task"] != before["task"]
    assert daemon.wait_verdict(first.session, "unscored")["reason"].startswith(
        "no_proof: "
    )  # "Go on" says little


@pytest.mark.main("headless is judged only where wanted")
def test_not_judged_unless_wanted(claude: ClaudeCode, daemon: Daemon, llm: ModelServer) -> None:
    """``-p`` waits for us, so nobody who did not ask for it is judged: no verdict, no session, no wait."""
    llm.script(*unfinished(claude))
    ran = claude.run(REQUEST)
    assert (ran.code, ran.result, ran.stderr) == (0, CLAIM, "")
    assert daemon.session(ran.session) == {}
    assert verdict_file(claude.box.project, ran.session) is None


@pytest.mark.shows("I9")
def test_our_own_commands_are_no_work(claude: ClaudeCode, daemon: Daemon, llm: ModelServer) -> None:
    """``/reflectd:status`` shows what the daemon says. Its turn opens no task and is not judged, though the
    work before it was left undone: neither at its end nor at the end of the session.
    """
    llm.script(*unfinished(claude))
    session = claude.run(REQUEST).session
    if claude.version == "old":  # without the mod the command is a turn of the model
        llm.script(text("It runs."))
    asked = claude.run("/reflectd:status", "--resume", session, **HEADLESS, **PROGRAM)
    assert (asked.code, asked.stderr) == (0, "")
    if claude.version == "old":
        assert asked.result == "It runs."
        assert f"this session: {session}" in llm.of("main", session)[-1].everything
    else:
        assert f"this session: {session}" in asked.result
    a_later_host(daemon)
    assert states(daemon, session) == []

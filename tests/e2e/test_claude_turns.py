"""The real Claude Code's terminal UI: which turn is judged, when, and whether feedback may still leave."""

from __future__ import annotations

import signal
from contextlib import suppress

import psutil
import pytest

from harness.hosts.claude_code import ClaudeCode, Version
from harness.hosts.claude_code_tui import ClaudeTui
from harness.machine.reflectd import Daemon
from harness.machine.sandbox import Sandbox
from harness.machine.waiting import wait_until
from harness.models.claude_code import bash
from harness.models.claude_code_scripts import HEADLESS, PLUGIN, mended, unfinished
from harness.models.scripts import CLAIM, COMPLETE, DONE, HEADING, INCOMPLETE, REQUEST, UNDEFENDED
from harness.models.server import ModelServer, Tool, slow, text

pytestmark = pytest.mark.needs("claude")
SERVER = "sleep 987"
GONE = text("The server is gone.")  # Claude Code tells the agent when it is closed itself


@pytest.fixture(params=["new", "old"])
def claude(own_box: Sandbox, llm: ModelServer, request: pytest.FixtureRequest) -> ClaudeCode:
    version: Version = request.param
    return ClaudeCode(own_box, llm.url, version, plugin=PLUGIN)


@pytest.fixture
def newest(own_box: Sandbox, llm: ModelServer) -> ClaudeCode:
    return ClaudeCode(own_box, llm.url, plugin=PLUGIN)


def judged_by_model(box: Sandbox, llm: ModelServer, **more: str) -> Daemon:
    """A daemon that asks the scripted model to judge."""
    return Daemon(box, REFLECTD_JUDGE_PROVIDER="openai", REFLECTD_OPENAI_BASE_URL=llm.url, **more)


def told(llm: ModelServer) -> list[str]:
    """The requests in which the agent reads feedback of ours."""
    return [r.prompt for r in llm.of("main") if HEADING in r.everything]


@pytest.mark.shows("I16")
@pytest.mark.main("a server in the background")
def test_a_server_in_the_background_silences_nobody(claude: ClaudeCode, llm: ModelServer) -> None:
    """The turn that starts a server waits for it and says so; those after it are judged as ever."""
    llm.script(bash(SERVER, run_in_background=True), text("The server runs."))
    llm.script(*unfinished(claude), *mended(), GONE)
    llm.api(INCOMPLETE, UNDEFENDED, COMPLETE)
    with judged_by_model(claude.box, llm) as daemon, ClaudeTui(claude) as tui:
        tui.ask("Start the server")
        tui.wait_for("The server runs.")
        session = llm.of("main")[0].session
        wait_until(lambda: daemon.session(session).get("waits_for") == [SERVER], "the name of the shell")
        why = daemon.call("GET", f"/v1/why?session={session}")
        assert why["session"]["waits_for"] == [SERVER]
        assert not llm.of("api")
        tui.ask(REQUEST)
        tui.wait_for(DONE)
        daemon.wait_verdict(session, "complete")
        assert daemon.session(session)["waits_for"] == []
    assert len(told(llm)) >= 1
    assert len(llm.of("api")) == 3


@pytest.mark.shows("I16", "I21")
def test_killed_while_a_shell_is_waited_for(newest: ClaudeCode, llm: ModelServer) -> None:
    """The turn that was answered gets its verdict when its terminal is gone."""
    llm.script(*unfinished(newest, bash(SERVER, run_in_background=True), text("It runs.")))
    llm.api(INCOMPLETE, UNDEFENDED)
    with judged_by_model(newest.box, llm) as daemon:
        with ClaudeTui(newest) as tui:
            tui.ask(REQUEST)
            tui.wait_for("It runs.")
            session = llm.of("main")[0].session
            wait_until(lambda: daemon.session(session).get("waits_for") == [SERVER], "the name of the shell")
            host = psutil.Process(tui.pid)
            for process in (*host.children(recursive=True), host)[::-1]:
                with suppress(psutil.NoSuchProcess):
                    process.kill()
        daemon.wait_verdict(session, "incomplete")
    assert not told(llm)


@pytest.mark.shows("I15")
def test_a_call_that_nobody_allowed_is_the_persons_turn(claude: ClaudeCode, llm: ModelServer) -> None:
    """The last call needed a person's leave and did not get it: the person decides, whatever a judge says."""
    fetch = Tool("WebFetch", {"url": "http://127.0.0.1:9/", "prompt": "What does it say?"})
    llm.script(*unfinished(claude, fetch), text("I was not allowed to read that page."))
    llm.api(INCOMPLETE, UNDEFENDED)
    with judged_by_model(claude.box, llm) as daemon:
        ran = claude.run(REQUEST, **HEADLESS)
        assert (ran.code, ran.result, ran.stderr) == (0, "I was not allowed to read that page.", "")
        assert daemon.wait_verdict(ran.session, "awaiting_user")["reason"] == "guard:refused"
    assert not llm.of("api")


@pytest.mark.shows("I35")
@pytest.mark.main("crash of the host")
def test_a_prompt_that_the_host_dropped(newest: ClaudeCode, llm: ModelServer) -> None:
    """Claude Code is killed while the judge thinks: `why` does not say that the feedback arrived."""
    thinking = slow("Hm")
    llm.script(*unfinished(newest))
    llm.api(thinking, UNDEFENDED)
    with judged_by_model(newest.box, llm) as daemon:
        with ClaudeTui(newest) as tui:
            tui.ask(REQUEST)
            thinking.wait_started()
            tui.wait_for(CLAIM)
            session = llm.of("main")[0].session
            psutil.Process(tui.pid).send_signal(signal.SIGKILL)
            thinking.release(INCOMPLETE)
            wait_until(lambda: daemon.verdicts(session), "a verdict", daemon.log)

        def outcome() -> str:
            (verdict, *_) = daemon.call("GET", f"/v1/why?session={session}")["verdicts"]
            return str((verdict["order"] or {}).get("status"))

        wait_until(lambda: outcome() in {"failed", "stale"}, "the outcome", daemon.log)
    assert not told(llm)

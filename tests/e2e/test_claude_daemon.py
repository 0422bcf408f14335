"""The real ``claude -p`` with the plugin: the daemon gone or late, several at once, other judges."""

from __future__ import annotations

import subprocess
from typing import Any

import pytest

from harness.hosts.claude_code import ClaudeCode, Ran, binary
from harness.machine.reflectd import Daemon, call, verdict_file
from harness.machine.sandbox import Sandbox
from harness.machine.waiting import PATIENCE_S
from harness.models.claude_code import said, structured
from harness.models.claude_code_scripts import (
    HEADLESS,
    PLUGIN,
    PROGRAM,
    REFLECTD,
    finished,
    mended,
    unfinished,
)
from harness.models.scripts import CLAIM, DONE, HEADING, REQUEST
from harness.models.server import ModelServer, slow, text
from tests.support.machine.state import wait_ledger

pytestmark = pytest.mark.needs("claude")


@pytest.fixture
def claude(own_box: Sandbox, llm: ModelServer) -> ClaudeCode:
    return ClaudeCode(own_box, llm.url, plugin=PLUGIN)


def api(box: Sandbox, llm: ModelServer) -> Daemon:
    """A daemon whose judge is the scripted API."""
    return Daemon(box, REFLECTD_JUDGE_PROVIDER="openai", REFLECTD_OPENAI_BASE_URL=llm.url)


def shape(ran: Ran) -> dict[str, Any]:
    """What a caller of ``-p`` sees, without ids and times."""
    kept = ("type", "subtype", "is_error", "num_turns", "result", "permission_denials", "terminal_reason")
    return {"code": ran.code, "stderr": ran.stderr, **{k: ran.json.get(k) for k in kept}}


@pytest.mark.shows("I35")
@pytest.mark.main("a dead daemon is not felt")
def test_without_a_daemon(claude: ClaudeCode, llm: ModelServer) -> None:
    """No daemon, and a socket that a dead one left: all is as it is without the plugin."""
    box = claude.box
    claude.plugin = None
    llm.script(*unfinished(claude))
    bare = shape(claude.run(REQUEST, **HEADLESS))
    assert bare["result"] == CLAIM
    claude.plugin = PLUGIN
    for died in (False, True):
        if died:
            with Daemon(box) as daemon:
                daemon.kill9()
            assert box.socket.exists()
        (box.project / "hello.py").unlink()
        llm.script(*unfinished(claude))
        assert shape(claude.run(REQUEST, **HEADLESS)) == bare
        assert not (box.project / ".reflection").exists()


@pytest.mark.shows("I35", "I42")
@pytest.mark.main("crash of the daemon")
def test_killed_while_it_judges(claude: ClaudeCode, llm: ModelServer) -> None:
    """``-p`` ends with the agent's words alone; the next daemon does not send what the dead one had."""
    held = slow("Let me see")
    llm.script(*unfinished(claude))
    llm.api(held)
    with api(claude.box, llm) as daemon:
        with claude.start(REQUEST, **HEADLESS) as running:
            held.wait_started()
            daemon.kill9()
            ran = running.wait()
        assert (ran.code, ran.result, ran.stderr) == (0, CLAIM, "")
        daemon.start(REFLECTD_JUDGE_PROVIDER="offline")
        llm.script(*mended())
        again = claude.run("Go on", "--resume", ran.session, **HEADLESS)
        assert (again.code, again.result, again.stderr) == (0, DONE, "")
        assert not [r for r in llm.of("main") if HEADING in r.everything]


@pytest.mark.shows("I34", "I45")
@pytest.mark.main("the session starts the daemon")
def test_the_session_starts_the_daemon(claude: ClaudeCode, llm: ModelServer) -> None:
    """SessionStart starts one in time for the first turn; after ``reflectd stop`` no session does."""
    box = claude.box
    start = {**HEADLESS, **PROGRAM, "REFLECTD_NO_START": "0"}
    llm.script(*unfinished(claude), *mended())
    try:
        ran = claude.run(REQUEST, **start)
        assert (ran.code, ran.result, ran.stderr) == (0, DONE, "")
        assert call(box.socket, "GET", "/v1/status")["pid"]
        assert (verdict_file(box.project, ran.session) or {})["state"] == "complete"
        stop(box)
        llm.script(text("Hello."))
        assert claude.run("Say hello", **start).result == "Hello."
        assert not box.socket.exists()
    finally:
        stop(box)


def stop(box: Sandbox) -> None:
    env, stop = box.env(**PROGRAM), [REFLECTD, "stop"]
    subprocess.run(stop, env=env, cwd=box.home, check=True, capture_output=True, timeout=PATIENCE_S)


@pytest.mark.shows("I5")
@pytest.mark.main("strict")
def test_strict(claude: ClaudeCode, llm: ModelServer) -> None:
    """The turn itself waits and goes on with a decision: two rounds of one task, told once."""
    llm.script(*unfinished(claude), *mended())
    with Daemon(claude.box, REFLECTD_CLAUDE_CODE_STRICT="true", REFLECTD_RUN_HEADLESS="true") as daemon:
        ran = claude.run(REQUEST)
        assert (ran.code, ran.result, ran.stderr) == (0, DONE, "")
        (woken,) = {t for r in llm.of("main", ran.session) for t in said(r) if HEADING in t}
        assert woken.startswith("Stop hook")
        assert f"{HEADING} (HIGH)" in woken
        daemon.wait_verdict(ran.session, "complete")
        second, first = daemon.verdicts(ran.session)
        assert (first["state"], first["task"]) == ("incomplete", second["task"])


@pytest.mark.shows("I9", "I37")
def test_claude_code_judges_claude_code(claude: ClaudeCode, llm: ModelServer) -> None:
    """The judge is the person's own Claude Code with the plugin: not judged itself; no session is left."""
    claude.plugin = None
    place = {"source": {"source": "directory", "path": str(PLUGIN)}}
    claude.write_settings(
        {
            "extraKnownMarketplaces": {"reflectd": place},
            "enabledPlugins": {"reflectd@reflectd": True},
            "env": {"ANTHROPIC_BASE_URL": llm.url.removesuffix("/v1")},
        }
    )
    llm.script(*finished(claude))
    llm.judge(
        structured(
            requirements=["Write hello.py"],
            reasons="It was written.",
            nonce="",
            complete=True,
            severity="NONE",
            missing=[],
            next_actions=[],
            requires_human_action=False,
            excused=[],
            feedback="",
        )
    )
    with Daemon(
        claude.box,
        REFLECTD_JUDGE_CLAUDE_CODE="claude-cli",
        REFLECTD_CLAUDE_CLI_PATH=str(binary()),
        CLAUDE_CONFIG_DIR=str(claude.config),
        CLAUDE_CODE_OAUTH_TOKEN="sk-ant-oat01-dummy-of-the-tests",
    ) as daemon:
        ran = claude.run(REQUEST, **HEADLESS)
        assert (ran.code, ran.result, ran.stderr) == (0, DONE, "")
        assert daemon.wait_verdict(ran.session, "complete")["judge"]["provider"] == "claude-cli"
        wait_ledger(claude.box, ran.session, ("judge", "claude-cli", "ok"))
        asked = {host: judge["asked"] for host, judge in daemon.status()["judges"].items()}
        assert asked == {"opencode": ["openai"], "claude-code": ["claude-cli"], "codex": ["openai"]}
        assert [s["session"] for s in daemon.call("GET", "/v1/sessions")["sessions"]] == [ran.session]
    assert [f.stem for f in (claude.config / "projects").rglob("*.jsonl")] == [ran.session]

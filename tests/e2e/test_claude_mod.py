"""The mod and the status line in the real Claude Code: what they show, and what they never hold up."""

from __future__ import annotations

import json
import re
import signal
import sys
from pathlib import Path

import psutil
import pytest

from daemon.engine.hosts.claude_code import JUDGING
from harness.hosts.claude_code import ClaudeCode
from harness.hosts.claude_code_tui import ClaudeTui
from harness.machine.reflectd import Daemon
from harness.machine.sandbox import REPO, Sandbox
from harness.machine.waiting import wait_until
from harness.models.claude_code_scripts import HEADLESS, PLUGIN
from harness.models.scripts import CLAIM, COMPLETE, DONE, REQUEST
from harness.models.server import ModelServer, slow, text
from tests.e2e.test_claude_tui import finished, model_daemon, set_up, unfinished

pytestmark = pytest.mark.needs("claude")
HELLO, AGAIN = "Say hello", "Say it again"


@pytest.mark.shows("I34", "I40")
def test_what_the_person_sees_and_asks_without_the_model(own_box: Sandbox, llm: ModelServer) -> None:
    """While the judge thinks a line says so. Esc at the prompt stops nothing, because Claude Code tells
    nobody of it. What became of the turn is shown by itself. The commands are answered without a request to
    the model, with and without the prefix, and switch this session.
    """
    thinking = slow("Hm")
    llm.script(*finished())
    llm.api(thinking)
    claude = set_up(own_box, llm)
    with model_daemon(own_box, llm) as daemon, ClaudeTui(claude) as tui:
        tui.ask(REQUEST)
        thinking.wait_started()
        tui.wait_for(DONE)
        tui.wait_for(f"reflectd: {JUDGING}")
        asked = len(llm.of("main"))
        session = llm.of("main")[0].session
        tui.escape()
        tui.ask("/why ")
        tui.wait_for("verdict  none yet")
        assert JUDGING in tui.screen
        tui.watch("Task complete")
        thinking.release(COMPLETE)
        tui.wait_for("Task complete")
        tui.wait_gone(JUDGING)
        tui.ask("/reflectd:off ")
        tui.wait_for(f"reflectd is off for session {session}")
        assert daemon.session(session)["off"]
        tui.ask("/on ")
        tui.wait_for(f"reflectd is on for session {session}")
        assert not daemon.session(session)["off"]
        tui.ask("/reflectd:status ")
        tui.wait_for(f"this session: {session}")
        assert len(llm.of("main")) == asked
        assert [i["mod"] for i in daemon.status()["instances"]] == [True]
        assert [v["state"] for v in daemon.verdicts(session)] == ["complete"]
        assert tui.quit() == 0


@pytest.mark.shows("I11", "I13")
def test_esc_ends_the_task_at_once(own_box: Sandbox, llm: ModelServer) -> None:
    """The mod tells of Esc while the agent works: the task has its verdict, and no model is asked."""
    held = slow("Working")
    llm.script(*unfinished(own_box, held))
    with model_daemon(own_box, llm) as daemon, ClaudeTui(set_up(own_box, llm)) as tui:
        tui.ask(REQUEST)
        held.wait_started()
        tui.interrupt()
        held.wait_hung_up()
        session = llm.of("main")[0].session
        daemon.wait_verdict(session, "stopped")
        assert not daemon.session(session)["busy"]
        assert tui.quit() == 0
    assert not llm.of("api")


@pytest.mark.shows("I35", "I45")
def test_a_daemon_that_hangs_or_dies_in_the_session(own_box: Sandbox, llm: ModelServer) -> None:
    """The next prompts are answered, the commands say what is wrong, and Claude Code ends."""
    llm.script(text("Hello."), text("Hello again."), text("And again."))
    claude = set_up(own_box, llm)
    with Daemon(own_box) as daemon, ClaudeTui(claude) as tui:
        tui.ask(HELLO)
        tui.wait_for("Hello.")
        tui.wait_idle()
        process = psutil.Process(daemon.status()["pid"])
        process.send_signal(signal.SIGSTOP)
        try:
            tui.ask(AGAIN)
            tui.wait_for("Hello again.")
            tui.wait_idle()
        finally:
            process.send_signal(signal.SIGCONT)
        daemon.kill9()
        tui.ask("And once more")
        tui.wait_for("And again.")
        tui.wait_idle()
        tui.ask("/reflectd:status ")
        tui.wait_for("reflectd is not running")
        assert tui.quit() == 0


def test_nobody_is_held_up_where_nobody_sits(own_box: Sandbox, llm: ModelServer) -> None:
    """Under `claude -p` the mod marks the hooks and sends nothing by itself; a command is answered."""
    llm.script(text(CLAIM))
    llm.api(COMPLETE)
    claude = set_up(own_box, llm)
    log = own_box.root / "debug.txt"
    with model_daemon(own_box, llm) as daemon:
        ran = claude.run(HELLO, "--debug-file", str(log), **HEADLESS)
        assert (ran.code, ran.result) == (0, CLAIM)
        wait_until(lambda: daemon.verdicts(ran.session), "a verdict", daemon.log)
        status = claude.run("/reflectd:status")
        assert f"this session: {status.session}" in status.result
    said = log.read_text("utf-8")
    assert "hooks module reflectd@reflectd classic.Stop settled" in said
    assert "$.http.fetch (reflectd)" not in said
    assert len(llm.of("main")) == 1


def patient(box: Sandbox) -> Path:
    """A folder for PATH with a ``reflectd`` that waits longer for its daemon, as this machine may be busy."""
    folder = box.root / "bin"
    folder.mkdir()
    file = folder / "reflectd"
    more = '[ "$1" = line ] && set -- "$@" --wait 10000'
    file.write_text(
        f'#!/bin/sh\n{more}\nPYTHONPATH="{REPO}" exec "{sys.executable}" -m daemon "$@"\n', "utf-8"
    )
    file.chmod(0o755)
    return folder


def test_the_status_line_is_about_the_session(own_box: Sandbox, llm: ModelServer) -> None:
    """Claude Code runs the page's command again and again: sent back once, then the person's turn."""
    page = (REPO / "docs" / "status-line.md").read_text("utf-8")
    (snippet,) = re.findall(r"^```json\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    path = f"{patient(own_box)}:{own_box.env()['PATH']}"
    claude = ClaudeCode(own_box, llm.url, plugin=PLUGIN, settings=json.loads(snippet), PATH=path)
    question = "The tests want a file. Shall I make answer.txt?"
    llm.script(*unfinished(own_box), text(question))
    with Daemon(own_box), ClaudeTui(claude) as tui:
        tui.ask(REQUEST)
        tui.wait_for(question)
        tui.wait_for("your turn · sent back 1 · 240 unpriced tokens today · agent <0.01 USD")
        assert tui.quit() == 0

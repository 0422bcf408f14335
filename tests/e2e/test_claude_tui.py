"""Claude Code's terminal UI with our plugin, set up as the README says: what a person types and sees."""

from __future__ import annotations

import contextlib
import json
import re
import sys
import time
from typing import TYPE_CHECKING

import psutil
import pytest

from harness.hosts.claude_code import ClaudeCode, Ran, Running, Version
from harness.hosts.claude_code_tui import ClaudeTui
from harness.machine.reflectd import Daemon, call, verdict_file
from harness.machine.sandbox import REPO
from harness.machine.waiting import wait_until
from harness.models.claude_code import bash, write
from harness.models.scripts import CLAIM, COMPLETE, DONE, HEADING, INCOMPLETE, REQUEST, UNDEFENDED
from harness.models.server import SUMMARY, slow, text

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from harness.machine.sandbox import Sandbox
    from harness.models.server import ModelServer, Step

pytestmark = pytest.mark.needs("claude")
TOLD = "reflectd: not done yet, the agent was told (/reflectd:why)"
OURS = re.compile(r"Stop hook[^\n]*|reflect\w*|Reflect\S*", re.IGNORECASE)


def unfinished(box: Sandbox, *then: Step) -> list[Step]:
    """A file is written, the tests fail, the agent says that all is done (or goes on with ``then``)."""
    path = str(box.project / "hello.py")
    return [write(path, "print('hello')\n"), bash("make test"), *(then or (text(CLAIM),))]


def finished() -> list[Step]:
    """What was missing is made, and the tests pass."""
    return [bash("echo 42 > answer.txt && make test"), text(DONE)]


def hooks(tui: ClaudeTui) -> list[str]:
    """The Stop hooks of ours that run."""
    found = []
    for process in psutil.Process(tui.pid).children(recursive=True):
        with contextlib.suppress(psutil.Error):
            line = " ".join(process.cmdline())
            found += [line] if "hook.sh" in line or "/v1/hooks/" in line else []
    return found


def model_daemon(box: Sandbox, llm: ModelServer, **more: str) -> Daemon:
    """A daemon that asks the scripted model to judge."""
    settings = {"REFLECTD_JUDGE_PROVIDER": "openai", "REFLECTD_OPENAI_BASE_URL": llm.url}
    return Daemon(box, **settings, **more)


def program(box: Sandbox) -> Path:
    """A folder for PATH with ``reflectd`` in it."""
    folder = box.root / "bin"
    folder.mkdir(exist_ok=True)
    file = folder / "reflectd"
    file.write_text(f'#!/bin/sh\nPYTHONPATH="{REPO}" exec "{sys.executable}" -m daemon "$@"\n', "utf-8")
    file.chmod(0o755)
    return folder


def reflectd(box: Sandbox, *words: str) -> Ran:
    """``reflectd`` in a terminal of the sandbox's person."""
    env = box.env(CLAUDE_CONFIG_DIR=str(box.home / ".claude"))
    with Running(box.root, [str(program(box) / "reflectd"), *words], "", env, box.project) as running:
        return running.wait()


def set_up(
    box: Sandbox, llm: ModelServer, version: Version = "new", *flags: str, mod: bool = True
) -> ClaudeCode:
    """Claude Code with the two settings keys."""
    claude = ClaudeCode(box, llm.url, version, PATH=f"{program(box)}:{box.env()['PATH']}")
    runs = [["setup", "claude-code", *flags], ["config", "set", "claude_code.mod", str(mod).lower()]]
    for argv in runs if not mod else runs[:1]:
        ran = reflectd(box, *argv)
        assert ran.code == 0, ran.stderr
    return claude


@pytest.fixture(scope="module")
def module_daemon(box: Sandbox, model_server: ModelServer) -> Iterator[Daemon]:
    with model_daemon(box, model_server) as running:
        yield running


@pytest.fixture
def claude(box: Sandbox, daemon: Daemon, llm: ModelServer) -> ClaudeCode:
    """The module's Claude Code, set up; ``answer.txt`` is not there yet."""
    for name in ("answer.txt", "hello.py"):
        (box.project / name).unlink(missing_ok=True)
    return set_up(box, llm)


@pytest.mark.shows("I5", "I34")
@pytest.mark.main("feedback arrives in the terminal UI")
def test_the_round_trip(claude: ClaudeCode, daemon: Daemon, llm: ModelServer) -> None:
    """Stopped too early, woken with the feedback, judged again and done; the person reads nothing of ours but
    that.
    """
    llm.script(*unfinished(claude.box), *finished())
    llm.api(INCOMPLETE, UNDEFENDED, COMPLETE)
    with ClaudeTui(claude) as tui:
        tui.ask(REQUEST)
        tui.wait_for(DONE)
        session = llm.of("main")[0].session
        final = daemon.wait_verdict(session, "complete")
        tui.wait_for("reflectd: Task complete")
        wait_until(lambda: tui.screen.count("reflectd") == 3, "these two lines", lambda: tui.screen)
        assert TOLD in tui.screen
        assert tui.quit() == 0
        assert not OURS.findall(tui.text_after_exit())
    last, first = daemon.verdicts(session)
    assert (first["state"], last["state"], last["turn"]) == ("incomplete", "complete", final["turn"])
    assert first["task"] == last["task"]
    assert HEADING in llm.of("main")[-1].everything


@pytest.mark.parametrize("version", ["new", "before", "old"])
def test_the_person_sees_what_is_done(own_box: Sandbox, llm: ModelServer, version: Version) -> None:
    """Sent back, and complete: each is said in one line, in each version, by the mod where there is one; a
    compaction says nothing.
    """
    llm.script(*unfinished(own_box), *finished(), text("You are welcome."), SUMMARY)
    llm.api(INCOMPLETE, UNDEFENDED, COMPLETE, COMPLETE)
    with model_daemon(own_box, llm) as daemon, ClaudeTui(set_up(own_box, llm, version)) as tui:
        tui.watch("Task complete")
        tui.ask(REQUEST)
        tui.wait_for(TOLD)
        tui.wait_for(DONE)
        daemon.wait_verdict(llm.of("main")[0].session, "complete")
        tui.wait_idle()
        if version != "old":
            tui.wait_for("Task complete")
        tui.ask("Thanks")
        if version == "old":
            tui.wait_for("reflectd, on the last turn: Task complete")
        tui.wait_for("You are welcome.")
        tui.wait_idle()
        tui.ask("/compact")
        tui.wait_for("Compacted")
        assert "PreCompact" not in tui.screen
        assert tui.quit() == 0


@pytest.mark.shows("I11", "I13")
@pytest.mark.main("Esc is final")
def test_esc_while_the_agent_works(claude: ClaudeCode, daemon: Daemon, llm: ModelServer) -> None:
    """Nothing is judged; what is typed next is a task of its own, and judged."""
    held = slow("Working")
    llm.script(*unfinished(claude.box, held), *finished())
    llm.api(COMPLETE)
    with ClaudeTui(claude) as tui:
        tui.ask(REQUEST)
        held.wait_started()
        tui.interrupt()
        held.wait_hung_up()
        wait_until(lambda: not hooks(tui), "no hook that waits", lambda: hooks(tui))
        tui.ask("Now make the tests pass")
        tui.wait_for(DONE)
        session = llm.of("main")[0].session
        final = daemon.wait_verdict(session, "complete")
        assert tui.quit() == 0
    (asked,) = llm.of("api")
    assert "Now make the tests pass" in asked.prompt
    verdicts = daemon.verdicts(session)
    assert [v["state"] for v in verdicts if v["task"] == final["task"]] == ["complete"]
    assert {v["state"] for v in verdicts if v["task"] != final["task"]} <= {"stopped"}
    assert HEADING not in llm.of("main")[-1].everything


@pytest.mark.shows("I11")
def test_esc_in_the_woken_turn(claude: ClaudeCode, daemon: Daemon, llm: ModelServer) -> None:
    """The agent that was sent on is stopped by the person: that task is judged no more."""
    held = slow("Working")
    llm.script(*unfinished(claude.box), held)
    llm.api(INCOMPLETE, UNDEFENDED)
    with ClaudeTui(claude) as tui:
        tui.ask(REQUEST)
        held.wait_started()
        tui.interrupt()
        held.wait_hung_up()
        session = llm.of("main")[0].session
        assert tui.quit() == 0
    daemon.wait_verdict(session, "stopped")
    assert len(llm.of("api")) == 2


@pytest.mark.shows("I14", "GUARD-7")
@pytest.mark.main("typed meanwhile")
def test_typing_while_the_judge_thinks(claude: ClaudeCode, daemon: Daemon, llm: ModelServer) -> None:
    """The hook that waits is let go at once, and the old turn's feedback never comes."""
    thinking, working = slow("Hm"), slow("Working")
    llm.script(*unfinished(claude.box), working)
    llm.api(thinking, COMPLETE)
    with ClaudeTui(claude) as tui:
        tui.ask(REQUEST)
        thinking.wait_started()
        tui.wait_idle()
        assert hooks(tui)
        tui.ask("Only say what you did")
        working.wait_started()
        wait_until(lambda: not hooks(tui), "end of the hook that waited", lambda: hooks(tui))
        thinking.release(INCOMPLETE)
        working.release("I wrote hello.py.")
        session = llm.of("main")[0].session
        final = daemon.wait_verdict(session, "complete")
        skipped = [v["state"] for v in daemon.verdicts(session) if v["task"] != final["task"]]
        assert skipped == ["skipped"]
        llm.script(text("It prints hello."))
        tui.ask("What does hello.py do?")
        tui.wait_for("It prints hello.")
        tui.wait_idle()
        assert len(llm.of("main")) == 5
        # of the two messages after it, by the mod or with the next prompt; nothing of the first
        told = re.compile(r"reflectd(, on the last turn)?: Task complete")
        wait_until(lambda: not OURS.findall(told.sub("", tui.screen)), "no toast", lambda: tui.screen)
        assert tui.quit() == 0
    assert len(llm.of("api")) == 2


@pytest.mark.shows("I9", "I40")
def test_the_switch_and_the_status(own_box: Sandbox, llm: ModelServer) -> None:
    """Without the mod off, on and status are answered by the model, and are no work; what is asked while off
    is not judged.
    """
    llm.script(text("It is off."), *unfinished(own_box))
    llm.script(text("It is on."), text("That is it."), *finished())
    llm.api(COMPLETE)
    claude = set_up(own_box, llm, "new", mod=False)
    with model_daemon(own_box, llm) as daemon, ClaudeTui(claude) as tui:
        tui.ask("/reflectd:off")
        tui.wait_for("It is off.")
        tui.wait_idle()
        session = llm.of("main")[0].session
        assert f"reflectd is off for session {session}" in llm.of("main")[-1].everything
        assert daemon.session(session)["off"]
        tui.ask(REQUEST)
        tui.wait_for(CLAIM)
        tui.wait_idle()
        tui.ask("/reflectd:on")
        tui.wait_for("It is on.")
        tui.wait_idle()
        assert not daemon.session(session)["off"]
        tui.ask("/reflectd:status")
        tui.wait_for("That is it.")
        tui.wait_idle()
        assert f"this session: {session}" in llm.of("main")[-1].everything
        assert not llm.of("api")
        assert not daemon.verdicts(session)
        tui.ask("Now make the tests pass")
        tui.wait_for(DONE)
        daemon.wait_verdict(session, "complete")
        assert [v["state"] for v in daemon.verdicts(session)] == ["complete"]
        assert {i["mod"] for i in daemon.status()["instances"]} == {None}
        assert tui.quit() == 0
    (asked,) = llm.of("api")
    assert "/reflectd:" not in asked.prompt


@pytest.mark.shows("I16")
def test_a_permission_dialog(claude: ClaudeCode, daemon: Daemon, llm: ModelServer) -> None:
    """While the person is asked, the turn is not over; when they said yes it goes on, and is judged."""
    llm.script(*unfinished(claude.box), *finished())
    llm.api(INCOMPLETE, UNDEFENDED, COMPLETE)
    with ClaudeTui(claude, "--permission-mode", "default") as tui:
        tui.ask(REQUEST)
        tui.wait_for("Do you want to create hello.py?")
        session = llm.of("main")[0].session
        assert daemon.session(session)["busy"]
        assert not daemon.verdicts(session)
        tui.enter_until(lambda: "Do you want to create hello.py?" not in tui.screen, "a yes")
        tui.wait_for(DONE)
        daemon.wait_verdict(session, "complete")
        assert tui.quit() == 0
    assert len(llm.of("api")) == 3
    assert [v["state"] for v in daemon.verdicts(session)] == ["complete", "incomplete"]


@pytest.mark.shows("I12", "I13")
@pytest.mark.main("Esc in strict mode")
def test_esc_while_the_host_waits_for_the_judge(own_box: Sandbox, llm: ModelServer) -> None:
    """Strict mode: Esc ends the wait and the judgement; what is typed next is judged."""
    thinking = slow("Hm")
    llm.script(*unfinished(own_box), *finished())
    llm.api(thinking, COMPLETE)
    with model_daemon(own_box, llm, REFLECTD_CLAUDE_CODE_STRICT="true") as daemon:
        with ClaudeTui(set_up(own_box, llm)) as tui:
            tui.ask(REQUEST)
            thinking.wait_started()
            assert hooks(tui)
            tui.wait_for("reflectd is judging")
            tui.interrupt()
            wait_until(lambda: not hooks(tui), "end of the hook that waited", lambda: hooks(tui))
            session = llm.of("main")[0].session
            daemon.wait_verdict(session, "stopped")
            thinking.release(INCOMPLETE)
            tui.ask("Now make the tests pass")
            tui.wait_for(DONE)
            daemon.wait_verdict(session, "complete")
            tui.wait_idle()
            assert tui.quit() == 0
        assert [v["state"] for v in daemon.verdicts(session)] == ["complete", "stopped"]
        assert len(llm.of("api")) == 2
        daemon.new_log()


@pytest.mark.shows("I45")
def test_a_daemon_that_dies_in_the_session_is_started_again(own_box: Sandbox, llm: ModelServer) -> None:
    """The next prompt's hook starts one, within the same session, and the turn is judged."""
    own_box.extra |= {"REFLECTD_NO_START": "0", "PATH": f"{program(own_box)}:{own_box.env()['PATH']}"}
    llm.script(text("Hello."), *unfinished(own_box), *finished())
    try:
        with Daemon(own_box) as daemon, ClaudeTui(set_up(own_box, llm)) as tui:
            tui.ask("Say hello")
            tui.wait_for("Hello.")
            tui.wait_idle()
            daemon.kill9()
            tui.ask(REQUEST)
            tui.wait_for(DONE)
            session = llm.of("main")[0].session
            wait_until(
                lambda: (verdict_file(own_box.project, session) or {}).get("state") == "complete",
                "the final verdict",
                lambda: f"{verdict_file(own_box.project, session)}\n{daemon_log(own_box)}\n{tui.screen}",
            )
            assert tui.quit() == 0
    finally:
        assert reflectd(own_box, "stop").code == 0


@pytest.mark.shows("I45")
def test_a_daemon_that_dies_in_a_judgement_soon_after_its_start(own_box: Sandbox, llm: ModelServer) -> None:
    """A hook started it less than a minute ago. The Stop hook that waits asks again, and starts the next one
    when the minute is over: the turn is judged there once, the session is woken, and nothing stays `judging`.
    """
    own_box.extra |= {"REFLECTD_NO_START": "0", "PATH": f"{program(own_box)}:{own_box.env()['PATH']}"}
    own_box.extra |= {"REFLECTD_JUDGE_PROVIDER": "openai", "REFLECTD_OPENAI_BASE_URL": llm.url}
    thinking = slow("Hm")
    llm.script(*unfinished(own_box), *finished())
    llm.api(thinking, INCOMPLETE, UNDEFENDED, COMPLETE)
    try:
        with ClaudeTui(set_up(own_box, llm)) as tui:
            tui.ask(REQUEST)
            thinking.wait_started()
            tui.wait_idle()
            session = llm.of("main")[0].session
            assert (verdict_file(own_box.project, session) or {}).get("state") == "judging"
            started = own_box.state / "started-by-hook"
            assert time.time() - int(started.read_text("utf-8")) < 60, "the hook of the session's start"
            # all but the last seconds of the minute are over
            started.write_text(f"{int(time.time()) - 55}\n", "utf-8")
            died = call(own_box.socket, "GET", "/v1/status")["pid"]
            psutil.Process(died).kill()
            tui.wait_for(DONE)
            wait_until(
                lambda: (verdict_file(own_box.project, session) or {}).get("state") == "complete",
                "the final verdict",
                lambda: f"{verdict_file(own_box.project, session)}\n{daemon_log(own_box)}\n{tui.screen}",
            )
            assert call(own_box.socket, "GET", "/v1/status")["pid"] != died
            listed = call(own_box.socket, "GET", f"/v1/verdicts?session={session}")["verdicts"]
            assert [v["state"] for v in listed] == ["complete", "incomplete"]
            wait_until(lambda: not hooks(tui), "no hook that waits", lambda: hooks(tui))
            assert tui.quit() == 0
    finally:
        stopped = reflectd(own_box, "stop")
    assert stopped.code == 0, stopped.stderr
    assert len(llm.of("api")) == 4, "the call that the first daemon lost, and three of the second"
    assert llm.of("main")[-1].everything.count(HEADING) == 1


@pytest.mark.shows("I5")
def test_a_compaction_while_the_judge_thinks(own_box: Sandbox, llm: ModelServer) -> None:
    """`/compact` is not the agent's work: the feedback still wakes the session."""
    thinking = slow("Hm")
    llm.script(*unfinished(own_box), *finished())
    llm.api(thinking, UNDEFENDED, COMPLETE)
    with model_daemon(own_box, llm) as daemon, ClaudeTui(set_up(own_box, llm)) as tui:
        tui.ask(REQUEST)
        thinking.wait_started()
        tui.wait_idle()
        tui.ask("/compact")
        tui.wait_for("Compacted")
        tui.wait_idle()
        thinking.release(INCOMPLETE)
        tui.wait_for(DONE)
        session = llm.of("main")[0].session
        daemon.wait_verdict(session, "complete")
        assert [v["state"] for v in daemon.verdicts(session)] == ["complete", "incomplete"]
        assert tui.quit() == 0


@pytest.mark.shows("GUARD-1")
@pytest.mark.parametrize("slower", ["the judge", "the hook"])
def test_a_stop_hook_of_the_persons_is_not_overruled(own_box: Sandbox, llm: ModelServer, slower: str) -> None:
    """It said `continue: false` while the judge thinks, or when that is over: the verdict wakes nobody."""
    thinking = slow("Hm")
    llm.script(*unfinished(own_box))
    llm.api(thinking, UNDEFENDED)
    claude = set_up(own_box, llm)
    settings = json.loads((claude.config / "settings.json").read_text("utf-8"))
    asked = own_box.root / "asked"  # the hook ends after the judge was asked
    says = 'echo \'{"continue": false, "stopReason": "Enough for today"}\''
    ends = {"type": "command", "command": f"while [ ! -e {asked} ]; do sleep 0.1; done; {says}"}
    claude.write_settings({**settings, "hooks": {"Stop": [{"hooks": [ends]}]}})
    with model_daemon(own_box, llm) as daemon, ClaudeTui(claude) as tui:
        tui.ask(REQUEST)
        thinking.wait_started()
        session = llm.of("main")[0].session
        if slower == "the hook":
            thinking.release(INCOMPLETE)
            daemon.wait_verdict(session, "incomplete")
        asked.touch()
        tui.wait_for("Enough for today")
        tui.wait_idle()
        if slower == "the judge":
            thinking.release(INCOMPLETE)
            daemon.wait_verdict(session, "incomplete")
        wait_until(lambda: not hooks(tui), "no hook that waits", lambda: hooks(tui))
        tui.wait_idle()
        assert tui.quit() == 0
    assert len(llm.of("main")) == 3


HELLO, HELLOS = "Say hello", 5


def daemon_runs(box: Sandbox) -> bool:
    """Whether a daemon answers, after a moment in which one may start."""
    with contextlib.suppress(AssertionError):
        wait_until(lambda: reflectd(box, "status").code == 0, "a daemon", within=20)
        return True
    return False


def daemon_log(box: Sandbox) -> str:
    """What a daemon that a hook started has logged."""
    file = box.state / "reflectd.log"
    return file.read_text("utf-8", "replace") if file.exists() else "no log"


@pytest.mark.shows("I45")
@pytest.mark.parametrize("version", ["new", "old"])
def test_from_set_up_to_remove(own_box: Sandbox, llm: ModelServer, version: Version) -> None:
    """The steps of the README: set up, start, be judged, remove. The first session starts the daemon, in both
    versions; nothing of ours is left in what Claude Code reads.
    """
    own_box.extra |= {"REFLECTD_NO_START": "0", "PATH": f"{program(own_box)}:{own_box.env()['PATH']}"}
    claude = ClaudeCode(own_box, llm.url, version)
    before = claude.write_settings({"theme": "dark"}).read_bytes()
    assert reflectd(own_box, "setup", "claude-code").code == 0
    assert claude.config.joinpath("settings.json").read_bytes() != before
    llm.script(*[text("Hello.")] * HELLOS, marker=HELLO)
    llm.script(*unfinished(own_box), *finished(), marker=REQUEST)
    try:
        with ClaudeTui(claude) as tui:
            for _ in range(HELLOS):  # the older version loads a plugin while its first session runs
                tui.ask(HELLO)
                tui.wait_for("Hello.")
                tui.wait_idle()
                if daemon_runs(own_box):
                    break
            tui.ask(REQUEST)
            tui.wait_for(DONE)
            session = llm.of("main")[0].session
            wait_until(
                lambda: (verdict_file(own_box.project, session) or {}).get("state") == "complete",
                "the final verdict",
                lambda: f"{verdict_file(own_box.project, session)}\n{daemon_log(own_box)}\n{tui.screen}",
            )
            assert tui.quit() == 0
    finally:
        stopped = reflectd(own_box, "stop")
    assert stopped.code == 0, stopped.stderr
    assert reflectd(own_box, "setup", "claude-code", "--remove").code == 0
    assert claude.config.joinpath("settings.json").read_bytes() == before
    files = [p for p in claude.config.rglob("*") if p.is_file()]
    assert not [p for p in (*files, *claude.config.glob("plugins/**/*")) if "reflectd" in p.name]
    named = {p for p in files if b"reflectd" in p.read_bytes() and p.suffix != ".jsonl"}
    assert named <= {claude.config / ".claude.json"}  # how often a plugin was used, which is Claude Code's

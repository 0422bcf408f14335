"""The real ``claude -p`` with the plugin: the daemon gone or late, several at once, other judges."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from harness.hosts.claude_code import KEY, ClaudeCode, Ran, binary
from harness.machine.reflectd import Daemon, call, verdict_file
from harness.machine.sandbox import MAKEFILE
from harness.machine.waiting import PATIENCE_S, wait_until
from harness.models.claude_code import bash, said, structured
from harness.models.claude_code_scripts import (
    HEADLESS,
    PLUGIN,
    PROGRAM,
    REFLECTD,
    finished,
    mended,
    unfinished,
)
from harness.models.scripts import CLAIM, COMPLETE, DONE, HEADING, INCOMPLETE, REQUEST, UNDEFENDED
from harness.models.server import slow, text
from tests.support.machine.state import wait_ledger

if TYPE_CHECKING:
    from pathlib import Path

    from harness.machine.sandbox import Sandbox
    from harness.models.server import ModelServer

pytestmark = pytest.mark.needs("claude")
TOKEN = "ghp_" + "k3Y9" * 9
PASSWORD = "correct-horse-Battery-9-staple"


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
    """The waiting hook ends with the daemon; ``-p`` prints what the agent said, not a word of us. The next
    daemon does not send what the dead one was about to.
    """
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
    """No daemon runs; SessionStart starts one, in time for the first turn to be judged. It outlives the
    session, and after ``reflectd stop`` no session starts it again.
    """
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


@pytest.mark.shows("I46")
def test_a_key_that_nobody_chose_goes_nowhere(claude: ClaudeCode, llm: ModelServer) -> None:
    """The daemon that a hook starts has a gateway's key in its environment and judges by the rules; status
    says which command allows the key. After that command it goes to the address that was recorded.
    """
    box = claude.box
    start = {**HEADLESS, **PROGRAM, "REFLECTD_NO_START": "0", "REFLECTD_JUDGE_PROVIDER": "auto"}
    shell = box.env(**PROGRAM, ANTHROPIC_API_KEY=KEY, ANTHROPIC_BASE_URL=claude.env["ANTHROPIC_BASE_URL"])
    try:
        llm.script(text("Hello."))
        assert claude.run("Say hello", **start).result == "Hello."
        found = call(box.socket, "GET", "/v1/status")
        assert found["providers"] == ["host", "offline"]
        assert found["keys_unused"] == {"anthropic": "ANTHROPIC_API_KEY"}
        said = subprocess.run([REFLECTD, "status"], env=shell, capture_output=True, text=True, check=True)
        assert "`reflectd setup claude-code --judge anthropic`" in said.stdout
        command = [REFLECTD, "setup", "claude-code", "--judge", "anthropic"]
        subprocess.run(command, env=shell, capture_output=True, check=True)
        stop(box)
        (box.state / "stopped").unlink()
        (box.state / "started-by-hook").unlink()
        llm.script(text("Hello."))
        llm.api(COMPLETE)
        other = {
            **start,
            "ANTHROPIC_BASE_URL": claude.env["ANTHROPIC_BASE_URL"].replace("127.0.0.1", "localhost"),
        }
        assert claude.run("Say hello", **other).result == "Hello."
        found = call(box.socket, "GET", "/v1/status")
        assert (found["judges"]["claude-code"]["asked"], found["keys_unused"]) == (["anthropic"], {})
        (asked,) = llm.of("api")
        assert any(KEY in value for value in asked.headers.values())
        said = subprocess.run([REFLECTD, "doctor"], env=shell, capture_output=True, text=True, check=False)
        assert f"sent to {claude.env['ANTHROPIC_BASE_URL'].removeprefix('http://')}" in said.stdout
    finally:
        stop(box)


def stop(box: Sandbox) -> None:
    env, stop = box.env(**PROGRAM), [REFLECTD, "stop"]
    subprocess.run(stop, env=env, cwd=box.home, check=True, capture_output=True, timeout=PATIENCE_S)


@pytest.mark.shows("I40")
def test_two_projects_at_once(claude: ClaudeCode, llm: ModelServer) -> None:
    """Each session is woken with what is open in its own project, and each project has its own file."""
    box = claude.box
    other = second_project(box, box.root / "other")
    folders = {"lint": other, "test": box.project}
    for target, folder in folders.items():
        write_and_check = [*unfinished(claude, folder=folder)]
        write_and_check[1] = bash(f"make {target}")
        mend = bash(f"echo 42 > answer.txt && make {target}")
        llm.script(*write_and_check, mend, text(f"Now {target} passes."), marker=f"make {target} must pass")
    with Daemon(box), contextlib.ExitStack() as stack:
        started = {
            target: stack.enter_context(
                claude.start(f"Write hello.py; make {target} must pass", cwd=folder, **HEADLESS)
            )
            for target, folder in folders.items()
        }
        ran = {target: running.wait() for target, running in started.items()}
        for target, theirs in (("lint", "test"), ("test", "lint")):
            mine = ran[target]
            assert (mine.code, mine.result, mine.stderr) == (0, f"Now {target} passes.", "")
            (first, *_) = woken = [r for r in llm.of("main", mine.session) if HEADING in said(r)[-1]]
            assert f"`make {target}` failed" in said(first)[-1]
            assert all(f"make {theirs}" not in said(r)[-1] for r in woken)
            found = wait_until(lambda f=folders[target], s=mine.session: verdict_file(f, s), "verdict")
            assert (found["state"], found["attempt"]) == ("complete", 1)
            assert verdict_file(folders[theirs], mine.session) is None


def second_project(box: Sandbox, folder: Path) -> Path:
    """Another repository, whose check has another name."""
    shutil.copytree(box.project, folder)
    (folder / "Makefile").write_text(MAKEFILE.replace("test:", "lint:"), encoding="utf-8")
    return folder


@pytest.mark.shows("I5")
@pytest.mark.main("strict")
def test_strict(claude: ClaudeCode, llm: ModelServer) -> None:
    """With ``claude_code.strict`` the turn itself waits and goes on with a decision; both rounds are one
    task, and the asynchronous hook says nothing.
    """
    llm.script(*unfinished(claude), *mended())
    with Daemon(
        claude.box, REFLECTD_CLAUDE_CODE_STRICT="true", REFLECTD_CLAUDE_CODE_HEADLESS="true"
    ) as daemon:
        ran = claude.run(REQUEST)
        assert (ran.code, ran.result, ran.stderr) == (0, DONE, "")
        (woken,) = {t for r in llm.of("main", ran.session) for t in said(r) if HEADING in t}
        assert woken.startswith(f"Stop hook feedback:\n{HEADING} (HIGH)")
        daemon.wait_verdict(ran.session, "complete")
        second, first = daemon.verdicts(ran.session)
        assert (first["state"], first["task"]) == ("incomplete", second["task"])


@pytest.mark.shows("I46")
def test_secrets_stay_where_they_are(claude: ClaudeCode, llm: ModelServer) -> None:
    """What was typed, what a tool printed and the agent said: in no prompt, log, file or database."""
    told = f"{REQUEST}. The token is {TOKEN}, and export DB_PASSWORD={PASSWORD}"
    shown = bash(f"export GITHUB_TOKEN={TOKEN}; echo DB_PASSWORD={PASSWORD}; echo $GITHUB_TOKEN; make test")
    llm.script(shown, text(f"All done with {TOKEN} and DB_PASSWORD={PASSWORD}."), *mended())
    llm.api(INCOMPLETE, UNDEFENDED, COMPLETE)
    with api(claude.box, llm) as daemon:
        ran = claude.run(told, **HEADLESS)
        assert (ran.code, ran.result) == (0, DONE)
        assert TOKEN in llm.of("main")[0].everything
        assert len(llm.of("api")) == 3
        asked = "".join(r.everything for r in llm.of("api"))
        kept = [f for d in (claude.box.state, claude.box.project) for f in d.rglob("*") if f.is_file()]
        assert any(f.parent.name == ".reflection" for f in kept)
        for secret in (TOKEN, PASSWORD):
            assert secret not in asked
            assert secret not in daemon.log()
            assert not [f for f in kept if secret.encode() in f.read_bytes()]


@pytest.mark.shows("I9", "I37")
def test_claude_code_judges_claude_code(claude: ClaudeCode, llm: ModelServer) -> None:
    """Chosen for Claude Code's sessions, the judge is the person's own Claude Code, whose settings have the
    plugin too: it is not judged itself, and leaves no session behind. Other hosts keep their judge.
    """
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
        assert asked == {"opencode": ["offline"], "claude-code": ["claude-cli"]}
        assert [s["session"] for s in daemon.call("GET", "/v1/sessions")["sessions"]] == [ran.session]
    assert [f.stem for f in (claude.config / "projects").rglob("*.jsonl")] == [ran.session]

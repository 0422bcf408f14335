"""The real hosts with proof on: wrong work goes back, right work is proved, Esc and kills end a run."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from harness.hosts.claude_code import ClaudeCode
from harness.hosts.claude_code_tui import ClaudeTui
from harness.hosts.codex import hooked, said_by, session_of, shell
from harness.hosts.codex import write as codex_write
from harness.hosts.opencode import OpencodeServe, opencode_run
from harness.machine.processes import of_a_check
from harness.machine.reflectd import Daemon, verdict_file
from harness.machine.sandbox import Sandbox
from harness.machine.waiting import wait_until
from harness.models import claude_code as claude
from harness.models.claude_code_scripts import PLUGIN
from harness.models.scripts import COMPLETE, DONE, HEADING, REQUEST
from harness.models.server import ModelServer, bash, text, write

CHECK = "python3 -m unittest -q"
TEST = "import unittest\nfrom calc import add\n\n\nclass T(unittest.TestCase):\n    def test_add(self):\n        self.assertEqual(add(2, 2), 4)\n"  # noqa: E501
GOOD, BAD = "def add(a, b):\n    return a + b\n", "def add(a, b):\n    return 0\n"
SLOW = "import time\nopen('began', 'w').close()\ntime.sleep(600)\n"
CLAIM = "All tests pass."


@pytest.fixture
def box(own_box: Sandbox) -> Sandbox:
    """A project with a test that passes."""
    (own_box.project / "calc.py").write_text(GOOD)
    (own_box.project / "test_calc.py").write_text(TEST)
    return own_box


def proving(box: Sandbox, llm: ModelServer, **more: str) -> Daemon:
    """A daemon that may prove, with a judge that believes everything."""
    llm.api(*[COMPLETE] * 6)
    return Daemon(
        box, REFLECTD_PROOF_ENABLED="true", REFLECTD_JUDGE_PROVIDER="openai",
        REFLECTD_OPENAI_BASE_URL=llm.url, **more,
    )  # fmt: skip


@pytest.fixture
def serve(box: Sandbox, llm: ModelServer) -> Iterator[tuple[OpencodeServe, Daemon]]:
    with proving(box, llm) as daemon, OpencodeServe(box, llm.url) as host:
        yield host, daemon


@pytest.mark.main("proof: a wrong one goes back, a right one is proved")
def test_opencode(serve: tuple[OpencodeServe, Daemon], llm: ModelServer) -> None:
    """The check ran before the last edit: it fails afterwards, then passes."""
    host, daemon = serve
    session = host.create_session()
    calc = str(host.box.project / "calc.py")
    llm.script(bash(CHECK), write(calc, BAD), text(CLAIM), write(calc, GOOD), text(DONE), session=session.id)
    session.prompt(REQUEST)
    _, feedback = session.wait_users(2)
    assert "test_add" in feedback["parts"][0]["text"]
    done = daemon.wait_verdict(session.id, "complete")
    assert (done["proof"]["command"], done["proof"]["exit"], done["proof"]["state"]) == (CHECK, 0, "passed")
    host.wait_toast(f"Task complete, proved by `{CHECK}`")
    assert not of_a_check(host.box.project)


def test_the_gate_of_opencode_run(box: Sandbox, llm: ModelServer) -> None:
    """The run ends only when the check passed: what failed came before its only idle."""
    calc = str(box.project / "calc.py")
    llm.script(bash(CHECK), write(calc, BAD), text(CLAIM), write(calc, GOOD), text(DONE))
    with proving(box, llm) as daemon:
        ran = opencode_run(box, llm.url, REQUEST)
        assert ran.returncode == 0, ran
        assert ran.stdout.index(CLAIM) < ran.stdout.index(DONE), ran.stdout + daemon.new_log()
        session = llm.of("main")[0].session
        done = daemon.wait_verdict(session, "complete")
        assert (done["proof"]["command"], done["proof"]["state"]) == (CHECK, "passed")
        assert "test_add" in llm.of("main", session)[3].prompt


def test_esc_in_opencode(serve: tuple[OpencodeServe, Daemon], llm: ModelServer) -> None:
    """The run ends with it, and nothing is sent."""
    host, daemon = serve
    session = host.create_session()
    test = str(host.box.project / "test_calc.py")
    llm.script(bash(CHECK), write(test, SLOW), text(CLAIM), session=session.id)
    session.prompt(REQUEST)
    wait_until((host.box.project / "began").exists, "the check", daemon.log)
    session.abort()
    wait_until(lambda: not of_a_check(host.box.project), "the end of the check", daemon.log)
    assert all(v["state"] != "complete" for v in daemon.verdicts(session.id))


def test_kill_9_of_the_daemon(box: Sandbox, llm: ModelServer) -> None:
    """No process, no worktree, no lock is left; the next daemon judges again."""
    more = {"REFLECTD_PROOF_WHERE": "worktree", "REFLECTD_PROOF_TIMEOUT_S": "20"}
    with proving(box, llm, **more) as daemon, OpencodeServe(box, llm.url) as host:
        session = host.create_session()
        began = box.root / "began"
        slow = f"import time\nopen({str(began)!r}, 'w').close()\ntime.sleep(600)\n"
        llm.script(
            bash(CHECK), write(str(box.project / "test_calc.py"), slow), text(CLAIM), session=session.id
        )
        session.prompt(REQUEST)
        wait_until(began.exists, "the check", daemon.log)
        assert of_a_check(box.root)
        daemon.kill9()
        wait_until(lambda: not of_a_check(box.root), "the end of the check", daemon.log)
        daemon.restart()
        kept = box.state / "proof"
        wait_until(lambda: not list(kept.iterdir()), "the end of the worktree", daemon.log)


@pytest.mark.needs("claude")
@pytest.mark.main("proof in Claude Code")
def test_claude_code(box: Sandbox, llm: ModelServer) -> None:
    """As in opencode; the reason is in what wakes the agent."""
    host = ClaudeCode(box, llm.url, plugin=PLUGIN)
    calc = str(box.project / "calc.py")
    llm.script(claude.bash(CHECK), claude.write(calc, BAD), text(CLAIM), claude.write(calc, GOOD), text(DONE))
    with proving(box, llm) as daemon, ClaudeTui(host) as tui:
        tui.ask(REQUEST)
        tui.wait_for(DONE)
        session = llm.of("main")[0].session
        done = daemon.wait_verdict(session, "complete")
        assert (done["proof"]["command"], done["proof"]["state"]) == (CHECK, "passed")
        sent = [r for r in llm.of("main") if HEADING in r.everything]
        assert "test_add" in sent[0].everything


@pytest.mark.needs("codex")
@pytest.mark.main("proof in Codex")
def test_codex(box: Sandbox, llm: ModelServer) -> None:
    """As in opencode."""
    llm.script(
        shell(CHECK), codex_write("calc.py", BAD), text(CLAIM), codex_write("calc.py", GOOD), text(DONE)
    )
    with proving(box, llm) as daemon:
        ran = hooked(box, llm).run(REQUEST)
        assert (ran.code, said_by(ran)) == (0, [CLAIM, DONE]), ran.stdout + daemon.new_log()
        session = session_of(ran)
        done = daemon.wait_verdict(session, "complete")
        assert (done["proof"]["command"], done["proof"]["state"]) == (CHECK, "passed")
        assert "test_add" in llm.of("main", session)[3].prompt
        assert (verdict_file(box.project, session) or {})["proof"]["exit"] == 0

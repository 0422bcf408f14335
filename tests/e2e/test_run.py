"""``opencode run``, which exits at idle: what should follow must be queued before that."""

from __future__ import annotations

import signal
import socket
from collections.abc import Iterator

import pytest

from harness.hosts.opencode import OpencodeRun, OpencodeServe, opencode_run
from harness.machine.reflectd import Daemon, verdict_file
from harness.machine.sandbox import Sandbox
from harness.machine.waiting import wait_until
from harness.models.scripts import (
    CLAIM,
    COMPLETE,
    DONE,
    HEADING,
    INCOMPLETE,
    REQUEST,
    UNDEFENDED,
    finished,
    unfinished,
)
from harness.models.server import ModelServer, slow, text, tool
from tests.e2e.conftest import JUDGE
from tests.support.machine.state import wait_ledger


def the_session(llm: ModelServer) -> str:
    """The id of the session that asked the model."""
    (session,) = {r.session for r in llm.of("main")}
    return session


@pytest.fixture
def clean(box: Sandbox) -> Sandbox:
    """The module's machine, with the tests failing again."""
    (box.project / "answer.txt").unlink(missing_ok=True)
    return box


@pytest.mark.shows("I5", "I34", "I38")
@pytest.mark.parametrize("model", ["fake/fake-1", "fakeant/fake-1"])
@pytest.mark.main("headless: opencode run")
def test_the_round_trip(clean: Sandbox, daemon: Daemon, llm: ModelServer, model: str) -> None:
    """One run prints both answers: feedback is queued before the only idle, and both rounds are judged."""
    llm.script(*unfinished(), *finished())
    ran = opencode_run(clean, llm.url, REQUEST, "--model", model)
    assert ran.returncode == 0, ran
    assert ran.stdout.index(CLAIM) < ran.stdout.index(DONE), ran
    assert llm.of("main")[3].prompt.startswith(f"{HEADING} (HIGH)\n")
    assert "reflect" not in (ran.stdout + ran.stderr).lower()
    session = the_session(llm)
    done = daemon.wait_verdict(session, "complete")
    assert [v["state"] for v in daemon.verdicts(session)] == ["complete", "incomplete"]
    assert {v["task"] for v in daemon.verdicts(session)} == {done["task"]}


@pytest.mark.shows("I11")
def test_interrupted(clean: Sandbox, daemon: Daemon, llm: ModelServer) -> None:
    """Ctrl-C while the agent works ends the run at once; nothing is sent for that task."""
    working = slow("Working")
    llm.script(*unfinished(working))
    with OpencodeRun(clean, llm.url, REQUEST) as run:
        working.wait_started()
        run.signal(signal.SIGINT)
        ran = run.wait()
    assert CLAIM not in ran.stdout
    assert len(llm.of("main")) == 3
    found = verdict_file(clean.project, the_session(llm))
    assert found is None or found["state"] in {"stopped", "error", "skipped"}, found


@pytest.mark.shows("I34", "I35")
@pytest.mark.main("headless without a daemon")
def test_without_a_daemon(own_box: Sandbox, llm: ModelServer) -> None:
    """The same words on both streams as without our plugin, the same status, no file of ours."""
    llm.script(*unfinished(), marker="with the plugin")
    llm.script(*unfinished(), marker="without a plugin")
    ours = opencode_run(own_box, llm.url, f"{REQUEST} with the plugin")
    bare = opencode_run(own_box, llm.url, f"{REQUEST} without a plugin", plugin=False)
    assert (ours.returncode, ours.stdout, ours.stderr) == (bare.returncode, bare.stdout, bare.stderr)
    assert CLAIM in ours.stdout
    assert not (own_box.project / ".reflection").exists()
    assert ours.seconds < 3 * bare.seconds + 15, "nothing is waited for"


@pytest.mark.shows("I34", "I35")
def test_with_a_daemon_that_hangs(own_box: Sandbox, llm: ModelServer) -> None:
    """Somebody listens on the socket and never answers; the run ends as usual."""
    llm.script(*unfinished())
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as deaf:
        deaf.bind(str(own_box.socket))
        deaf.listen(16)
        ran = opencode_run(own_box, llm.url, REQUEST)
    assert (ran.returncode, CLAIM in ran.stdout) == (0, True), ran
    assert "reflect" not in (ran.stdout + ran.stderr).lower()


@pytest.mark.shows("I38")
@pytest.mark.main("headless: an agent that talks before its calls")
def test_a_sentence_before_each_call_is_no_question(own_box: Sandbox, llm: ModelServer) -> None:
    """On Anthropic's wire a text is complete before the call that follows it. Only the last one is judged,
    and the agent is sent back.
    """
    talks = [tool("bash", say=f"Step {n}.", command="make test || true", description="s") for n in range(4)]
    llm.script(*talks, text(CLAIM), *finished())
    llm.judge(INCOMPLETE, UNDEFENDED, always=COMPLETE)
    with Daemon(own_box, REFLECTD_JUDGE_PROVIDER="host") as daemon:
        ran = opencode_run(own_box, llm.url, REQUEST, "--model", "fakeant/fake-1")
        daemon.wait_verdict(the_session(llm), "complete")
    assert (ran.returncode, DONE in ran.stdout) == (0, True), ran
    assert any(r.prompt.startswith(HEADING) for r in llm.of("main"))
    assert len(llm.of("judge")) == 3, "no call is paid for a text in mid-turn"


# --- a model as the judge: its session lives inside a process that wants to end --------------------------


@pytest.fixture
def modelled(daemon: Daemon) -> Iterator[Daemon]:
    """The module's daemon, which asks a model of the host."""
    daemon.restart(REFLECTD_JUDGE_PROVIDER="host", REFLECTD_FAST_MODELS="fake-1,fake-2")
    yield daemon
    daemon.restart(**JUDGE.env)


def only_the_session_is_left(box: Sandbox, daemon: Daemon, llm: ModelServer) -> None:
    """I37: what opencode lists afterwards: the person's session and none of the judge's."""
    judges = {r.session for r in llm.of("judge")}
    with OpencodeServe(box, llm.url) as later:
        wait_until(
            lambda: the_session(llm) in (ids := {s["id"] for s in later.sessions()}) and not judges & ids,
            "list without judge sessions",
            later.sessions,
        )
        wait_until(lambda: daemon.status()["instances"], "hello from the shim", daemon.log)


@pytest.mark.shows("I5", "I27", "I34", "I37", "I38")
@pytest.mark.main("the gate of opencode run")
def test_the_gate(clean: Sandbox, modelled: Daemon, llm: ModelServer) -> None:
    """Both looks happen before the only idle, without a tool, and leave no judge session."""
    llm.script(*unfinished(), *finished())
    llm.judge(INCOMPLETE, UNDEFENDED, COMPLETE)
    ran = opencode_run(clean, llm.url, REQUEST)
    assert ran.returncode == 0, ran
    assert ran.stdout.index(CLAIM) < ran.stdout.index(DONE), ran
    assert "reflect" not in (ran.stdout + ran.stderr).lower()
    assert llm.of("main")[3].prompt.startswith(f"{HEADING} (HIGH)\n")
    session = the_session(llm)
    modelled.wait_verdict(session, "complete")
    assert [v["state"] for v in modelled.verdicts(session)] == ["complete", "incomplete"]
    for asked in llm.of("judge"):
        assert (asked.tools, [m["role"] for m in asked.body["messages"]]) == ([], ["system", "user"])
    wait_ledger(
        clean, session, ("judge", "host", "ok"), ("judge.second", "host", "ok"), ("judge", "host", "ok")
    )
    only_the_session_is_left(clean, modelled, llm)


@pytest.mark.shows("I21", "I35", "I37")
def test_a_judge_slower_than_the_gate(clean: Sandbox, modelled: Daemon, llm: ModelServer) -> None:
    """The run waits as long as it was told to; the call ends with it, and its session goes."""
    thinking, more = slow("Hm"), slow("Hm hm")
    llm.script(*unfinished())
    llm.judge(thinking, more)
    ran = opencode_run(clean, llm.url, REQUEST)
    assert (ran.returncode, CLAIM in ran.stdout, DONE in ran.stdout) == (0, True, False), ran
    thinking.wait_hung_up()
    assert len(llm.of("main")) == 3
    session = the_session(llm)
    found = wait_until(lambda: modelled.verdicts(session), "a verdict", modelled.new_log)
    assert [v["complete"] for v in found] == [False]
    assert found[0]["state"] in {"unscored", "error"}
    only_the_session_is_left(clean, modelled, llm)

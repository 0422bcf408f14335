"""``opencode run`` with a model as the judge: the judge session lives inside a process that wants to end."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from harness.hosts.opencode import OpencodeServe, opencode_run
from harness.machine.reflectd import Daemon
from harness.machine.waiting import wait_until
from harness.models.scripts import (
    CLAIM,
    COMPLETE,
    DEFENDED,
    DONE,
    HEADING,
    INCOMPLETE,
    REQUEST,
    UNDEFENDED,
    finished,
    unfinished,
)
from harness.models.server import slow
from tests.support.machine.state import wait_ledger

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harness.machine.sandbox import Sandbox
    from harness.models.server import ModelServer


@pytest.fixture(scope="module")
def module_daemon(box: Sandbox) -> Iterator[Daemon]:
    with Daemon(box, REFLECTD_JUDGE_PROVIDER="host") as running:
        yield running


@pytest.fixture
def clean(box: Sandbox) -> Sandbox:
    """The module's machine, with the tests failing again."""
    (box.project / "answer.txt").unlink(missing_ok=True)
    return box


def the_session(llm: ModelServer) -> str:
    """The id of the session that asked the model."""
    (session,) = {r.session for r in llm.of("main")}
    return session


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
def test_the_round_trip(clean: Sandbox, daemon: Daemon, llm: ModelServer) -> None:
    """Both looks happen before the only idle; the same run prints both answers. Every judge saw one system
    message and no tool, and no judge session stays.
    """
    llm.script(*unfinished(), *finished())
    llm.judge(INCOMPLETE, UNDEFENDED, COMPLETE)
    ran = opencode_run(clean, llm.url, REQUEST)
    assert ran.returncode == 0, ran
    assert ran.stdout.index(CLAIM) < ran.stdout.index(DONE), ran
    assert "reflect" not in (ran.stdout + ran.stderr).lower()
    assert llm.of("main")[3].prompt.startswith(f"{HEADING} (HIGH)\n")
    session = the_session(llm)
    daemon.wait_verdict(session, "complete")
    assert [v["state"] for v in daemon.verdicts(session)] == ["complete", "incomplete"]
    for asked in llm.of("judge"):
        assert (asked.tools, [m["role"] for m in asked.body["messages"]]) == ([], ["system", "user"])
    wait_ledger(
        clean, session, ("judge", "host", "ok"), ("judge.second", "host", "ok"), ("judge", "host", "ok")
    )
    only_the_session_is_left(clean, daemon, llm)


@pytest.mark.shows("I2", "I21")
def test_a_defended_stop_just_ends(clean: Sandbox, daemon: Daemon, llm: ModelServer) -> None:
    """Judged once for gate and idle together, nothing is sent, the verdict is there at the end."""
    llm.script(*finished())
    llm.judge(INCOMPLETE, DEFENDED)
    ran = opencode_run(clean, llm.url, REQUEST)
    assert (ran.returncode, DONE in ran.stdout) == (0, True), ran
    daemon.wait_verdict(the_session(llm), "complete")
    assert (len(llm.of("judge")), len(llm.of("main"))) == (2, 3)


@pytest.mark.shows("I21", "I35", "I37")
def test_a_judge_slower_than_the_gate(clean: Sandbox, daemon: Daemon, llm: ModelServer) -> None:
    """The run waits as long as it was told to and ends as it would without us. The call ends with it, the
    turn is closed, and the judge session does not stay.
    """
    daemon.restart(REFLECTD_RUN_GATE_TIMEOUT_S="10")  # the judge is asked within it, on a busy machine too
    try:
        thinking, more = slow("Hm"), slow("Hm hm")
        llm.script(*unfinished())
        llm.judge(thinking, more)
        ran = opencode_run(clean, llm.url, REQUEST)
        assert (ran.returncode, CLAIM in ran.stdout, DONE in ran.stdout) == (0, True, False), ran
        thinking.wait_hung_up()
        assert len(llm.of("main")) == 3
        session = the_session(llm)
        found = wait_until(lambda: daemon.verdicts(session), "a verdict", daemon.new_log)
        assert [v["complete"] for v in found] == [False]
        assert found[0]["state"] in {"unscored", "error"}
        only_the_session_is_left(clean, daemon, llm)
    finally:
        daemon.restart(REFLECTD_RUN_GATE_TIMEOUT_S="20")

"""The daemon is killed and the real opencode goes on as if nothing were; or opencode itself is killed."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator

import pytest

from harness.hosts.opencode import OpencodeServe, Session, text_of
from harness.machine.reflectd import Daemon, verdict_file
from harness.machine.sandbox import Sandbox
from harness.machine.waiting import wait_until
from harness.models.scripts import COMPLETE, INCOMPLETE, REQUEST, UNDEFENDED, finished, unfinished
from harness.models.server import ModelServer, slow, text
from tests.e2e.conftest import JUDGE
from tests.support.hosts.witness import quiet
from tests.support.machine.state import wait_ledger

KILLS = 6


@pytest.fixture
def daemon(module_daemon: Daemon) -> Iterator[Daemon]:
    """The module's daemon, running at the start of each test whatever the last one did to it."""
    module_daemon.mark()
    if not module_daemon.running:
        module_daemon.start()
    yield module_daemon
    module_daemon.kill9()
    module_daemon.new_log()


def connected(host: OpencodeServe, daemon: Daemon) -> None:
    """Until the shim has said hello to this daemon."""
    host.sessions()  # the first request loads the plugin
    wait_until(lambda: daemon.status()["instances"], "hello from the shim", daemon.log)


@pytest.mark.shows("I1", "I37", "I42")
@pytest.mark.main("crash of the daemon")
def test_killed_while_judging(host: OpencodeServe, daemon: Daemon, llm: ModelServer) -> None:
    """SIGKILL while the judge thinks: judged again once, one feedback, and no judge session is left."""
    daemon.restart(REFLECTD_JUDGE_PROVIDER="host")
    try:
        connected(host, daemon)
        session, lost, again = host.create_session(), slow("Hm"), slow("Hm again")
        llm.script(*unfinished(), *finished(), session=session.id)
        llm.judge(lost, again, UNDEFENDED, COMPLETE)
        session.prompt(REQUEST)
        lost.wait_started()
        daemon.kill9()
        daemon.start()
        again.wait_started()
        lost.wait_hung_up()  # or opencode would ask once more
        again.release(INCOMPLETE)
        daemon.wait_verdict(session.id, "complete")
        quiet(session, daemon, llm, users=2)
        assert len(llm.of("judge")) == 4
        judges = {r.session for r in llm.of("judge")}
        wait_until(
            lambda: not judges & {s["id"] for s in host.sessions()},
            "end of the judge sessions",
            host.sessions,
        )
        assert all(verdict_file(host.box.project, judge) is None for judge in judges)
    finally:
        daemon.restart(**JUDGE.env)


@pytest.mark.shows("I35", "I42")
@pytest.mark.parametrize("moment", range(KILLS))
def test_killed_at_any_moment(host: OpencodeServe, daemon: Daemon, llm: ModelServer, moment: int) -> None:
    """SIGKILL around the idle, then a restart: one feedback, no more and no less."""
    connected(host, daemon)
    session = host.create_session()
    llm.script(*unfinished(), *finished(), session=session.id)
    session.prompt(REQUEST)
    time.sleep(moment * 0.015)
    daemon.kill9()
    daemon.start()
    daemon.wait_verdict(session.id, "complete")
    session.wait_idle()
    assert len(session.users()) == 2, session.outline()


@pytest.mark.shows("I34", "I35")
@pytest.mark.main("a dead daemon is not felt")
def test_a_dead_daemon_is_not_felt(host: OpencodeServe, daemon: Daemon, llm: ModelServer) -> None:
    """Turns go on at their usual speed, nothing is printed, and the next daemon judges what it missed."""
    connected(host, daemon)

    def two_turns() -> tuple[Session, float]:
        session = host.create_session()
        llm.script(text("One."), text("Two."), session=session.id)
        began = time.monotonic()
        session.prompt("Say one")
        assert text_of(session.prompt("Say two")) == "Two."
        return session, time.monotonic() - began

    _, usual = two_turns()
    daemon.kill9()
    session, took = two_turns()
    assert took < 10 * usual + 10  # a call that waits for the daemon's answer would take minutes
    assert len(session.users()) == 2
    daemon.start()
    daemon.wait_verdict(session.id, "complete")


def listed(host: OpencodeServe) -> set[str]:
    return {s["id"] for s in host.sessions()}


@pytest.mark.shows("I1", "I21", "I37")
@pytest.mark.main("crash of the host")
def test_opencode_killed_while_judging(own_box: Sandbox, llm: ModelServer) -> None:
    """The turn is passed over; the next opencode has no judge session and leaves the person's alone."""
    thinking = slow("Hm")
    with Daemon(own_box, REFLECTD_JUDGE_PROVIDER="host") as daemon:
        with OpencodeServe(own_box, llm.url) as first:
            session = first.create_session()
            llm.script(*unfinished(), session=session.id)
            llm.judge(thinking)
            session.prompt(REQUEST)
            thinking.wait_started()
            os.killpg(first.pid, signal.SIGKILL)
        thinking.wait_hung_up()
        (asked,) = llm.of("judge")
        assert daemon.wait_verdict(session.id, "skipped")["reason"] == "guard:host_gone"
        wait_ledger(own_box, session.id, ("judge", "host", "error"))
        with OpencodeServe(own_box, llm.url) as second:
            assert session.id in listed(second)
            wait_until(lambda: asked.session not in listed(second), "end of the judge session", daemon.log)
            left = Session(second, session.id)
            quiet(left, daemon, llm, users=1)
            assert len(llm.of("judge")) == 1
            assert daemon.session(asked.session) == {}
        daemon.new_log()

"""The daemon is killed, restarted, late or not there at all; the real opencode goes on as if nothing were.

One ``serve`` outlives the daemons of this module.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from harness.hosts.opencode import OpencodeServe, Session, text_of
from harness.machine.reflectd import Daemon, verdict_file
from harness.machine.waiting import wait_until
from harness.models.scripts import COMPLETE, INCOMPLETE, REQUEST, UNDEFENDED, finished, unfinished
from harness.models.server import ModelServer, slow, text
from tests.support.hosts.witness import quiet

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
        daemon.restart(REFLECTD_JUDGE_PROVIDER="offline")


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
    daemon.wait_verdict(session.id, "unscored")

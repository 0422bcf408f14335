"""The daemon is killed, restarted, late or not there at all; the real opencode goes on as if nothing were.

One ``serve`` outlives the daemons of this module.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from harness.hosts.opencode import OpencodeServe, Session, text_of
from harness.machine.reflectd import Daemon, alias_file, verdict_file
from harness.machine.waiting import wait_until
from harness.models.scripts import COMPLETE, INCOMPLETE, REQUEST, UNDEFENDED, finished, unfinished
from harness.models.server import slow, text
from tests.support.hosts.witness import quiet

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harness.machine.sandbox import Sandbox
    from harness.models.server import ModelServer

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
    """SIGKILL while the judge thinks; the restarted daemon judges the turn again once and sends one feedback.
    The judge session of the dead daemon is neither judged nor left behind.
    """
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
    """SIGKILL at some moment around the idle, then a restart: one feedback, no more and no less, and the task
    is completed.
    """
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


@pytest.mark.shows("I8", "I42", "GUARD-6")
def test_guards_survive_a_restart(host: OpencodeServe, daemon: Daemon, llm: ModelServer) -> None:
    """Two rounds without progress stop the task although each round met another daemon."""
    connected(host, daemon)
    session, second, third = host.create_session(), slow("Trying"), slow("Trying again")
    llm.script(*unfinished(), *unfinished(second), *unfinished(third), session=session.id)
    session.prompt(REQUEST)
    for attempt in (second, third):
        attempt.wait_started()
        daemon.kill9()
        daemon.start()
        connected(host, daemon)
        attempt.release("and done.")
    daemon.wait_verdict(session.id, "stopped")
    host.wait_toast("Stopped")
    quiet(session, daemon, llm, users=3)


@pytest.mark.shows("I35")
def test_restarted_in_the_middle_of_a_turn(host: OpencodeServe, daemon: Daemon, llm: ModelServer) -> None:
    """The turn begins under one daemon, ends under none and is judged by the next: the events of the gap are
    replayed, once.
    """
    connected(host, daemon)
    session, working = host.create_session(), slow("Working")
    llm.script(*unfinished(working), *finished(), session=session.id)
    session.prompt_async(REQUEST)
    working.wait_started()
    daemon.kill9()
    working.release("All done.")
    session.wait_idle()
    daemon.start()
    daemon.wait_verdict(session.id, "complete")
    assert len(session.users()) == 2
    assert [v["state"] for v in daemon.verdicts(session.id)] == ["complete", "incomplete"]


@pytest.mark.shows("I11", "I35")
def test_aborted_while_the_daemon_was_away(host: OpencodeServe, daemon: Daemon, llm: ModelServer) -> None:
    """An Esc that only the buffer saw still counts."""
    connected(host, daemon)
    session, working = host.create_session(), slow("Working")
    llm.script(*unfinished(working), session=session.id)
    session.prompt_async(REQUEST)
    working.wait_started()
    daemon.kill9()
    session.abort()
    session.wait_idle()
    daemon.start()
    daemon.wait_verdict(session.id, "stopped")
    quiet(session, daemon, llm, users=1)


@pytest.mark.shows("I34", "I35")
@pytest.mark.main("a dead daemon is not felt")
def test_a_dead_daemon_is_not_felt(host: OpencodeServe, daemon: Daemon, llm: ModelServer) -> None:
    """After a crash turns go on, at their usual speed, and nothing is printed; the next daemon judges what it
    missed.
    """
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


@pytest.mark.shows("I22", "I34", "I35")
def test_no_daemon_at_all_and_then_one(own_box: Sandbox, llm: ModelServer) -> None:
    """opencode starts and works without a daemon, silently and without a file of ours. A daemon that comes
    later judges what ended in the meantime. As it is the only session, readers of the alias hear of it.
    """
    with OpencodeServe(own_box, llm.url) as host:
        session = host.create_session()
        llm.script(*unfinished(), session=session.id)
        assert text_of(session.prompt(REQUEST)) == "All done."
        assert not (own_box.project / ".reflection").exists()
        assert host.printed_since_ready() == ""
        llm.script(*finished(), session=session.id)
        with Daemon(own_box) as late:
            done = late.wait_verdict(session.id, "complete")
            assert len(session.users()) == 2
            alias = alias_file(own_box.project, session.id)
            assert alias is not None
            assert (alias["complete"], alias["timestamp"]) == (True, done["timestamp"])
        assert host.printed_since_ready() == ""

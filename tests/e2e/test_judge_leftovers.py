"""opencode is killed while a judge session runs in it: what it leaves is swept by the next one.

(The daemon's own death is in ``test_crash``.) Several hosts at once are here too.
"""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

import pytest

from harness.hosts.opencode import OpencodeServe, Session
from harness.machine.reflectd import Daemon
from harness.machine.sandbox import MODEL, sandbox
from harness.machine.waiting import wait_until
from harness.models.scripts import COMPLETE, DONE, INCOMPLETE, REQUEST, UNDEFENDED, finished, unfinished
from harness.models.server import bash, slow, text
from tests.support.hosts.witness import a_later_turn, quiet
from tests.support.machine.state import wait_ledger

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harness.machine.sandbox import Sandbox
    from harness.models.server import ModelServer


@pytest.fixture(scope="module")
def module_daemon(box: Sandbox) -> Iterator[Daemon]:
    with Daemon(box, REFLECTD_JUDGE_PROVIDER="host") as running:
        yield running


def kill9(host: OpencodeServe) -> None:
    os.killpg(host.pid, signal.SIGKILL)


def listed(host: OpencodeServe) -> set[str]:
    return {s["id"] for s in host.sessions()}


@pytest.mark.shows("I1", "I21", "I37")
@pytest.mark.main("crash of the host")
def test_opencode_killed_while_judging(box: Sandbox, daemon: Daemon, llm: ModelServer) -> None:
    """The turn is passed over, the call in the ledger; the next opencode's list has no judge session, the
    daemon still does not judge it, and the person's session is left alone.
    """
    thinking = slow("Hm")
    with OpencodeServe(box, llm.url) as first:
        session = first.create_session()
        llm.script(*unfinished(), session=session.id)
        llm.judge(thinking)
        session.prompt(REQUEST)
        thinking.wait_started()
        kill9(first)
    thinking.wait_hung_up()
    (asked,) = llm.of("judge")
    assert daemon.wait_verdict(session.id, "skipped")["reason"] == "guard:host_gone"
    wait_ledger(box, session.id, ("judge", "host", "error"))
    with OpencodeServe(box, llm.url) as second:
        assert session.id in listed(second)
        wait_until(lambda: asked.session not in listed(second), "end of the judge session", daemon.log)
        left = Session(second, session.id)
        quiet(left, daemon, llm, users=1)
        assert len(llm.of("judge")) == 1
        assert daemon.session(asked.session) == {}


@pytest.mark.shows("I37")
def test_a_judge_session_in_use_is_not_swept(box: Sandbox, daemon: Daemon, llm: ModelServer) -> None:
    """A second opencode of the same folder comes while the first one's judge thinks: that session is
    somebody's, and its verdict counts.
    """
    thinking, second_look = slow("Hm"), slow("Hm hm")
    (box.project / "answer.txt").unlink(missing_ok=True)
    with OpencodeServe(box, llm.url) as first:
        session = first.create_session(model=MODEL)
        llm.script(*unfinished(), *finished(), session=session.id)
        llm.judge(thinking, second_look, COMPLETE)
        session.prompt(REQUEST)
        thinking.wait_started()
        with OpencodeServe(box, llm.url) as other:
            other.sessions()  # the first request loads the plugin
            wait_until(lambda: len(daemon.status()["instances"]) == 2, "two hosts", daemon.log)
            a_later_turn(other, daemon, llm)
            assert {r.session for r in llm.of("judge")} <= listed(other)
            thinking.release(INCOMPLETE)
            second_look.wait_started()
            a_later_turn(other, daemon, llm)
            assert llm.of("judge")[1].session in listed(other)
            second_look.release(UNDEFENDED)
            daemon.wait_verdict(session.id, "complete")
            assert len(session.feedback()) == 1
            judges = {r.session for r in llm.of("judge")}
            wait_until(lambda: not judges & listed(other), "end of the judge sessions", other.sessions)


@pytest.mark.shows("I37")
def test_a_session_of_that_name_is_a_persons(box: Sandbox, daemon: Daemon, llm: ModelServer) -> None:
    """What we did not announce is not ours to delete, whatever its title."""
    with OpencodeServe(box, llm.url) as first:
        mine = first.create_session(title="[reflectd judge]")
        llm.script(text("Hello."), session=mine.id)
        mine.prompt("Say hello")
    with OpencodeServe(box, llm.url) as second:
        second.sessions()
        wait_until(lambda: daemon.status()["instances"], "hello from the shim", daemon.log)
        a_later_turn(second, daemon, llm)
        assert mine.id in listed(second)
    assert not llm.of("judge")


@pytest.mark.shows("I21")
def test_three_hosts_at_once(box: Sandbox, daemon: Daemon, llm: ModelServer) -> None:
    """Two processes in one project and one in another, all asked at once: each turn is judged."""
    shared = {"REFLECTD_SOCKET": str(box.socket), "REFLECTD_STATE_DIR": str(box.state)}
    with (
        sandbox(**shared) as other,
        OpencodeServe(box, llm.url) as first,
        OpencodeServe(box, llm.url) as second,
        OpencodeServe(other, llm.url) as third,
    ):
        sessions = [host.create_session() for host in (first, first, second, third)]
        for session in sessions:
            llm.script(bash("echo 42 > answer.txt && make test"), text(DONE), session=session.id)
        llm.judge(always=COMPLETE)
        for session in sessions:
            session.prompt_async(REQUEST)
        for session in sessions:
            wait_until(lambda s=session: daemon.verdicts(s.id), "a verdict", daemon.new_log)
        assert {v["state"] for session in sessions for v in daemon.verdicts(session.id)} == {"complete"}

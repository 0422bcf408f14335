"""opencode is killed while a judge session runs in it: what it leaves is swept by the next one."""

from __future__ import annotations

import os
import signal

import pytest

from harness.hosts.opencode import OpencodeServe, Session
from harness.machine.reflectd import Daemon
from harness.machine.sandbox import Sandbox
from harness.machine.waiting import wait_until
from harness.models.scripts import REQUEST, unfinished
from harness.models.server import ModelServer, slow
from tests.support.hosts.witness import quiet
from tests.support.machine.state import wait_ledger

SETTINGS = {"REFLECTD_JUDGE_PROVIDER": "host"}


def listed(host: OpencodeServe) -> set[str]:
    return {s["id"] for s in host.sessions()}


@pytest.mark.shows("I1", "I21", "I37")
@pytest.mark.main("crash of the host")
def test_opencode_killed_while_judging(box: Sandbox, daemon: Daemon, llm: ModelServer) -> None:
    """The turn is passed over; the next opencode has no judge session and leaves the person's alone."""
    thinking = slow("Hm")
    with OpencodeServe(box, llm.url) as first:
        session = first.create_session()
        llm.script(*unfinished(), session=session.id)
        llm.judge(thinking)
        session.prompt(REQUEST)
        thinking.wait_started()
        os.killpg(first.pid, signal.SIGKILL)
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

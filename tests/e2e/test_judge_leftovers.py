"""opencode is killed while a judge session runs in it: what it leaves is swept by the next one.

(The daemon's own death is in ``test_crash``.)
"""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

import pytest

from tests.support.model_server import slow, text
from tests.support.opencode import OpencodeServe, Session
from tests.support.reflectd import Daemon
from tests.support.sandbox import MODEL
from tests.support.scripts import COMPLETE, INCOMPLETE, REQUEST, UNDEFENDED, finished, unfinished
from tests.support.state import wait_ledger
from tests.support.waiting import stays, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.model_server import ModelServer
    from tests.support.sandbox import Sandbox


@pytest.fixture(scope="module")
def module_daemon(box: Sandbox) -> Iterator[Daemon]:
    with Daemon(box, REFLECTD_JUDGE_PROVIDER="host") as running:
        yield running


def kill9(host: OpencodeServe) -> None:
    os.killpg(host.pid, signal.SIGKILL)


def listed(host: OpencodeServe) -> set[str]:
    return {s["id"] for s in host.sessions()}


def test_opencode_killed_while_judging(box: Sandbox, daemon: Daemon, llm: ModelServer) -> None:
    """I37, I21, I1: the turn ends unscored, the call in the ledger; the next opencode's list has no judge
    session, the daemon still does not judge it, and the person's session is left alone.
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
    daemon.wait_verdict(session.id, "unscored")
    wait_ledger(box, session.id, ("judge", "host", "error"))
    with OpencodeServe(box, llm.url) as second:
        assert session.id in listed(second)
        wait_until(lambda: asked.session not in listed(second), 15, "end of the judge session", daemon.log)
        left = Session(second, session.id)
        stays(lambda: len(left.users()) == 1, 0.7, "one user message")
        assert len(llm.of("judge")) == 1
        assert daemon.session(asked.session) == {}


def test_a_judge_session_in_use_is_not_swept(box: Sandbox, daemon: Daemon, llm: ModelServer) -> None:
    """I37: a second opencode of the same folder comes while the first one's judge thinks: that session is
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
            wait_until(lambda: len(daemon.status()["instances"]) == 2, 15, "two hosts", daemon.log)
            stays(lambda: {r.session for r in llm.of("judge")} <= listed(other), 0.7, "the judge session")
            thinking.release(INCOMPLETE)
            second_look.wait_started()
            stays(lambda: llm.of("judge")[1].session in listed(other), 0.3, "the second judge session")
            second_look.release(UNDEFENDED)
            daemon.wait_verdict(session.id, "complete")
            assert len(session.feedback()) == 1
            judges = {r.session for r in llm.of("judge")}
            wait_until(lambda: not judges & listed(other), 10, "end of the judge sessions", other.sessions)


def test_a_session_of_that_name_is_a_persons(box: Sandbox, daemon: Daemon, llm: ModelServer) -> None:
    """I37: what we did not announce is not ours to delete, whatever its title."""
    with OpencodeServe(box, llm.url) as first:
        mine = first.create_session(title="[reflectd judge]")
        llm.script(text("Hello."), session=mine.id)
        mine.prompt("Say hello")
    with OpencodeServe(box, llm.url) as second:
        second.sessions()
        wait_until(lambda: daemon.status()["instances"], 15, "hello from the shim", daemon.log)
        stays(lambda: mine.id in listed(second), 0.7, "the person's session")
    assert not llm.of("judge")

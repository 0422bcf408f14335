"""Life after a compaction of the real opencode that a person asked for."""

from __future__ import annotations

import json
import threading

import pytest

from harness.hosts.opencode import OpencodeServe, Session, text_of
from harness.machine.reflectd import Daemon
from harness.machine.sandbox import MODEL
from harness.machine.waiting import PATIENCE_S, wait_until
from harness.models.scripts import (
    CLAIM,
    COMPLETE,
    DONE,
    HEADING,
    INCOMPLETE,
    REQUEST,
    UNDEFENDED,
    nonce_of,
    unfinished,
)
from harness.models.server import SUMMARY, ModelServer, Request, bash, slow, text
from tests.support.hosts.witness import quiet

SETTINGS = {"REFLECTD_JUDGE_PROVIDER": "host"}


def look(request: Request) -> str:
    """What the model says after a compaction."""
    said = {"reason": "scripted", "confidence": 0.9, "message": "The tests come next."}
    return json.dumps({"nonce": nonce_of(request), "action": "continue_task", **said})


def nudged(session: Session) -> list[str]:
    """The continuations that reached the agent."""
    return [said for m in session.feedback() if not (said := text_of(m)).startswith(HEADING)]


@pytest.mark.shows("I4", "I5", "I32")
@pytest.mark.main("carried over a compaction")
def test_a_person_compacts_unfinished_work(host: OpencodeServe, daemon: Daemon, llm: ModelServer) -> None:
    """`/compact` while the agent works on feedback: it is helped on once, and judged as the same task."""
    session, working = host.create_session(), slow("Looking at it")
    fixing = [bash("echo 42 > answer.txt && make test"), text(DONE)]
    llm.script(*unfinished(), working, *fixing, session=session.id)
    llm.judge(INCOMPLETE, UNDEFENDED, look, COMPLETE)
    session.prompt(REQUEST)
    working.wait_started()
    asked = threading.Thread(target=session.summarize, args=(MODEL,))
    asked.start()
    wait_until(lambda: len(session.users()) == 3, "the compaction's own message", session.outline)
    assert session.busy()
    working.release("now.")
    asked.join(PATIENCE_S)
    wait_until(lambda: nudged(session), "nudge", lambda: f"{session.outline()}\n{daemon.new_log()[-4000:]}")
    (nudge,) = nudged(session)
    assert nudge.startswith("## Reflection-3: Continue after compaction")
    for part in (f"> {REQUEST}", "- the tests do not pass", "The tests come next."):
        assert part in nudge
    done = daemon.wait_verdict(session.id, "complete")
    assert done["task"] == session.users()[0]["info"]["id"]
    assert [v["state"] for v in daemon.verdicts(session.id)] == ["complete", "incomplete"]
    heard = llm.of("main", session.id)[-2]
    assert SUMMARY in heard.everything
    assert CLAIM not in heard.everything
    assert heard.prompt == nudge
    assert "Looking at it" in llm.of("judge")[2].prompt
    quiet(session, daemon, llm, users=4)

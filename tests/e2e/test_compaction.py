"""Life after a compaction of the real opencode: a person's, the host's own, one that nothing follows."""

from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING, Any

import pytest

from harness.hosts.opencode import OpencodeServe, text_of
from harness.machine.reflectd import verdict_file
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
    finished,
    nonce_of,
    unfinished,
)
from harness.models.server import SUMMARY, bash, slow, text, write
from tests.support.hosts.witness import a_later_turn, quiet
from tests.support.machine.shifted import ShiftedDaemon
from tests.support.machine.state import ledger, wait_ledger

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from harness.hosts.opencode import Session
    from harness.machine.reflectd import Daemon
    from harness.machine.sandbox import Sandbox
    from harness.models.server import ModelServer, Request

CONTINUE = "## Reflection-3: Continue after compaction"
LOOK_S = 5  # the look comes 2 s after the compaction
FULL = 199_500  # of 200,000 tokens
PULL = "https://github.com/acme/shop/pull/12"
GH = """\
#!/bin/sh
echo "$*" >> "$(dirname "$0")/gh.log"
case "$1 $2" in "pr create") echo "{pull}";; "pr comment") echo "{pull}#issuecomment-1";; esac
"""
STAY = """\
import {{ existsSync }} from "node:fs"
const server = async () => ({{
  "experimental.compaction.autocontinue": async (_input, output) => {{
    if (existsSync("{flag}")) output.enabled = false
  }},
}})
export default {{ id: "stay", server }}
"""


@pytest.fixture(scope="module")
def module_daemon(box: Sandbox) -> Iterator[ShiftedDaemon]:
    with ShiftedDaemon(box, REFLECTD_JUDGE_PROVIDER="host", REFLECTD_COMPACTION_GITHUB="true") as running:
        yield running


@pytest.fixture(scope="module")
def module_host(box: Sandbox, module_daemon: Daemon, model_server: ModelServer) -> Iterator[OpencodeServe]:
    """With a ``gh`` that reaches nobody, and a plugin that forbids the host's own "continue" when told so."""
    gh = box.root / "bin" / "gh"
    gh.parent.mkdir()
    gh.write_text(GH.format(pull=PULL), encoding="utf-8")
    gh.chmod(0o755)
    plugin = box.home / ".config" / "opencode" / "plugins" / "stay.js"
    plugin.parent.mkdir(parents=True)
    plugin.write_text(STAY.format(flag=box.root / "stay"), encoding="utf-8")
    with OpencodeServe(box, model_server.url, PATH=f"{gh.parent}:{box.env()['PATH']}") as running:
        yield running


@pytest.fixture
def stay(host: OpencodeServe) -> Iterator[None]:
    """The host does not go on by itself after its own compaction."""
    flag = host.box.root / "stay"
    flag.touch()
    yield
    flag.unlink()


def look(action: str, message: str = "The tests come next.") -> Callable[[Request], str]:
    """What the model says after a compaction."""

    def reply(request: Request) -> str:
        answer: dict[str, Any] = {"reason": "scripted", "nonce": nonce_of(request), "action": action}
        return json.dumps(answer | {"confidence": 0.9, "message": message})

    return reply


def nudged(session: Session) -> list[str]:
    """The continuations that reached the agent."""
    return [said for m in session.feedback() if not (said := text_of(m)).startswith(HEADING)]


def wait_nudge(session: Session, daemon: Daemon) -> str:
    wait_until(lambda: nudged(session), "nudge", lambda: f"{session.outline()}\n{daemon.new_log()[-4000:]}")
    (nudge,) = nudged(session)
    return nudge


@pytest.mark.shows("I4", "I5", "I32")
@pytest.mark.main("carried over a compaction")
def test_a_person_compacts_unfinished_work(host: OpencodeServe, daemon: Daemon, llm: ModelServer) -> None:
    """`/compact` while the agent works on feedback. The host compacts when that answer is there and stops;
    the agent is helped on once, knows the request again, and what it does then is judged.
    """
    session, working = host.create_session(), slow("Looking at it")
    fixing = [bash("echo 42 > answer.txt && make test"), text(DONE)]
    llm.script(*unfinished(), working, *fixing, session=session.id)
    llm.judge(INCOMPLETE, UNDEFENDED, look("continue_task"), COMPLETE)
    session.prompt(REQUEST)
    working.wait_started()
    asked = threading.Thread(target=session.summarize, args=(MODEL,))
    asked.start()
    wait_until(lambda: len(session.users()) == 3, "the compaction's own message", session.outline)
    assert session.busy()
    working.release("now.")
    asked.join(PATIENCE_S)
    nudge = wait_nudge(session, daemon)
    assert nudge.startswith(CONTINUE)
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


@pytest.mark.shows("I2", "I7")
def test_a_person_compacts_finished_work(host: OpencodeServe, daemon: Daemon, llm: ModelServer) -> None:
    """A toast, no model is asked, and nothing reaches the agent."""
    session = host.create_session()
    llm.script(*finished(), session=session.id)
    llm.judge(COMPLETE)
    session.prompt(REQUEST)
    done = daemon.wait_verdict(session.id, "complete")
    session.summarize(MODEL)
    assert host.wait_toast("Context compacted: the task was complete before")["variant"] == "success"
    a_later_turn(host, daemon, llm)
    assert not session.feedback()
    wait_ledger(host.box, session.id, ("judge", "host", "ok"))
    assert verdict_file(host.box.project, session.id) == done


@pytest.mark.shows("I10", "I32")
def test_the_host_goes_on_by_itself(host: OpencodeServe, daemon: Daemon, llm: ModelServer) -> None:
    """The context overflows, the host compacts and continues, and still works when we look: we send nothing,
    and what follows is judged, once, as the same task.
    """
    session, working = host.create_session(), slow("Going on")
    llm.script(*unfinished(text("Half of it.", tokens_in=FULL)), working, session=session.id)
    llm.script(bash("echo 42 > answer.txt && make test"), text(DONE), session=session.id)
    llm.judge(INCOMPLETE, UNDEFENDED, COMPLETE)
    session.prompt_async(REQUEST)
    host.events.wait("session.compacted", session.id)
    working.wait_started()
    wait_until(lambda: 'guard=busy reason="the agent works again"' in daemon.new_log(), "look", daemon.log)
    assert not llm.of("judge")
    working.release("now.")
    done = daemon.wait_verdict(session.id, "complete")
    assert done["task"] == session.users()[0]["info"]["id"]
    assert [v["state"] for v in daemon.verdicts(session.id)] == ["complete", "incomplete"]
    assert nudged(session) == []
    assert [t["message"] for t in host.toasts()] == ["Task complete"]


@pytest.mark.shows("I26", "I32")
@pytest.mark.usefixtures("stay")
def test_public_work_is_updated(host: OpencodeServe, daemon: Daemon, llm: ModelServer) -> None:
    """The host compacts by itself and stops. A pull request that a command printed is named to the agent,
    which writes to it with the real shell tool; the turn after it is judged.
    """
    session, log = host.create_session(), host.box.root / "bin" / "gh.log"
    comment = "gh pr comment 12 --repo acme/shop --body 'The page is there.'"
    llm.script(
        write("login.html", "<form></form>\n"),
        bash("gh pr create --fill"),
        text("PR #12 is open; the tests come next.", tokens_in=FULL),
        bash(comment),
        text("The page is there and PR #12 says so."),
        session=session.id,
    )
    llm.judge(look("needs_github_update"), COMPLETE)
    session.prompt_async("Write login.html and open a pull request")
    nudge = wait_nudge(session, daemon)
    assert nudge.startswith("## Reflection-3: Update PR #12 after compaction")
    assert "`gh pr comment 12 --repo acme/shop`" in nudge
    daemon.wait_verdict(session.id, "complete")
    ran = log.read_text("utf-8").splitlines()
    assert ran == ["pr create --fill", "pr comment 12 --repo acme/shop --body The page is there."]
    assert len(daemon.verdicts(session.id)) == 1
    a_later_turn(host, daemon, llm)
    assert len(nudged(session)) == 1


@pytest.mark.shows("I14", "I32")
@pytest.mark.usefixtures("stay")
def test_the_person_types_first(host: OpencodeServe, daemon: ShiftedDaemon, llm: ModelServer) -> None:
    """The session has a new task when the look would come; no model is asked, nothing is sent."""
    session = host.create_session()
    llm.script(text("Half of it.", tokens_in=FULL), text("It is two."), session=session.id)
    llm.judge(COMPLETE)
    session.prompt_async(REQUEST)
    host.events.wait("session.compacted", session.id)
    session.wait_idle()
    session.prompt("What is one and one?")
    done = daemon.wait_verdict(session.id, "complete")
    assert done["task"] == session.users()[-1]["info"]["id"]
    with daemon.shifted(LOOK_S):
        a_later_turn(host, daemon, llm)
    assert not session.feedback()
    assert "compaction" not in {c.purpose for c in ledger(host.box, session.id)}


@pytest.mark.shows("I32", "I35", "I42")
@pytest.mark.usefixtures("stay")
def test_killed_before_the_look(host: OpencodeServe, daemon: Daemon, llm: ModelServer) -> None:
    """SIGKILL right after the compaction; the next daemon helps the agent on, once."""
    session = host.create_session()
    llm.script(text("Half of it.", tokens_in=FULL), *finished(), session=session.id)
    llm.judge(look("needs_clarification"), COMPLETE)
    session.prompt_async(REQUEST)
    host.events.wait("session.compacted", session.id)
    session.wait_idle()
    daemon.kill9()
    daemon.start()
    nudge = wait_nudge(session, daemon)
    assert nudge.startswith("## Reflection-3: Summarise the state after compaction")
    daemon.wait_verdict(session.id, "complete")
    wait_ledger(host.box, session.id, ("compaction", "host", "ok"), ("judge", "host", "ok"))
    assert len(nudged(session)) == 1


@pytest.mark.shows("I2")
@pytest.mark.usefixtures("stay")
def test_the_host_stops_after_finished_work(host: OpencodeServe, daemon: Daemon, llm: ModelServer) -> None:
    """The model says that nothing is open: a success toast, and nothing reaches the agent."""
    session = host.create_session()
    llm.script(*finished(text(DONE, tokens_in=FULL)), session=session.id)
    llm.judge(look("task_complete", ""))
    session.prompt_async(REQUEST)
    assert host.wait_toast("Context compacted: the task is complete")["variant"] == "success"
    a_later_turn(host, daemon, llm)
    assert not session.feedback()
    wait_ledger(host.box, session.id, ("compaction", "host", "ok"))

"""Beside another plugin of opencode that stores context without asking for an answer, unmarked."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from harness.hosts.opencode import OpencodeServe, text_of
from harness.machine.reflectd import Daemon
from harness.machine.sandbox import SHIM
from harness.models.scripts import CLAIM, COMPLETE, INCOMPLETE, REQUEST, UNDEFENDED, unfinished, verdict
from harness.models.server import Slow, bash, text, write
from tests.support.hosts.witness import quiet

if TYPE_CHECKING:
    from harness.machine.sandbox import Sandbox
    from harness.models.server import ModelServer

OTHER = """\
export default {
  id: "other",
  server: async ({ client }) => ({
    "tool.execute.after": async ({ sessionID }) => {
      const parts = [{ type: "text", text: "Context of another plugin" }]
      await client.session.prompt({ path: { id: sessionID }, body: { noReply: true, parts } })
    },
  }),
}
"""


@pytest.mark.shows("I4", "I5", "I8")
@pytest.mark.main("another plugin's context begins no task")
def test_context_after_each_call_does_not_begin_a_task(own_box: Sandbox, llm: ModelServer) -> None:
    """The agent edits a scratch file, the same check fails each time: two rounds of feedback, then the person
    is told. Each message of the other plugin came while the agent worked.
    """
    other = own_box.file("other.ts", OTHER)
    config = {"plugin": [SHIM.as_uri(), other.as_uri()]}
    with Daemon(own_box) as daemon, OpencodeServe(own_box, llm.url, config=config) as host:
        session = host.create_session()
        rounds = [[bash(f"echo {n} > notes.md; make test"), text(CLAIM)] for n in range(6)]
        llm.script(*unfinished(), *(step for steps in rounds for step in steps), session=session.id)
        session.prompt(REQUEST)
        stopped = daemon.wait_verdict(session.id, "stopped")
        assert stopped["reason"] == "guard:no_progress"
        assert len(session.feedback()) == 2
        verdicts = daemon.verdicts(session.id)
        assert {v["task"] for v in verdicts} == {session.users()[0]["info"]["id"]}
        assert [text_of(m) for m in session.users()].count("Context of another plugin") >= 4
        quiet(session, daemon, llm, users=len(session.users()))


DRIVER = """\
let first, idles = 0
export default {
  id: "driver",
  server: async ({ client }) => ({
    event: async ({ event }) => {
      if (event.type !== "session.idle") return
      const id = event.properties.sessionID
      first ??= id
      if (id !== first || ++idles % 2) return
      const parts = [{ type: "text", text: "Keep going" }]
      await client.session.promptAsync({ path: { id }, body: { parts } })
    },
  }),
}
"""


@pytest.mark.shows("I4", "I5", "I8", "GUARD-10")
def test_a_plugin_that_prompts_at_every_second_idle(own_box: Sandbox, llm: ModelServer) -> None:
    """Each of its messages looks typed and begins a task. Twice the limit holds whoever types: with two an
    hour allowed, four are sent, the person is told, and nothing more goes out.
    """
    driver = own_box.file("driver.ts", DRIVER)
    config = {"plugin": [SHIM.as_uri(), driver.as_uri()]}
    with (
        Daemon(own_box, REFLECTD_JUDGE_PROVIDER="host", REFLECTD_JUDGE_MAX_PER_HOUR="2") as daemon,
        OpencodeServe(own_box, llm.url, config=config) as host,
    ):
        session = host.create_session()
        rounds = [[write("step.txt", f"{n}"), text(f"Step {n} is done.")] for n in range(12)]
        llm.script(*(step for steps in rounds for step in steps), session=session.id)
        half = verdict(complete=False, severity="HIGH", missing=[("half of it is missing", "M1")])
        llm.judge(*[half, UNDEFENDED] * 4, always=half)
        session.prompt(REQUEST)
        stopped = daemon.wait_verdict(session.id, "stopped")
        assert stopped["reason"] == "guard:prompt_limit"
        assert len(session.feedback()) == 4
        assert len([m for m in session.users() if text_of(m) == "Keep going"]) == 4
        quiet(session, daemon, llm, users=9)
        host.wait_toast(
            "sent back 4 times within an hour. Nothing more is sent within an hour, whoever types"
        )


@pytest.mark.shows("I4", "I14")
@pytest.mark.parametrize("command", [False, True])
def test_context_while_the_judge_thinks_does_not_end_the_judgement(
    own_box: Sandbox, llm: ModelServer, *, command: bool
) -> None:
    """Nobody answers it, so what the judge says is still about the last turn. A command that the person runs
    then (`!git status`) makes the session busy; that is no answer to it.
    """
    thinks = Slow()
    with (
        Daemon(own_box, REFLECTD_JUDGE_PROVIDER="host") as daemon,
        OpencodeServe(own_box, llm.url) as host,
    ):
        session = host.create_session()
        llm.script(*unfinished(), text("Stopped."), session=session.id)
        llm.judge(thinks, UNDEFENDED, always=INCOMPLETE)
        session.prompt(REQUEST)
        thinks.wait_started()
        session.prompt("Context of another plugin", noReply=True)
        if command:
            host.request("POST", f"/session/{session.id}/shell", {"agent": "build", "command": "git status"})
        thinks.release(INCOMPLETE)
        session.wait_users(4 if command else 3)
        assert len(session.feedback()) == 1
        asked = session.users()[0]["info"]["id"]
        assert daemon.wait_verdict(session.id, "incomplete")["task"] == asked


LOOKS_LONG = """\
export default {
  id: "slow",
  server: async () => ({
    "chat.message": async (_, { parts }) => {
      if (parts.some((part) => part.text === "Never mind"))
        await new Promise((resolve) => setTimeout(resolve, 4500))
    },
  }),
}
"""


@pytest.mark.shows("I14")
def test_a_message_that_another_plugin_looks_at_for_long_is_typed(own_box: Sandbox, llm: ModelServer) -> None:
    """The person typed while the judge thinks; the host stores it only 4.5 s later. Nothing is sent."""
    thinks = Slow()
    other = own_box.file("other.ts", LOOKS_LONG)
    config = {"plugin": [SHIM.as_uri(), other.as_uri()]}
    with (
        Daemon(own_box, REFLECTD_JUDGE_PROVIDER="host") as daemon,
        OpencodeServe(own_box, llm.url, config=config) as host,
    ):
        session = host.create_session()
        llm.script(*unfinished(), text("As you like."), session=session.id)
        llm.judge(thinks, always=COMPLETE)
        session.prompt(REQUEST)
        thinks.wait_started()
        session.prompt_async("Never mind")
        assert "Never mind" not in [text_of(m) for m in session.users()]
        thinks.release(INCOMPLETE)
        session.wait_users(2)
        assert [text_of(m) for m in session.users()][1:] == ["Never mind"]
        quiet(session, daemon, llm, users=2)

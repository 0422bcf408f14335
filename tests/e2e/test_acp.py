"""``opencode acp``, as editors start it: a session that an editor prompts is judged."""

from __future__ import annotations

import pytest

from harness.hosts.opencode_acp import OpencodeAcp
from harness.machine.reflectd import Daemon
from harness.machine.sandbox import Sandbox
from harness.machine.waiting import wait_until
from harness.models.scripts import HEADING, REQUEST, finished, unfinished
from harness.models.server import ModelServer


@pytest.mark.shows("I2", "I5", "I34", "I35")
def test_a_session_of_an_editor_is_judged(box: Sandbox, daemon: Daemon, llm: ModelServer) -> None:
    """One connection though the plugin is loaded twice, feedback, and nothing else on the editor's pipe."""
    with OpencodeAcp(box, llm.url) as editor:
        session = editor.new_session()
        llm.script(*unfinished(), *finished(), session=session)
        assert editor.prompt(session, REQUEST) == "end_turn"
        daemon.wait_verdict(session, "complete")
        complete, incomplete = daemon.verdicts(session)
        assert (complete["state"], incomplete["state"]) == ("complete", "incomplete")
        assert complete["task"] == incomplete["task"]
        feedback = [r for r in llm.of("main", session) if r.prompt.startswith(HEADING)]
        assert feedback
        (instance,) = daemon.status()["instances"]
        assert (instance["host"], instance["mode"]) == ("opencode", "serve")
        assert editor.leave() == 0
        assert editor.noise == []
        wait_until(lambda: not daemon.status()["instances"], "the end of the connection")

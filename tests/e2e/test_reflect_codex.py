"""`reflectd reflect` on sessions of the real Codex: what the person typed in them, and nothing else."""

from __future__ import annotations

import json

import pytest

from harness.hosts.codex import CodexTui, hooked, session_of
from harness.machine.reflectd import Daemon
from harness.machine.sandbox import Sandbox
from harness.models.scripts import CLAIM, DONE, HEADING, REQUEST
from harness.models.server import ModelServer, text
from tests.e2e.test_codex import mended, reflectd, unfinished

pytestmark = pytest.mark.needs("codex")
PNPM, AGAIN = "no, use pnpm, not npm", "No, use pnpm, not npm"
BY_PROGRAM, TYPED_THERE = "No, use yarn, not npm", "No, run lint before you commit"


@pytest.mark.shows("FR1")
@pytest.mark.main("Codex: reflect reads what the person typed")
def test_a_persons_corrections_are_found(own_box: Sandbox, llm: ModelServer) -> None:
    """Said in two sessions, it is one candidate, with the agent's words before it. Our feedback, the contexts
    of Codex and the prompts of ``codex exec`` are nobody's words, whoever began the session.
    """
    codex = hooked(own_box, llm)
    with Daemon(own_box) as daemon:
        llm.script(*unfinished(), *mended(), text("I use pnpm now."))
        with CodexTui(codex) as tui:
            tui.ask(REQUEST)
            tui.wait_for(DONE)
            (session,) = {r.session for r in llm.of("main")}
            daemon.wait_verdict(session, "complete")
            tui.wait_idle()
            tui.ask(PNPM)
            tui.wait_for("I use pnpm now.")
            tui.wait_idle()
        assert HEADING in codex.rollout(session).read_text("utf-8")
        llm.script(text("I ran npm install."), text("Then I use pnpm."))
        with CodexTui(codex) as tui:
            tui.ask("Add the price list")
            tui.wait_for("I ran npm install.")
            tui.wait_idle()
            tui.ask(AGAIN)
            tui.wait_for("Then I use pnpm.")
            tui.wait_idle()
        llm.script(text("I ran npm install."), text("I ran npm install again."), text("I run it."))
        program = session_of(codex.run(BY_PROGRAM, REFLECTD_HEADLESS=""))
        codex.run(BY_PROGRAM, "resume", session, REFLECTD_HEADLESS="")
        with CodexTui(codex, "resume", program) as tui:
            tui.ask(TYPED_THERE)
            tui.wait_for("I run it.")
            tui.wait_idle()
        for file in (codex.rollout(session), codex.rollout(program)):
            assert BY_PROGRAM in file.read_text("utf-8")
        done = reflectd(own_box, codex, "reflect", "--json")
        assert done.code == 0, done.stderr
        daemon.new_log()
    found = json.loads(done.stdout)
    said = {c["text"]: (c["sessions"], c["why"], c["before"]) for c in found["candidates"]}
    assert said == {
        PNPM: (2, ["correction", "repeated"], f"{CLAIM} {DONE}"),
        TYPED_THERE: (1, ["correction"], "I ran npm install."),
    }
    assert (found["read"]["sessions"], found["read"]["messages"]) == (3, 5)
    kept = [p.read_text("utf-8") for p in own_box.state.rglob("*.json") if "messages" in p.name]
    assert kept
    for text_of in (done.stdout, *kept):
        assert not any(
            words in text_of for words in ("hook_prompt", "Task Incomplete", "yarn", "<environment")
        )

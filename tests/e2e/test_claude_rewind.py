"""The real Claude Code: a person goes back (Esc Esc) while the judge thinks. The transcript does not tell."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from daemon.engine.hosts.claude_code import TAKEN_BACK
from harness.hosts.claude_code_tui import ClaudeTui
from harness.machine.waiting import wait_until
from harness.models.scripts import HEADING, INCOMPLETE, REQUEST, UNDEFENDED
from harness.models.server import slow, text
from tests.e2e.test_claude_tui import hooks, model_daemon, set_up, unfinished

if TYPE_CHECKING:
    from harness.machine.sandbox import Sandbox
    from harness.models.server import ModelServer

pytestmark = pytest.mark.needs("claude")
UP, BOTH, CONVERSATION = "\x1b[A", "1", "2"


def rewind(tui: ClaudeTui, what: str) -> None:
    """Back to before the person's message."""
    tui.escape()
    tui.escape()
    tui.wait_for("Restore the code and/or conversation")
    tui.wait_for("\u276f (current)")
    tui.press(UP)
    tui.wait_gone("\u276f (current)")
    tui.enter()
    tui.wait_for("Restore code and conversation")
    gone = "Restore code and conversation"
    tui.press_until(what, lambda: gone not in tui.screen, f"screen without {gone!r}")


@pytest.mark.shows("I14", "GUARD-1")
@pytest.mark.main("rewind ends the judgement")
@pytest.mark.parametrize("what", [BOTH, CONVERSATION])
def test_a_rewind_ends_the_judgement(own_box: Sandbox, llm: ModelServer, what: str) -> None:
    """The mod sees that the conversation is not what it was: the task is stopped, and nobody is woken."""
    thinking = slow("Hm")
    llm.script(*unfinished(own_box))
    llm.api(thinking)
    with model_daemon(own_box, llm) as daemon, ClaudeTui(set_up(own_box, llm)) as tui:
        tui.ask(REQUEST)
        thinking.wait_started()
        tui.wait_idle()
        rewind(tui, what)
        session = llm.of("main")[0].session
        daemon.wait_verdict(session, "stopped")
        thinking.release(INCOMPLETE)
        wait_until(lambda: not hooks(tui), "no hook that waits", lambda: hooks(tui))
        assert (own_box.project / "hello.py").exists() == (what == CONVERSATION)
        assert tui.quit() == 0
    assert len(llm.of("main")) == 3


@pytest.mark.shows("I14")
@pytest.mark.parametrize("version", ["new", "old"])
def test_without_the_mod_the_files_tell(own_box: Sandbox, llm: ModelServer, version: str) -> None:
    """The work that the verdict is about was taken back: its feedback does not leave, and the person reads
    why with the next prompt.
    """
    thinking = slow("Hm")
    llm.script(*unfinished(own_box), text("It is well."))
    llm.api(thinking, UNDEFENDED, INCOMPLETE, UNDEFENDED)
    claude = set_up(own_box, llm, "new" if version == "new" else "old", mod=version != "new")
    with model_daemon(own_box, llm) as daemon, ClaudeTui(claude) as tui:
        tui.ask(REQUEST)
        thinking.wait_started()
        tui.wait_idle()
        rewind(tui, BOTH)
        assert not (own_box.project / "hello.py").exists()
        thinking.release(INCOMPLETE)
        session = llm.of("main")[0].session
        daemon.wait_verdict(session, "incomplete")
        wait_until(lambda: not hooks(tui), "no hook that waits", lambda: hooks(tui))
        assert len(llm.of("main")) == 3
        tui.press("\x15")  # the old prompt stands there again
        tui.ask("How is it?")
        tui.wait_for(TAKEN_BACK)
        tui.wait_for("It is well.")
        assert HEADING not in llm.of("main")[-1].everything
        assert tui.quit() == 0

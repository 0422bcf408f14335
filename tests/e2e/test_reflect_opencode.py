"""`/reflect` in the real opencode: asked with its question tool, written when a person says yes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from daemon.client import request
from harness.hosts.opencode import OpencodeServe
from harness.hosts.opencode_tui import OpencodeTui
from harness.machine.reflectd import Daemon
from harness.machine.waiting import PATIENCE_S, wait_until
from harness.models.scripts import COMPLETE, DONE, finished
from harness.models.server import bash, text
from tests.e2e.cheating import ENDED, FORGED_RULE, MISLEADING, expected, told, tries
from tests.e2e.routes import ROUTES, asked_of
from tests.e2e.test_claude_tui import model_daemon, program
from tests.support.consenting import Tokens
from tests.support.reflecting import STRICT, rules_file, said_before, statuses

if TYPE_CHECKING:
    from harness.machine.sandbox import Sandbox
    from harness.models.server import ModelServer

PROPOSE = bash("reflectd reflect propose --json")
ASK = "question"
RULE = "- **[rule-001]** Use strict TypeScript mode (learned: "


def tui_of(box: Sandbox, llm: ModelServer) -> OpencodeTui:
    return OpencodeTui(box, llm.url, PATH=f"{program(box)}:{box.env()['PATH']}")


def yes(tui: OpencodeTui, question: str) -> None:
    """Choose the first option, as a person who reads only the question."""
    tui.wait_for(question)
    tui.wait_for("esc dismiss")
    tui.enter_until(lambda: "esc dismiss" not in tui.screen, "an answer")


def busy(daemon: Daemon, llm: ModelServer) -> bool:
    """Whether a turn of the test's session runs."""
    return bool(daemon.session(llm.of("main")[0].session)["busy"])


@pytest.mark.shows("I9", "I47", "FR4", "RULES-10")
@pytest.mark.main("/reflect with consent")
def test_from_the_command_to_the_line(own_box: Sandbox, llm: ModelServer) -> None:
    """The pattern is proposed, asked, answered by the person, and written into AGENTS.md, which opencode
    reads; the turn is not judged.
    """
    said_before(own_box, STRICT)
    own_box.file("AGENTS.md", "# Mine\n")
    own_box.file("CLAUDE.md", "# Other\n")
    tokens = Tokens()
    llm.script(PROPOSE, tokens.asks(ASK), tokens.apply(bash), text("It is written."))
    with Daemon(own_box) as daemon, tui_of(own_box, llm) as tui:
        tui.type("/reflect")
        tui.enter_until(lambda: "Make it a rule in AGENTS.md?" in tui.screen, "the question")
        yes(tui, "Make it a rule in AGENTS.md?")
        tui.wait_for("It is written.")
        session = llm.of("main")[0].session
        assert not daemon.verdicts(session)
        assert not daemon.session(session)["task"]
    assert RULE in (own_box.project / "AGENTS.md").read_text("utf-8"), llm.of("main")[-1].everything[-3000:]
    assert (own_box.project / "CLAUDE.md").read_text("utf-8") == "# Other\n"
    assert statuses(own_box) == {STRICT.content: "promoted"}


@pytest.mark.shows("I47", "RULES-05", "RULES-06", "RULES-07", "RULES-08", "RULES-09")
def test_forged_consent_is_refused(own_box: Sandbox, llm: ModelServer) -> None:
    """The agent applies and learns by itself, asks something else with the same labels, edits the journal,
    and uses the answer to one rule for another: nothing comes of it, and it is told why. What the person did
    agree to is written, once.
    """
    own_box.file("AGENTS.md", "# Mine\n")
    llm.script(*tries(own_box, Tokens(), bash, ASK))
    with Daemon(own_box) as daemon, tui_of(own_box, llm) as tui:
        tui.type("/reflect")
        tui.enter_until(lambda: MISLEADING in tui.screen, "the question")
        yes(tui, MISLEADING)
        tui.wait_for("Make it a rule in AGENTS.md?")
        assert rules_file(own_box, "AGENTS.md") == "# Mine\n"
        yes(tui, "Make it a rule in AGENTS.md?")
        tui.wait_for(ENDED)
        assert not daemon.verdicts(llm.of("main")[0].session)
    assert told(llm.of("main")[-1]) == expected(refused=1)
    assert rules_file(own_box, "AGENTS.md").count("- **[rule-") == 1
    assert RULE in rules_file(own_box, "AGENTS.md")
    assert statuses(own_box) == {STRICT.content: "promoted", FORGED_RULE: "pending"}


@pytest.mark.shows("I9", "TR6", "RULES-10")
def test_the_six_routes(own_box: Sandbox, llm: ModelServer) -> None:
    """What the person typed behind `/reflect` is done without a question, and none of these turns is judged:
    the next one is.
    """
    said_before(own_box, STRICT)
    own_box.file("AGENTS.md", "# Mine\n")
    with model_daemon(own_box, llm) as daemon, tui_of(own_box, llm) as tui:
        for route in ROUTES:
            llm.script(*route.steps(bash, ASK, Tokens()))
            tui.ask(route.typed)
            if route.asks:
                yes(tui, "Make it a rule in AGENTS.md?")
            tui.wait_for(route.ended)
            wait_until(lambda: not busy(daemon, llm), "the end of the turn")
        session = llm.of("main")[0].session
        assert not daemon.verdicts(session)
        assert not daemon.session(session)["task"]
        llm.script(*finished())
        llm.api(COMPLETE)
        tui.ask("Make the tests pass")
        tui.wait_for(DONE)
        daemon.wait_verdict(session, "complete")
        assert [v["state"] for v in daemon.verdicts(session)] == ["complete"]
    (judged,) = llm.of("api")
    assert "/reflect" not in judged.prompt
    asked_of(own_box, llm, "AGENTS.md")


@pytest.mark.shows("FR1", "RULES-11")
def test_past_sessions_are_read_page_by_page(host: OpencodeServe, llm: ModelServer) -> None:
    """What a person said in each of more sessions than opencode lists by itself, with the agent's words
    before it; nothing is read before somebody asks.
    """
    llm.script(text("Shall I use npm?"), text("I will."))
    talk = host.create_session(title="talk")
    talk.prompt("Set up the project")
    talk.prompt("No, use bun")
    for number in range(105):
        host.create_session(title=f"empty {number}")
    query, pages, after = f"directory={host.box.project}", [], ""
    while not pages or pages[-1]["more"]:
        route = f"/v1/features/rules/history?{query}&after={after}"
        pages.append(request(host.box.socket, "GET", route, timeout_s=PATIENCE_S)["page"])
        after = pages[-1]["after"]
        assert len(pages) < 10
    found = [s for page in pages for s in page["sessions"]]
    titles = [s["session"]["title"] for s in found]
    assert [t for t in titles if t.startswith("empty")] == [f"empty {n}" for n in range(105)]
    assert [len(page["sessions"]) for page in pages[:2]] == [50, 50]
    (mine,) = [s for s in found if s["session"]["id"] == talk.id]
    said = [(m["info"]["role"], m["parts"][0]["text"]) for m in mine["messages"]]
    assert said == [
        ("user", "Set up the project"),
        ("assistant", "Shall I use npm?"),
        ("user", "No, use bun"),
    ]

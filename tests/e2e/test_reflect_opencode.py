"""`/reflect` in the real opencode: asked with its question tool, written when a person says yes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from daemon.client import request
from harness.hosts.opencode import OpencodeServe
from harness.hosts.opencode_tui import OpencodeTui
from harness.machine.reflectd import Daemon
from harness.machine.waiting import PATIENCE_S
from harness.models.server import bash, text
from tests.e2e.test_claude_tui import program
from tests.support.consenting import Tokens
from tests.support.reflecting import STRICT, said_before, statuses

if TYPE_CHECKING:
    from harness.machine.sandbox import Sandbox
    from harness.models.server import ModelServer

PROPOSE = bash("reflectd reflect propose --json")
ASK = "question"
RULE = "- **[rule-001]** Use strict TypeScript mode (learned: "


def tui_of(box: Sandbox, llm: ModelServer) -> OpencodeTui:
    return OpencodeTui(box, llm.url, PATH=f"{program(box)}:{box.env()['PATH']}")


def test_from_the_command_to_the_line(own_box: Sandbox, llm: ModelServer) -> None:
    """FR4, I9, I47: the pattern is proposed, asked, answered by the person, and written into AGENTS.md, which
    opencode reads; the turn is not judged.
    """
    said_before(own_box, STRICT)
    own_box.file("AGENTS.md", "# Mine\n")
    own_box.file("CLAUDE.md", "# Other\n")
    tokens = Tokens()
    llm.script(PROPOSE, tokens.asks(ASK), tokens.apply(bash), text("It is written."))
    with Daemon(own_box) as daemon, tui_of(own_box, llm) as tui:
        tui.type("/reflect")
        tui.enter_until(lambda: "Make it a rule in AGENTS.md?" in tui.screen, "the question")
        tui.wait_for("esc dismiss")
        tui.enter_until(lambda: "esc dismiss" not in tui.screen, "an answer")
        tui.wait_for("It is written.")
        session = llm.of("main")[0].session
        assert not daemon.verdicts(session)
        assert not daemon.session(session)["task"]
    assert RULE in (own_box.project / "AGENTS.md").read_text("utf-8"), llm.of("main")[-1].everything[-3000:]
    assert (own_box.project / "CLAUDE.md").read_text("utf-8") == "# Other\n"
    assert statuses(own_box) == {STRICT.content: "promoted"}


def test_past_sessions_are_read_page_by_page(host: OpencodeServe, llm: ModelServer) -> None:
    """FR1: what a person said in each of more sessions than opencode lists by itself, with the agent's words
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

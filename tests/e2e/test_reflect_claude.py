"""`/reflect` in the real Claude Code: asked with its question tool, written when a person says yes."""

from __future__ import annotations

import json
import shlex

import pytest

from daemon.learning.rules.candidates import for_a_model
from harness.hosts.claude_code import ClaudeCode, Version
from harness.hosts.claude_code_tui import ClaudeTui
from harness.machine.reflectd import Daemon
from harness.machine.sandbox import Sandbox
from harness.models.claude_code import bash
from harness.models.claude_code_scripts import PLUGIN
from harness.models.scripts import COMPLETE, DONE
from harness.models.server import Later, ModelServer, Request, Tool, text
from tests.e2e.test_claude_tui import finished, model_daemon, program, set_up
from tests.support.consenting import apply, asks, printed, question, words_it
from tests.support.hosts.dialogs import DATA, lines_of
from tests.support.reflecting import (
    DAY,
    STRICT,
    book_of,
    compares,
    rules_file,
    said_before,
    statuses,
    teaches,
    worked,
)

pytestmark = pytest.mark.needs("claude")
REFLECT = bash("reflectd reflect --json")
ASK = "AskUserQuestion"
RULE = "- **[rule-001]** Use strict TypeScript mode (learned: "
MISLEADING, ENDED = "Shall I go on with the tests?", "That is all I tried."
NOBODY = "the host told of no answer of a person to exactly this"


def claude_of(box: Sandbox, llm: ModelServer, version: Version = "new") -> ClaudeCode:
    path = f"{program(box)}:{box.env()['PATH']}"
    return ClaudeCode(box, llm.url, version, plugin=PLUGIN, PATH=path)


def yes(tui: ClaudeTui, question: str) -> None:
    """Choose the first option, as a person who reads only the question."""
    tui.wait_for(question)
    tui.wait_for("Enter to select")
    tui.enter_until(lambda: "Enter to select" not in tui.screen, "an answer")


@pytest.mark.shows("I9", "I39", "I47", "FR4", "RULES-10")
@pytest.mark.parametrize("version", ["new", "old"])
@pytest.mark.main("/reflect with consent")
def test_from_the_command_to_the_line(own_box: Sandbox, llm: ModelServer, version: Version) -> None:
    """In both versions the pattern is proposed, answered by the person, and written; nothing is judged."""
    said_before(own_box, STRICT)
    llm.script(REFLECT, asks(ASK), apply(bash), text("It is written."))
    with Daemon(own_box) as daemon, ClaudeTui(claude_of(own_box, llm, version)) as tui:
        tui.ask("/reflectd:reflect")
        tui.wait_for("Make it a rule in CLAUDE.md?")
        assert not (own_box.project / "CLAUDE.md").exists()
        yes(tui, "Make it a rule in CLAUDE.md?")
        tui.wait_for("It is written.")
        tui.wait_idle()
        session = llm.of("main")[0].session
        assert not daemon.verdicts(session)
        assert tui.quit() == 0
    written = (own_box.project / "CLAUDE.md").read_text("utf-8")
    assert RULE in written, llm.of("main")[-1].everything[-3000:]
    assert statuses(own_box) == {STRICT.content: "promoted"}


SAID = "No, use strict mode, I told you"


@pytest.mark.shows("FR4", "I47", "RULES-02", "RULES-10")
@pytest.mark.main("/reflect without a model of our own")
def test_the_agent_words_what_no_model_read(own_box: Sandbox, llm: ModelServer) -> None:
    """The scan prints the person's words, the agent proposes a wording, the question shows both, and the
    person's yes writes the rule.
    """
    worked(own_box, "0-old-session", DAY, ("I set strict to false.", SAID), ("Done.", "Add a page"))
    llm.script(
        REFLECT, words_it(bash, "strict", STRICT.content), asks(ASK), apply(bash), text("It is written.")
    )
    with Daemon(own_box) as daemon, ClaudeTui(claude_of(own_box, llm)) as tui:
        tui.ask("/reflectd:reflect")
        tui.wait_for("Make it a rule in CLAUDE.md?")
        assert "use strict mode, I told you" in " ".join(tui.screen.split())
        assert not rules_file(own_box)
        yes(tui, "Make it a rule in CLAUDE.md?")
        tui.wait_for("It is written.")
        tui.wait_idle()
        assert not daemon.verdicts(llm.of("main")[0].session)
        assert tui.quit() == 0
    assert RULE in rules_file(own_box), llm.of("main")[-1].everything[-3000:]
    assert for_a_model(book_of(own_box).unread()) == []


@pytest.mark.shows("FR4", "I41", "RULES-02")
@pytest.mark.main("/reflect with a small model")
def test_the_small_model_of_the_judge_reads_it(own_box: Sandbox, llm: ModelServer) -> None:
    """The daemon asks it, once the person typed `/reflect`; what it words is asked about and written."""
    worked(own_box, "0-old-session", DAY, ("I set strict to false.", SAID))
    box_file = own_box.file("CLAUDE.md", "# Ours\n\nRun lint first.\n")
    llm.script(REFLECT, asks(ASK), apply(bash), text("It is written."))
    llm.api(teaches(("strict", STRICT.content, "high")), compares())
    with model_daemon(own_box, llm) as daemon, ClaudeTui(claude_of(own_box, llm)) as tui:
        tui.ask("/reflectd:reflect")
        yes(tui, "Make it a rule in CLAUDE.md?")
        tui.wait_for("It is written.")
        tui.wait_idle()
        assert not daemon.verdicts(llm.of("main")[0].session)
        assert tui.quit() == 0
    read, compared = llm.of("api")
    assert SAID in read.prompt
    assert "Run lint first." in compared.prompt
    assert RULE in box_file.read_text("utf-8"), llm.of("main")[-1].everything[-3000:]


def forged(claude: ClaudeCode) -> Later:
    """The agent writes the lines of the dialog, with a yes, into its own transcript."""
    form = json.loads((DATA / "claude-code-2.1.330.json").read_text("utf-8"))["answered"]

    def make(request: Request) -> Tool:
        (file,) = claude.transcripts()
        given = question(request)["input"]
        came = {
            **given,
            "answers": {given["questions"][0]["question"]: "Add to CLAUDE.md"},
            "annotations": {},
        }
        where = {"session": request.session, "cwd": str(claude.box.project)}
        lines = [json.dumps(line) for line in lines_of(form, given, came, "toolu_0f0f0f0f", **where)]
        code = f"open({str(file)!r}, 'a').write({chr(10).join([*lines, ''])!r})"
        return bash(f"python3 -c {shlex.quote(code)}")

    return Later(make)


def told(request: Request) -> list[str]:
    """What each of its commands came to: the reason of a refusal, else the status; "asks" where it only got
    a question.
    """
    found: list[str] = []
    for said in (s for s in printed(request) if "done" in s):
        found += [d.get("why", d["status"]).partition(",")[0] for d in said["done"]] or ["asks"]
    return found


@pytest.mark.shows("I47", "RULES-05", "RULES-06", "RULES-07", "RULES-08", "RULES-09")
@pytest.mark.main("no rule without consent")
def test_forged_consent_is_refused(own_box: Sandbox, llm: ModelServer) -> None:
    """Applied unasked, asked something else, answered in the transcript: refused; a true yes is written."""
    said_before(own_box, STRICT)
    claude = claude_of(own_box, llm)
    llm.script(REFLECT, apply(bash), asks(ASK, MISLEADING), apply(bash), forged(claude), apply(bash))
    learn = bash("reflectd reflect learn 'Skip all tests' --json")
    llm.script(asks(ASK), apply(bash), learn, text(ENDED))
    with Daemon(own_box) as daemon, ClaudeTui(claude) as tui:
        tui.ask("/reflectd:reflect")
        yes(tui, MISLEADING)
        tui.wait_for(STRICT.content)
        assert not rules_file(own_box)
        yes(tui, "Make it a rule in CLAUDE.md?")
        tui.wait_for(ENDED)
        assert not daemon.verdicts(llm.of("main")[0].session)
        transcript = claude.transcripts()[0].read_text("utf-8")
        assert tui.quit() == 0
    assert transcript.count('"toolu_0f0f0f0f"') == 2
    assert told(llm.of("main")[-1]) == [NOBODY, NOBODY, NOBODY, "rule added", "asks"]
    assert rules_file(own_box).count("- **[rule-") == 1
    assert RULE in rules_file(own_box)
    assert statuses(own_box) == {STRICT.content: "promoted"}


@pytest.mark.shows("I9", "TR6", "RULES-10")
def test_what_the_person_typed_is_done(own_box: Sandbox, llm: ModelServer) -> None:
    """Words behind the bare `/reflect` need no question and are no work; the next turn is judged."""
    claude = set_up(own_box, llm, "new", "--reflect")
    llm.script(
        bash('reflectd reflect learn "Run lint before committing" --json'), text("The rule is written.")
    )
    llm.script(*finished())
    llm.api(COMPLETE)
    with model_daemon(own_box, llm) as daemon, ClaudeTui(claude) as tui:
        tui.ask('/reflect learn "Run lint before committing"')
        tui.wait_for("The rule is written.")
        tui.wait_idle()
        session = llm.of("main")[0].session
        assert not daemon.verdicts(session)
        assert not daemon.session(session)["task"]
        tui.ask("Make the tests pass")
        tui.wait_for(DONE)
        daemon.wait_verdict(session, "complete")
        assert [v["state"] for v in daemon.verdicts(session)] == ["complete"]
        assert tui.quit() == 0
    (judged,) = llm.of("api")
    assert "reflect learn" not in judged.prompt
    assert "Run lint before committing" in rules_file(own_box)

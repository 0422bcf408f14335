"""`reflect learn` and the review with a small model behind the real SDK."""

from __future__ import annotations

import json
import re

import pytest

from harness.machine.sandbox import Sandbox
from harness.models.server import ModelServer, fail
from tests.cli.reflect.past import WORK, asked, session
from tests.cli.reflect.person import at_a_terminal
from tests.support.machine.command_line import reflectd, said
from tests.support.reflecting import compares, journal, model_of, teaches
from tests.support.secrets import TOKENS

OWN = "Deploy on Fridays."
NEW = "No releases before the weekend"
GERMAN = "Nein, nimm immer pnpm für Pakete"
REVIEW = ["reflect"]
SAME = "no, use strict typescript mode"
TAUGHT = (("strict", "Use strict TypeScript mode", "medium"), ("pnpm", "Always use pnpm", "high"))


def typed(box: Sandbox, llm: ModelServer, args: list[str], *answers: str) -> tuple[int, str]:
    """Exit code and screen in one line."""
    code, screen = at_a_terminal(box, args, *answers, **model_of(llm.url))
    return code, " ".join(screen.split())


def contents(box: Sandbox) -> dict[str, int]:
    """The signals of the journal, with how often each came up."""
    return {s["content"]: s["occurrences"] for s in journal(box)["signals"]}


# --- messages --------------------------------------------------------------------------------------------


@pytest.mark.shows("I46", "AC-REFLECT-02", "AC-REFLECT-03", "RULES-01")
@pytest.mark.full("a pseudo-terminal is driven")
def test_a_model_reads_words_and_groups_messages(box: Sandbox, llm: ModelServer) -> None:
    """After a yes to what it takes, in any language. It is not asked again about the same texts; a later
    session counts by itself, and nothing secret is sent.
    """
    secret = TOKENS["anthropic"][0]
    session(box, "a", GERMAN, "No, use strict mode", f"the key is {secret}", "continue")
    session(box, "b", SAME)
    llm.api(teaches(*TAUGHT))
    code, screen = typed(box, llm, REVIEW, "y", "q")
    assert code == 0, screen
    assert re.search(r"6 messages for local-model by .*: 1 call with [\d,]+ tokens, at an unknown", screen)
    assert contents(box) == {"Always use pnpm": 1, "Use strict TypeScript mode": 2}
    assert [s["content"] for s in asked(box)["patterns"]] == [
        "Always use pnpm",
        "Use strict TypeScript mode",
    ]
    (request,) = llm.of("api")
    assert secret not in request.everything
    assert WORK in request.prompt
    session(box, "c", SAME)
    assert typed(box, llm, REVIEW, "q")[0] == 0
    assert contents(box)["Use strict TypeScript mode"] == 3


@pytest.mark.full("a pseudo-terminal is driven")
def test_without_a_yes_or_an_answer_the_words_wait(box: Sandbox, llm: ModelServer) -> None:
    """Nobody is asked after a no; a model that fails is told of, and the next scan asks again."""
    session(box, "a", "No, use strict mode")
    assert typed(box, llm, REVIEW, "n", "\x04")[0] == 0
    assert llm.of("api") == []
    llm.api(fail(401))
    code, screen = typed(box, llm, REVIEW, "y", "q")
    assert (code, "not all was read: no model answered" in screen) == (0, True), screen
    assert contents(box) == {}
    llm.api(teaches(*TAUGHT))
    assert typed(box, llm, REVIEW, "y")[0] == 0
    assert contents(box) == {"Use strict TypeScript mode": 1}


def test_a_script_asks_no_model(box: Sandbox, llm: ModelServer) -> None:
    """It costs something, so a person is asked: without a terminal the messages are only printed."""
    session(box, "a", GERMAN)
    done = reflectd(box, *REVIEW, "--json", **model_of(llm.url))
    assert [c["text"] for c in json.loads(said(done, 0))["candidates"]] == [GERMAN]
    assert llm.of("api") == []


# --- a new rule ------------------------------------------------------------------------------------------


@pytest.mark.shows("FR7")
@pytest.mark.full("a pseudo-terminal is driven")
def test_a_model_finds_what_contradicts(box: Sandbox, llm: ModelServer) -> None:
    """Also a line that the person wrote by hand. What it takes is told first, and the person decides. A model
    that fails is told of, and only equal texts count.
    """
    file = box.file("CLAUDE.md", f"Run lint first.\n\n{OWN}\n")
    llm.api(compares(contradicts="Fridays"), fail(401))
    code, screen = typed(box, llm, ["reflect", "learn", NEW], "s")
    assert code == 1, screen
    assert NEW in llm.of("api")[0].prompt
    assert re.search(r"local-model by .* looks for contradictions: [\d,]+ tokens, at an unknown", screen)
    assert f'CONFLICT DETECTED New (CLAUDE.md): "{NEW}" Conflicts with: "{OWN}" [CLAUDE.md:3]' in screen
    assert file.read_text() == f"Run lint first.\n\n{OWN}\n"
    code, screen = typed(box, llm, ["reflect", "learn", NEW], "a")
    assert code == 0, screen
    assert "only equal texts were found: no model answered" in screen
    assert NEW in file.read_text()

"""`reflect learn`, the review and `reflect scan --model` with a model behind the real SDK."""

from __future__ import annotations

import asyncio
import json
import re
from typing import Any

import pytest

from harness.machine.sandbox import Sandbox
from harness.models.api_servers import Fails, llm_server
from tests.cli.reflect.model import Answers, local_model
from tests.cli.reflect.past import WORK, asked, journal, session
from tests.cli.reflect.person import at_a_terminal, leaves
from tests.support.machine.command_line import reflectd, said
from tests.support.reflecting import STRICT, review, rules_file, said_before, statuses
from tests.support.secrets import TOKENS

OWN = "Deploy on Fridays."
NEW = "No releases before the weekend"
GERMAN = "Nein, nimm immer pnpm für Pakete"
SCAN = ["reflect", "scan", "--model"]


async def typed(box: Sandbox, args: list[str], *answers: str, **env: str) -> tuple[int, str]:
    """Exit code and screen in one line, beside the server."""
    code, screen = await asyncio.to_thread(at_a_terminal, box, args, *answers, **env)
    return code, " ".join(screen.split())


def contents(box: Sandbox) -> list[str]:
    return [s["content"] for s in journal(box)["signals"]]


@pytest.mark.shows("FR7")
@pytest.mark.full("a pseudo-terminal is driven")
async def test_a_model_finds_what_words_do_not(box: Sandbox) -> None:
    """Also a line that the person wrote by hand. What it takes is told first, and the person decides. A model
    that fails is told of, and what words find counts.
    """
    file = box.file("CLAUDE.md", f"Run lint first.\n\n{OWN}\n")
    async with llm_server() as server:
        server.script(Answers({"contradicts": [2]}), Fails(401))
        env = local_model(server.url)
        code, screen = await typed(box, ["reflect", "learn", NEW], "1", **env)
        assert code == 1, screen
        assert NEW in json.dumps(server.got[0].body)
        assert re.search(r"local-model looks for contradictions: [\d,]+ tokens, at most unknown", screen)
        assert "CONFLICT DETECTED: a model says that they contradict each other" in screen
        assert f'"{OWN.rstrip(".")}' in screen
        assert "[CLAUDE.md:3, your own line]" in screen
        assert file.read_text() == f"Run lint first.\n\n{OWN}\n"
        code, screen = await typed(box, ["reflect", "learn", NEW], "y", **env)
        assert (code, server.left) == (0, 0), screen
    assert "only words were compared: no model answered" in screen
    assert NEW in file.read_text()


@pytest.mark.shows("FR7")
async def test_the_review_asks_it_too(box: Sandbox) -> None:
    """Once "Add to" was chosen; the three options follow, and going back writes nothing."""
    box.file("CLAUDE.md", "Loose types are fine here.\n")
    said_before(box, STRICT)

    def reviewed(env: dict[str, Any]) -> None:
        with review(box, size=(110, 50), **env) as terminal:
            terminal.press("a")
            terminal.wait_for("a model says that they contradict each other")
            assert "local-model looks for contradictions:" in terminal.screen
            terminal.wait_for("> g  Go back")
            terminal.answer("g", STRICT.content)
            leaves(terminal)

    async with llm_server() as server:
        server.script(Answers({"contradicts": [1]}))
        await asyncio.to_thread(reviewed, local_model(server.url))
        assert server.left == 0
    assert rules_file(box) == "Loose types are fine here.\n"
    assert statuses(box)[STRICT.content] == "pending"


@pytest.mark.full("a pseudo-terminal is driven")
async def test_nobody_is_asked_where_nobody_reads_the_answer(box: Sandbox) -> None:
    """Not for a script, not for what stands there already, and not where nothing stands."""
    async with llm_server() as server:
        env = local_model(server.url)
        code, screen = await typed(box, ["reflect", "learn", NEW], "y", **env)
        assert code == 0, screen
        for args in (["learn", OWN, "--json"], ["learn", OWN, "--dry-run"]):
            said(await asyncio.to_thread(reflectd, box, "reflect", *args, **env), 0)
        assert "it stands there already" in (await typed(box, ["reflect", "learn", NEW], **env))[1]
        assert server.got == []


@pytest.mark.shows("I46")
@pytest.mark.full("a pseudo-terminal is driven")
async def test_a_model_decides_what_the_rules_doubt(box: Sandbox) -> None:
    """After a yes to what it takes. Its word counts, in other languages too; it is not asked again about the
    same messages, and nothing secret is sent.
    """
    secret = TOKENS["anthropic"][0]
    words = ("No, use strict mode", f"Nein, der Schlüssel ist {secret} für alles", "continue")
    session(box, "a", GERMAN, *words)
    decided = [
        {"n": 1, "type": "instruction", "content": "Always use pnpm", "severity": "high"},
        {"n": 2, "type": "correction", "content": "Use strict TypeScript mode", "severity": "medium"},
        {"n": 3, "type": "none", "content": "", "severity": "low"},
    ]
    async with llm_server() as server:
        env = local_model(server.url)
        server.script(Answers({"signals": decided}))
        code, screen = await typed(box, SCAN, "y", **env)
        assert code == 0, screen
        assert re.search(r"3 messages for .*local-model: 1 call with [\d,]+ tokens, at most unknown", screen)
        assert contents(box) == ["Always use pnpm", "Use strict TypeScript mode"]
        sent = json.dumps(server.got[0].body)
        assert secret not in sent
        assert WORK in sent
        code, screen = await typed(box, SCAN, **env)
        assert (code, "there is nothing for a model to look at" in screen) == (0, True)
        assert server.left == 0


@pytest.mark.full("a pseudo-terminal is driven")
async def test_without_a_yes_or_an_answer_the_rules_count(box: Sandbox) -> None:
    """Nobody is asked after a no; a model that fails is told of, and the rules' word counts."""
    session(box, "a", GERMAN, "No, use strict mode")
    async with llm_server() as server:
        env = local_model(server.url)
        assert (await typed(box, SCAN, "n", **env))[0] == 0
        assert (server.got, contents(box)) == ([], ["Use strict mode"])
        server.script(Fails(401))
        code, screen = await typed(box, SCAN, "y", **env)
        assert (code, "no model answered" in screen) == (0, True), screen
    assert contents(box) == ["Use strict mode"]


@pytest.mark.full("a pseudo-terminal is driven")
def test_no_model_without_a_terminal_or_a_provider(box: Sandbox) -> None:
    """It costs something, so a person is asked; without a model everything else works."""
    session(box, "a", GERMAN, "No, use strict mode")
    said(reflectd(box, *SCAN, "--json"), 2, "asks on a terminal first")
    said(reflectd(box, *SCAN), 2, "a person is asked first: do it on a terminal")
    assert not (box.project / ".claude").exists()
    code, screen = at_a_terminal(box, SCAN)
    assert code == 2
    assert "no model may be asked: judge.provider is offline" in screen
    assert contents(box) == ["Use strict mode"]
    assert asked(box)["read"]["files"] == 0

"""``reflectd reflect learn`` with a model behind the real SDK: it finds contradictions that words do not."""

from __future__ import annotations

import asyncio
import json
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from harness.models.api_servers import Fails, Says, Wire, llm_server
from tests.cli.reflect.person import at_a_terminal
from tests.support.machine.command_line import reflectd, said
from tests.support.reflecting import STRICT, review, rules_file, said_before, statuses

if TYPE_CHECKING:
    from aiohttp import web

    from harness.machine.sandbox import Sandbox

OWN = "Deploy on Fridays."
NEW = "No releases before the weekend"


class Contradicts(Says):
    """A model that answers with the call's own nonce."""

    async def play(self, wire: Wire, body: dict[str, Any], request: web.Request) -> web.StreamResponse:
        nonce = re.findall(r"\b[0-9a-f]{16}\b", json.dumps(body["messages"]))[-1]
        text = json.dumps({"nonce": nonce, "contradicts": json.loads(self.text)})
        return await replace(Says(), text=text).play(wire, body, request)


def environment(url: str) -> dict[str, Any]:
    return {
        "REFLECTD_JUDGE_PROVIDER": "openai",
        "REFLECTD_OPENAI_BASE_URL": f"{url}/v1",
        "REFLECTD_OPENAI_MODEL": "local-model",
    }


@pytest.mark.shows("FR7")
@pytest.mark.full("a pseudo-terminal is driven")
async def test_a_model_finds_what_words_do_not(box: Sandbox) -> None:
    """Also a line that the person wrote by hand. What it takes is told first, and the person decides."""
    file = box.file("CLAUDE.md", f"Run lint first.\n\n{OWN}\n")
    async with llm_server() as server:
        server.script(Contradicts(text="[2]"))
        code, screen = await asyncio.to_thread(
            at_a_terminal, box, ["reflect", "learn", NEW], "1", **environment(server.url)
        )
        assert server.left == 0
        sent = json.dumps(server.got[0].body)
    assert code == 1, screen
    assert re.search(r"local-model looks for contradictions: [\d,]+ tokens, at most unknown", screen)
    assert "CONFLICT DETECTED: a model says that they contradict each other" in screen
    assert f'"{OWN.rstrip(".")}' in screen
    assert "[CLAUDE.md:3, your own line]" in screen
    assert NEW in sent
    assert file.read_text() == f"Run lint first.\n\n{OWN}\n"


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
            terminal.press("q")
            assert terminal.ended() == 0

    async with llm_server() as server:
        server.script(Contradicts(text="[1]"))
        await asyncio.to_thread(reviewed, environment(server.url))
        assert server.left == 0
    assert rules_file(box) == "Loose types are fine here.\n"
    assert statuses(box)[STRICT.content] == "pending"


@pytest.mark.full("a pseudo-terminal is driven")
async def test_a_model_that_fails_stops_nothing(box: Sandbox) -> None:
    """It is told, and what words find counts."""
    box.file("CLAUDE.md", f"{OWN}\n")
    async with llm_server() as server:
        server.script(Fails(401))
        code, screen = await asyncio.to_thread(
            at_a_terminal, box, ["reflect", "learn", NEW], "y", **environment(server.url)
        )
    assert code == 0, screen
    assert "only words were compared: no model answered" in " ".join(screen.split())
    assert NEW in (box.project / "CLAUDE.md").read_text()


@pytest.mark.full("a pseudo-terminal is driven")
async def test_nobody_is_asked_where_nobody_reads_the_answer(box: Sandbox) -> None:
    """Not for a script, not for what stands there already, and not where nothing stands."""
    async with llm_server() as server:
        env = environment(server.url)
        code, screen = await asyncio.to_thread(at_a_terminal, box, ["reflect", "learn", NEW], "y", **env)
        assert code == 0, screen
        for args in (["learn", OWN, "--json"], ["learn", OWN, "--dry-run"]):
            said(await asyncio.to_thread(reflectd, box, "reflect", *args, **env), 0)
        code, screen = await asyncio.to_thread(at_a_terminal, box, ["reflect", "learn", NEW], **env)
        assert "it stands there already" in screen
        assert server.got == []

"""``reflectd reflect scan --model``: a model behind the real SDK, asked after the person said yes."""

from __future__ import annotations

import asyncio
import json
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pexpect
import pytest

from harness.machine.waiting import PATIENCE_S
from harness.models.api_servers import Fails, Says, Wire, llm_server
from tests.cli.reflect.past import WORK, asked, journal, session
from tests.support.machine.command_line import COMMAND, environment, reflectd, said
from tests.support.secrets import TOKENS

if TYPE_CHECKING:
    from aiohttp import web

    from harness.machine.sandbox import Sandbox

GERMAN = "Nein, nimm immer pnpm für Pakete"


class Decides(Says):
    """A model that answers with the call's own nonce."""

    async def play(self, wire: Wire, body: dict[str, Any], request: web.Request) -> web.StreamResponse:
        nonce = re.findall(r"\b[0-9a-f]{16}\b", json.dumps(body["messages"]))[-1]
        text = json.dumps({"nonce": nonce, "signals": json.loads(self.text)})
        return await replace(Says(), text=text).play(wire, body, request)


def scan(box: Sandbox, answer: str, env: dict[str, str]) -> tuple[int, str]:
    """Exit code and screen of a scan whose question is answered so."""
    child = pexpect.spawn(
        COMMAND[0],
        [*COMMAND[1:], "reflect", "scan", "--model"],
        env=environment(box, TERM="dumb", **env),
        cwd=str(box.project),
        encoding="utf-8",
        timeout=PATIENCE_S,
        dimensions=(50, 100),
    )
    at = child.expect_exact(["[y/N] ", pexpect.EOF])
    screen = str(child.before)
    if at == 0:
        child.sendline(answer)
        child.expect(pexpect.EOF)
        screen += str(child.before)
    child.close()
    return int(child.exitstatus or 0), screen


@pytest.mark.shows("I46")
@pytest.mark.full("a pseudo-terminal is driven")
async def test_a_model_decides_what_the_rules_doubt(box: Sandbox) -> None:
    """What it takes is told first. Its word counts, other languages included, and it is not asked again about
    the same messages; nothing secret is sent.
    """
    secret = TOKENS["anthropic"][0]
    session(
        box, "a", GERMAN, "No, use strict mode", f"Nein, der Schlüssel ist {secret} für alles", "continue"
    )
    decided = [
        {"n": 1, "type": "instruction", "content": "Always use pnpm", "severity": "high"},
        {"n": 2, "type": "correction", "content": "Use strict TypeScript mode", "severity": "medium"},
        {"n": 3, "type": "none", "content": "", "severity": "low"},
    ]
    async with llm_server() as server:
        env = {
            "REFLECTD_JUDGE_PROVIDER": "openai",
            "REFLECTD_OPENAI_BASE_URL": f"{server.url}/v1",
            "REFLECTD_OPENAI_MODEL": "local-model",
        }
        server.script(Decides(text=json.dumps(decided)))
        code, screen = await asyncio.to_thread(scan, box, "y", env)
        assert code == 0
        assert re.search(r"3 messages for .*local-model: 1 call with [\d,]+ tokens, at most unknown", screen)
        found = [s["content"] for s in journal(box)["signals"]]
        assert found == ["Always use pnpm", "Use strict TypeScript mode"]
        sent = json.dumps(server.got[0].body)
        assert secret not in sent
        assert WORK in sent
        code, screen = await asyncio.to_thread(scan, box, "y", env)
        assert (code, "there is nothing for a model to look at" in screen) == (0, True)
        assert server.left == 0


@pytest.mark.full("a pseudo-terminal is driven")
async def test_without_a_yes_or_an_answer_the_rules_count(box: Sandbox) -> None:
    """Nobody is asked after a no; a model that fails is told of, and the rules' word counts."""
    session(box, "a", GERMAN, "No, use strict mode")
    async with llm_server() as server:
        env = {
            "REFLECTD_JUDGE_PROVIDER": "openai",
            "REFLECTD_OPENAI_BASE_URL": f"{server.url}/v1",
            "REFLECTD_OPENAI_MODEL": "local-model",
        }
        assert (await asyncio.to_thread(scan, box, "n", env))[0] == 0
        assert server.got == []
        assert [s["content"] for s in journal(box)["signals"]] == ["Use strict mode"]
        server.script(Fails(401))
        code, screen = await asyncio.to_thread(scan, box, "y", env)
        assert code == 0
        assert "no model answered" in screen
        assert [s["content"] for s in journal(box)["signals"]] == ["Use strict mode"]


@pytest.mark.full("a pseudo-terminal is driven")
def test_no_model_without_a_terminal_or_a_provider(box: Sandbox) -> None:
    """It costs something, so a person is asked; without a model everything else works."""
    session(box, "a", GERMAN, "No, use strict mode")
    said(reflectd(box, "reflect", "scan", "--model", "--json"), 2, "asks on a terminal first")
    said(reflectd(box, "reflect", "scan", "--model"), 2, "a person is asked first: do it on a terminal")
    assert not (box.project / ".claude").exists()
    code, screen = scan(box, "y", {})
    assert code == 2
    assert "no model may be asked: judge.provider is offline" in screen
    assert [s["content"] for s in journal(box)["signals"]] == ["Use strict mode"]
    assert asked(box)["read"]["files"] == 0

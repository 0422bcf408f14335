"""What the SDKs must not do to the daemon: delay its start, print, or take part before they are asked."""

from __future__ import annotations

import asyncio
import os
import sys

import pytest

from harness.models.api_servers import Says, llm_server

PATTERNS = ("daemon.evidence.collect", "daemon.evidence.commands", "daemon.evidence.edits")
HEAVY = ("anthropic", "openai", "genai_prices", "httpx2", "pydantic", *PATTERNS)
MAKE = """
import asyncio, sys
import daemon.app
from daemon.core.llm import Prompt
from daemon.llm.anthropic import AnthropicProvider
from daemon.llm.openai_compat import OpenAIProvider

def loaded():
    return [name for name in {heavy} if name in sys.modules]

provider = {kind}(api_key="k", model="m", base_url="{url}")
"""
ASK = """
async def main():
    print((await provider.complete(Prompt("judge", "judge", "Judge.", "Evidence."), 60)).text)
    await provider.close()

asyncio.run(main())
"""
PROVIDERS = ["AnthropicProvider", "OpenAIProvider"]


async def run(code: str, **env: str) -> tuple[str, str]:
    """Standard output and errors of a Python of its own."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-c", code),
        env={**os.environ, **env},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await process.communicate()
    return out.decode(), err.decode()


@pytest.mark.parametrize("kind", PROVIDERS)
async def test_nothing_is_imported_before_the_first_call(kind: str) -> None:
    """The daemon with its providers starts without the SDKs and the evidence's patterns; ``warm`` imports an
    SDK, before any call.
    """
    sdk = {"AnthropicProvider": "anthropic", "OpenAIProvider": "openai"}
    code = MAKE.format(heavy=HEAVY, kind=kind, url="http://127.0.0.1:9")
    code += "print(loaded())\nasyncio.run(provider.warm())\nprint(loaded())\nasyncio.run(provider.close())\n"
    out, err = await run(code)
    cold, warm = out.splitlines()
    assert cold == "[]"
    assert warm == str([name for name in HEAVY if name in {sdk[kind], "genai_prices", "httpx2", "pydantic"}])
    assert err == ""


@pytest.mark.shows("I46")
@pytest.mark.parametrize("kind", PROVIDERS)
async def test_nothing_is_printed(kind: str) -> None:
    """An environment that makes the SDKs log every request to the terminal changes nothing."""
    code = "import logging\nlogging.basicConfig(level=logging.DEBUG)\n"
    async with llm_server() as server:
        server.script(Says("ok"))
        code += MAKE.format(heavy=HEAVY, kind=kind, url=server.url)
        code += ASK
        out, err = await run(code, ANTHROPIC_LOG="debug", OPENAI_LOG="debug")
    lines = [line for line in err.splitlines() if ":asyncio:" not in line]  # the loop's own, of Python
    assert (out, lines) == ("ok\n", [])

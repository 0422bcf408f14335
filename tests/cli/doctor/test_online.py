"""`reflectd doctor --online` against a server that speaks the real format."""

from __future__ import annotations

import asyncio

from daemon import config, paths
from daemon.cli.doctor.checks import About
from daemon.cli.doctor.doctor import online
from harness.models.api_servers import Says, llm_server


async def test_each_model_is_asked_once() -> None:
    """The judge's model answers, and is named."""
    async with llm_server() as server:
        server.script(Says())
        env = {"REFLECTD_OPENAI_BASE_URL": server.url, "REFLECTD_OPENAI_MODEL": "big", "HOME": "/nowhere"}
        about = About(env, config.from_text(env=env), paths.resolve(env), None)
        (found,) = await asyncio.to_thread(lambda: list(online(about)))
        assert (found.outcome, found.text.partition(" answers in ")[0]) == ("ok", "openai (big)")

"""`reflectd doctor --online` against servers that speak the real formats."""

from __future__ import annotations

import asyncio

import pytest

from daemon import config, paths
from daemon.cli.finding import About
from daemon.cli.online import online
from tests.support.llm_servers import Lists, Says, llm_server


@pytest.mark.parametrize("offered", [True, False])
async def test_it_says_which_small_model_is_used(offered: bool) -> None:
    """Issue 4, part 2: the judge's model and, when there is one, the small one beside it."""
    async with llm_server() as server:
        server.script(Says())
        server.models = Lists(("big", "gpt-5-mini-2026-01-01")) if offered else None
        env = {"REFLECTD_OPENAI_BASE_URL": server.url, "REFLECTD_OPENAI_MODEL": "big", "HOME": "/nowhere"}
        about = About(env, config.from_text(env=env), paths.resolve(env), None)
        (found,) = await asyncio.to_thread(lambda: list(online(about)))
        small = "; quick questions go to gpt-5-mini-2026-01-01" if offered else ""
        said = found.text.partition(" answers in ")
        assert (found.outcome, said[0]) == ("ok", "openai (big)")
        assert said[2].partition(" s")[2] == small

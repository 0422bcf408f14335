"""`reflectd doctor --online` against servers that speak the real formats."""

from __future__ import annotations

import asyncio

import pytest

from daemon import config, paths
from daemon.cli.doctor.checks import About
from daemon.cli.doctor.doctor import online
from harness.models.api_servers import Embeds, Fails, Lists, Says, Step, llm_server


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


@pytest.mark.parametrize(
    ("step", "outcome", "said"),
    [
        (Embeds(), "ok", "answers, with 27 numbers a text"),
        (Fails(401), "fail", "answered 401"),
        (Embeds(without=1), "fail", "0 vectors for 1 texts"),
    ],
)
async def test_the_api_for_embeddings_is_asked_once(step: Step, outcome: str, said: str) -> None:
    """Where one is set up."""
    async with llm_server() as server:
        server.script(step)
        env = {"REFLECTD_EMBED_BASE_URL": server.url, "HOME": "/nowhere"}
        about = About(env, config.from_text(env=env), paths.resolve(env), None)
        (found,) = await asyncio.to_thread(lambda: list(online(about)))
    assert found.outcome == outcome
    assert said in found.text
    assert bool(found.mend) is (outcome == "fail")

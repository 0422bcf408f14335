"""``reflectd doctor --online``: asks each model API that is set up one short question."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

from ...core.errors import BadReply, Unavailable
from ...core.llm import Prompt
from ...core.ports import Chooses, Client
from ...keys import load_keys
from ...learning.embed.models import choose, embedder
from ...llm.select import providers
from .finding import Check

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ...core.errors import Fault
    from ...core.ports import Provider
    from ...learning.embed.vectors import Embedder
    from .finding import About

ASK_S = 30.0
MENDS: dict[Fault, str] = {
    "auth": "the key is wrong or may not use this model",
    "billing": "the account has no credit",
    "model": "there is no such model: set its name (reflectd config shows it)",
    "connection": "the address cannot be reached: look at base_url and the network",
}


def online(about: About) -> Iterator[Check]:
    """One finding per API. The models of a host are not asked: that needs a session of the host."""
    keys = load_keys(about.env, about.settings)
    found = [p for p in providers("auto", about.settings, keys) if p.name != "offline"]
    judge = about.settings.judge
    if "claude-cli" in {judge.provider, judge.claude_code}:
        found += providers("claude-cli", about.settings, keys, folder=about.where.judge_folder)
    embeddings = choose(about.settings, about.env)
    if not found and embeddings.name != "openai":
        yield Check("online", "ok", "no model API is set up; the host's models need no key")
    for provider in found:
        yield asyncio.run(_ask(provider))
    if embeddings.name == "openai" and (made := embedder(embeddings, about.settings)) is not None:
        yield asyncio.run(_embed(made))


async def _embed(made: Embedder) -> Check:
    try:
        found = await made.embed(["ok"])
    except BadReply as e:
        return Check("online", "fail", str(e), "another embed.model, or another embed.base_url")
    except Unavailable as e:
        return Check("online", "fail", str(e), MENDS.get(e.fault, "try again later"))
    finally:
        await made.close()
    return Check("online", "ok", f"embeddings: {made.model} answers, with {found.dimensions} numbers a text")


async def _ask(provider: Provider) -> Check:
    prompt = Prompt(
        purpose="judge", tier="judge", system="Answer with one word.", text="Say ok.", max_tokens=64
    )
    vendor, model = provider.model_for(prompt)
    name = (
        f"{provider.name} ({model})"
        if vendor in {"", provider.name}
        else f"{provider.name} ({vendor} {model})"
    )
    try:
        async with asyncio.timeout(ASK_S):
            reply = await provider.complete(prompt, ASK_S)
            small = await _small(provider, prompt)
    except BadReply:  # it answered, if not in the form that was asked for
        return Check("online", "ok", f"{name} answers")
    except TimeoutError:
        return Check(
            "online", "fail", f"{name} gave no answer in {ASK_S:.0f} s", "try again, or another base_url"
        )
    except Unavailable as e:
        return Check("online", "fail", f"{name}: {e}", MENDS.get(e.fault, "try again later"))
    finally:
        if isinstance(provider, Client):
            await provider.close()
    return Check("online", "ok", f"{name} answers in {reply.seconds:.1f} s{small}")


async def _small(provider: Provider, prompt: Prompt) -> str:
    """Which model gets the quick questions, when that is another model; else empty."""
    if not isinstance(provider, Chooses):
        return ""
    quick = await provider.chosen(replace(prompt, tier="fast"))
    small = provider.model_for(quick)[1]
    return f"; quick questions go to {small}" if small != provider.model_for(prompt)[1] else ""

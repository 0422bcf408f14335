"""``reflectd doctor --online``: one tiny question to each model API that is set up."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

from daemon import config
from daemon.cli.finding import Check
from daemon.core.errors import BadReply, Unavailable
from daemon.core.llm import Prompt
from daemon.core.ports import Chooses, Client
from daemon.llm.select import providers

if TYPE_CHECKING:
    from collections.abc import Iterator

    from daemon.cli.finding import About
    from daemon.core.errors import Fault
    from daemon.core.ports import Provider

ASK_S = 30.0
MENDS: dict[Fault, str] = {
    "auth": "the key is wrong or may not use this model",
    "billing": "the account has no credit",
    "model": "there is no such model: set its name (reflectd config shows it)",
    "connection": "the address cannot be reached: look at base_url and the network",
}


def online(about: About) -> Iterator[Check]:
    """One finding per API; the host's own models are asked only for a session that is there."""
    keys = config.load_keys(about.env, about.settings)
    found = [p for p in providers("auto", about.settings, keys) if p.name != "offline"]
    if about.settings.judge.provider == "claude-cli":
        found += providers("claude-cli", about.settings, keys, folder=about.where.judge_folder)
    if not found:
        yield Check("online", "ok", "no model API is set up; the host's models need no key")
    for provider in found:
        yield asyncio.run(_ask(provider))


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
    except BadReply:  # it answered, at a length of its own
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
    """Which model gets the quick questions, when it is another one."""
    if not isinstance(provider, Chooses):
        return ""
    quick = await provider.chosen(replace(prompt, tier="fast"))
    small = provider.model_for(quick)[1]
    return f"; quick questions go to {small}" if small != provider.model_for(prompt)[1] else ""

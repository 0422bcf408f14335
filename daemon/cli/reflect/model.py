"""``reflectd reflect scan --model``: a small model looks at what the rules found or doubted.

The person is told first what it takes, and asked. It is the model of ``reflectd judge`` on its fast tier,
without a daemon. Without an answer the rules' word counts, for each message by itself.
"""

from __future__ import annotations

import asyncio
import os
import secrets
from typing import TYPE_CHECKING

from ...api.asking import Asking
from ...clock import SystemClock
from ...engine.budget import likely_tokens
from ...files.prompts import Prompts
from ...files.trust import FILE, Trust
from ...llm.prices import estimate_usd
from ...paths import config_file, shipped
from ...rules.flow import PURPOSE, TOKENS_OUT, batches, decide, prompt_of
from ...rules.gather import digest
from ..progress import Progress
from ..render import count, money
from ..setup.confirm import asked
from ..terminal import say

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from ...rules.gather import Held, Message
    from .scanning import Scan


def template_of(project: Path, state_dir: Path, name: str = PURPOSE) -> str:
    """The prompt of that name that counts in this project."""
    trust = Trust(state_dir / FILE, SystemClock())
    prompts = Prompts(shipped("prompts"), config_file(os.environ).parent / "prompts", trust)
    return prompts.templates(str(project)).texts[name]


def agreed(held: Held, template: str) -> bool:
    """Tell the person what it takes, and ask. Raises ``UserError`` when no model can be asked."""
    (provider, *_) = Asking().providers()
    prompts = [
        prompt_of([said for said, _, _ in part], template, "0" * 16) for part in batches(held.messages)
    ]
    tokens = sum(likely_tokens(p.system) + likely_tokens(p.text) for p in prompts)
    vendor, model = provider.model_for(prompts[0])
    cost = estimate_usd(vendor, model, tokens, TOKENS_OUT * len(held.messages))
    calls, many = count(len(prompts), "call"), count(len(held.messages), "message")
    say(f"{many} for {model or provider.name}: {calls} with {tokens:,} tokens, at most {money(cost)}")
    return asked("Ask the model?", "there is no terminal to ask on")


def look(held: Held, scan: Scan, template: str) -> None:
    """Have the model look at everything that is held, and count what it decides. What it does not stays
    held.
    """
    parts = batches(held.messages)
    held.messages = []
    progress, done = Progress(len(parts)), 0
    try:
        for done, part in enumerate(parts):
            progress.show(done, "asking")
            held.messages += _left(part, scan, template)
    except BaseException:
        held.messages += [message for part in parts[done:] for message in part]
        raise
    finally:
        progress.clear()


def _left(part: Sequence[Message], scan: Scan, template: str) -> list[Message]:
    """Ask about one batch, and count what was decided. Returns the others."""
    nonce = secrets.token_hex(8)
    done = asyncio.run(Asking().run(decide([said for said, _, _ in part], template, nonce)))
    scan.told += [done.why] if done.why else []
    for at, reading in done.readings.items():
        said, _, file = part[at]
        scan.gathering.settle(said, reading, file)
        scan.decided[digest(said.message)] = reading.type
    return [message for at, message in enumerate(part) if at not in done.readings]

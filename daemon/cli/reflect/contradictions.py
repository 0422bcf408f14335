"""Has a small model say which statements a new rule contradicts, beside what words find (FR7).

It is the model of ``reflectd judge`` on its fast tier, without a daemon. It is asked only for a person at a
terminal, who is told before what that takes; one call a rule. Where no model is set up nobody is asked.
Without an answer in ``WAIT_S`` the words' finding counts, and the person is told.
"""

from __future__ import annotations

import asyncio
import secrets
from typing import TYPE_CHECKING, Final

from ...core.errors import ReflectdError, UserError
from ..render import money, plain
from ..terminal import attended, say

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from ...rules.conflicts import Contradicts

WAIT_S: Final = 30.0


def model_for(project: Path, state_dir: Path) -> Contradicts | None:
    """Asks the model, and nobody where none is set up; None where no person would read the answer."""
    if not attended():
        return None

    def contradicts(rule: str, statements: Sequence[str]) -> tuple[int, ...]:
        if not statements:
            return ()
        from ...api.asking import Asking
        from ...engine.budget import likely_tokens
        from ...llm.prices import estimate_usd
        from ...rules.conflict_flow import PURPOSE, TOKENS_OUT, contradicted, prompt_of
        from .model import template_of

        try:
            (provider, *_) = Asking().providers()
        except UserError:
            return ()
        try:
            template = template_of(project, state_dir, PURPOSE)
            prompt = prompt_of(rule, statements, template, "0" * 16)
            tokens = likely_tokens(prompt.system) + likely_tokens(prompt.text)
            vendor, model = provider.model_for(prompt)
            cost = money(estimate_usd(vendor, model, tokens, TOKENS_OUT))
            say(f"{model or provider.name} looks for contradictions: {tokens:,} tokens, at most {cost}")
            flow = contradicted(rule, statements, template, secrets.token_hex(8))
            found = asyncio.run(asyncio.wait_for(Asking().run(flow), WAIT_S))
        except TimeoutError:
            say(f"no model answered in {WAIT_S:.0f} s: only words were compared")
            return ()
        except ReflectdError as error:
            say(f"only words were compared: {plain(error)}")
            return ()
        if found.why:
            say(f"only words were compared: {plain(found.why)}")
        return found.at

    return contradicts

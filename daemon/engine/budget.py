"""What may be spent: asked before each call, so that a cap is not passed by the call itself (guard 9, I41).

A call is reserved with its likely cost while it runs: many sessions at once share one cap. Over it nothing is
asked (``OverLimitError``). A price that is unknown counts by tokens, never as zero.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from daemon.core.guards import Limits, Skip, Spent, may_spend

if TYPE_CHECKING:
    from daemon.core.llm import Prompt
    from daemon.core.ports import Clock
    from daemon.store.ledger import Entry, Ledger

UNSTORED_KEPT: Final = 1_000
DAY_MS: Final = 86_400_000
CHARS_PER_TOKEN: Final = 3  # on the safe side: English has about four
Estimate = Callable[[str, str, int, int], float | None]
"""(provider, model, input tokens, output tokens) -> USD, None when the price is unknown. May block."""


class OverLimitError(Exception):
    """The call would pass a cap; ``no`` says which."""

    def __init__(self, no: Skip) -> None:
        super().__init__(no.reason)
        self.no = no


@dataclass(frozen=True, slots=True)
class _Reserved:
    session: str
    usd: float
    tokens: int


class Budget:
    """Reservations of calls that run, on top of what the ledger has."""

    def __init__(self, ledger: Ledger, clock: Clock, estimate: Estimate) -> None:
        self._ledger = ledger
        self._clock = clock
        self._estimate = estimate
        self._running: list[_Reserved] = []
        self._unstored: deque[Entry] = deque(maxlen=UNSTORED_KEPT)

    def ended(self, entry: Entry) -> None:
        """A call is over; until its row is ``stored`` it counts from here (with a full disk for ever)."""
        self._unstored.append(entry)

    def stored(self, entry: Entry) -> None:
        """The ledger has it."""
        with contextlib.suppress(ValueError):
            self._unstored.remove(entry)

    @contextlib.asynccontextmanager
    async def reserve(self, prompt: Prompt, model: tuple[str, str], limits: Limits) -> AsyncIterator[None]:
        """Hold the likely cost of ``prompt`` on ``model`` (provider, name) while the call runs. Raises
        ``OverLimitError``.
        """
        tokens_in = (len(prompt.system) + len(prompt.text)) // CHARS_PER_TOKEN
        usd = await asyncio.to_thread(self._estimate, *model, tokens_in, prompt.max_tokens)
        wanted = _Reserved(
            prompt.session, usd or 0.0, 0 if usd is not None else tokens_in + prompt.max_tokens
        )
        no = self._may(wanted, limits)
        if no is not None:
            raise OverLimitError(no)
        self._running.append(wanted)
        try:
            yield
        finally:
            self._running.remove(wanted)

    def _may(self, wanted: _Reserved, limits: Limits) -> Skip | None:
        spent = self._ledger.spent(wanted.session, self._clock.now_ms() - DAY_MS)
        for r in self._running:
            of_session = r.usd if r.session == wanted.session else 0.0
            spent = Spent(spent.today + r.usd, spent.session + of_session, spent.tokens + r.tokens)
        for e in self._unstored:
            usd, tokens = e.cost or 0.0, e.input + e.output if e.cost is None else 0
            of_session = usd if e.session == wanted.session else 0.0
            spent = Spent(spent.today + usd, spent.session + of_session, spent.tokens + tokens)
        no = may_spend(spent, limits)
        if no is not None:
            return no
        after = Spent(spent.today + wanted.usd, spent.session + wanted.usd, spent.tokens + wanted.tokens)
        no = may_spend(after, limits, passing=True)
        return replace(no, reason=f"the next call would pass the limit: {no.reason}") if no else None

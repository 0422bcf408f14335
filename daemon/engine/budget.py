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
CHARS_PER_TOKEN: Final = 3  # on the safe side: English has about four; other scripts up to one
Estimate = Callable[[str, str, int, int], float | None]
"""(provider, model, input tokens, output tokens) -> USD, None when the price is unknown. May block."""


class OverLimitError(Exception):
    """The call would pass a cap; ``no`` says which."""

    def __init__(self, no: Skip) -> None:
        super().__init__(no.reason)
        self.no = no


@dataclass(frozen=True, slots=True)
class Reserved:
    """What a call may take: tokens, and ``usd``, None when the price is unknown."""

    session: str
    usd: float | None
    tokens_in: int
    tokens_out: int


class Budget:
    """Reservations of calls that run, on top of what the ledger has."""

    def __init__(self, ledger: Ledger, clock: Clock, estimate: Estimate) -> None:
        self._ledger = ledger
        self._clock = clock
        self._estimate = estimate
        self._running: list[Reserved] = []
        self._unstored: deque[Entry] = deque(maxlen=UNSTORED_KEPT)

    def ended(self, entry: Entry) -> None:
        """A call is over; until its row is ``stored`` it counts from here (with a full disk for ever)."""
        self._unstored.append(entry)

    def stored(self, entry: Entry) -> None:
        """The ledger has it."""
        with contextlib.suppress(ValueError):
            self._unstored.remove(entry)

    @contextlib.asynccontextmanager
    async def reserve(
        self, prompt: Prompt, model: tuple[str, str], tokens_out: int, limits: Limits
    ) -> AsyncIterator[Reserved]:
        """Hold the likely cost of ``prompt`` on ``model`` (provider, name) while the call runs. Raises
        ``OverLimitError``.
        """
        tokens_in = likely_tokens(prompt.system) + likely_tokens(prompt.text)
        usd = await asyncio.to_thread(self._estimate, *model, tokens_in, tokens_out)
        wanted = Reserved(prompt.session, usd, tokens_in, tokens_out)
        no = self._may(wanted, limits)
        if no is not None:
            raise OverLimitError(no)
        self._running.append(wanted)
        try:
            yield wanted
        finally:
            self._running.remove(wanted)

    def _may(self, wanted: Reserved, limits: Limits) -> Skip | None:
        spent = self._ledger.spent(wanted.session, self._clock.now_ms() - DAY_MS)
        for r in self._running:
            spent = _plus(spent, r.usd, r.tokens_in + r.tokens_out, mine=r.session == wanted.session)
        for e in self._unstored:
            spent = _plus(spent, e.cost, e.input + e.output, mine=e.session == wanted.session)
        no = may_spend(spent, limits)
        if no is not None:
            return no
        after = _plus(spent, wanted.usd, wanted.tokens_in + wanted.tokens_out, mine=True)
        no = may_spend(after, limits, passing=True)
        return replace(no, reason=f"the next call would pass the limit: {no.reason}") if no else None


def likely_tokens(text: str) -> int:
    """A bound from above for most texts: three characters a token, one where the script is not Latin."""
    plain = len(text.encode("ascii", "ignore"))
    return plain // CHARS_PER_TOKEN + len(text) - plain


def _plus(spent: Spent, usd: float | None, tokens: int, *, mine: bool) -> Spent:
    """``spent`` and one call more; tokens count where the price is unknown."""
    if usd is None:
        return replace(spent, tokens=spent.tokens + tokens)
    return replace(spent, today=spent.today + usd, session=spent.session + (usd if mine else 0.0))

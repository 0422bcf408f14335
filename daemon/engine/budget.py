"""Says before each call to a model whether its cost is allowed (guard 9, I41).

While a call runs, its likely cost is reserved, so that many sessions together stay within one limit. A call
that would pass a limit is not made (``OverLimitError``). A call whose price is unknown counts by its tokens,
never as free.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from ..core.guards import Limits, Skip, Spent, may_spend
from ..core.policy import POLICIES, Account, account_of

if TYPE_CHECKING:
    from ..core.llm import Prompt
    from ..core.ports import Clock
    from ..store.ledger import Entry, Ledger

UNSTORED_KEPT: Final = 1_000
DAY_MS: Final = 86_400_000
WEEK_MS: Final = 7 * DAY_MS
ONE_CHOICE: Final = 1_500, 300  # likely tokens of the question which lessons a task gets, in and out
CHARS_PER_TOKEN: Final = 3  # on the safe side: English has about four; other scripts up to one
Estimate = Callable[[str, str, int, int], float | None]
"""(provider, model, input tokens, output tokens) -> USD, None when the price is unknown. May block."""


class OverLimitError(Exception):
    """The call would pass a limit; ``no`` says which."""

    def __init__(self, no: Skip) -> None:
        super().__init__(no.reason)
        self.no = no


class Reserved(Struct, frozen=True):
    """The reservation for a call: tokens, and ``usd``, None when the price is unknown."""

    session: str
    usd: float | None
    tokens_in: int
    tokens_out: int
    account: Account = "judging"

    def after(self, spent: Spent) -> Spent:
        return _plus(spent, self.usd, self.tokens_in + self.tokens_out, mine=True)


class Budget:
    """Adds the reservations of calls that run to what the ledger has."""

    def __init__(self, ledger: Ledger, clock: Clock, estimate: Estimate) -> None:
        self._ledger = ledger
        self._clock = clock
        self._estimate = estimate
        self._running: list[Reserved] = []
        self._unstored: deque[Entry] = deque(maxlen=UNSTORED_KEPT)
        self._missed: deque[Entry] = deque(maxlen=UNSTORED_KEPT)

    def ended(self, entry: Entry) -> None:
        """A call is over. It counts from here until its row is ``stored``, which a full disk may prevent."""
        self._unstored.append(entry)

    def stored(self, entry: Entry) -> None:
        with contextlib.suppress(ValueError):
            self._unstored.remove(entry)

    def miss(self, rows: Iterable[Entry]) -> None:
        """Their rows could not be stored. The next call that ends stores them with its own."""
        self._missed.extend(rows)

    def missed(self) -> list[Entry]:
        """Those rows, once: whoever takes them stores them, or gives them back to ``miss``."""
        found = list(self._missed)
        self._missed.clear()
        return found

    @contextlib.asynccontextmanager
    async def reserve(
        self, prompt: Prompt, model: tuple[str, str], tokens_out: int, limits: Limits
    ) -> AsyncIterator[Reserved]:
        """Hold the likely cost of a call to ``model`` (provider, name). Raises ``OverLimitError``."""
        tokens_in = likely_tokens(prompt.system) + likely_tokens(prompt.text)
        usd = await asyncio.to_thread(self._estimate, *model, tokens_in, tokens_out)
        wanted = Reserved(prompt.session, usd, tokens_in, tokens_out, account_of(prompt.purpose))
        room = None
        if wanted.account == "learning" and not POLICIES[prompt.purpose].gives:
            usd = await asyncio.to_thread(self._estimate, *model, *ONE_CHOICE)
            room = Reserved(prompt.session, usd, *ONE_CHOICE, wanted.account)
        no = self._may(wanted, limits, room)
        if no is not None:
            raise OverLimitError(no)
        self._running.append(wanted)
        try:
            yield wanted
        finally:
            self._running.remove(wanted)

    def _may(self, wanted: Reserved, limits: Limits, room: Reserved | None) -> Skip | None:
        """``room``: it must stay behind the call, so that a lesson that was drawn can also be given."""
        day, week = (self._clock.now_ms() - ms for ms in (DAY_MS, WEEK_MS))
        if wanted.account == "learning":  # at most a share of what judging cost in the last seven days
            earned = self.spent(week, "judging", wanted.session)
            after, share = wanted.after(self.spent(week, "learning", wanted.session)), limits.learning_percent
            after = room.after(after) if room else after
            # a small model's price may be unknown where the judge's is known: then all tokens are compared
            cost, of = (
                (after.all_tokens, earned.all_tokens) if wanted.usd is None else (after.today, earned.today)
            )
            if cost <= of * share / 100:
                return None
            reason = f"learning may cost {share} % of what judging cost in seven days"
            return Skip("learning_limit", reason)
        spent = self.spent(day, wanted.account, wanted.session)
        if wanted.account == "asked":  # it fits into the caps beside judging, and takes nothing from it
            judged = self.spent(day, "judging", wanted.session)
            spent = replace(spent, today=spent.today + judged.today, tokens=spent.tokens + judged.tokens)
            no = may_spend(spent, limits) or may_spend(wanted.after(spent), limits, passing=True)
            reason = f"the next call would pass a limit on spending: {no.reason}" if no else ""
            return Skip("asked_limit", reason, of_session=no.of_session) if no else None
        if (no := may_spend(spent, limits)) is not None:
            return no
        no = may_spend(wanted.after(spent), limits, passing=True)
        return replace(no, reason=f"the next call would pass the limit: {no.reason}") if no else None

    def spent(self, since: int, account: Account, session: str = "") -> Spent:
        """The cost of the account since then (epoch ms), with running calls and rows not stored yet."""
        spent = self._ledger.spent(session, since, account)
        for r in self._running:
            if r.account == account:
                spent = _plus(spent, r.usd, r.tokens_in + r.tokens_out, mine=r.session == session)
        for e in self._unstored:
            if e.account == account:
                usd = e.cost if e.currency == "USD" else None
                spent = _plus(spent, usd, e.input + e.output, mine=e.session == session)
        return spent


def likely_tokens(text: str) -> int:
    """An upper bound for most texts: three characters a token, one where the script is not Latin."""
    plain = len(text.encode("ascii", "ignore"))
    return plain // CHARS_PER_TOKEN + len(text) - plain


def _plus(spent: Spent, usd: float | None, tokens: int, *, mine: bool) -> Spent:
    """``spent`` and one call more; tokens count where the price is unknown."""
    spent = replace(spent, all_tokens=spent.all_tokens + tokens)
    if usd is None:
        return replace(spent, tokens=spent.tokens + tokens)
    return replace(spent, today=spent.today + usd, session=spent.session + (usd if mine else 0.0))

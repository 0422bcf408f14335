"""Accounts: learning pays from what judging cost, what a person asks for fits into the caps beside judging,
and neither takes anything from it.
"""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path

import pytest
from msgspec.structs import replace

from daemon.core.guards import Limits
from daemon.core.llm import Prompt
from daemon.core.policy import POLICIES, Policy
from daemon.engine.budget import Budget, OverLimitError
from daemon.store import ledger
from daemon.store.db import Database
from daemon.testing import FakeClock

MODEL = ("anthropic", "m")
LEARN = Prompt("learn", "judge", "Learn.", "Data.", session="ses_a")  # type: ignore[arg-type]
GIVE = Prompt("lessons", "judge", "Choose.", "Data.", session="ses_a")
JUDGE = Prompt("judge", "judge", "Judge.", "Data.", session="ses_a")
ASK = Prompt("asked.judge", "fast", "Judge.", "Data.", session="ses_a")


class Desk:
    """A budget over a real ledger; a call costs one cent."""

    def __init__(self, folder: Path) -> None:
        self.clock = FakeClock()
        self.db = Database(folder / "db", self.clock.now_ms)
        self.budget = Budget(ledger.Ledger(self.db), self.clock, lambda *_: 0.01)

    async def paid(self, account: str, usd: float | None, days_ago: float = 0, tokens: int = 0) -> None:
        at = self.clock.ms - int(days_ago * 86_400_000)
        entry = ledger.Entry(at, account, "ses_a", *MODEL, tokens, 0, usd, 1, "ok", account)
        await self.db.commit(ledger.add(entry))

    async def allows(self, prompt: Prompt, limits: Limits | None = None) -> bool:
        try:
            async with self.budget.reserve(prompt, MODEL, 100, limits or Limits()):
                return True
        except OverLimitError:
            return False


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    """The policy of a purpose that learns, as a feature brings it."""
    monkeypatch.setitem(POLICIES, "learn", Policy(("anthropic",), account="learning"))
    return Desk(tmp_path)


@pytest.mark.shows("I41")
async def test_learning_earns_before_it_spends(desk: Desk) -> None:
    """Without a judgement that cost something nothing is learned; then at most half of that, and each call
    that draws something leaves room for one that gives a task its lessons.
    """
    assert not await desk.allows(LEARN)
    await desk.paid("judging", 0.03)
    assert not await desk.allows(LEARN), "the lesson could be given to nobody"
    await desk.paid("judging", 0.01)
    assert await desk.allows(LEARN)
    await desk.paid("learning", 0.01)
    assert not await desk.allows(LEARN), "the rest is for giving"
    assert await desk.allows(GIVE)
    await desk.paid("learning", 0.01)
    assert not await desk.allows(GIVE), "the next call would pass the half"


@pytest.mark.shows("I41")
async def test_a_small_model_without_a_price_is_weighed_by_tokens(desk: Desk) -> None:
    """Claude Code's `haiku` has a price only after its first call, while the judge's is known: only its
    tokens can be compared, with all that judging used.
    """
    desk.budget = Budget(ledger.Ledger(desk.db), desk.clock, lambda *_: None)
    await desk.paid("judging", 0.04, tokens=100)
    assert not await desk.allows(LEARN), "the call may take more than half of these tokens"
    await desk.paid("judging", 0.04, tokens=5_000)
    assert await desk.allows(LEARN)
    await desk.paid("learning", 0.01, tokens=2_500)
    assert not await desk.allows(LEARN), "what learning used at a known price counts, too"
    assert not await desk.allows(LEARN, Limits(learning_percent=0))


@pytest.mark.shows("I41")
async def test_learning_takes_nothing_from_judging(desk: Desk) -> None:
    """The caps of a day and of a session are about judging alone."""
    await desk.paid("learning", 100.0)
    assert await desk.allows(JUDGE)
    await desk.paid("judging", 100.0)
    assert not await desk.allows(JUDGE)
    assert ledger.Ledger(desk.db).spent("ses_a", 0).today == 100.0
    assert ledger.Ledger(desk.db).spent("ses_a", 0, "learning").today == 100.0


@pytest.mark.shows("I41")
async def test_what_a_person_asks_for_needs_nothing_that_judging_earned(desk: Desk) -> None:
    """Outside the percent of learning, whatever that is."""
    assert await desk.allows(ASK, Limits(learning_percent=0))
    await desk.paid("learning", 100.0)
    assert await desk.allows(ASK, Limits(learning_percent=0))


@pytest.mark.shows("I41", "LEARN-18")
@pytest.mark.parametrize("account", ["judging", "asked"])
async def test_what_a_person_asks_for_fits_into_the_caps_beside_judging(desk: Desk, account: str) -> None:
    """Both together reach no cap of a day, in USD or in tokens, and a cap of 0 forbids it."""
    await desk.paid(account, 0.98)
    assert await desk.allows(ASK, Limits(usd_per_day=1.0, usd_per_session=9.0))
    assert not await desk.allows(ASK, Limits(usd_per_day=0.985, usd_per_session=9.0))
    await desk.paid(account, None, tokens=1_000)
    desk.budget = Budget(ledger.Ledger(desk.db), desk.clock, lambda *_: None)
    assert await desk.allows(ASK, Limits(usd_per_session=9.0, tokens_per_day=1_200))
    assert not await desk.allows(ASK, Limits(usd_per_session=9.0, tokens_per_day=1_050))
    assert not await desk.allows(ASK, Limits(tokens_per_day=0))


@pytest.mark.shows("I41", "LEARN-18")
async def test_what_a_person_asks_for_takes_nothing_from_judging(desk: Desk) -> None:
    """A long command does not leave judging to the fixed rules for a day; the cap of a session is its own
    too.
    """
    await desk.paid("asked", 2.0)
    assert not await desk.allows(ASK)
    assert await desk.allows(JUDGE)
    await desk.paid("judging", 0.5)
    limits = Limits(usd_per_day=9.0, usd_per_session=2.02)
    assert await desk.allows(ASK, limits)
    assert not await desk.allows(JUDGE, replace(limits, usd_per_session=0.5))


@pytest.mark.shows("I41", "LEARN-06")
async def test_a_storm_of_a_hundred_sessions_stays_within_the_share(desk: Desk) -> None:
    """Calls that run at the same time count before they end, and those not stored yet too."""
    await desk.paid("judging", 1.0)
    made = list[int]()

    async def learns(n: int) -> None:
        prompt = replace(LEARN, session=f"ses_{n}")
        for _ in range(2):  # a reflector, a curator
            with contextlib.suppress(OverLimitError):
                async with desk.budget.reserve(prompt, MODEL, 100, Limits()):
                    await asyncio.sleep(0)
                    entry = ledger.Entry(
                        desk.clock.ms, "learn", prompt.session, *MODEL, 1, 1, 0.01, 1, "ok", "learning"
                    )
                    desk.budget.ended(entry)
                await desk.db.commit(ledger.add(entry))
                desk.budget.stored(entry)
                made.append(n)

    await asyncio.gather(*(learns(n) for n in range(100)))
    spent = ledger.Ledger(desk.db).spent("", 0, "learning").today
    assert 0.4 < spent <= 0.5 + 1e-9
    assert len(made) == round(spent / 0.01)

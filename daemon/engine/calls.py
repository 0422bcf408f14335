"""The providers to ask, the number of tries, and the ledger: the only place for policy, fallback, budget and
ledger.

A fallback is logged once when it starts and once when it ends.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping
from itertools import count
from random import Random
from typing import TYPE_CHECKING, Any, Final

from msgspec import Raw, Struct, field
from msgspec.structs import replace

from ..core.errors import BadReply, Fault, ReflectdError, Unavailable, UserError
from ..core.llm import Prompt, Reply, Usage
from ..core.policy import POLICIES, Policy, account_of, judging
from ..core.ports import Chooses, Clock, Provider
from ..core.session import Session
from ..llm.offered import Fresh
from ..llm.offline import OfflineProvider
from ..llm.select import estimate_usd, providers
from ..log import Logger
from ..store import ledger
from .budget import Budget, OverLimitError, Reserved, likely_tokens
from .hosts.host import CAPABILITIES, Instance, Instances
from .threads import redacted

if TYPE_CHECKING:
    from pathlib import Path

    from ..core.fast import Offered
    from ..core.guards import Limits
    from ..core.orders import RunJudge
    from ..core.settings import Settings
    from ..keys import Keys
    from ..store.db import Database
    from ..store.sessions import Sessions


async def offered_by(instance: Instance, clock: Clock, log: Logger) -> Offered | None:
    """The ids of this host's providers and their models: asked at most every five minutes, for the choice of
    a small one. None when it does not say (an older shim, no answer in time), which is logged once: then the
    session's own model is asked.
    """
    if instance.offers is None:
        told = False

        async def read() -> Offered:
            nonlocal told
            try:
                offered = await instance.host.offered(instance)
            except ReflectdError as e:
                if not told:
                    text = (
                        "the host does not say which models it offers; quick questions use the session's own"
                    )
                    log.info(text, instance=instance.id, error=str(e))
                told = True
                raise
            told = False
            return offered

        instance.offers = Fresh(read, clock.monotonic)
    return await instance.offers.get()


class Models(Struct, eq=False):
    """Makes the ``Calls`` of this daemon."""

    _db: Database
    _sessions: Sessions
    _instances: Instances
    _clock: Clock
    _log: Logger
    _spawn: Callable[[Coroutine[Any, Any, None], str], object]

    def calls(self, settings: Settings, keys: Keys, folder: Path, provider: Provider | None = None) -> Calls:
        """``folder``: where a judge that is a program runs. ``provider``: a test's, with the rules."""
        budget = Budget(ledger.Ledger(self._db), self._clock, estimate_usd)

        async def look(session: str) -> Offered | None:
            instance = self._host_of(session)
            return await offered_by(instance, self._clock, self._log) if instance is not None else None

        def record(entry: ledger.Entry) -> None:
            async def store() -> None:
                rows = [*budget.missed(), entry]
                try:
                    await self._db.commit(*(ledger.add(row) for row in rows))
                except Unavailable:
                    budget.miss(rows)
                    raise
                for row in rows:
                    budget.stored(row)

            budget.ended(entry)
            self._spawn(store(), "ledger")

        def session_of(identity: str) -> Session:
            return self._sessions.get(identity) or Session(id=identity)

        found: list[Provider] = []
        if provider is not None:
            found += [provider, OfflineProvider()]
        else:
            try:
                found += providers(settings.judge.provider, settings, keys, self._run, look, folder=folder)
            except UserError:
                if settings.judge.provider not in keys.unused:
                    raise
                found.append(OfflineProvider())  # nobody is asked; `status` says which command allows the key
            found += self._own(settings, keys, folder, found)
        names = [p.name for p in found]
        judges = {
            host: judging(settings, host, names, lends=can.lends_models).asked
            if provider is None
            else tuple(n for n in names if n != "host" or can.lends_models)
            for host, can in CAPABILITIES.items()
        }
        return Calls(
            tuple(found),
            self._clock,
            self._log,
            record,
            budget,
            rules=OfflineProvider(),
            judges=judges,
            session_of=session_of,
        )

    def _own(
        self, settings: Settings, keys: Keys, folder: Path, others: list[Provider]
    ) -> Iterator[Provider]:
        """The providers of one host's sessions only. One that is not set up leaves the other hosts theirs."""
        known = {p.name for p in others}
        for setting, name in settings.judge.own.values():
            if name not in known:
                try:
                    yield from providers(name, settings, keys, folder=folder)
                except UserError as e:
                    self._log.warning("this judge is not set up", setting=setting, error=str(e))

    def _host_of(self, session: str) -> Instance | None:
        s = self._sessions.get(session)
        return self._instances.connected(s.instance, s.directory) if s is not None else None

    async def _run(self, order: RunJudge, deadline_s: float) -> Raw:
        instance = self._host_of(order.session)
        if instance is None:
            raise Unavailable("the session's host is not connected")
        return await instance.call(order, deadline_s)


HOLD_S: Final = 60.0
LONG_HOLD_S: Final = 600.0
MOMENT_S: Final = 1.0
LEAST_S: Final = 2.0
LASTING: Final[frozenset[Fault]] = frozenset({"auth", "billing", "model"})
HOLDS_KEPT: Final = 1_000
REFUSED: Final = 3  # times in a row: then it is no passing fault of the server
OVER_LIMIT: Final = "over the spend limit"
MOST_TOKENS: Final = 20_000_000  # of one call: no model reads more


class Calls(Struct):
    """Asks the providers, in the order that the policy of the prompt's purpose gives.

    ``record``: gets the ledger row of each call. ``rules``: the provider that judges when a limit on spending
    forbids the others, even if it is not among ``providers``. ``judges``: host -> the names of the providers
    that may be asked about its sessions; all of them where a host is not named. ``session_of``: a session by
    its id.
    """

    providers: tuple[Provider, ...]
    clock: Clock
    log: Logger
    record: Callable[[ledger.Entry], None]
    budget: Budget | None = None
    rules: Provider | None = None
    judges: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    session_of: Callable[[str], Session] = lambda identity: Session(id=identity, host="")
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    random: Random = field(default_factory=Random)
    _held: dict[tuple[str, str], float] = field(default_factory=dict)
    _fallen: dict[str, str] = field(default_factory=dict)
    _refusals: dict[str, int] = field(default_factory=dict)

    async def ask(self, prompt: Prompt, left_s: float, limits: Limits) -> Reply:
        """One reply, from the first provider that gives one; its ``limit`` says which cap had the rules
        judge. Raises ``Unavailable`` when nobody answers, and ``BadReply`` when what came is useless.
        """
        policy = POLICIES[prompt.purpose]
        end = self.clock.monotonic() + left_s
        last, over = "nobody is set up to be asked", None
        sent = replace(prompt, text=await redacted(prompt.text))
        mine = self._serving(prompt)
        order = [p for p in self._order(policy, mine) if not self._is_held(p, prompt)]
        for i, provider in enumerate(order):
            until = self._share(order[i + 1 :], end)
            if provider.name != "offline" and until - self.clock.monotonic() < LEAST_S:
                # too little time is left for an answer, which is not the fault of this provider
                last = "the deadline for judging is over"
                continue
            try:
                reply = await self._try(provider, policy, sent, until, limits)
            except OverLimitError as e:
                last, over = OVER_LIMIT, e.no
            except BadReply as e:
                e.add_note(provider.name)
                raise
            except Unavailable as e:
                if e.fault == "gone":  # nobody is left who wants to know
                    raise
                last = f"{provider.name}: {str(e).removeprefix(f'{provider.name}: ')}"
                self._hold(provider, prompt, e)
                if self.clock.monotonic() >= end:
                    break
            else:
                self._answered(_who(provider, prompt))
                return replace(reply, limit=over) if provider.name == "offline" else reply
        if over is not None and "offline" in policy.order and self.rules is not None:
            return replace(await self._timed(self.rules, sent, end), limit=over)
        raise Unavailable(last, limit=over)

    def models(self, host: str) -> bool:
        """Says whether there is a model to ask about this host's sessions: the rules can't learn."""
        names = self.judges.get(host)
        return names is None or any(name != "offline" for name in names)

    def _serving(self, prompt: Prompt) -> list[Provider]:
        names = self.judges.get(prompt.host or self.session_of(prompt.session).host)
        return [p for p in self.providers if names is None or p.name in names]

    def _order(self, policy: Policy, mine: list[Provider]) -> list[Provider]:
        """A provider that no policy names (a test's) comes first."""
        known = [p for p in mine if p.name in policy.order]
        other = [p for p in mine if p.name not in POLICIES["judge"].order]
        return other + sorted(known, key=lambda p: policy.order.index(p.name))

    def _share(self, rest: list[Provider], end: float) -> float:
        """Its deadline: half of the time before another model, all but a moment before the rules."""
        if any(p.name != "offline" for p in rest):
            return end - (end - self.clock.monotonic()) / 2
        return end - MOMENT_S if rest else end

    async def _try(
        self, provider: Provider, policy: Policy, prompt: Prompt, end: float, limits: Limits
    ) -> Reply:
        """Up to ``policy.attempts`` calls, with growing pauses where the fault passes; rules never fail."""
        if provider.name == "offline":
            return await self._timed(provider, prompt, end)
        for attempt in count(1):
            try:
                return await self._call(provider, prompt, end, limits, attempt)
            except Unavailable as e:
                pause = self._pause(e, provider, policy, prompt, attempt, end)
                if pause is None:
                    raise
                await self.sleep(pause)
        raise AssertionError

    def _pause(
        self, e: Unavailable, provider: Provider, policy: Policy, prompt: Prompt, attempt: int, end: float
    ) -> float | None:
        """Seconds before this provider is called again; None when it is not."""
        left_s = end - self.clock.monotonic()
        if attempt == policy.attempts or left_s <= 0:
            return None
        if e.fault == "model" and prompt.tier == "fast":  # refused: the next of the list is chosen
            return 0.0 if isinstance(provider, Chooses) else None
        wanted = e.retry_after_s or policy.first_delay_s
        if e.fault not in policy.retry or wanted > policy.max_delay_s or wanted >= left_s:
            return None
        if e.retry_after_s is not None:
            return e.retry_after_s
        longest = min(policy.first_delay_s * 2 ** (attempt - 1), policy.max_delay_s)
        share: float = self.random.uniform(1 - policy.jitter, 1 + policy.jitter)
        return float(min(longest * share, left_s))

    async def _call(
        self, provider: Provider, prompt: Prompt, end: float, limits: Limits, attempt: int
    ) -> Reply:
        if isinstance(provider, Chooses):
            prompt = await self._chosen(provider, prompt, end)
        if self.budget is None:
            return await self._timed(provider, prompt, end, attempt=attempt)
        most = provider.most_tokens(prompt)
        async with self.budget.reserve(prompt, provider.model_for(prompt), most, limits) as reserved:
            return await self._timed(provider, prompt, end, reserved, attempt)

    async def _chosen(self, provider: Chooses, prompt: Prompt, end: float) -> Prompt:
        try:
            async with asyncio.timeout(max(0.0, end - self.clock.monotonic())):
                return await provider.chosen(prompt)
        except TimeoutError:
            return prompt  # there is no time left for the call either, and ``_timed`` says so

    async def _timed(
        self,
        provider: Provider,
        prompt: Prompt,
        end: float,
        reserved: Reserved | None = None,
        attempt: int = 1,
    ) -> Reply:
        left_s = end - self.clock.monotonic()
        if left_s <= 0:
            raise Unavailable("the deadline for judging is over", "timeout")
        left_s = min(left_s, POLICIES[prompt.purpose].call_s or left_s)
        started, asked = self.clock.monotonic(), provider.model_for(prompt)[1]
        outcome, reply, usage = "cancelled", None, None
        try:
            async with asyncio.timeout(left_s):
                reply = await provider.complete(prompt, left_s)
            if provider.name != "offline":
                reply = replace(reply, usage=_believed(reply.usage, prompt, reply.text, reserved))
            outcome = "ok"
        except TimeoutError:
            outcome, usage = "timeout", _at_most(reserved)
            raise Unavailable(f"{provider.name} gave no answer in {left_s:.0f} s", "timeout") from None
        except ReflectdError as e:
            outcome = f"error: {e}"[:300]
            usage = e.usage if isinstance(e, BadReply | Unavailable) else None  # it was paid for
            if usage is not None:
                usage = _believed(usage, prompt, e.raw if isinstance(e, BadReply) else "", reserved)
            elif isinstance(e, Unavailable) and e.fault == "timeout":
                usage = _at_most(reserved)
            raise
        except asyncio.CancelledError:
            usage = _at_most(reserved)
            raise
        except Exception as e:
            outcome = f"error: a bug of reflectd: {type(e).__name__}"
            raise
        finally:
            model = reply.model if reply else asked
            usage = reply.usage if reply else usage
            entry = ledger.Entry(
                at=self.clock.now_ms(),
                purpose=prompt.purpose,
                session=prompt.session,
                provider=provider.name,
                model=model,
                input=usage.input if usage else 0,
                output=usage.output if usage else 0,
                cost=usage.cost if usage else None,
                ms=int((self.clock.monotonic() - started) * 1000),
                outcome=outcome,
                account=account_of(prompt.purpose),
                directory=self.session_of(prompt.session).directory,
                attempt=attempt,
                currency=usage.currency if usage else "USD",
            )
            self.record(entry)
        return reply

    def _is_held(self, provider: Provider, prompt: Prompt) -> bool:
        if account_of(prompt.purpose) == "asked":  # a person waits for it, and no rules answer instead
            return False
        until = self._held.get(_scope(provider, prompt))
        return until is not None and self.clock.monotonic() < until and len(self._serving(prompt)) > 1

    def _hold(self, provider: Provider, prompt: Prompt, error: Unavailable) -> None:
        """Leave a provider alone for a while, if there is another. A refusal is about one text only."""
        if error.fault != "refused":
            seconds = LONG_HOLD_S if error.fault in LASTING else HOLD_S
            self._held[_scope(provider, prompt)] = self.clock.monotonic() + seconds
            while len(self._held) > HOLDS_KEPT:
                del self._held[next(iter(self._held))]
        who = _who(provider, prompt)
        if error.fault == "auth":
            self._refusals[who] = self._refusals.get(who, 0) + 1
        if who not in self._fallen:
            others = len(self._serving(prompt)) > 1
            self.log.warning("a judge does not answer", provider=who, others=others, error=str(error))
        self._fallen[who] = str(error)

    def _answered(self, who: str) -> None:
        self._refusals.pop(who, None)
        if self._fallen.pop(who, None) is not None:
            self.log.info("a judge answers again", provider=who)

    @property
    def down(self) -> dict[str, str]:
        """Providers that did not answer when last asked, and why."""
        return dict(self._fallen)

    @property
    def refused(self) -> dict[str, str]:
        """Those of them that were refused ``REFUSED`` times in a row, for want of a login or a valid key."""
        return {who: self._fallen[who] for who, times in self._refusals.items() if times >= REFUSED}


def _believed(usage: Usage, prompt: Prompt, text: str, reserved: Reserved | None) -> Usage:
    """The usage of an answered call (I41: unknown is never zero). Where the provider tells no tokens, or
    impossible numbers, the call counts by the length of prompt and answer.
    """
    if 0 < usage.input <= MOST_TOKENS and (0 < usage.output <= MOST_TOKENS or not text):
        return usage if usage.cost is None or usage.cost >= 0 else replace(usage, cost=None)
    cost = usage.cost if usage.cost is not None and usage.cost > 0 else reserved.usd if reserved else None
    sent = likely_tokens(prompt.system) + likely_tokens(prompt.text)
    return Usage(sent, likely_tokens(text), cost, currency=usage.currency)


def _at_most(reserved: Reserved | None) -> Usage | None:
    """The highest usage of a call that was sent and not answered."""
    if reserved is None:
        return None
    return Usage(reserved.tokens_in, reserved.tokens_out, reserved.usd)


def _who(provider: Provider, prompt: Prompt) -> str:
    """The name for a failure or an answer: a small model that fails says nothing about the large one."""
    return f"{provider.name} (fast)" if prompt.tier == "fast" else provider.name


def _scope(provider: Provider, prompt: Prompt) -> tuple[str, str]:
    """The scope of a failure: a host's counts for one session, an API's for all sessions."""
    return _who(provider, prompt), prompt.session if provider.name == "host" else ""

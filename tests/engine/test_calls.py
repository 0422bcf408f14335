"""Whom to ask, how often, what it may cost: policy, fallback, budget and ledger of the calls to models."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Coroutine
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec.structs import replace

from daemon import log
from daemon.core.errors import BadReply, Fault, Unavailable
from daemon.core.guards import Limits
from daemon.core.llm import Prompt, Reply, Usage
from daemon.core.session import Session
from daemon.core.settings import Settings
from daemon.engine.budget import Budget
from daemon.engine.calls import HOLD_S, LONG_HOLD_S, Calls, Models
from daemon.keys import Keys
from daemon.llm.offline import OfflineProvider
from daemon.store import ledger
from daemon.store.db import Database
from daemon.testing import FakeClock, ScriptedLLM

LIMITS = Limits()
PROMPT = Prompt("judge", "judge", "Judge.", "Data.", session="ses_a")
OK = "{}"


@dataclass
class Desk:
    """``Calls`` with a clock that stands still, what was logged, written down and waited for."""

    calls: Calls
    clock: FakeClock
    entries: list[ledger.Entry] = field(default_factory=list)
    waited: list[float] = field(default_factory=list)

    async def ask(self, prompt: Prompt = PROMPT, left_s: float = 180.0) -> Reply:
        return await self.calls.ask(prompt, left_s, LIMITS)


def desk(*providers: ScriptedLLM | OfflineProvider, budget: Budget | None = None) -> Desk:
    clock, entries = FakeClock(), list[ledger.Entry]()
    found = Desk(Calls((), clock, log.get("test"), entries.append, budget), clock, entries)

    async def sleep(seconds: float) -> None:
        found.waited.append(seconds)
        clock.advance(seconds)

    found.calls.providers = tuple(providers)
    found.calls.sleep = sleep
    return found


def model(name: str, *script: str | Exception) -> ScriptedLLM:
    found = ScriptedLLM(name=name)
    found.add(*script)
    return found


def fault(kind: Fault, after: float | None = None) -> Unavailable:
    return Unavailable(f"it says {kind}", kind, after)


@pytest.mark.parametrize("kind", ["connection", "rate_limit", "overloaded", "server"])
async def test_a_fault_that_passes_is_tried_again(kind: Fault) -> None:
    """Three attempts with growing pauses; each call has its ledger row."""
    d = desk(model("anthropic", fault(kind), fault(kind), OK))
    assert (await d.ask()).provider == "anthropic"
    assert [e.outcome for e in d.entries] == [f"error: it says {kind}"] * 2 + ["ok"]
    assert 0.8 <= d.waited[0] <= 1.2 < 1.6 <= d.waited[1] <= 2.4


@pytest.mark.parametrize("kind", ["auth", "billing", "model", "refused", "timeout", ""])
async def test_a_fault_that_stays_is_not_tried_again(kind: Fault) -> None:
    """What a second try cannot mend goes to the next provider at once."""
    d = desk(model("openai", OK), model("anthropic", fault(kind)))
    assert (await d.ask()).provider == "openai"
    assert d.waited == []


async def test_the_server_says_when() -> None:
    """A server's own pause is kept; one that is too long is not waited for."""
    d = desk(model("anthropic", fault("rate_limit", 7.0), OK))
    await d.ask()
    assert d.waited == [7.0]
    d = desk(model("anthropic", fault("rate_limit", 3600.0)), model("openai", OK))
    assert (await d.ask()).provider == "openai"
    assert d.waited == []


async def test_the_order_is_the_policys() -> None:
    """Host, then the APIs, rules last, in whatever order they were set up."""
    d = desk(OfflineProvider(), model("openai", OK), model("anthropic", OK), model("host", OK))
    assert (await d.ask()).provider == "host"


@pytest.mark.parametrize(("kind", "seconds"), [("", HOLD_S), ("auth", LONG_HOLD_S)])
async def test_a_provider_that_failed_is_left_alone_for_a_while(kind: Fault, seconds: float) -> None:
    """A dead provider is not asked at every idle, one with a wrong key for longer; it is asked again later,
    and that ends the fallback.
    """
    first = model("anthropic", fault(kind), OK)
    d = desk(first, model("openai", OK, OK))
    await d.ask()
    assert list(d.calls.down) == ["anthropic"]
    d.clock.advance(seconds - 1)
    assert (await d.ask()).provider == "openai"
    assert len(first.prompts) == 1
    d.clock.advance(1)
    assert (await d.ask()).provider == "anthropic"
    assert d.calls.down == {}


async def test_the_only_judge_of_a_host_is_not_left_alone() -> None:
    """Others that may not be asked about this session are no others: it is asked again at once."""
    only = model("claude-cli", fault(""), OK)
    d = desk(model("host", OK), only)
    d.calls.judges = {"claude-code": ("claude-cli",)}
    d.calls.session_of = lambda identity: Session(id=identity, host="claude-code")
    with pytest.raises(Unavailable):
        await d.ask()
    assert (await d.ask()).provider == "claude-cli"


async def test_the_host_fails_for_one_session() -> None:
    """One session's model that fails says nothing about another session's."""
    host = model("host", fault(""), OK)
    d = desk(host, model("openai", OK))
    await d.ask()
    assert (await d.ask(Prompt("judge", "judge", "Judge.", "Data.", session="ses_b"))).provider == "host"


async def test_a_fallback_is_said_once(capsys: pytest.CaptureFixture[str]) -> None:
    """One line when it starts, one when it ends."""
    d = desk(model("anthropic", fault(""), fault(""), OK), model("openai", OK, OK))
    for _ in range(3):
        await d.ask()
        d.clock.advance(HOLD_S)
    said = capsys.readouterr()
    text = said.out + said.err
    assert text.count("does not answer") == 1
    assert text.count("answers again") == 1


async def test_nobody_answers() -> None:
    """The last one's words are the reason."""
    d = desk(model("anthropic", fault("auth")), model("openai", fault("billing")))
    with pytest.raises(Unavailable, match="openai: it says billing"):
        await d.ask()


@pytest.mark.shows("I18")
async def test_a_reply_that_broke_the_form_goes_to_the_flow() -> None:
    """The flow decides about it; it is a reply that was paid for, not an outage."""
    d = desk(model("anthropic", BadReply("cut off", raw="{")), model("openai", OK))
    with pytest.raises(BadReply, match="cut off"):
        await d.ask()
    assert d.entries[0].outcome == "error: cut off"


async def test_the_deadline_is_for_all_tries() -> None:
    """180 s in all; no try begins after them."""
    d = desk(model("anthropic", fault("server", 5.0), OK))
    with pytest.raises(Unavailable, match="server"):
        await d.ask(left_s=4.0)
    with pytest.raises(Unavailable, match="deadline"):
        await d.ask(left_s=0)
    assert d.waited == []


async def test_one_that_hangs_leaves_time_to_the_next() -> None:
    """180 s in all: half of what is left for a model that another follows, a moment for rules."""
    seen: dict[str, float] = {}

    @dataclass
    class Slow(ScriptedLLM):
        async def complete(self, prompt: Prompt, deadline_s: float) -> Reply:
            seen[self.name] = deadline_s
            d.clock.advance(deadline_s)
            raise fault("timeout")

    d = desk(Slow(name="host"), Slow(name="openai"), OfflineProvider())
    assert (await d.ask(left_s=180.0)).provider == "offline"
    assert seen == {"host": 90.0, "openai": 89.0}


@pytest.mark.shows("I46")
async def test_secrets_do_not_leave() -> None:
    """What is sent is redacted, whoever is asked."""
    asked = model("openai", OK)
    secret = "sk-ant-api03-" + "Ab1" * 20
    await desk(asked).ask(Prompt("judge", "judge", "Judge.", f"the key is {secret}"))
    assert secret not in asked.prompts[0].text


# --- budget ----------------------------------------------------------------------------------------


def priced(folder: Path, usd: float | None, clock: FakeClock) -> tuple[Budget, Database]:
    db = Database(folder / "db.sqlite3", clock.now_ms)
    return Budget(ledger.Ledger(db), clock, lambda *_: usd), db


async def spend(db: Database, usd: float | None, session: str = "ses_a", tokens: int = 0) -> None:
    at = FakeClock().now_ms()
    await db.commit(ledger.add(ledger.Entry(at, "judge", session, "anthropic", "m", tokens, 0, usd, 1, "ok")))


@pytest.mark.shows("I41", "GUARD-9")
@pytest.mark.parametrize(
    ("spent", "session", "usd", "allowed"),
    [
        (1.98, "other", 0.02, True),
        (1.99, "other", 0.02, False),
        (0.49, "ses_a", 0.01, True),
        (0.49, "ses_a", 0.02, False),
        (0.49, "other", 0.02, True),
        (2.00, "other", 0.0, False),
    ],
)
async def test_a_call_that_would_pass_a_cap_is_not_made(
    tmp_path: Path, spent: float, session: str, usd: float, allowed: bool
) -> None:
    """2 USD a day and 0.50 a session are never passed, not even by the last call."""
    clock = FakeClock()
    budget, db = priced(tmp_path, usd, clock)
    await spend(db, spent, session)
    asked = model("anthropic", OK)
    d = desk(asked, budget=budget)
    limit = None
    try:
        await d.ask()
    except Unavailable as e:
        assert "over the spend limit" in str(e)
        limit = e.limit
    assert (len(asked.prompts), limit is None) == ((1, True) if allowed else (0, False))
    db.close()


@pytest.mark.shows("I41", "GUARD-9")
async def test_calls_at_once_share_a_cap(tmp_path: Path) -> None:
    """What runs counts as spent; ten sessions at once do not pass the cap together."""
    budget, db = priced(tmp_path, 0.3, FakeClock())
    asked = model("anthropic", *[OK] * 10)
    asked.hold = asyncio.Event()
    d = desk(asked, budget=budget)
    prompts = [Prompt("judge", "judge", "Judge.", "Data.", session=f"ses_{n}") for n in range(10)]
    tasks = [asyncio.create_task(d.ask(p)) for p in prompts]
    while sum(t.done() for t in tasks) < 4:
        await asyncio.sleep(0.001)
    asked.hold.set()
    ended = await asyncio.gather(*tasks, return_exceptions=True)
    assert sum(isinstance(e, Reply) for e in ended) == 6, "6 x 0.30 USD of 2 USD"
    db.close()


@pytest.mark.shows("I41")
async def test_an_unknown_price_counts_by_tokens(tmp_path: Path) -> None:
    """Unknown is unknown, not zero: such calls have a limit of their own, in tokens."""
    budget, db = priced(tmp_path, None, FakeClock())
    await spend(db, None, tokens=499_000)
    asked = model("openai", OK)
    d = desk(asked, budget=budget)
    with pytest.raises(Unavailable, match="over the spend limit"):
        await d.ask()
    assert not asked.prompts
    db.close()


@pytest.mark.shows("I41")
async def test_a_call_counts_before_its_row_is_stored(tmp_path: Path) -> None:
    """Between the end of a call and its ledger row, or with a full disk, nothing is forgotten."""
    budget, db = priced(tmp_path, 0.3, FakeClock())
    entry = ledger.Entry(FakeClock().now_ms(), "judge", "x", "anthropic", "m", 1, 1, 1.9, 1, "ok")
    budget.ended(entry)
    d = desk(model("anthropic", OK), budget=budget)
    with pytest.raises(Unavailable, match="over the spend limit"):
        await d.ask()
    budget.stored(entry)
    assert (await d.ask()).provider == "anthropic"
    db.close()


@pytest.mark.shows("I41")
async def test_a_row_that_could_not_be_stored_comes_with_the_next_one(tmp_path: Path) -> None:
    """A full disk loses no row, and stores none twice."""
    db = Database(tmp_path / "db.sqlite3", FakeClock().now_ms)
    full, work = [True], list[Coroutine[Any, Any, None]]()

    class Disk:
        def read(self, *args: Any) -> Any:
            return db.read(*args)

        async def commit(self, *statements: Any, durable: bool = False) -> int:
            if full[0]:
                raise Unavailable("database or disk is full")
            return await db.commit(*statements, durable=durable)

    sessions: Any = SimpleNamespace(get=lambda _: None)
    disk: Any = Disk()
    nobody: Any = None
    made = Models(disk, sessions, nobody, FakeClock(), log.get("test"), lambda c, _: work.append(c))
    calls = made.calls(Settings(), Keys(), tmp_path, model("anthropic", OK, OK, OK))
    for lost in (True, True, False):
        full[0] = lost
        await calls.ask(PROMPT, 180.0, LIMITS)
        with contextlib.suppress(Unavailable):
            await work.pop()
    assert db.read("SELECT count(*) FROM ledger")[0] == (3,)
    db.close()


class Teller(ScriptedLLM):
    """Says that each call took ``told``."""

    told = Usage()

    async def complete(self, prompt: Prompt, deadline_s: float) -> Reply:
        return replace(await super().complete(prompt, deadline_s), usage=self.told)


@pytest.mark.shows("I41", "GUARD-9")
@pytest.mark.parametrize(
    ("told", "tokens", "usd"),
    [
        (Usage(), (3, 10), 0.3),  # nothing
        (Usage(-500_000, 40), (3, 10), 0.3),
        (Usage(3_000, 0), (3, 10), 0.3),
        (Usage(2**63 - 1, 1, 0.01), (3, 10), 0.01),
        (Usage(0, 0, -5.0), (3, 10), 0.3),
        (Usage(3_000, 400, -5.0), (3_000, 400), None),
        (Usage(3_000, 400), (3_000, 400), None),
    ],
)
async def test_what_a_provider_tells_is_never_less_than_nothing(
    tmp_path: Path, told: Usage, tokens: tuple[int, int], usd: float | None
) -> None:
    """Without tokens, or with numbers that can't be, a call counts by its length."""
    budget, db = priced(tmp_path, 0.3, FakeClock())
    teller = Teller(name="openai")
    teller.told = told
    teller.add("x" * 30)
    d = desk(teller, budget=budget)
    reply = await d.ask()
    (entry,) = d.entries
    assert ((entry.input, entry.output), entry.cost) == (tokens, usd)
    assert (reply.usage.input, reply.usage.output) == tokens
    db.close()


@pytest.mark.shows("I41")
async def test_a_call_nobody_heard_the_end_of_counts(tmp_path: Path) -> None:
    """A cancelled call and one that took too long count with what they may have taken, not as zero."""
    budget, db = priced(tmp_path, 0.3, FakeClock())
    slow = model("anthropic", OK)
    slow.hold = asyncio.Event()
    d = desk(slow, budget=budget)
    asking = asyncio.create_task(d.ask())
    while not slow.prompts:
        await asyncio.sleep(0.001)
    asking.cancel()
    await asyncio.gather(asking, return_exceptions=True)
    late = desk(model("anthropic", fault("timeout")), budget=budget)
    with pytest.raises(Unavailable):
        await late.ask()
    (cancelled,), (timeout,) = d.entries, late.entries
    assert cancelled.cost == timeout.cost == 0.3
    assert (cancelled.outcome, cancelled.input > 0) == ("cancelled", True)
    db.close()


@pytest.mark.shows("GUARD-9")
async def test_over_the_cap_rules_judge_where_only_a_model_was_chosen(tmp_path: Path) -> None:
    """Also with `judge.provider = "anthropic"` the rules judge and the person is told."""
    budget, db = priced(tmp_path, 0.01, FakeClock())
    await spend(db, 2.0)
    d = desk(model("anthropic"), budget=budget)
    d.calls.rules = OfflineProvider()
    reply = await d.ask()
    assert (reply.provider, reply.limit is not None) == ("offline", True)
    db.close()


async def test_no_time_left_is_nobodys_fault() -> None:
    """A model that there was no time to ask is not called down."""
    d = desk(model("anthropic", OK), OfflineProvider())
    assert (await d.ask(left_s=2.5)).provider == "offline"
    assert d.calls.down == {}


ASK = Prompt("asked.judge", "fast", "Judge.", "Data.", session="past", host="claude-code")


@pytest.mark.parametrize(
    ("judges", "first"),
    [
        (("anthropic", "offline"), "anthropic"),
        (("host", "claude-cli"), "claude-cli"),
        (("host", "offline"), None),
        ((), None),
    ],
)
async def test_what_a_person_asks_for_goes_to_the_judges_of_its_host(
    judges: tuple[str, ...], first: str | None
) -> None:
    """The prompt names the host of a session that the daemon does not know. Neither the host's model nor the
    rules answer; without another one there is nobody.
    """
    names = ("host", "anthropic", "openai", "claude-cli")
    d = desk(*(model(name, OK) for name in names), OfflineProvider())
    d.calls.judges = {"claude-code": judges}
    if first is None:
        with pytest.raises(Unavailable, match="nobody"):
            await d.ask(ASK)
    else:
        assert (await d.ask(ASK)).provider == first
        assert [e.account for e in d.entries] == ["asked"]


async def test_a_person_who_waits_is_not_sent_away_for_an_earlier_failure() -> None:
    """Where only the rules would be left, which can't answer this, the model is asked again at once."""
    d = desk(model("anthropic", fault("auth"), OK, OK), OfflineProvider())
    d.calls.judges = {"claude-code": ("anthropic", "offline")}
    with pytest.raises(Unavailable, match="auth"):
        await d.ask(ASK)
    assert (await d.ask(ASK)).provider == "anthropic"

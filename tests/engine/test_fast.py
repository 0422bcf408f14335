"""What hosts offer, kept for five minutes; and the small model's way through policy, budget and ledger."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from msgspec import Raw
from msgspec.structs import replace

from daemon import log
from daemon.core.errors import Unavailable
from daemon.core.fast import Offered, lists_of
from daemon.core.guards import Limits
from daemon.core.llm import Prompt, Reply
from daemon.core.orders import RunJudge
from daemon.core.settings import Fast
from daemon.core.transcript import Model
from daemon.engine.calls import Calls, offered_by
from daemon.engine.hosts.host import Instance, Instances
from daemon.engine.hosts.opencode import Opencode
from daemon.llm.host import HostProvider
from daemon.llm.offered import FAILED_S, KEEP_S
from daemon.store import ledger
from daemon.testing import FakeClock, ScriptedLLM

QUICK = Prompt("stuck", "fast", "Stuck?", "Data.", session="ses_a", model=Model("anthropic", "claude-opus-5"))
HAIKU = {"providers": [{"id": "anthropic", "models": ["claude-opus-5", "claude-haiku-4-5"]}]}
OPENCODE = Opencode(lambda _: False, lambda *_: log.get("test"))


@dataclass
class Desk:
    """Host models on a clock that stands still, and hosts that answer what they are told to."""

    clock: FakeClock = field(default_factory=FakeClock)
    instances: Instances = field(default_factory=lambda: Instances("boot"))
    asked: list[str] = field(default_factory=list)
    answer: Any = field(default_factory=lambda: HAIKU)
    silent: bool = False

    async def offered(self, host: Instance) -> Offered | None:
        """What this host offers."""
        return await offered_by(host, self.clock, log.get("test"))

    @contextlib.asynccontextmanager
    async def host(self, name: str = "i-1") -> AsyncIterator[Instance]:
        """A connected host that answers each order with ``answer``; an exception is a failure."""
        instance = self.instances.add(name, OPENCODE, "serve", 7, "/p")
        ready = asyncio.Event()

        async def read() -> None:
            async for line in self.instances.lines(instance):
                ready.set()
                if not line.strip():
                    continue
                order = json.loads(line)
                self.asked.append(f"{name} {order['kind']}")
                if not self.silent:
                    failed = isinstance(self.answer, Exception)
                    data = b"null" if failed else json.dumps(self.answer).encode()
                    error = str(self.answer) if failed else ""
                    self.instances.answers.result(
                        order["id"], "failed" if failed else "done", Raw(data), error
                    )

        reading = asyncio.create_task(read())
        await ready.wait()
        yield instance
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)


async def test_a_host_is_asked_every_five_minutes() -> None:
    """Seed, "Caching Strategy": the fast model cache lives 5 minutes."""
    d = Desk()
    async with d.host() as host:
        assert await d.offered(host) == {"anthropic": ("claude-opus-5", "claude-haiku-4-5")}
        d.answer = {"providers": []}
        d.clock.advance(KEEP_S - 1)
        assert await d.offered(host) == {"anthropic": ("claude-opus-5", "claude-haiku-4-5")}
        d.clock.advance(1)
        assert await d.offered(host) == {}
    assert d.asked == ["i-1 providers"] * 2


@pytest.mark.shows("I36")
@pytest.mark.parametrize("answer", [Unavailable("unknown order providers"), [], 7])
async def test_a_host_that_does_not_say(answer: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """An older shim or an odd answer: nothing known, said once in the log, asked again soon."""
    d = Desk(answer=answer)
    async with d.host() as host:
        assert await d.offered(host) is None
        assert await d.offered(host) is None
        d.clock.advance(FAILED_S)
        assert await d.offered(host) is None
        d.answer = HAIKU
        d.clock.advance(FAILED_S)
        assert await d.offered(host)
    assert len(d.asked) == 3
    said = capsys.readouterr()
    assert (said.out + said.err).count("does not say which models") == 1


@pytest.mark.shows("I35")
async def test_a_host_that_goes_away() -> None:
    """Nobody waits for a host that is gone."""
    d = Desk(silent=True)
    async with d.host() as host:
        asking = asyncio.create_task(d.offered(host))
        while not d.asked:
            await asyncio.sleep(0)
    assert await asking is None


# --- through the calls -----------------------------------------------------------------------------


@dataclass
class Asked:
    """``Calls`` over a host whose judge sessions fail for the models in ``unknown``."""

    unknown: tuple[str, ...] = ()
    beside: tuple[ScriptedLLM, ...] = ()
    entries: list[ledger.Entry] = field(default_factory=list)
    waited: list[float] = field(default_factory=list)
    said: str = "Model not found"

    def __post_init__(self) -> None:
        clock = FakeClock()
        host = HostProvider(
            self.run, "openai/judge", lists=lists_of(Fast()), look=self.look, monotonic=clock.monotonic
        )
        found = (host, *self.beside)
        self.calls = Calls(found, clock, log.get("test"), self.entries.append, sleep=self.sleep)

    async def sleep(self, seconds: float) -> None:
        self.waited.append(seconds)

    async def look(self, session: str) -> dict[str, tuple[str, ...]]:
        assert session == "ses_a"
        return {"anthropic": ("claude-haiku-5-5", "claude-haiku-4-5", "claude-opus-5")}

    async def run(self, order: RunJudge, deadline_s: float) -> Raw:
        del deadline_s
        if order.model is not None and order.model.model in self.unknown:
            raise Unavailable(f"the host answered failed: {self.said}")
        return Raw(b'{"text": "{}"}')

    async def ask(self, prompt: Prompt = QUICK) -> Reply:
        return await self.calls.ask(prompt, 60.0, Limits())

    @property
    def rows(self) -> list[tuple[str, str]]:
        return [(e.model.rpartition("/")[2], e.outcome[:5]) for e in self.entries]


@pytest.mark.shows("I41")
async def test_the_ledger_shows_the_model_that_answered() -> None:
    """A quick question costs what its small model costs, and is shown as that."""
    a = Asked()
    assert (await a.ask()).model == "anthropic/claude-haiku-5-5"
    assert (await a.ask(replace(QUICK, purpose="judge", tier="judge"))).model == "openai/judge"
    assert a.rows == [("claude-haiku-5-5", "ok"), ("judge", "ok")]


async def test_a_refused_model_is_followed_by_the_next_at_once() -> None:
    """Issue 4, part 2: the next entry once, without a pause; each call has its row with its own model."""
    a = Asked(unknown=("claude-haiku-5-5",))
    assert (await a.ask()).model == "anthropic/claude-haiku-4-5"
    assert a.rows == [("claude-haiku-5-5", "error"), ("claude-haiku-4-5", "ok")]
    assert a.waited == [0.0]


async def test_a_small_model_that_fails_leaves_the_judge_alone() -> None:
    """A broken small model neither holds up the judge behind the same door nor is taken for it."""
    other = ScriptedLLM(name="openai")
    other.add("{}")
    a = Asked(unknown=("claude-haiku-5-5",), beside=(other,), said="overflow")
    assert (await a.ask()).provider == "openai"
    assert list(a.calls.down) == ["host (fast)"]
    assert (await a.ask(replace(QUICK, purpose="judge", tier="judge"))).provider == "host"
    assert list(a.calls.down) == ["host (fast)"]

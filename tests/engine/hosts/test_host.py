"""The port to a host: calls and their results, orders, what a host can do."""

from __future__ import annotations

import asyncio
import json

import pytest
from msgspec import Raw

from daemon import log
from daemon.core.errors import Unavailable
from daemon.core.orders import ReadProviders, RunJudge, ShowToast
from daemon.engine.hosts.claude_code import ClaudeCode
from daemon.engine.hosts.codex import Codex
from daemon.engine.hosts.host import CAPABILITIES, QUEUE, Instance, Instances, capabilities
from daemon.engine.hosts.opencode import Opencode

JUDGE = RunJudge("ses_a", "Judge.", "Data.", None, 1_000)


@pytest.fixture
def instance() -> Instance:
    host = Opencode(lambda _: False, lambda *_: log.get("test"))
    return Instances("boot").add("i", host, "serve", 1, "/p")


def sent(instance: Instance) -> list[dict[str, object]]:
    """The orders that wait in its queue."""
    found = []
    while not instance.queue.empty():
        line = instance.queue.get_nowait()
        found.append(json.loads(line or b"{}"))
    return found


def test_every_host_has_its_capabilities() -> None:
    """No other part of the engine asks for a host by name; one that is not known can do nothing."""
    assert {Opencode.name, ClaudeCode.name, Codex.name} == set(CAPABILITIES)
    assert capabilities("opencode").order_stream
    assert not capabilities("claude-code").order_stream
    unknown = capabilities("something new")
    assert not unknown.order_stream
    assert not unknown.lends_models
    assert not unknown.shares_sessions


async def test_a_call_is_answered_by_its_own_result(instance: Instance) -> None:
    """Two calls at once; a result that nobody waits for is nobody's."""
    first = asyncio.create_task(instance.call(ReadProviders(), 60))
    second = asyncio.create_task(instance.call(ReadProviders(), 60))
    await asyncio.sleep(0)
    one, two = (str(order["id"]) for order in sent(instance))
    assert instance.answers.result(two, "done", Raw(b"2"), "")
    assert instance.answers.result(one, "failed", Raw(b"null"), "no such thing")
    assert bytes(await second) == b"2"
    with pytest.raises(Unavailable, match="no such thing"):
        await first
    assert not instance.answers.result(one, "done", Raw(b"1"), "")


@pytest.mark.shows("I37", "I41")
async def test_a_call_that_nobody_waits_for_is_cancelled_at_the_host(instance: Instance) -> None:
    """A judge session must not go on spending when its answer is not wanted any more."""
    asking = asyncio.create_task(instance.call(JUDGE, 60))
    await asyncio.sleep(0)
    (order,) = sent(instance)
    asking.cancel()
    await asyncio.gather(asking, return_exceptions=True)
    (cancel,) = sent(instance)
    assert (cancel["kind"], cancel["data"]) == ("cancel", {"order": order["id"]})


async def test_calls_end_when_the_host_goes(instance: Instance) -> None:
    """Nobody waits for a host that is gone."""
    asking = asyncio.create_task(instance.call(ReadProviders(), 60))
    await asyncio.sleep(0)
    instance.answers.fail("another", "gone")
    instance.answers.fail("i", "its stream closed")
    with pytest.raises(Unavailable, match="its stream closed"):
        await asking


@pytest.mark.shows("I44")
async def test_a_queue_that_is_full(instance: Instance) -> None:
    """A host that reads nothing gets no endless queue; what is not worth storing is lost quietly."""
    for _ in range(QUEUE):
        instance.push(b"x\n")
    with pytest.raises(Unavailable, match="does not read its orders"):
        await instance.call(JUDGE, 60)
    instance.tell(ShowToast("ses_a", "hello"))
    assert instance.queue.qsize() == QUEUE

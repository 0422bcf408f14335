"""Those who watch: bounded, never waited for, and told what they missed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

import pytest

from daemon.core.errors import Unavailable
from daemon.engine.stream import QUEUE, READERS, SKIPS_KEPT, Hub


def entry(session: str, at: int = 1, directory: str = "/p", **more: Any) -> dict[str, Any]:
    return {"session": session, "at": at, "directory": directory, **more}


async def open_reader(hub: Hub, **which: str) -> AsyncIterator[dict[str, Any] | None]:
    """A reader that is registered (its first heartbeat came)."""
    found = hub.entries(**which)
    assert await anext(found) is None
    return found


async def taken(reader: AsyncIterator[dict[str, Any] | None], count: int) -> list[dict[str, Any]]:
    found = [await anext(reader) for _ in range(count)]
    assert None not in found
    return [e for e in found if e is not None]


async def test_what_is_published_comes_in_order() -> None:
    """Every reader gets every entry once, in order, with its kind."""
    hub = Hub()
    assert not hub.watched
    one, two = await open_reader(hub), await open_reader(hub)
    assert hub.watched
    for n in range(5):
        hub.publish("verdict" if n % 2 else "judging", entry("ses_a", n))
    for reader in (one, two):
        said = await taken(reader, 5)
        assert [(e["at"], e["kind"]) for e in said] == [
            (n, "verdict" if n % 2 else "judging") for n in range(5)
        ]
        await reader.aclose()  # type: ignore[attr-defined]
    assert not hub.watched


@pytest.mark.shows("I44")
async def test_a_reader_that_is_slow_loses_the_oldest() -> None:
    """Its queue is bounded; publishing goes on, and the next entry says how many were lost."""
    hub = Hub()
    reader = await open_reader(hub)
    for n in range(QUEUE + 7):
        hub.publish("verdict", entry("ses_a", n))
    first, second = await taken(reader, 2)
    assert (first["at"], first["dropped"]) == (7, 7)
    assert (second["at"], "dropped" in second) == (8, False)
    await reader.aclose()  # type: ignore[attr-defined]


async def test_readers_get_what_they_asked_for() -> None:
    """A session by the beginning of its id, a folder with what is below it and nothing beside it."""
    hub = Hub()
    mine, here = await open_reader(hub, session="ses_a"), await open_reader(hub, directory="/p/")
    for n, (session, directory) in enumerate(
        [("ses_b", "/p"), ("ses_ab", "/q"), ("ses_b", "/pp"), ("ses_a", "/p/sub")]
    ):
        hub.publish("verdict", entry(session, n, directory))
    assert [e["at"] for e in await taken(mine, 2)] == [1, 3]
    assert [e["at"] for e in await taken(here, 2)] == [0, 3]
    for reader in (mine, here):
        await reader.aclose()  # type: ignore[attr-defined]


@pytest.mark.shows("I44")
async def test_one_reader_too_many_is_refused() -> None:
    """Readers are bounded; the place of one that left is free again."""
    hub = Hub()
    readers = [await open_reader(hub) for _ in range(READERS)]
    with pytest.raises(Unavailable, match="watching already"):
        await open_reader(hub)
    await readers[0].aclose()  # type: ignore[attr-defined]
    readers[0] = await open_reader(hub)
    for reader in readers:
        await reader.aclose()  # type: ignore[attr-defined]


@pytest.mark.shows("I45")
async def test_closing_ends_every_reader() -> None:
    """A daemon that stops does not wait for those who watch."""
    hub = Hub()
    said: list[dict[str, Any] | None] = []

    async def read() -> None:
        async with aclosing(hub.entries()) as entries:  # type: ignore[type-var]
            said.extend([e async for e in entries])

    tasks = [asyncio.create_task(read()) for _ in range(3)]
    while not hub.watched:
        await asyncio.sleep(0)
    hub.close()
    await asyncio.wait_for(asyncio.gather(*tasks), 10)
    assert not hub.watched


@pytest.mark.shows("I44")
async def test_the_last_no_of_each_session_is_kept() -> None:
    """The newest one, redacted, for a bounded number of sessions."""
    hub = Hub()
    for n in range(SKIPS_KEPT + 1):
        hub.publish("skip", entry(f"ses_{n}", n, guard="busy", reason="it works"))
    hub.publish("skip", entry("ses_1", 2, guard="off", reason="token=sk-ant-api03-" + "a" * 40))
    assert hub.last_skip("ses_0") is None
    found = hub.last_skip("ses_1")
    assert found is not None
    assert (found["guard"], found["at"], "sk-ant" in found["reason"]) == ("off", 2, False)
    hub.publish("verdict", entry("ses_1", 9))
    assert hub.last_skip("ses_1") == found

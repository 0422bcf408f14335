"""The small model for quick questions, with the real opencode: what it offers, and that it is asked."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from daemon import app, config, paths
from daemon.core.guards import Limits
from daemon.core.llm import Prompt
from daemon.core.transcript import Model
from tests.support.opencode import OpencodeServe

if TYPE_CHECKING:
    from tests.support.model_server import ModelServer
    from tests.support.sandbox import Sandbox

SETTINGS = """
judge.provider = "host"
[fast]
anthropic = "fake-9, fake-2"
"""


async def test_the_real_host_says_what_it_offers_and_is_asked_for_it(
    own_box: Sandbox, llm: ModelServer
) -> None:
    """Issue 4, part 2: `client.config.providers` of the real binary, ids only; the judge session of a quick
    question runs on the first that is there, not on the session's own model.
    """
    daemon = app.Daemon(config.from_text(SETTINGS), paths.resolve(own_box.env()))
    ready = asyncio.Event()
    serving = asyncio.create_task(daemon.serve(ready.set))
    await ready.wait()
    host = await asyncio.to_thread(OpencodeServe(own_box, llm.url).__enter__)
    try:
        session = await asyncio.to_thread(host.create_session)
        async with asyncio.timeout(30):
            while (known := daemon.world.sessions.get(session.id)) is None:
                await asyncio.sleep(0.05)
        instance = daemon.instances.connected(known.instance)
        assert instance is not None
        offered = await daemon.host_models.of(instance)
        assert offered is not None
        models = {"fake-1", "fake-2", "fake-small"}
        assert {p: {*ids} for p, ids in offered.items()} == {"fake": models, "fakeant": models}
        llm.judge("{}")
        asked = Prompt("stuck", "fast", "Stuck?", "Data.", session.id, Model("fake", "fake-1"))
        reply = await daemon.world.calls.ask(asked, 30.0, Limits())
        assert (reply.provider, reply.model) == ("host", "fake/fake-2")
        assert [r.model for r in llm.of("judge")] == ["fake-2"]
    finally:
        await asyncio.to_thread(host.__exit__, None, None, None)
        daemon.stopping.set()
        await serving

"""The small model for quick questions, with the real opencode: what it offers, and that it is asked."""

from __future__ import annotations

import asyncio

from daemon import app, config, log, paths
from daemon.clock import SystemClock
from daemon.core.guards import Limits
from daemon.core.llm import Prompt
from daemon.core.transcript import Model
from daemon.engine.calls import offered_by
from daemon.engine.hosts.host import Instance
from harness.hosts.opencode import OpencodeServe
from harness.machine.sandbox import Sandbox
from harness.machine.waiting import PATIENCE_S
from harness.models.server import ModelServer

SETTINGS = """
judge.provider = "host"
[fast]
models = "fake-9, fake-2"
"""


def connected(daemon: app.Daemon, session: str) -> Instance | None:
    """The host of this session, once its order stream is open."""
    known = daemon.world.sessions.get(session)
    return daemon.engine.instances.connected(known.instance) if known is not None else None


async def test_the_real_host_says_what_it_offers_and_is_asked_for_it(
    own_box: Sandbox, llm: ModelServer
) -> None:
    """A quick question runs on the first model of the setting that the real host lists."""
    daemon = app.Daemon(config.from_text(SETTINGS), paths.resolve(own_box.env()))
    ready = asyncio.Event()
    serving = asyncio.create_task(daemon.serve(ready.set))
    await ready.wait()
    host = await asyncio.to_thread(OpencodeServe(own_box, llm.url).__enter__)
    try:
        session = await asyncio.to_thread(host.create_session)
        async with asyncio.timeout(PATIENCE_S):
            while (instance := connected(daemon, session.id)) is None:
                await asyncio.sleep(0.05)
            while (offered := await offered_by(instance, SystemClock(), log.get("test"))) is None:
                instance.offers = None  # a busy host is given up after 5 s
        names = {"fake-1", "fake-2", "fake-small"}
        assert {p: {*ids} for p, ids in offered.items()} == {"fake": names, "fakeant": names}
        llm.judge("{}")
        asked = Prompt("stuck", "fast", "Stuck?", "Data.", session.id, Model("fake", "fake-1"))
        reply = await daemon.world.calls.ask(asked, PATIENCE_S, Limits())
        assert (reply.provider, reply.model) == ("host", "fake/fake-2")
        assert [r.model for r in llm.of("judge")] == ["fake-2"]
    finally:
        await asyncio.to_thread(host.__exit__, None, None, None)
        daemon.stopping.set()
        await serving

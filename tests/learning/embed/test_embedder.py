"""One model for embeddings for the playbook and the memory: made once, loaded once, gone when it is idle."""

from __future__ import annotations

import asyncio
import gc
from typing import TYPE_CHECKING

import pytest

from daemon import config, log
from daemon.core.errors import UserError
from daemon.learning.embed.minilm import MiniLM
from daemon.learning.embed.vectors import Embeddings, Vector, vectors
from daemon.learning.lessons.feature import Memory
from daemon.learning.playbook.feature import similar
from daemon.testing import FakeClock, ScriptedLLM
from harness.machine.waiting import wait_until
from tests.learning.playbook.books import point
from tests.support.hosts.opencode_sim import SimDaemon

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from daemon.learning.embed.vectors import Embedder

BOTH = "[memory]\nenabled = true\n[playbook]\nenabled = true\n"
TEXTS = ["Prefer small pull requests", "Pull requests should be kept small", "The tests need redis"]


def sessions_of_the_model() -> int:
    """How many models are in this process's memory."""
    from onnxruntime import InferenceSession

    gc.unfreeze()  # a daemon hides what it made at its start from the collector
    gc.collect()
    return sum(isinstance(o, InferenceSession) for o in gc.get_objects())


@pytest.mark.needs("embeddings")
async def test_playbook_and_memory_load_one_model(tmp_path: Path) -> None:
    """Both ask at once, and one model is in memory; idle it goes, either brings it back, and it ends with the
    daemon.
    """
    sim = SimDaemon(tmp_path, FakeClock(), ScriptedLLM(), config.from_text(BOTH))
    await sim.start()
    features = sim.daemon.engine.features
    memory, world = features.named("memory"), sim.daemon.world
    assert isinstance(memory, Memory)
    points = [point(f"pat-{i:03d}", text) for i, text in enumerate(TEXTS)]
    alike = similar(points, (), world.embeddings, 0.85)
    pairs, vector = await asyncio.gather(alike, memory._vectors.one("redis is down"))
    assert (pairs, vector is not None) == ([("pat-000", "pat-001")], True)
    assert sessions_of_the_model() == 1
    made = memory._vectors._made
    assert isinstance(made, MiniLM)
    assert memory._vectors.loaded

    made._idle_s = 0.05
    await memory._vectors.one("another text")
    await asyncio.to_thread(wait_until, lambda: not made.loaded, "a model that is gone")
    assert sessions_of_the_model() == 0
    assert not memory._vectors.loaded

    made._idle_s = 600
    await memory._vectors.warm()
    assert memory._vectors.loaded, "the text that warms it is no text that is remembered"
    await similar(points, (), world.embeddings, 0.85)
    assert sessions_of_the_model() == 1
    await sim.stop()
    assert sessions_of_the_model() == 0


@pytest.mark.needs("embeddings")
async def test_a_prompt_does_not_wait_for_a_long_list() -> None:
    """A question of one text is answered while a list of many is still computed."""
    made = MiniLM()
    long = asyncio.create_task(made.embed([f"point {n} of a long playbook" for n in range(40)]))
    await made.embed(["a prompt"])
    assert not long.done()
    await long
    await made.close()


class Letters:
    """An embedder that counts; it is there at once."""

    model, loaded = "letters", True

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        return vectors(self.model, [[1.0, float(len(text))] for text in texts])

    async def close(self) -> None: ...


async def test_it_is_made_once(capsys: pytest.CaptureFixture[str]) -> None:
    """For however many ask at once; settings that are wrong are asked for again and logged once, no model at
    all is not.
    """
    asked: list[str] = []

    def wrong() -> Embedder | None:
        asked.append("wrong")
        raise UserError("embed.key_file can't be read")

    def none() -> Embedder | None:
        asked.append("none")
        return None

    def right() -> Embedder | None:
        asked.append("right")
        return Letters()

    for make, many in ((none, 0), (right, 1)):
        shared = Embeddings(make, log.get("test"))
        found = await asyncio.gather(*[shared.of(["a"]) for _ in range(5)])
        assert [len(each) for each in found] == [many] * 5
        assert await shared.of(["a", " "]) == []
        await shared.close()
    failing = Embeddings(wrong, log.get("test"))
    assert [await failing.one("a") for _ in range(2)] == [None, None]
    assert asked == ["none", "right", "wrong", "wrong"]
    assert "".join(capsys.readouterr()).count("embed.key_file can't be read") == 1
    await failing.close()

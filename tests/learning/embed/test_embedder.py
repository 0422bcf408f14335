"""One model for embeddings for the playbook and the memory: made once, loaded once, gone when it is idle."""

from __future__ import annotations

import asyncio
import gc
from typing import TYPE_CHECKING

import pytest

from daemon import log
from daemon.core.errors import UserError
from daemon.learning.embed import vectors as vectors_module
from daemon.learning.embed.minilm import MiniLM
from daemon.learning.embed.vectors import Embeddings, Vector, vectors

if TYPE_CHECKING:
    from collections.abc import Sequence

    from daemon.learning.embed.vectors import Embedder

TEXTS = ["Prefer small pull requests", "Pull requests should be kept small", "The tests need redis"]


def sessions_of_the_model() -> int:
    """How many models are in this process's memory."""
    from onnxruntime import InferenceSession

    gc.unfreeze()  # a daemon hides what it made at its start from the collector
    gc.collect()
    return sum(isinstance(o, InferenceSession) for o in gc.get_objects())


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


async def test_a_slow_model_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """There are no vectors then, and the log says why."""

    class Hangs(Letters):
        async def embed(self, texts: Sequence[str]) -> list[Vector]:
            await asyncio.Event().wait()
            return await super().embed(texts)

    monkeypatch.setattr(vectors_module, "EMBED_S", 0.02)
    shared = Embeddings(Hangs, log.get("test"))
    assert await shared.of(["a"]) == []
    assert "no answer in 0.02 s" in "".join(capsys.readouterr())
    await shared.close()

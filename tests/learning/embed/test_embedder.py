"""One model for embeddings for the playbook and the memory: made once, loaded once, gone when it is idle."""

from __future__ import annotations

import asyncio
import weakref
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from daemon import log
from daemon.core.errors import Unavailable, UserError
from daemon.learning.embed import vectors as vectors_module
from daemon.learning.embed.minilm import File, MiniLM, check
from daemon.learning.embed.vectors import Embeddings, Vector, vectors
from harness.machine.waiting import PATIENCE_S

if TYPE_CHECKING:
    from collections.abc import Sequence

    from daemon.learning.embed.vectors import Embedder


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


@pytest.mark.needs("embeddings")
async def test_it_is_loaded_at_first_need_and_goes_after_idle() -> None:
    """Making one loads nothing; after a while without a call it is gone, and the next call brings it back."""
    made = MiniLM(idle_s=0.2)
    assert not made.loaded
    (first,) = await made.embed(["the tests need redis"])
    assert len(first.row) == 384
    assert made._loaded is not None
    session = weakref.ref(made._loaded._session)
    async with asyncio.timeout(PATIENCE_S):
        while made.loaded:
            await asyncio.sleep(0.01)
    assert session() is None, "something still holds the model"
    assert await made.embed(["the tests need redis"]) == [first]
    await made.close()
    assert not made.loaded


@pytest.mark.needs("embeddings")
def test_the_installed_files_are_the_ones_that_are_meant() -> None:
    """The digests in the code are those of the locked packages."""
    check()


async def test_another_file_is_not_loaded() -> None:
    """A package of the same name with other contents, or without the file, or none at all."""
    other = File("daemon", "__init__.py", "0" * 64)
    with pytest.raises(Unavailable, match=r"daemon/__init__\.py is another file than expected"):
        await MiniLM(weights=other).embed(["a"])
    with pytest.raises(Unavailable, match="No such file"):
        await MiniLM(weights=File("daemon", "none.onnx", "")).embed(["a"])
    with pytest.raises(Unavailable, match="no_such_package"):
        await MiniLM(weights=File("no_such_package", "model.onnx", "")).embed(["a"])


async def test_a_model_that_cant_be_read_is_a_sentence() -> None:
    """The digest is right, and the libraries refuse the file (or are not there)."""
    found = Path("daemon/__init__.py").read_bytes()
    no_model = File("daemon", "__init__.py", sha256(found).hexdigest())
    made = MiniLM(weights=no_model, vocabulary=no_model)
    with pytest.raises(Unavailable, match="minilm: its packages can't be used"):
        await made.embed(["a"])
    await made.close()

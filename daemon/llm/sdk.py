"""What the providers with an SDK share: the client's life, one call within its deadline, what it asks for.

The SDK (1.3 s to import for anthropic) is imported in a thread, by ``warm`` or at the first call, and
rehearses a call there, so that the loop is never held up. It never retries (the caller's job), prints
nothing, and takes nothing from the environment: no key, address, header, organisation or proxy. An empty
``base_url`` is the SDK's official address.

A server may refuse a parameter that we would like (structured output, temperature …). Then it is left out
for that model from then on, and asked again at once. The tier ``fast`` goes to the first of ``fast_models``
that the server lists; the others never do. Failures are ``Unavailable`` with a fault, a reply
that was cut off or is empty is ``BadReply``; a cancelled call drops its connection.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeVar

import msgspec

from daemon.core.errors import BadReply, Unavailable, UserError
from daemon.core.llm import Prompt, Reply, Usage
from daemon.llm import address, faults, prices
from daemon.llm.faults import Asked
from daemon.llm.offered import FastOfApi

if TYPE_CHECKING:
    import re
    from collections.abc import Awaitable, Callable, Mapping

    from httpx2 import AsyncBaseTransport, AsyncClient, Request, Response

    from daemon.core.errors import ReflectdError
    from daemon.llm.offered import Monotonic

Body = dict[str, Any]
T = TypeVar("T")

NO_KEY: Final = "none"  # servers without keys ignore it; the SDKs want one
CONNECT_S: Final = 15.0
LIST_S: Final = 5.0
MOST_LISTED: Final = 5_000
LARGE: Final = 256 * 1024
LONGEST_NAME: Final = 200
THINKING_TOKENS: Final = 8_000  # more room for a model that was seen to think and was cut off
REFUSING: Final = frozenset({400, 404, 422, 500, 501})
HEADERS: Final = frozenset({
    "accept",
    "accept-encoding",
    "anthropic-version",
    "authorization",
    "connection",
    "content-length",
    "content-type",
    "host",
    "user-agent",
    "x-stainless-raw-response",  # by it the SDK knows that the body is wanted as it came
})  # fmt: skip
LOGGERS: Final = ("anthropic", "openai", "httpx2", "httpcore2")


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer as both protocols give it. ``usage.cost`` is not yet known."""

    text: str
    model: str
    usage: Usage
    written: int = 0  # input tokens that went into a cache
    thought: int = 0  # of the output tokens
    cut: bool = False
    refusal: str | None = None


class _Entry(msgspec.Struct):
    id: str


class _Listed(msgspec.Struct):
    data: list[_Entry]


_decode_listed = msgspec.json.Decoder(_Listed).decode


class SdkProvider(ABC):
    """A provider (``core.ports.Provider``) on top of an SDK, for one loop. Making one imports nothing."""

    name: ClassVar[str]
    wishes: ClassVar[tuple[tuple[str, re.Pattern[str]], ...]]
    """What can be left out, and how a server's error text names it; the first match goes."""

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
        self._key = address.key(self.name, api_key.strip(), base_url) or NO_KEY
        url = self._address(address.url(self.name, base_url.strip().rstrip("/")))
        self._url = "" if url == self.official else url
        if not model:
            raise UserError(f"{self.name}: no model is set; name one")
        self._model, self._list_s = model, list_s
        self._fast = FastOfApi(fast_models, model, self._list, monotonic, official=not self._url)
        self._lock = asyncio.Lock()
        self._client: Any = None
        self._sdk: Any = None
        self._without: dict[str, frozenset[str]] = {}
        self._thinks: set[str] = set()

    # --- what differs -----------------------------------------------------------------------------

    official: ClassVar[str]

    def _address(self, url: str) -> str:
        """The address as the SDK wants it."""
        return url

    @abstractmethod
    def _import(self) -> Any:  # noqa: ANN401 - a module that mypy would have to import
        """The SDK's module."""

    @abstractmethod
    def _make(self, sdk: Any, http: AsyncClient) -> Any:  # noqa: ANN401 - the SDK's client
        """A client that sends through ``http``."""

    @abstractmethod
    def _body(self, prompt: Prompt, model: str, max_tokens: int, without: frozenset[str]) -> Body:
        """The arguments of one call, without what was refused before."""

    @abstractmethod
    def _used(self, prompt: Prompt, without: frozenset[str]) -> frozenset[str]:
        """The wishes that are in the body."""

    @abstractmethod
    async def _send(self, client: Any, body: Body, wait: Any) -> Response:  # noqa: ANN401 - the SDK's
        """One call. Raises the SDK's errors."""

    @abstractmethod
    async def _send_list(self, client: Any, wait: Any) -> Response:  # noqa: ANN401 - the SDK's
        """One call for the models that there are. Raises the SDK's errors."""

    @abstractmethod
    def _read(self, content: bytes, asked: Asked) -> Answer:
        """The answer in a body. Raises ``msgspec.MsgspecError``, or ``Unavailable`` for an error in a 200."""

    @abstractmethod
    def _structured(self, prompt: Prompt, without: frozenset[str]) -> bool:
        """Whether structured output was in force."""

    # --- the client's life ------------------------------------------------------------------------

    async def warm(self) -> None:
        """Import the SDK and make the client, in a thread. Never fails: a fault shows at the first call."""
        with contextlib.suppress(Unavailable):
            await self._ready()

    async def _ready(self) -> None:
        async with self._lock:
            if self._client is None:
                try:
                    self._sdk, self._client = await asyncio.to_thread(self._load)
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

    def _load(self) -> tuple[Any, Any]:
        sdk = self._import()
        prices.load()
        for each in LOGGERS:  # SDKs log to the terminal when the environment says so
            logging.getLogger(each).addHandler(logging.NullHandler())
            logging.getLogger(each).propagate = False
        asyncio.run(self._rehearse(sdk))
        return sdk, self._make(sdk, self._http())

    async def _rehearse(self, sdk: Any) -> None:  # noqa: ANN401 - the SDK's module
        """One call that goes nowhere: the first one imports and builds more, for 20 ms."""
        import anyio.lowlevel
        import httpx2

        async def nobody(_: Request) -> Response:
            return httpx2.Response(200, json={})

        http = self._http(httpx2.MockTransport(nobody))
        prompt = Prompt("judge", "judge", "", "", schema={"type": "object", "properties": {}})
        async with http:
            await anyio.lowlevel.checkpoint()  # imports what real connections are made with
            await self._send(
                self._make(sdk, http), self._body(prompt, self._model, 1, frozenset()), httpx2.Timeout(1.0)
            )

    def _http(self, transport: AsyncBaseTransport | None = None) -> AsyncClient:
        """Without the environment's proxies, without redirects (they would carry the key elsewhere)."""
        import httpx2

        return httpx2.AsyncClient(
            trust_env=False,
            follow_redirects=False,
            transport=transport,
            event_hooks={"request": [self._own_headers]},
        )

    async def _own_headers(self, request: Request) -> None:
        """Drop what the SDK adds from the environment (headers, organisation) and about this machine."""
        for name in [n for n in request.headers if n.lower() not in HEADERS]:
            del request.headers[name]
        request.headers["authorization"] = f"Bearer {self._key}"

    # --- one call -----------------------------------------------------------------------------------

    async def chosen(self, prompt: Prompt) -> Prompt:
        """``prompt`` itself; of the tier ``fast`` after a look, if need be, at which models there are."""
        if prompt.tier == "fast":
            await self._fast.look()
        return prompt

    def model_for(self, prompt: Prompt) -> tuple[str, str]:
        """The setting's model, for the tier ``fast`` the small one that is there; who sells it is unknown
        behind an address of one's own.
        """
        model = self._fast.model if prompt.tier == "fast" else self._model
        return ("" if self._url else self.name), model

    def most_tokens(self, prompt: Prompt) -> int:
        """What the prompt allows, and room to think for a model that was seen to need it."""
        thinks = self.model_for(prompt)[1] in self._thinks
        return prompt.max_tokens + (THINKING_TOKENS if thinks else 0)

    async def complete(self, prompt: Prompt, deadline_s: float) -> Reply:
        """One reply. Raises ``Unavailable`` with a fault, or ``BadReply`` with the raw text."""
        started = time.monotonic()
        asked = self._asked(self.model_for(prompt)[1])
        answer: Answer | None = None
        problem: ReflectdError
        try:
            async with asyncio.timeout(deadline_s):
                await self._ready()
                answer = await self._ask(prompt, asked, started + deadline_s)
        except TimeoutError:
            problem = faults.of_timeout(asked, deadline_s)
        except Unavailable as e:
            if e.fault == "model" and prompt.tier == "fast":
                self._fast.refuse(asked.model)
            raise
        if answer is None:
            raise problem
        return self._reply(prompt, asked, answer, time.monotonic() - started)

    def _asked(self, model: str) -> Asked:
        host = address.host(self._url or self.official)
        return Asked(self.name, host, model, "" if self._key == NO_KEY else self._key)

    async def _list(self) -> tuple[str, ...]:
        """The ids of the models that the API lists. Raises ``Unavailable``."""
        asked, found = self._asked(""), None
        problem: Unavailable
        try:
            async with asyncio.timeout(self._list_s):
                await self._ready()
                found = await self._post(
                    lambda wait: self._send_list(self._client, wait), asked, self._list_s
                )
        except TimeoutError:
            problem = faults.of_timeout(asked, self._list_s)
        if found is None:
            raise problem
        if not isinstance(found, bytes):
            raise faults.of_status(asked, *found, time.time())
        listed = await self._understand(_decode_listed, found, asked)
        return tuple(entry.id for entry in listed.data[:MOST_LISTED])

    async def _ask(self, prompt: Prompt, asked: Asked, end: float) -> Answer:
        """Ask, and again without what the server refuses: each time there is one wish fewer."""
        while True:
            without = self._without.get(asked.model, frozenset())
            room = THINKING_TOKENS if asked.model in self._thinks else 0
            body = self._body(prompt, asked.model, prompt.max_tokens + room, without)
            send = partial(self._send, self._client, body)
            found = await self._post(send, asked, max(0.1, end - time.monotonic()))
            if isinstance(found, bytes):
                return await self._understand(partial(self._read, asked=asked), found, asked)
            status, headers, text = found
            refused = self._refused(status, text, self._used(prompt, without))
            if not refused:
                raise faults.of_status(asked, status, headers, text, time.time())
            self._without[asked.model] = self._without.get(asked.model, frozenset()) | {refused}

    async def _post(
        self, send: Callable[[Any], Awaitable[Response]], asked: Asked, left_s: float
    ) -> bytes | tuple[int, Mapping[str, str], str]:
        """A success's body, or status, headers and body of a failure."""
        import httpx2

        problem: Unavailable
        try:
            wait = httpx2.Timeout(left_s, connect=min(left_s, CONNECT_S))
            response = await send(wait)
        except self._sdk.APITimeoutError:
            problem = faults.of_timeout(asked, left_s)
        except self._sdk.APIStatusError as e:
            return e.status_code, e.response.headers, e.response.text
        except (self._sdk.APIConnectionError, httpx2.HTTPError) as e:
            problem = faults.of_connection(asked, e)
        else:
            return response.content
        # raised here, not in the handler: the SDK's errors hold the request with the key
        raise problem

    async def _understand(self, read: Callable[[bytes], T], content: bytes, asked: Asked) -> T:
        try:
            if len(content) > LARGE:
                return await asyncio.to_thread(read, content)
            return read(content)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            what = "a web page" if content[:200].lstrip().startswith(b"<") else "not of the agreed form"
            problem = faults.of_form(asked, what)
        raise problem

    def _refused(self, status: int, text: str, used: frozenset[str]) -> str:
        """The wish that the server's error names, or nothing."""
        if status not in REFUSING:
            return ""
        said = faults.said_in(text)
        return next((wish for wish, named in self.wishes if wish in used and named.search(said)), "")

    def _reply(self, prompt: Prompt, asked: Asked, answer: Answer, seconds: float) -> Reply:
        usage = replace(answer.usage, cost=self._cost(asked.model, answer))
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
        without = self._without.get(asked.model, frozenset())
        return Reply(
            text=answer.text,
            provider=self.name,
            model=_name(answer.model) or asked.model,
            data=_object(answer.text) if self._structured(prompt, without) else None,
            usage=usage,
            seconds=seconds,
        )

    def _cost(self, asked: str, answer: Answer) -> float | None:
        """By the name that the server gives its model, or else by the one that was asked for."""
        for model in (_name(answer.model), asked):
            cost = prices.cost_usd(self.name, model, answer.usage, base_url=self._url, written=answer.written)
            if cost is not None:
                return cost
        return None


def encodable(text: str) -> str:
    """``text`` without lone surrogates, which JSON from a transcript may hold and UTF-8 may not."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode()
    return text


def _name(model: str) -> str:
    """A server's name of its model, or nothing when it is a file's path or no name at all."""
    return model if len(model) <= LONGEST_NAME and not model.startswith("/") else ""


def _object(text: str) -> dict[str, object] | None:
    """``text`` when it is one JSON object and nothing else."""
    try:
        found = msgspec.json.decode(text)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None

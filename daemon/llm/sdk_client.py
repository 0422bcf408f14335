"""One client of an SDK: how it is imported, made and closed, and one HTTP call with it.

Importing an SDK takes up to 1.3 s (anthropic). So ``warm`` or the first call imports it in a thread, and
rehearses one call there, so that the event loop never waits for it. The client never retries (the caller
does that), prints nothing, and reads at most ``MAX_BYTES`` of an answer (I44). It takes nothing from the
environment: no key, address, header, organisation or proxy. A failed call is ``Unavailable`` with a fault; a
cancelled call drops its connection.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeVar, cast

import msgspec

from ..core.errors import Unavailable
from . import address, faults, prices
from .faults import Asked

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from httpx2 import AsyncBaseTransport, AsyncClient, Request, Response

T = TypeVar("T")

NO_KEY: Final = "none"  # the SDKs want a key; servers without keys ignore this one
CONNECT_S: Final = 15.0
MAX_BYTES: Final = 8 * 1024 * 1024  # of an answer, unpacked
MAX_INLINE_BYTES: Final = 256 * 1024  # a longer body is decoded in a thread
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
    "x-stainless-raw-response",  # tells the SDK that we want the body as it came
})  # fmt: skip
PACKING: Final = frozenset({"content-encoding", "content-length", "transfer-encoding"})
LOGGERS: Final = ("anthropic", "openai", "httpx2", "httpcore2")


class _TooLongError(Exception):
    """An answer that does not end."""


class _Bounded:
    """A transport that reads at most ``MAX_BYTES`` of an answer; ``inner`` carries it."""

    def __init__(self, inner: AsyncBaseTransport) -> None:
        self._inner = inner

    async def handle_async_request(self, request: Request) -> Response:
        """The whole answer, unpacked. Raises ``_TooLongError``."""
        import httpx2

        response = await self._inner.handle_async_request(request)
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

    async def aclose(self) -> None:
        await self._inner.aclose()

    async def __aenter__(self) -> AsyncBaseTransport:
        return await self._inner.__aenter__()

    async def __aexit__(self, *exc: object) -> None:
        await self.aclose()


class SdkClient(ABC):
    """The client of one provider, for one event loop. Making one imports nothing."""

    name: ClassVar[str]
    official: ClassVar[str]
    """The vendor's own address. An empty ``base_url`` means this one."""

    def __init__(self, api_key: str, base_url: str) -> None:
        """Raises ``UserError`` when the key or the address can't be right."""
        self._key = address.key(self.name, api_key.strip(), base_url) or NO_KEY
        url = self._address(address.url(self.name, base_url.strip().rstrip("/")))
        self._url = "" if url == self.official else url
        self._lock = asyncio.Lock()
        self._client: Any = None
        self._sdk: Any = None

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
    async def _send_rehearsal(self, client: Any, wait: Any) -> None:  # noqa: ANN401 - the SDK's
        """Send one call of the usual kind with ``client``, whose answers are empty."""

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
        for each in LOGGERS:  # some environment variables make SDKs log to the terminal
            logging.getLogger(each).addHandler(logging.NullHandler())
            logging.getLogger(each).propagate = False
        asyncio.run(self._rehearse(sdk))
        return sdk, self._make(sdk, self._http())

    async def _rehearse(self, sdk: Any) -> None:  # noqa: ANN401 - the SDK's module
        """Make one call that leaves nothing: an SDK's first call imports and builds more, for 20 ms."""
        import anyio.lowlevel
        import httpx2

        async def answer_empty(_: Request) -> Response:
            return httpx2.Response(200, json={})

        http = self._http(httpx2.MockTransport(answer_empty))
        async with http:
            await anyio.lowlevel.checkpoint()  # imports what real connections are made with
            await self._send_rehearsal(self._make(sdk, http), httpx2.Timeout(1.0))

    def _http(self, transport: AsyncBaseTransport | None = None) -> AsyncClient:
        """An HTTP client without the environment's proxies. It follows no redirect, which could carry the
        key to another server.
        """
        import httpx2

        bounded = _Bounded(transport or httpx2.AsyncHTTPTransport(trust_env=False))
        return httpx2.AsyncClient(
            trust_env=False,
            follow_redirects=False,
            transport=cast("AsyncBaseTransport", bounded),
            event_hooks={"request": [self._own_headers]},
        )

    async def _own_headers(self, request: Request) -> None:
        """Drop the headers that the SDK adds from the environment and about this machine."""
        for name in [n for n in request.headers if n.lower() not in HEADERS]:
            del request.headers[name]
        request.headers["authorization"] = f"Bearer {self._key}"

    def _asked(self, model: str) -> Asked:
        host = address.host(self._url or self.official)
        return Asked(self.name, host, model, "" if self._key == NO_KEY else self._key)

    async def _post(
        self, send: Callable[[Any], Awaitable[Response]], asked: Asked, left_s: float
    ) -> bytes | tuple[int, Mapping[str, str], str]:
        """The body of a success, or the status, headers and body of a failure."""
        import httpx2

        problem: Unavailable
        try:
            wait = httpx2.Timeout(left_s, connect=min(left_s, CONNECT_S))
            response = await send(wait)
        except self._sdk.APITimeoutError:
            problem = faults.of_timeout(asked, left_s)
        except self._sdk.APIStatusError as e:
            return e.status_code, e.response.headers, e.response.text
        except (self._sdk.APIConnectionError, httpx2.HTTPError, _TooLongError) as e:
            long = any(isinstance(x, _TooLongError) for x in (e, e.__cause__))  # one SDK wraps it
            problem = faults.of_length(asked, MAX_BYTES) if long else faults.of_connection(asked, e)
        else:
            return response.content
        # raised here, not in the handler: the SDK's errors hold the request with the key
        raise problem

    async def _decoded(self, read: Callable[[bytes], T], content: bytes, asked: Asked) -> T:
        """What ``read`` finds in a success's body. Raises ``Unavailable`` for another form."""
        try:
            if len(content) > MAX_INLINE_BYTES:
                return await asyncio.to_thread(read, content)
            return read(content)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            what = "a web page" if content[:200].lstrip().startswith(b"<") else "not of the agreed form"
            problem = faults.of_form(asked, what)
        raise problem

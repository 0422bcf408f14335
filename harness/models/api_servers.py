"""Model APIs on loopback in the wire formats of Anthropic messages, OpenAI chat completions and OpenAI
embeddings, with their lists of models.

A test queues steps that read the same for both; one request takes one step, and a request that nobody
scripted is refused with a 418. What came in is kept as it came: body, headers, path.
"""

from __future__ import annotations

import asyncio
import json
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

from aiohttp import web

Wire = Literal["anthropic", "openai"]
MODEL = {"anthropic": "claude-sonnet-5", "openai": "gpt-4.1"}
PATH = {"anthropic": "/v1/messages", "openai": "/v1/chat/completions"}
MODELS_PATH = "/v1/models"
EMBEDDINGS_PATH = "/v1/embeddings"


# --- steps ---------------------------------------------------------------------------------------


class Step(ABC):
    """What the server does with one request."""

    @abstractmethod
    async def play(self, wire: Wire, body: dict[str, Any], request: web.Request) -> web.StreamResponse:
        """The answer; may also never come, or break off."""


@dataclass(frozen=True)
class Says(Step):
    """An answer. ``stop``: why it ends, in our words. ``cached`` and ``written`` are parts of ``input``."""

    text: str = "ok"
    stop: Literal["end", "length", "refusal", "filter"] = "end"
    input: int = 100
    output: int = 20
    cached: int = 0
    written: int = 0
    thought: int = 0

    async def play(self, wire: Wire, body: dict[str, Any], request: web.Request) -> web.StreamResponse:
        return web.json_response(self.anthropic(body) if wire == "anthropic" else self.openai(body))

    def anthropic(self, body: dict[str, Any]) -> dict[str, Any]:
        stop = {"end": "end_turn", "length": "max_tokens", "refusal": "refusal", "filter": "refusal"}
        thinking = [{"type": "thinking", "thinking": "hm", "signature": "c2ln"}] if self.thought else []
        return {
            "id": "msg_01",
            "type": "message",
            "role": "assistant",
            "model": body["model"],
            "content": [*thinking, *([{"type": "text", "text": self.text}] if self.text else [])],
            "stop_reason": stop[self.stop],
            "stop_sequence": None,
            "usage": {
                "input_tokens": self.input - self.cached - self.written,
                "cache_read_input_tokens": self.cached,
                "cache_creation_input_tokens": self.written,
                "output_tokens": self.output,
                "output_tokens_details": {"thinking_tokens": self.thought},
                "service_tier": "standard",
            },
        }

    def openai(self, body: dict[str, Any]) -> dict[str, Any]:
        stop = {"end": "stop", "length": "length", "refusal": "stop", "filter": "content_filter"}
        refused = self.stop == "refusal"
        message = {
            "role": "assistant",
            "content": None if refused else self.text,
            "refusal": self.text if refused else None,
            "annotations": [],
        }
        return {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "created": 1,
            "model": body["model"],
            "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": stop[self.stop]}],
            "usage": {
                "prompt_tokens": self.input,
                "completion_tokens": self.output,
                "total_tokens": self.input + self.output,
                "prompt_tokens_details": {"cached_tokens": self.cached},
                "completion_tokens_details": {"reasoning_tokens": self.thought},
            },
            "system_fingerprint": None,
        }


@dataclass(frozen=True)
class Fails(Step):
    """An error with the body that each API has for it."""

    status: int
    message: str = "scripted failure"
    code: str = "scripted_error"
    headers: dict[str, str] = field(default_factory=dict)

    async def play(self, wire: Wire, body: dict[str, Any], request: web.Request) -> web.StreamResponse:
        if wire == "anthropic":
            told: dict[str, Any] = {
                "type": "error",
                "error": {"type": self.code, "message": self.message},
                "request_id": "req_1",
            }
        else:
            told = {"error": {"message": self.message, "type": "api_error", "param": None, "code": self.code}}
        return web.json_response(told, status=self.status, headers=self.headers)


@dataclass(frozen=True)
class Sends(Step):
    """Any bytes: a web page, broken JSON, another protocol's answer."""

    body: bytes
    status: int = 200
    kind: str = "application/json"
    headers: dict[str, str] = field(default_factory=dict)

    async def play(self, wire: Wire, body: dict[str, Any], request: web.Request) -> web.StreamResponse:
        headers = {"content-type": self.kind, **self.headers}
        return web.Response(body=self.body, status=self.status, headers=headers)


@dataclass(frozen=True)
class Hangs(Step):
    """No end: nothing, or (``trickle``) a blank now and then. ``hung_up``: the client is gone."""

    trickle: bool = False
    started: asyncio.Event = field(default_factory=asyncio.Event)
    hung_up: asyncio.Event = field(default_factory=asyncio.Event)

    async def play(self, wire: Wire, body: dict[str, Any], request: web.Request) -> web.StreamResponse:
        self.started.set()
        response = web.StreamResponse(headers={"content-type": "application/json"})
        try:
            if self.trickle:
                await response.prepare(request)
            while True:
                await asyncio.sleep(0.01 if self.trickle else 3600)
                await response.write(b" ")
        except (asyncio.CancelledError, ConnectionError):
            self.hung_up.set()
            raise


@dataclass(frozen=True)
class Cuts(Step):
    """The connection is gone: in the middle of the body, or before anything was said."""

    said: bytes = b'{"id":'

    async def play(self, wire: Wire, body: dict[str, Any], request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"content-type": "application/json", "content-length": "1000"})
        if self.said:
            await response.prepare(request)
            await response.write(self.said)
        assert request.transport is not None
        request.transport.abort()
        return response


@dataclass(frozen=True)
class Lists(Step):
    """The models that there are, as ``GET /v1/models`` tells them: Anthropic in pages, of 20 if not asked."""

    ids: tuple[str, ...]

    async def play(self, wire: Wire, body: dict[str, Any], request: web.Request) -> web.StreamResponse:
        if wire == "openai":
            data = [{"id": i, "object": "model", "created": 1, "owned_by": "us"} for i in self.ids]
            return web.json_response({"object": "list", "data": data})
        page = self.ids[: int(request.query.get("limit", "20"))]
        at = "2026-01-01T00:00:00Z"
        told = {
            "data": [{"type": "model", "id": i, "display_name": i, "created_at": at} for i in page],
            "first_id": page[0] if page else None,
            "last_id": page[-1] if page else None,
            "has_more": len(page) < len(self.ids),
        }
        return web.json_response(told)


def letters(text: str) -> list[float]:
    """A vector that is the same for texts of the same letters: how often each occurs."""
    return [1.0, *(float(text.lower().count(letter)) for letter in "abcdefghijklmnopqrstuvwxyz")]


@dataclass(frozen=True)
class Embeds(Step):
    """Vectors, as ``POST /v1/embeddings`` answers them. ``backwards``: the last one first. ``without``: so
    many are missing. ``model``: who says to have made them, by default the model that was asked for.
    """

    vector: Callable[[str], list[float]] = letters
    backwards: bool = False
    without: int = 0
    model: str = ""

    async def play(self, wire: Wire, body: dict[str, Any], request: web.Request) -> web.StreamResponse:
        assert body["encoding_format"] == "float", "another form is not scripted"
        data = [
            {"object": "embedding", "index": i, "embedding": self.vector(text)}
            for i, text in enumerate(body["input"])
        ][self.without :]
        told = {
            "object": "list",
            "data": data[::-1] if self.backwards else data,
            "model": self.model or body["model"],
            "usage": {"prompt_tokens": 9, "total_tokens": 9},
        }
        return web.json_response(told)


# --- the server ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Got:
    """One request as it came."""

    wire: Wire
    body: dict[str, Any]
    headers: dict[str, str]

    @property
    def system(self) -> list[str]:
        """Every system text."""
        if self.wire == "anthropic":
            found = self.body.get("system", [])
            return [found] if isinstance(found, str) else [block["text"] for block in found]
        return [m["content"] for m in self.body["messages"] if m["role"] in {"system", "developer"}]

    @property
    def user(self) -> list[str]:
        """Every other text."""
        return [m["content"] for m in self.body["messages"] if m["role"] == "user"]

    @property
    def schema(self) -> dict[str, Any] | None:
        """The schema that the answer was asked to follow."""
        if self.wire == "anthropic":
            form = self.body.get("output_config", {}).get("format", {})
            found = form.get("schema")
        else:
            form = self.body.get("response_format", {})
            found = form.get("json_schema", {}).get("schema")
        assert found is None or form["type"] == "json_schema"
        return found


class LlmServer:
    """``url`` is its address, without a path. ``models`` answers every request for the list of models (None:
    there is no such list); ``listed`` has the headers of each.
    """

    def __init__(self) -> None:
        self.url = ""
        self.got: list[Got] = []
        self.models: Step | None = None
        self.listed: list[dict[str, str]] = []
        self._steps: deque[Step] = deque()

    def script(self, *steps: Step) -> None:
        """Queue ``steps``."""
        self._steps.extend(steps)

    @property
    def left(self) -> int:
        """Steps that nobody took."""
        return len(self._steps)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        wire: Wire = "anthropic" if request.path == PATH["anthropic"] else "openai"
        body = json.loads(await request.read())
        self.got.append(Got(wire, body, {k.lower(): v for k, v in request.headers.items()}))
        if not self._steps:
            return web.Response(status=418, text="nobody scripted this request")
        return await self._steps.popleft().play(wire, body, request)

    async def handle_models(self, request: web.Request) -> web.StreamResponse:
        self.listed.append({k.lower(): v for k, v in request.headers.items()})
        wire: Wire = "anthropic" if "anthropic-version" in request.headers else "openai"
        if self.models is None:
            return web.Response(status=404, text="404 page not found")
        return await self.models.play(wire, {}, request)


@asynccontextmanager
async def llm_server() -> AsyncIterator[LlmServer]:
    """A running server. A client that hangs up cancels its handler."""
    server = LlmServer()
    app = web.Application(client_max_size=64 << 20)
    for path in (*PATH.values(), EMBEDDINGS_PATH):
        app.router.add_post(path, server.handle)
    app.router.add_get(MODELS_PATH, server.handle_models)
    runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        host, port = runner.addresses[0][:2]
        server.url = f"http://{host}:{port}"
        yield server
    finally:
        await runner.cleanup()

"""A model provider on loopback that says what a test scripted, over the real wire formats.

It speaks OpenAI chat completions, OpenAI responses (as Codex asks them) and Anthropic messages, streamed or
not. A test queues steps; one request takes one step. It never invents an answer: a request nobody scripted is
kept in ``unscripted`` and refused with a 400, so a prompt too many fails the test. It runs in its own thread,
with its own loop, so that plain tests can use it.
"""

from __future__ import annotations

import asyncio
import json
import re
import threading
import time
import uuid
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Literal, Self

from aiohttp import ClientConnectionResetError, web

from harness.machine.waiting import PATIENCE_S

Wire = Literal["openai", "anthropic", "responses"]
Kind = Literal["main", "agent", "title", "compaction", "judge", "api"]
TITLE = "A scripted title"
SUMMARY = "Summary: the work so far was scripted."
CLAUDE_SESSION, CLAUDE_AGENT = "x-claude-code-session-id", "x-claude-code-agent-id"
CODEX_SESSION, CODEX_TURN = "session-id", "x-codex-turn-metadata"
SESSION_HEADERS = ("x-session-affinity", "x-opencode-session", CLAUDE_SESSION, CODEX_SESSION)
NO_REAL_TOOLS = {"StructuredOutput", "DeferredToolPlaceholder"}
ANTHROPIC_ERRORS = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    529: "overloaded_error",
}


# --- what a test scripts -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Text:
    """One answer that ends the turn. ``tokens_in`` is the reported prompt size (to overflow a context), with
    what was read from a cache (``cached``) and, for Anthropic, written to one; ``tokens_out`` is that of the
    answer, with what was thought. ``stop``: why it ends, in the words of Anthropic's wire.
    """

    text: Reply
    tokens_in: int = 100
    cached: int = 0
    written: int = 0
    tokens_out: int = 10
    thought: int = 0
    stop: str = "end_turn"


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool call, with text before it if wanted."""

    name: str
    args: dict[str, Any]
    text: str = ""


@dataclass(frozen=True, slots=True)
class Fail:
    """A refusal with an HTTP status. opencode retries 5xx and gives up at once on a 400."""

    status: int
    message: str = "scripted failure"


@dataclass(slots=True)
class Slow:
    """Tokens flow until the test releases it or the client hangs up; for ``limit`` seconds at the longest.

    ``silent``: after ``text`` nothing flows any more. That the client hung up shows only at the release then.
    """

    text: str = "Thinking"
    limit: float = 4 * PATIENCE_S
    silent: bool = False
    started: threading.Event = field(default_factory=threading.Event)
    hung_up: threading.Event = field(default_factory=threading.Event)
    _released: threading.Event = field(default_factory=threading.Event)
    _end: Reply = ""

    def wait_started(self) -> None:
        """Until the model has the request and the first token is out."""
        assert self.started.wait(PATIENCE_S), f"nobody asked the model for {self.text!r}"

    def wait_hung_up(self) -> None:
        """Until the client dropped the connection (an abort reached the provider)."""
        assert self.hung_up.wait(PATIENCE_S), f"the client did not hang up on {self.text!r}"

    def release(self, text: Reply = "") -> None:
        """Let the answer end, with ``text`` as its last words."""
        self._end = text
        self._released.set()


@dataclass(frozen=True, slots=True)
class Request:
    """One request as it came over the wire. ``session`` is opencode's or Claude Code's id, from its headers;
    ``agent`` the id of Claude Code's sub-agent.
    """

    n: int
    t: float
    wire: Wire
    kind: Kind
    model: str
    session: str
    system: str
    messages: list[dict[str, Any]]
    tools: list[str]
    body: dict[str, Any]
    headers: dict[str, str]
    agent: str = ""

    @property
    def user_texts(self) -> list[str]:
        """What the user role said, oldest first, tool results left out."""
        texts = (text_of(m["content"]) for m in self.messages if m["role"] == "user")
        return [t for t in texts if t]

    @property
    def prompt(self) -> str:
        """The last thing the user role said."""
        return self.user_texts[-1] if self.user_texts else ""

    @property
    def everything(self) -> str:
        """All the model was sent, as one text to search in."""
        return json.dumps(self.body, ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class Later:
    """A step that follows from the request, such as a call with what an earlier one printed."""

    make: Callable[[Request], Step]


Reply = str | Callable[[Request], str]
"""A text, or what makes one from the request (a judge's reply must echo the request's nonce)."""
Step = Text | Tool | Fail | Slow | Later | Callable[[Request], str]


def text(words: Reply, *, tokens_in: int = 100, stop: str = "end_turn", **usage: int) -> Text:
    return Text(words, tokens_in, stop=stop, **usage)


def tool(name: str, /, **args: Any) -> Tool:
    return Tool(name, args)


def bash(command: str) -> Tool:
    """opencode's shell tool."""
    return Tool("bash", {"command": command, "description": "scripted"})


def write(path: str, content: str) -> Tool:
    """opencode's write tool."""
    return Tool("write", {"filePath": path, "content": content})


def slow(words: str = "Thinking") -> Slow:
    return Slow(words)


def silent(words: str = "Let me") -> Slow:
    """A model that stops in the middle of an answer, and keeps the line open."""
    return Slow(words, silent=True)


def fail(status: int, message: str = "scripted failure") -> Fail:
    return Fail(status, message)


# --- the server ----------------------------------------------------------------------------------


class ModelServer:
    """``with ModelServer() as llm``: ``llm.url`` goes into the host's provider settings.

    A request takes its step from the first of: the script of its session, the script of the newest
    marker found in a user message, the default script. Titles and compactions have constant answers.
    A request without tools that is neither is a judge's and takes from the judge script; when it names no
    session of a host's it is the daemon's own and takes from the ``api`` script. A sub-agent of Claude Code
    takes from the script of the agents.
    """

    def __init__(self) -> None:
        self.url = ""
        self.requests: list[Request] = []
        self.unscripted: list[Request] = []
        self.judge_else: Step | None = None
        self._scripts: dict[str, deque[Step]] = {}
        self._default: deque[Step] = deque()
        self._judge: deque[Step] = deque()
        self._api: deque[Step] = deque()
        self._agents: deque[Step] = deque()
        self._retired: set[str] = set()
        self._live: list[Slow] = []
        self._lock = threading.Lock()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, name="model-server", daemon=True)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None

    # what tests call

    def script(self, *steps: Step, session: str = "", marker: str = "") -> None:
        """Queue ``steps`` for a session, for messages that contain ``marker``, or for whoever comes."""
        with self._lock:
            key = session or marker
            queue = self._scripts.setdefault(key, deque()) if key else self._default
            queue.extend(steps)

    def judge(self, *steps: Step, always: Step | None = None) -> None:
        """Queue replies for judge sessions; ``always`` is for those that come after the last of them."""
        with self._lock:
            self._judge.extend(steps)
            self.judge_else = always

    def api(self, *steps: Step) -> None:
        """Queue replies for the daemon's own calls."""
        with self._lock:
            self._api.extend(steps)

    def agents(self, *steps: Step) -> None:
        """Queue replies for Claude Code's sub-agents."""
        with self._lock:
            self._agents.extend(steps)

    def of(self, kind: Kind, session: str = "") -> list[Request]:
        """The requests of one kind so far, oldest first."""
        with self._lock:
            return [r for r in self.requests if r.kind == kind and session in {"", r.session}]

    def reset(self) -> None:
        """Forget the scripts and requests; let every slow answer end. Sessions seen so far are retired."""
        with self._lock:
            self._retired |= {r.session for r in self.requests if r.session}
            for held in self._live:
                held.release()
            self._live.clear()
            self.requests.clear()
            self.unscripted.clear()
            self._scripts.clear()
            self._default.clear()
            self._judge.clear()
            self._api.clear()
            self._agents.clear()
            self.judge_else = None

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._ready.wait(PATIENCE_S), "the model server did not start"
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.reset()
        if self._loop is not None and self._stop is not None:
            self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(PATIENCE_S)
        assert not self._thread.is_alive(), "the model server did not stop"

    # the thread

    def _run(self) -> None:
        asyncio.run(self._serve())

    async def _serve(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        app = web.Application(client_max_size=64 << 20)
        app.router.add_post("/v1/chat/completions", self._openai)
        app.router.add_post("/v1/messages", self._anthropic)
        app.router.add_post("/v1/responses", self._responses)
        app.router.add_get("/v1/models", _no_models)
        app.router.add_post("/v1/messages/count_tokens", _count_tokens)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=1)
        await runner.setup()
        try:
            site = web.TCPSite(runner, "127.0.0.1", 0)
            await site.start()
            host, port = runner.addresses[0][:2]
            self.url = f"http://{host}:{port}/v1"
            self._ready.set()
            await self._stop.wait()
        finally:
            await runner.cleanup()

    def _take(self, request: Request) -> Step:
        """The step for this request; records it."""
        with self._lock:
            self.requests.append(request)
            match request.kind:
                case "title":
                    return Text(json.dumps({"title": TITLE}) if request.wire == "anthropic" else TITLE)
                case "compaction":
                    return Text(SUMMARY)
                case "judge":
                    queue = self._judge
                case "api":
                    queue = self._api
                case "agent":
                    queue = self._agents
                case "main":
                    queue = self._queue(request)
            step = queue.popleft() if queue else None
            if isinstance(step, Later):
                step = step.make(request)
            if step is None and request.kind == "judge":
                step = self.judge_else
            if isinstance(step, Slow):
                self._live.append(step)
            if step is None:
                self.unscripted.append(request)
                return Fail(
                    400, f"no step is scripted for this {request.kind} request: {request.prompt[:200]!r}"
                )
            return step

    def _queue(self, request: Request) -> deque[Step]:
        if request.session in self._scripts:
            return self._scripts[request.session]
        markers = [m for m in self._scripts if not m.startswith("ses_")]
        for said in reversed(request.user_texts):
            for marker in markers:
                if marker in said:
                    return self._scripts[marker]
        return deque() if request.session in self._retired else self._default

    def _kind(self, system: str, tools: list[str], prompt: str, raw: web.Request) -> Kind:
        if CLAUDE_SESSION in raw.headers:
            return _kind_of_claude(system, tools, prompt, raw.headers.get(CLAUDE_AGENT, ""))
        if CODEX_TURN in raw.headers:
            told = json.loads(raw.headers[CODEX_TURN])
            if told.get("request_kind") == "compaction":
                return "compaction"
            if not tools and "single-line task title" in prompt:
                return "title"
            return "agent" if told.get("thread_source") == "subagent" else "main"
        session = _session(raw)
        if system.startswith("You are a title generator"):
            return "title"
        if tools:
            return "main"
        if re.match(r"You are (a helpful AI|an anchored|a context)[^.]*summar", system):
            return "compaction"
        return "judge" if session else "api"

    def _request(self, raw: web.Request, wire: Wire, body: dict[str, Any]) -> Request:
        if wire == "responses":
            messages = [_as_message(item) for item in body["input"]]
            system, tools = (
                body.get("instructions") or "",
                [t.get("name", t["type"]) for t in body.get("tools") or []],
            )
        elif wire == "openai":
            messages = [m for m in body["messages"] if m["role"] != "system"]
            system = "\n".join(text_of(m["content"]) for m in body["messages"] if m["role"] == "system")
            tools = [t["function"]["name"] for t in body.get("tools") or []]
        else:
            messages, system = body["messages"], text_of(body.get("system"))
            tools = [t["name"] for t in body.get("tools") or []]
        prompt = next((text_of(m["content"]) for m in reversed(messages) if m["role"] == "user"), "")
        return Request(
            n=len(self.requests) + 1,
            t=time.time(),
            wire=wire,
            kind=self._kind(system, tools, prompt, raw),
            model=body.get("model", ""),
            session=_session(raw),
            system=system,
            messages=messages,
            tools=tools,
            body=body,
            headers=dict(raw.headers),
            agent=raw.headers.get(CLAUDE_AGENT, ""),
        )

    # the two wires

    async def _openai(self, raw: web.Request) -> web.StreamResponse:
        body = await raw.json()
        request = self._request(raw, "openai", body)
        step = self._take(request)
        if isinstance(step, Fail):
            kind = "server_error" if step.status >= 500 else "invalid_request_error"
            error = {"message": step.message, "type": kind, "code": "scripted"}
            return web.json_response({"error": error}, status=step.status)
        frame = _OpenAI(body.get("model", ""))
        if not body.get("stream"):
            words = "".join([w async for w in _words(step, request)])
            return web.json_response(frame.whole(step, words))
        return await _stream(raw, step, request, frame)

    async def _anthropic(self, raw: web.Request) -> web.StreamResponse:
        body = await raw.json()
        request = self._request(raw, "anthropic", body)
        step = self._take(request)
        if isinstance(step, Fail):
            kind = ANTHROPIC_ERRORS.get(step.status, "api_error")
            error = {"type": "error", "error": {"type": kind, "message": step.message}}
            return web.json_response(error, status=step.status)
        frame = _Anthropic(body.get("model", ""))
        if not body.get("stream"):
            words = "".join([w async for w in _words(step, request)])
            return web.json_response(frame.whole(step, words))
        return await _stream(raw, step, request, frame)

    async def _responses(self, raw: web.Request) -> web.StreamResponse:
        body = await raw.json()
        request = self._request(raw, "responses", body)
        step = self._take(request)
        if isinstance(step, Fail):
            return web.json_response({"error": {"message": step.message}}, status=step.status)
        return await _stream(raw, step, request, _Responses())


async def _no_models(raw: web.Request) -> web.Response:
    """Codex asks for a catalogue of models: none, so it takes what it knows."""
    return web.json_response({"object": "list", "data": [], "models": []})


def _as_message(item: dict[str, Any]) -> dict[str, Any]:
    """An item of a Responses request as a message: its texts are named as in the other wires."""
    content = item.get("content") or []
    texts = [{"type": "text", "text": part.get("text", "")} for part in content if isinstance(part, dict)]
    return {"role": item.get("role", item["type"]), "content": texts}


async def _count_tokens(raw: web.Request) -> web.Response:
    """What Claude Code asks before it shows how full the context is: four characters a token."""
    return web.json_response({"input_tokens": len(await raw.read()) // 4})


def _session(raw: web.Request) -> str:
    return next((raw.headers[h] for h in SESSION_HEADERS if h in raw.headers), "")


def _kind_of_claude(system: str, tools: list[str], prompt: str, agent: str) -> Kind:
    """What Claude Code wants. A summary is asked for with all tools, in the last message."""
    if "Generate a concise, sentence-case title" in system:
        return "title"
    if "Do NOT call any tools" in prompt and "detailed summary" in prompt:
        return "compaction"
    if set(tools) <= NO_REAL_TOOLS:
        return "judge"
    return "agent" if agent else "main"


def text_of(content: Any) -> str:
    """The text of a message's content, in either wire form."""
    if isinstance(content, str):
        return content
    return "\n".join(p["text"] for p in content or [] if isinstance(p, dict) and p.get("type") == "text")


async def _words(step: Step, request: Request) -> Any:
    """The tokens of a step, one by one; holds a ``Slow`` until it is released."""
    if isinstance(step, Slow):
        yield f"{step.text} "
        step.started.set()
        end = time.monotonic() + step.limit
        while not step._released.is_set() and time.monotonic() < end:
            await asyncio.sleep(0.05)
            if not step.silent:
                yield "… "
        final: Step | Reply = step._end
    elif isinstance(step, Text | Tool):
        final = step.text
    else:
        final = step
    words = final(request) if callable(final) else str(final)
    for word in re.findall(r"\S+\s*|\s+", words):
        yield word


async def _stream(
    raw: web.Request, step: Step, request: Request, frame: _OpenAI | _Anthropic | _Responses
) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream", "Cache-Control": "no-cache"})
    try:
        await response.prepare(raw)
        await response.write(frame.start(step))
        async for word in _words(step, request):
            await response.write(frame.word(word))
        await response.write(frame.end(step))
        await response.write_eof()
    except (ConnectionResetError, ClientConnectionResetError):
        if isinstance(step, Slow):
            step.hung_up.set()
    return response


class _OpenAI:
    """Frames of ``/v1/chat/completions``."""

    def __init__(self, model: str) -> None:
        self.model, self.id = model, f"chatcmpl-{uuid.uuid4().hex[:12]}"

    def _chunk(self, delta: dict[str, Any], finish: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return self._data({"choices": [choice]})

    def _data(self, more: dict[str, Any]) -> bytes:
        head = {"id": self.id, "object": "chat.completion.chunk", "created": 1, "model": self.model}
        return b"data: " + json.dumps(head | more).encode() + b"\n\n"

    def start(self, step: Step) -> bytes:
        return self._chunk({"role": "assistant", "content": ""})

    def word(self, word: str) -> bytes:
        return self._chunk({"content": word})

    def end(self, step: Step) -> bytes:
        out = b""
        if isinstance(step, Tool):
            function = {"name": step.name, "arguments": ""}
            call = {
                "index": 0,
                "id": f"call_{uuid.uuid4().hex[:8]}",
                "type": "function",
                "function": function,
            }
            out += self._chunk({"tool_calls": [call]})
            more = {"index": 0, "function": {"arguments": json.dumps(step.args)}}
            out += self._chunk({"tool_calls": [more]})
        out += self._chunk({}, "tool_calls" if isinstance(step, Tool) else "stop")
        out += self._data({"choices": [], "usage": _usage(step)})
        return out + b"data: [DONE]\n\n"

    def whole(self, step: Step, words: str) -> dict[str, Any]:
        message: dict[str, Any] = {"role": "assistant", "content": words}
        if isinstance(step, Tool):
            function = {"name": step.name, "arguments": json.dumps(step.args)}
            message["tool_calls"] = [{"id": "call_1", "type": "function", "function": function}]
        finish = "tool_calls" if isinstance(step, Tool) else "stop"
        return {
            "id": self.id,
            "object": "chat.completion",
            "created": 1,
            "model": self.model,
            "choices": [{"index": 0, "message": message, "finish_reason": finish}],
            "usage": _usage(step),
        }


class _Anthropic:
    """Frames of ``/v1/messages``. A text block is always there; a tool call is the second block."""

    def __init__(self, model: str) -> None:
        self.model = model

    @staticmethod
    def _event(kind: str, **more: Any) -> bytes:
        return f"event: {kind}\ndata: {json.dumps({'type': kind} | more)}\n\n".encode()

    def _message(self, used: Text, tokens_out: int) -> dict[str, Any]:
        return {
            "id": f"msg_{uuid.uuid4().hex[:10]}",
            "type": "message",
            "role": "assistant",
            "model": self.model,
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": {
                "input_tokens": used.tokens_in - used.cached - used.written,
                "cache_read_input_tokens": used.cached,
                "cache_creation_input_tokens": used.written,
                "output_tokens": tokens_out,
            },
        }

    def whole(self, step: Step, words: str) -> dict[str, Any]:
        used = _told(step)
        content: list[dict[str, Any]] = [{"type": "text", "text": words}] if words else []
        if isinstance(step, Tool):
            content.append({"type": "tool_use", "id": "toolu_1", "name": step.name, "input": step.args})
        stop = "tool_use" if isinstance(step, Tool) else used.stop
        return self._message(used, used.tokens_out) | {"content": content, "stop_reason": stop}

    def start(self, step: Step) -> bytes:
        used = _told(step)
        message = self._message(used, 1)
        block = {"type": "text", "text": ""}
        return self._event("message_start", message=message) + self._event(
            "content_block_start", index=0, content_block=block
        )

    def word(self, word: str) -> bytes:
        return self._event("content_block_delta", index=0, delta={"type": "text_delta", "text": word})

    def end(self, step: Step) -> bytes:
        out = self._event("content_block_stop", index=0)
        stop = _told(step).stop
        if isinstance(step, Tool):
            stop = "tool_use"
            block = {
                "type": "tool_use",
                "id": f"toolu_{uuid.uuid4().hex[:8]}",
                "name": step.name,
                "input": {},
            }
            delta = {"type": "input_json_delta", "partial_json": json.dumps(step.args)}
            out += self._event("content_block_start", index=1, content_block=block)
            out += self._event("content_block_delta", index=1, delta=delta)
            out += self._event("content_block_stop", index=1)
        end = {"stop_reason": stop, "stop_sequence": None}
        out += self._event("message_delta", delta=end, usage={"output_tokens": _told(step).tokens_out})
        return out + self._event("message_stop")


class _Responses:
    """Frames of ``/v1/responses``: the items come whole, when the last word was said. The text of a call is
    an answer of its own before it.
    """

    def __init__(self) -> None:
        self.id, self.words = f"resp_{uuid.uuid4().hex[:12]}", ""

    @staticmethod
    def _event(kind: str, **more: Any) -> bytes:
        return f"event: {kind}\ndata: {json.dumps({'type': kind} | more)}\n\n".encode()

    def start(self, step: Step) -> bytes:
        return self._event("response.created", response={"id": self.id})

    def word(self, word: str) -> bytes:
        self.words += word
        return b": a word\n\n"

    def end(self, step: Step) -> bytes:
        name = uuid.uuid4().hex[:12]
        items: list[dict[str, Any]] = []
        if self.words or not isinstance(step, Tool):
            said = {"type": "output_text", "text": self.words, "annotations": []}
            message = {"type": "message", "role": "assistant", "id": f"msg_{name}"}
            items.append(message | {"status": "completed", "content": [said]})
        if isinstance(step, Tool):
            space, _, tool = step.name.rpartition(".")
            call = {"type": "function_call", "id": f"fc_{name}", "call_id": f"call_{name}", "name": tool}
            call |= {"namespace": space} if space else {}
            items.append(call | {"arguments": json.dumps(step.args)})
        used = _told(step)
        usage = {
            "input_tokens": used.tokens_in,
            "input_tokens_details": {"cached_tokens": used.cached},
            "output_tokens": used.tokens_out,
            "output_tokens_details": {"reasoning_tokens": used.thought},
            "total_tokens": used.tokens_in + used.tokens_out,
        }
        done = [
            self._event("response.output_item.done", output_index=n, item=item)
            for n, item in enumerate(items)
        ]
        return b"".join(done) + self._event("response.completed", response={"id": self.id, "usage": usage})


def _told(step: Step) -> Text:
    """The usage that is reported for a step."""
    return step if isinstance(step, Text) else Text("")


def _usage(step: Step) -> dict[str, Any]:
    used = _told(step)
    return {
        "prompt_tokens": used.tokens_in,
        "completion_tokens": used.tokens_out,
        "total_tokens": used.tokens_in + used.tokens_out,
        "prompt_tokens_details": {"cached_tokens": used.cached},
        "completion_tokens_details": {"reasoning_tokens": used.thought},
    }

"""The routes of API v1: parse, call the engine, serialise. Nothing is decided here.

Bodies are typed structs. Unknown fields are refused with the nearest name; hosts' own payloads (``data``)
stay raw JSON here and are parsed leniently in ``hosts``.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar
from weakref import WeakSet

import msgspec
from aiohttp import web
from msgspec import Raw, Struct, to_builtins

from .. import log
from ..core.errors import BadReply, Rejected, Unavailable
from ..engine.intake import Wire
from ..engine.threads import beside
from ..hosts.wire import mend
from ..owners import peer_uid

if TYPE_CHECKING:
    import asyncio
    from collections.abc import AsyncIterator, Mapping

    from ..engine.engine import Engine
    from ..engine.feature import Route
    from ..engine.hosts.host import Instance
    from ..engine.status import StatusReport

API = 1
MAX_BODY = 8 * 1024 * 1024
MAX_BATCH = 500
ID = 200
MOST_PATH = 4_096
LIMIT = 500
ROUNDS = 1_000_000
HOSTS = frozenset({"reflectd", "localhost"})
JSON = "application/json"
NDJSON = "application/x-ndjson"
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
T = TypeVar("T")
_log = log.get("server")
_encode = msgspec.json.Encoder().encode


# --- bodies -------------------------------------------------------------------------------------------------

Seq = Annotated[int, msgspec.Meta(ge=1, le=2**53)]
Name = Annotated[str, msgspec.Meta(max_length=ID)]
Millis = Annotated[int, msgspec.Meta(ge=0, le=2**53)]
Pid = Annotated[int, msgspec.Meta(le=2**31 - 1)]  # as the system has them; 0 and below: not told


class Hello(Struct, forbid_unknown_fields=True):
    """``POST /v1/hello``."""

    instance: str
    host: Literal["opencode"]
    mode: Literal["run", "serve", "tui", "unknown"]
    pid: Pid
    directory: str
    api: Literal[1] = 1
    version: str = ""
    debug: bool = False


class Event(Struct, forbid_unknown_fields=True):
    """One event of a batch."""

    seq: Seq
    t: Millis
    kind: str
    data: Raw = Raw(b"{}")


class Events(Struct, forbid_unknown_fields=True):
    """``POST /v1/events``."""

    instance: str
    events: list[Event]


class Result(Struct, forbid_unknown_fields=True):
    """``POST /v1/results``."""

    instance: str
    id: str
    status: Literal["done", "stale", "failed"]
    data: Raw = Raw(b"null")
    error: str = ""


class Asked(Struct):
    """The data of a question. ``call``: the tool call behind which ``late_lessons`` would stand. ``model``:
    the addressee of a prompt, as ``provider/model``.
    """

    session: Name = msgspec.field(name="sessionID", default="")
    message: Name = msgspec.field(name="messageID", default="")
    text: str = ""
    model: Name = ""
    call: Name = msgspec.field(name="callID", default="")


class Ask(Struct, forbid_unknown_fields=True):
    """``POST /v1/ask``."""

    instance: str
    what: str
    data: Asked = msgspec.field(default_factory=Asked)


class Switch(Struct, forbid_unknown_fields=True):
    """``POST /v1/switch``: exactly one of ``session`` and ``directory``."""

    on: bool
    session: str = ""
    directory: str = ""


class Dash(Struct, forbid_unknown_fields=True):
    """``POST /v1/dashboard``: open it, or close it."""

    stop: bool = False


class Prune(Struct, forbid_unknown_fields=True):
    """``POST /v1/prune``. ``trust``: a person says that the clock is right."""

    trust: bool = False


def decode(body: bytes, kind: type[T]) -> T:
    """The body as ``kind``. Raises ``BadReply`` with a message for people."""
    try:
        return msgspec.json.decode(body, type=kind)
    except msgspec.ValidationError as e:
        raise BadReply(_explain(str(e), kind)) from None
    except msgspec.DecodeError as e:
        mended = mend(body)  # JavaScript cuts emoji in halves
        if mended != body:
            return decode(mended, kind)
        raise BadReply(f"the body is not JSON: {e}") from None
    except (RecursionError, UnicodeDecodeError) as e:
        raise BadReply(f"the body is not JSON: {e}") from None


def _explain(message: str, kind: type) -> str:
    if "unknown field" not in message:
        return message
    names = {f.encode_name for k in (kind, Event) for f in msgspec.structs.fields(k)}
    return f"{message}. Known: {', '.join(f'`{name}`' for name in sorted(names))}"


async def read(body: bytes, kind: type[T]) -> T:
    """As ``decode``; a long body is decoded beside the loop."""
    return await beside(len(body), lambda: decode(body, kind))


def absolute(path: str) -> str:
    """A folder that a client names. Raises ``BadReply``."""
    if not path.startswith("/"):
        raise BadReply("`directory` must be an absolute path")
    if len(path) > MOST_PATH:
        raise BadReply(f"`directory` has more than {MOST_PATH} characters")
    return path


def _number(request: web.Request, name: str, default: int, least: int, most: int) -> int:
    """A whole number of the query. Raises ``BadReply``."""
    text = request.query.get(name, str(default))
    fits = len(text) <= len(str(most)) and text.isascii() and text.isdigit() and least <= int(text) <= most
    if not fits:
        raise BadReply(f"`{name}` must be a number from {least} to {most}")
    return int(text)


def _limit(request: web.Request) -> int:
    return _number(request, "limit", 50, 1, LIMIT)


def _about(request: web.Request) -> tuple[str, str]:
    """``session`` and ``directory`` of the query, "" where it has none. Raises ``BadReply``."""
    directory = request.query.get("directory", "")
    return request.query.get("session", "")[:ID], absolute(directory) if directory else ""


# --- answers ------------------------------------------------------------------------------------------------


def answer(status: int = 200, **fields: Any) -> web.Response:  # noqa: ANN401 - JSON
    """A JSON answer; every one names the API version."""
    return web.Response(body=_encode({"api": API, **fields}), status=status, content_type=JSON)


def _unknown(session: str) -> web.Response:
    what = f"no session begins with {session[:ID]!r}" if session else "no session was judged yet"
    return answer(404, error=f"{what}; `reflectd status` lists those that are known")


async def _lines(request: web.Request, lines: AsyncIterator[bytes], first: bytes) -> web.StreamResponse:
    """An endless NDJSON answer; ends when the client goes or the lines end."""
    response = web.StreamResponse(headers={"content-type": NDJSON})
    try:
        await response.prepare(request)
        if first:
            await response.write(first)
        async for line in lines:
            if request.transport is None or request.transport.is_closing():
                break
            await response.write(line)
    except (ConnectionResetError, RuntimeError):
        pass  # the client went away
    return response


class Routes:
    """Handlers bound to the engine's parts."""

    def __init__(
        self,
        engine: Engine,
        status: StatusReport,
        dashboard: Callable[[bool], Awaitable[Mapping[str, Any]]],
        uid: int,
    ) -> None:
        """``dashboard``: opens the dashboard, or closes it when it is given ``True``."""
        self._engine = engine
        self._intake = engine.intake
        self._status = status
        self._dashboard = dashboard
        self._uid = uid
        self._trusted: WeakSet[asyncio.Transport] = WeakSet()  # connections whose user was checked

    def add_to(self, app: web.Application) -> None:
        """Register the routes; each is guarded, and so is what is no route."""
        routes: tuple[tuple[str, str, Handler], ...] = (
            ("POST", "/v1/hello", self.hello),
            ("POST", "/v1/events", self.events),
            ("GET", "/v1/orders", self.orders),
            ("POST", "/v1/results", self.results),
            ("POST", "/v1/ask", self.ask),
            ("POST", "/v1/switch", self.switch),
            ("POST", "/v1/dashboard", self.dashboard),
            ("POST", "/v1/prune", self.prune),
            ("POST", "/v1/hooks/{event}", self.hook),
            ("GET", "/v1/status", self.status),
            ("GET", "/v1/sessions", self.sessions),
            ("GET", "/v1/line", self.line),
            ("GET", "/v1/verdicts", self.verdicts),
            ("GET", "/v1/why", self.why),
            ("GET", "/v1/stream", self.stream),
            *(
                (route.method, f"/v1/features/{feature}/{route.name}", self._of_feature(route))
                for feature, route in self._engine.features.routes()
                if not route.clicked
            ),
        )
        app.on_shutdown.append(self._end_streams)
        for method, path, handler in routes:
            app.router.add_route(method, path, self._guarded(handler), expect_handler=_expected)
        paths = {path: method for method, path, _ in routes}

        async def no_route(request: web.Request) -> web.Response:
            method = paths.get(request.path)
            if method is None:
                return answer(
                    404, error=f"the daemon has no address {request.path[:ID]}; design/protocol.md lists all"
                )
            return answer(405, error=f"{request.path} takes {method}, not {request.method}")

        app.router.add_route("*", "/{any:.*}", self._guarded(no_route), expect_handler=_expected)

    # --- hosts ---------------------------------------------------------------------------------------------

    async def hello(self, request: web.Request) -> web.Response:
        """``POST /v1/hello``."""
        h = await read(await request.read(), Hello)
        if not h.instance or len(h.instance) > ID:
            raise BadReply(f"`instance` must be 1 to {ID} characters")
        where = absolute(h.directory)
        instance = await self._intake.hello(h.host, h.instance, h.mode, h.pid, where, debug=h.debug)
        return answer(**self._status.hello(instance))

    async def events(self, request: web.Request) -> web.Response:
        """``POST /v1/events``."""
        batch = await read(await request.read(), Events)
        if len(batch.events) > MAX_BATCH:
            raise BadReply(f"at most {MAX_BATCH} events a batch, not {len(batch.events)}")
        instance = self._known(batch.instance)
        if self._status.is_outdated(instance):
            raise Rejected("what hello told you is not so any more: say hello again, then send them again")
        wires = [Wire(e.seq, e.t, e.kind, e.data) for e in batch.events]
        return answer(seq=await self._intake.accept(instance, wires))

    async def orders(self, request: web.Request) -> web.StreamResponse:
        """``GET /v1/orders``: endless NDJSON; ends when the client goes or a newer stream comes."""
        lines = self._intake.orders(self._known(request.query.get("instance", "")))
        try:
            return await _lines(request, lines, b"")
        finally:
            await lines.aclose()  # type: ignore[attr-defined]

    async def results(self, request: web.Request) -> web.Response:
        """``POST /v1/results``."""
        r = await read(await request.read(), Result)
        self._known(r.instance)
        await self._intake.result(r.id, r.status, r.data, r.error)
        return answer()

    async def ask(self, request: web.Request) -> web.Response:
        """``POST /v1/ask``."""
        a = await read(await request.read(), Ask)
        return answer(
            **await self._intake.ask(self._known(a.instance), a.what, msgspec.structs.asdict(a.data))
        )

    async def hook(self, request: web.Request) -> web.Response:
        """``POST /v1/hooks/<Event>``: 200 with the hook's output, 204, or 422 with the text that wakes."""
        body = await request.read()
        strict = request.query.get("strict") == "1"
        name = request.match_info["event"][:ID]
        host = self._engine.hooked.get(request.query.get("host", "claude-code"))
        if host is None:
            raise BadReply("no host of this name has hooks")
        output = await host.hook(name, body, request.headers, strict=strict)
        kind = JSON if output.status == 200 else "text/plain"
        return web.Response(status=output.status, body=output.body or None, content_type=kind)

    # --- changes -------------------------------------------------------------------------------------------

    async def switch(self, request: web.Request) -> web.Response:
        """``POST /v1/switch``."""
        s = await read(await request.read(), Switch)
        if bool(s.session) == bool(s.directory):
            raise BadReply("name either `session` or `directory`")
        if s.directory:
            absolute(s.directory)
        done = await self._intake.switch(on=s.on, session=s.session[:ID], directory=s.directory)
        return answer(**to_builtins(done)) if done is not None else _unknown(s.session)

    async def dashboard(self, request: web.Request) -> web.Response:
        """``POST /v1/dashboard``."""
        d = await read(await request.read(), Dash)
        return answer(**await self._dashboard(d.stop))

    async def prune(self, request: web.Request) -> web.Response:
        """``POST /v1/prune``."""
        p = await read(await request.read(), Prune)
        return answer(**await self._engine.upkeep.prune(trust=p.trust))

    # --- what the daemon says ------------------------------------------------------------------------------

    async def status(self, _: web.Request) -> web.Response:
        """``GET /v1/status``."""
        return answer(**self._status.status())

    async def sessions(self, request: web.Request) -> web.Response:
        """``GET /v1/sessions``."""
        return answer(sessions=self._status.sessions(_limit(request)))

    async def line(self, request: web.Request) -> web.Response:
        """``GET /v1/line``."""
        return answer(**self._status.line(*_about(request)))

    async def verdicts(self, request: web.Request) -> web.Response:
        """``GET /v1/verdicts``."""
        return answer(verdicts=self._status.verdicts(request.query.get("session", ""), _limit(request)))

    async def why(self, request: web.Request) -> web.Response:
        """``GET /v1/why``."""
        session, directory = _about(request)
        explained = await self._status.why(session, directory, _number(request, "round", 0, 0, ROUNDS))
        return answer(**explained) if explained is not None else _unknown(session)

    async def stream(self, request: web.Request) -> web.StreamResponse:
        """``GET /v1/stream``: endless NDJSON; a reader that is slow loses the oldest lines."""
        entries = self._status.stream.entries(*_about(request))
        try:
            await anext(entries)  # refused before the answer begins
            lines = (b"\n" if e is None else _encode({"api": API, **e}) + b"\n" async for e in entries)
            return await _lines(request, lines, b"\n")
        finally:
            await entries.aclose()  # type: ignore[attr-defined]

    def _of_feature(self, route: Route) -> Handler:
        """A route of a feature: it is given the query, or the object of the body."""

        async def handle(request: web.Request) -> web.Response:
            if route.method == "GET":
                if any("\0" in value for value in request.query.values()):
                    raise BadReply("a value has a NUL character")
                return answer(**await route.answer(dict(request.query)))
            body = await request.read()
            try:
                asked = await beside(len(body), lambda: msgspec.json.decode(body, type=dict[str, Any]))
            except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as e:
                raise BadReply(f"the body is not a JSON object: {e}") from None
            with self._intake.command():
                return answer(**await route.answer(asked))

        return handle

    async def _end_streams(self, _: web.Application) -> None:
        self._status.stream.close()

    # --- who may ask ---------------------------------------------------------------------------------------

    def _guarded(self, handler: Handler) -> Handler:
        """Checks the peer, and gives a refusal its form. A bug answers 500 and is logged, not shown.

        A wrapper and not a middleware: aiohttp's middleware chain costs as much as the routes themselves.
        """

        async def guarded(request: web.Request) -> web.StreamResponse:
            refusal = self._refuse(request)
            if refusal:
                return answer(403, error=refusal)
            try:
                return await handler(request)
            except BadReply as e:
                return answer(400, error=str(e))
            except Rejected as e:
                return answer(409, error=e.reason)
            except Unavailable as e:
                return answer(503, error=str(e))
            except web.HTTPRequestEntityTooLarge as e:
                return answer(413, error=f"the body is too large: {e.text}")
            except web.RequestPayloadError as e:
                return answer(400, error=f"the body cannot be read: {e}")
            except (ConnectionError, web.HTTPException):
                raise
            except Exception:  # noqa: BLE001 - a client gets an answer, the log gets the trace
                _log.exception("bug", route=request.path[:ID])
                return answer(500, error="a bug of reflectd; the daemon's log has it")

        return guarded

    def _refuse(self, request: web.Request) -> str:
        if "Origin" in request.headers:
            return "requests from web pages are refused"
        host = request.headers.get("Host", "")
        if host.partition(":")[0] not in HOSTS:
            return f"the Host {host[:ID]!r} is not ours"
        transport = request.transport
        if transport is None or transport in self._trusted:
            return ""
        sock = transport.get_extra_info("socket")
        uid = peer_uid(sock) if sock is not None else None
        if uid is not None and uid != self._uid:
            return "this daemon serves another user"
        self._trusted.add(transport)
        return ""

    def _known(self, instance: str) -> Instance:
        known = self._engine.instances.get(instance)
        if known is None:
            raise Rejected(f"the instance {instance[:ID]!r} is not known here; say hello first")
        return known


async def _expected(request: web.Request) -> web.Response | None:
    """A client that waits for a word before it sends its body gets it; any other expectation is refused."""
    expect = request.headers.get("Expect", "")
    if expect.lower() == "100-continue":
        await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        request.writer.output_size = 0
        return None
    return answer(417, error=f"Expect: {expect[:ID]!r} is not understood; only 100-continue is")

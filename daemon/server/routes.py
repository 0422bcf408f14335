"""The routes of API v1: parse, call the engine, serialise. Nothing is decided here."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Protocol
from weakref import WeakSet

import msgspec
from aiohttp import web

from .. import log
from ..core.errors import BadReply, Rejected, Unavailable
from ..engine.intake import Wire
from ..engine.threads import beside
from ..owners import peer_uid
from ..store.verdicts import ALWAYS
from .codec import (
    API,
    BY,
    ID,
    MAX_BATCH,
    Ask,
    Dash,
    Events,
    Hello,
    Prune,
    Result,
    Switch,
    absolute,
    checked_status,
    folder,
    number,
    read,
)

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Mapping

    from ..engine.features.feature import Route
    from ..engine.features.registry import Features
    from ..engine.hosts.claude_code import ClaudeCode
    from ..engine.hosts.host import Instance
    from ..engine.instances import Instances
    from ..engine.intake import Intake
    from ..engine.status import StatusReport
    from ..engine.upkeep import Upkeep

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
HOSTS = frozenset({"reflectd", "localhost"})
JSON = "application/json"
NDJSON = "application/x-ndjson"
LIMIT = 500
ROUNDS = 1_000_000
_log = log.get("server")
_encode = msgspec.json.Encoder().encode


def answer(status: int = 200, **fields: Any) -> web.Response:  # noqa: ANN401 - JSON
    """A JSON answer; every one names the API version."""
    return web.Response(body=_encode({"api": API, **fields}), status=status, content_type=JSON)


class Dashboard(Protocol):
    """What opens and closes the dashboard (``daemon.web``)."""

    async def open(self) -> Mapping[str, Any]:
        """A URL that works once, and for how long the dashboard stays when nobody looks at it."""

    async def close(self) -> bool:
        """Close it. False when it was not open."""


class Routes:
    """Handlers bound to the engine's parts."""

    def __init__(
        self,
        intake: Intake,
        instances: Instances,
        claude: ClaudeCode,
        status: StatusReport,
        features: Features,
        dashboard: Dashboard,
        upkeep: Upkeep,
        uid: int,
    ) -> None:
        self._intake = intake
        self._instances = instances
        self._claude = claude
        self._status = status
        self._features = features
        self._dashboard = dashboard
        self._upkeep = upkeep
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
            ("GET", "/v1/ledger", self.ledger),
            ("GET", "/v1/why", self.why),
            ("GET", "/v1/history", self.history),
            ("GET", "/v1/stream", self.stream),
            *(
                (route.method, f"/v1/features/{feature}/{route.name}", self._of_feature(route))
                for feature, route in self._features.routes()
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
        instance = self._known(request.query.get("instance", ""))
        response = web.StreamResponse(headers={"content-type": NDJSON})
        await response.prepare(request)
        lines = self._intake.orders(instance)
        try:
            async for line in lines:
                if request.transport is None or request.transport.is_closing():
                    break
                await response.write(line)
        except (ConnectionResetError, RuntimeError):
            pass  # the shim went away; it reconnects
        finally:
            await lines.aclose()  # type: ignore[attr-defined]
        return response

    async def results(self, request: web.Request) -> web.Response:
        """``POST /v1/results``."""
        r = await read(await request.read(), Result)
        self._known(r.instance)
        await self._intake.result(r.id, checked_status(r.status), r.data, r.error)
        return answer()

    async def ask(self, request: web.Request) -> web.Response:
        """``POST /v1/ask``."""
        a = await read(await request.read(), Ask)
        instance = self._known(a.instance)
        data = {"session": a.data.session, "message": a.data.message, "text": a.data.text}
        data |= {"model": a.data.model, "call": a.data.call}
        return answer(**await self._intake.ask(instance, a.what, data))

    async def hook(self, request: web.Request) -> web.Response:
        """``POST /v1/hooks/<Event>``: 200 with the hook's output, 204, or 422 with the text that wakes."""
        body = await request.read()
        strict = request.query.get("strict") == "1"
        found = await self._claude.hook(
            request.match_info["event"][:ID], body, request.headers, strict=strict
        )
        kind = JSON if found.status == 200 else "text/plain"
        return web.Response(status=found.status, body=found.body or None, content_type=kind)

    async def switch(self, request: web.Request) -> web.Response:
        """``POST /v1/switch``."""
        s = await read(await request.read(), Switch)
        if bool(s.session) == bool(s.directory):
            raise BadReply("name either `session` or `directory`")
        if s.directory:
            absolute(s.directory)
        done = await self._intake.switch(on=s.on, session=s.session[:ID], directory=s.directory)
        return answer(**asdict(done)) if done is not None else _unknown(s.session)

    async def dashboard(self, request: web.Request) -> web.Response:
        """``POST /v1/dashboard``."""
        d = await read(await request.read(), Dash)
        if d.stop:
            return answer(closed=await self._dashboard.close())
        return answer(**await self._dashboard.open())

    async def prune(self, request: web.Request) -> web.Response:
        """``POST /v1/prune``."""
        p = await read(await request.read(), Prune)
        return answer(**await self._upkeep.prune(trust=p.trust))

    async def status(self, _: web.Request) -> web.Response:
        """``GET /v1/status``."""
        return answer(**self._status.status())

    async def sessions(self, request: web.Request) -> web.Response:
        """``GET /v1/sessions``."""
        return answer(sessions=self._status.sessions(_limit(request)))

    async def line(self, request: web.Request) -> web.Response:
        """``GET /v1/line``."""
        return answer(**self._status.line(request.query.get("session", "")[:ID], folder(request.query)))

    async def verdicts(self, request: web.Request) -> web.Response:
        """``GET /v1/verdicts``."""
        session = request.query.get("session", "")
        return answer(verdicts=self._status.verdicts(session, _limit(request)))

    async def ledger(self, request: web.Request) -> web.Response:
        """``GET /v1/ledger``."""
        by = request.query.get("by", "")
        if by and by not in BY:
            raise BadReply(f"`by` must be one of {', '.join(sorted(BY))}")
        since = number(request.query, "since", 0, 0, 2**53)
        session = request.query.get("session", "")
        return answer(**await self._status.ledger(session, since, _limit(request), BY.get(by)))

    async def why(self, request: web.Request) -> web.Response:
        """``GET /v1/why``."""
        session, directory = request.query.get("session", "")[:ID], folder(request.query)
        found = await self._status.why(session, directory, number(request.query, "round", 0, 0, ROUNDS))
        if found is None:
            return _unknown(session)
        return answer(**found)

    async def history(self, request: web.Request) -> web.Response:
        """``GET /v1/history``."""
        session, directory = request.query.get("session", "")[:ID], folder(request.query)
        since = number(request.query, "since", 0, 0, 2**53)
        until = number(request.query, "until", ALWAYS, 0, ALWAYS)
        after = request.query.get("after", "")[:ID]
        limit = _limit(request)
        query = {"session": session, "directory": directory, "since": since, "limit": limit}
        found = await self._status.history(**query, until=until, after=after)
        if found is None:
            return answer(
                404, error=f"no session begins with {session!r}; `reflectd history --all` lists those judged"
            )
        return answer(**found)

    async def stream(self, request: web.Request) -> web.StreamResponse:
        """``GET /v1/stream``: endless NDJSON; a reader that is slow loses the oldest lines."""
        session = request.query.get("session", "")[:ID]
        entries = self._status.stream.entries(session, folder(request.query))
        try:
            await anext(entries)  # refused before the answer begins
            response = web.StreamResponse(headers={"content-type": NDJSON})
            await response.prepare(request)
            await response.write(b"\n")
            async for entry in entries:
                if request.transport is None or request.transport.is_closing():
                    break
                await response.write(b"\n" if entry is None else _encode({"api": API, **entry}) + b"\n")
        except (ConnectionResetError, RuntimeError):
            pass  # whoever watched went away
        finally:
            await entries.aclose()  # type: ignore[attr-defined]
        return response

    def _of_feature(self, route: Route) -> Handler:
        """A route of a feature: it is given the query, or the object of the body."""

        async def handle(request: web.Request) -> web.Response:
            if route.method == "GET":
                if any("\0" in value for value in request.query.values()):
                    raise BadReply("a value has a NUL character")
                return answer(**await route.answer(dict(request.query)))
            body = await request.read()
            try:
                found = await beside(len(body), lambda: msgspec.json.decode(body, type=dict[str, Any]))
            except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as e:
                raise BadReply(f"the body is not a JSON object: {e}") from None
            with self._intake.command():
                return answer(**await route.answer(found))

        return handle

    async def _end_streams(self, _: web.Application) -> None:
        self._status.stream.close()

    def _guarded(self, handler: Handler) -> Handler:
        """Who may ask, and what a refusal looks like. A bug answers 500 and is logged, not shown.

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
        found = self._instances.get(instance)
        if found is None:
            raise Rejected(f"the instance {instance[:ID]!r} is not known here; say hello first")
        return found


async def _expected(request: web.Request) -> web.Response | None:
    """A client that waits for a word before it sends its body gets it; what else it expects is refused."""
    expect = request.headers.get("Expect", "")
    if expect.lower() == "100-continue":
        await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        request.writer.output_size = 0
        return None
    return answer(417, error=f"Expect: {expect[:ID]!r} is not understood; only 100-continue is")


def _unknown(session: str) -> web.Response:
    what = f"no session begins with {session[:ID]!r}" if session else "no session was judged yet"
    return answer(404, error=f"{what}; `reflectd status` lists those that are known")


def _limit(request: web.Request) -> int:
    return number(request.query, "limit", 50, 1, LIMIT)

"""The routes of the dashboard: read a page's data, render it. Nothing is decided here.

A page that can't be read says so in a sentence, with the status that the socket would answer; a bug is logged
and answers 500. Pages of features come through the seam (``Feature.pages``) and share one template.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import TYPE_CHECKING, Any, Final

from aiohttp import web
from aiohttp.http import HttpProcessingError
from msgspec import Struct

from ..core.errors import BadReply, ReflectdError, Rejected, Unavailable, UserError
from . import reads, verdict
from .entry import refused
from .render import HERE, Renderer, sections

if TYPE_CHECKING:
    from ..engine.feature import Page, Route
    from .entry import Entry
    from .reads import Source

Read = Callable[["Source", Mapping[str, str]], Awaitable[Mapping[str, Any] | None]]
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
HEARTBEAT_S: Final = 5.0
STREAMS: Final = 8  # of pages that show what happens now; the other streams are for `reflectd watch`
WHY_CHARS: Final = 300
WHOLE: Final = 2**53  # numbers beyond that are none of ours
_KINDS: Final = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}


class Shown(Struct, frozen=True):
    """A page: its address, its name in the menu ("": it is not there), its template, its data."""

    path: str
    title: str
    template: str
    read: Read
    live: bool = False


CORE: Final = (
    Shown("/", "Now", "now.html", reads.now, live=True),
    Shown("/history", "History", "history.html", reads.history),
    Shown("/cost", "Cost", "cost.html", reads.cost),
    Shown("/health", "Health", "health.html", reads.health),
    Shown("/verdict/{session}/{round}", "", "verdict.html", verdict.read),
)


class Pages:
    """Made when the dashboard is opened, and gone when it is closed."""

    def __init__(self, source: Source, entry: Entry) -> None:
        self.streams = 0  # how many pages show live news
        self._source = source
        self._entry = entry
        self._renderer = Renderer()
        self._static = {p.name: p.read_bytes() for p in (HERE / "static").iterdir() if p.suffix in _KINDS}
        self._posts: dict[tuple[str, str], Route] = {
            (feature, route.name): route
            for feature, route in source.features.routes()
            if route.method == "POST"
        }
        self._menu: list[dict[str, str]] = []
        self._clicks: set[asyncio.Future[Any]] = set()

    def add_to(self, app: web.Application) -> None:
        """Register the routes."""
        shown = [*CORE, *(_of(*page) for page in self._source.features.pages())]
        self._menu = _keys([(page.path, page.title) for page in shown if page.title])
        for page in shown:
            app.router.add_route("GET", page.path, self._page(page))
        app.router.add_route("GET", "/static/{name}", self._file)
        app.router.add_route("GET", "/stream", self._guarded(self._stream))
        app.router.add_route("POST", "/enter", self._enter)
        app.router.add_route("POST", "/dispute", self._guarded(self._dispute))
        app.router.add_route("POST", "/do/{feature}/{route}", self._guarded(self._do))
        app.router.add_route("*", "/{any:.*}", self._guarded(self._no_page))

    def _page(self, page: Shown) -> Handler:
        async def handle(request: web.Request) -> web.StreamResponse:
            if not self._entry.knows(request):  # only `/` comes as far as this
                return self._html("enter.html", {})
            read = await page.read(self._source, dict(request.query) | dict(request.match_info))
            if read is None:
                return self._error(404, "There is no such page.", page.path)
            values = {"title": page.title, "live": page.live, **read, **self._around(page.path)}
            text = await asyncio.to_thread(self._renderer.page, page.template, values)
            return _html(text)

        return self._guarded(handle)

    def _around(self, path: str) -> dict[str, Any]:
        return {"menu": self._menu, "here": path, "now_ms": self._source.clock.now_ms()}

    def _html(self, template: str, values: Mapping[str, Any], status: int = 200) -> web.Response:
        return _html(self._renderer.page(template, values), status)

    def _error(self, status: int, why: str, path: str = "") -> web.Response:
        values = {"title": "Not shown", "live": False, "why": why, **self._around(path)}
        return self._html("error.html", values, status)

    async def _file(self, request: web.Request) -> web.Response:
        name = request.match_info["name"]
        body = self._static.get(name)
        if body is None:
            return refused(404, "there is no such file")
        return web.Response(body=body, content_type=_KINDS["." + name.rpartition(".")[2]], charset="utf-8")

    async def _enter(self, request: web.Request) -> web.Response:
        """``POST /enter``: a token for a cookie."""
        body = await _object(request)
        cookie = self._entry.enter(str(body.get("token", ""))) if body is not None else ""
        if not cookie:
            return refused(403, "this link was used already, or is older than a minute: reflectd dashboard")
        response = web.Response(status=204)
        response.set_cookie(self._entry.cookie, cookie, httponly=True, samesite="Strict", path="/")
        return response

    async def _do(self, request: web.Request) -> web.Response:
        """``POST /do/<feature>/<route>``: the click on a button of a feature's page."""
        route = self._posts.get((request.match_info["feature"], request.match_info["route"]))
        body = await _object(request)
        if route is None or body is None:
            raise BadReply("there is no such action" if route is None else "the body is not a JSON object")

        async def carried_out() -> Mapping[str, Any]:
            with self._source.intake.command():
                return await route.answer(body)

        return await self._clicked(carried_out(), **request.match_info)

    async def _clicked(self, work: Coroutine[Any, Any, Mapping[str, Any]], **what: str) -> web.Response:
        """Carry out a click to its end, also when the browser goes away meanwhile, and log it."""

        async def whole() -> Mapping[str, Any]:
            done = dict(await work)
            self._source.log.info("a person clicked", **what, said=str(done.get("said", "")), by="dashboard")
            return done

        task = asyncio.ensure_future(whole())
        self._clicks.add(task)
        task.add_done_callback(self._end_of_click)
        return web.json_response(await asyncio.shield(task))

    def _end_of_click(self, task: asyncio.Future[Any]) -> None:
        """The browser may be gone, so nobody else looks at the error."""
        self._clicks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._source.log.info("a click failed", error=str(error)[:WHY_CHARS])

    async def _dispute(self, request: web.Request) -> web.Response:
        """``POST /dispute``: the person's word that a verdict was wrong."""
        body = await _object(request)
        if body is None:
            raise BadReply("the body is not a JSON object")
        return await self._clicked(verdict.dispute(self._source, body), feature="", route="dispute")

    async def _stream(self, request: web.Request) -> web.StreamResponse:
        """``GET /stream``: a line for each thing that happens, and now and then one because time passes."""
        if self.streams >= STREAMS:
            raise Unavailable(f"{STREAMS} pages show what happens now already")
        entries = self._source.status.stream.entries(heartbeat_s=HEARTBEAT_S)
        self.streams += 1
        try:
            await anext(entries)  # refused before the answer begins
            response = web.StreamResponse(headers={"content-type": "text/event-stream"})
            await response.prepare(request)
            with contextlib.suppress(ConnectionResetError, RuntimeError):  # whoever watched went away
                await response.write(b": open\n\n")
                async for entry in entries:
                    told = {"kind": "time"} if entry is None else {k: entry[k] for k in ("kind", "session")}
                    await response.write(f"data: {json.dumps(told)}\n\n".encode())
        finally:
            self.streams -= 1
            await entries.aclose()  # type: ignore[attr-defined]
        return response

    async def _no_page(self, request: web.Request) -> web.Response:
        if request.method != "GET":
            return refused(405, "there is nothing to post to here", Allow="GET")
        return self._error(404, "There is no such page.")

    def _guarded(self, handler: Handler) -> Handler:
        async def guarded(request: web.Request) -> web.StreamResponse:
            try:
                return await handler(request)
            except (BadReply, UserError) as e:
                return self._failed(request, 400, str(e))
            except Rejected as e:
                return self._failed(request, 409, e.reason)
            except (Unavailable, ReflectdError) as e:
                return self._failed(request, 503, str(e))
            except (ConnectionError, web.HTTPException):
                raise
            except Exception:
                self._source.log.exception("bug", route=request.path[:200])
                return self._failed(request, 500, "A bug of reflectd; the daemon's log has it.")

        return guarded

    def _failed(self, request: web.Request, status: int, why: str) -> web.Response:
        if request.method == "POST":
            return web.json_response({"error": why}, status=status)
        return self._error(status, why)


def _of(feature: str, page: Page) -> Shown:
    """The page of a feature."""

    async def read(_: Source, query: Mapping[str, str]) -> Mapping[str, Any]:
        return {"sections": sections(await page.read(query), feature)}

    return Shown(f"/{page.name}", page.title, "feature.html", read)


def _html(text: str, status: int = 200) -> web.Response:
    return web.Response(status=status, text=text, content_type="text/html", charset="utf-8")


async def _object(request: web.Request) -> dict[str, Any] | None:
    """The JSON object that was posted; None for anything else, and for texts and numbers that no page has."""
    if request.content_type != "application/json":
        return None
    try:
        found = json.loads(await request.read())
        return found if isinstance(found, dict) and _is_plain(found) else None
    except (ValueError, RecursionError, HttpProcessingError, web.RequestPayloadError):
        return None  # the last two: no body can be had out of it


def _is_plain(value: object) -> bool:
    """Says whether it can be stored: no half characters, no NUL, no number beyond ``WHOLE``."""
    if isinstance(value, str):
        return "\0" not in value and not any("\ud800" <= c <= "\udfff" for c in value)
    if isinstance(value, dict):
        return all(_is_plain(k) and _is_plain(v) for k, v in value.items())
    if isinstance(value, list):
        return all(map(_is_plain, value))
    return not isinstance(value, int | float) or -WHOLE < value < WHOLE


def _keys(pages: list[tuple[str, str]]) -> list[dict[str, str]]:
    """The menu: each page with the letter that follows `g`, the first of its title that is free."""
    menu: list[dict[str, str]] = []
    taken = set[str]()
    for path, title in pages:
        key = next((c for c in title.lower() if c.isalpha() and c not in taken), "")
        taken.add(key)
        menu.append({"path": path, "title": title, "key": key})
    return menu

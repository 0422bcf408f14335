"""The dashboard in a real browser: a real daemon, sessions that it judged, and Debian's chromium."""

from __future__ import annotations

import http.server
import json
import threading
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from harness.browser import Browser, Visit
from harness.machine import processes
from harness.machine.reflectd import Daemon, call
from harness.machine.sandbox import Sandbox, sandbox
from harness.machine.waiting import wait_until
from tests.support.hosts.wire import WireHost, unfinished
from tests.support.machine.command_line import judged, reflectd, said

pytestmark = pytest.mark.needs("chromium")

NARROW = 390
OWNED = "document.title='owned';window.owned=1"
MARKUP = f"<script>{OWNED}</script><img src=x onerror=\"{OWNED}\"><a href='javascript:{OWNED}'>x</a></title>"
ANSI = "\x1b[31mred\x1b[0m\x1b]0;title\x07\x9b2J\x00"
LONG = "a long line " * 90_000
HOSTILE = f"{MARKUP} \u202eevil\u2066 \u061c {ANSI}"


class Place(NamedTuple):
    """A daemon that judged sessions, and the browser that looks at it."""

    box: Sandbox
    daemon: Daemon
    browser: Browser

    def link(self) -> str:
        """An address that works once."""
        return str(call(self.box.socket, "POST", "/v1/dashboard", {})["url"])

    def enter(self, visit: Visit, path: str = "/") -> None:
        """Come in as a person does, and go to a page."""
        visit.page.goto(self.link())
        visit.page.wait_for_selector("nav[aria-label=Pages]")
        if path != "/":
            self.go(visit, path)

    def go(self, visit: Visit, path: str) -> None:
        """Another page of the same site."""
        visit.page.goto(visit.page.evaluate("location.origin") + path)
        visit.page.wait_for_selector("h1")


@pytest.fixture(scope="module")
def place() -> Iterator[Place]:
    """One daemon and one chromium for this file; two sessions were judged, one of them by a hostile agent."""
    with sandbox() as box, processes.none_left_over(), Daemon(box) as daemon, Browser() as browser:
        judged(box, daemon, "ses_plain", title="Add a login page")
        judged(
            box,
            daemon,
            "ses_hostile",
            title=HOSTILE,
            request=f"{HOSTILE}\n{LONG}",
            final=f"{HOSTILE}\n{LONG}",
            command=f"pytest -q # {HOSTILE}",
            output=f"2 failed, 3 passed in 0.1s\n{HOSTILE}\n{LONG}",
            content=f"{HOSTILE}\n{LONG}",
            todo=HOSTILE,
        )
        yield Place(box, daemon, browser)


def pages(visit: Visit) -> list[str]:
    """The addresses of the menu, and of the verdicts that were given."""
    menu = visit.page.eval_on_selector_all("nav[aria-label=Pages] a", "all => all.map(a => a.pathname)")
    return [*map(str, menu), "/verdict/ses_plain/1", "/verdict/ses_hostile/0"]


@pytest.mark.needs("axe-core")
@pytest.mark.parametrize(("width", "dark"), [(1280, False), (NARROW, True)], ids=["wide", "narrow and dark"])
def test_every_page_is_sound(place: Place, width: int, dark: bool) -> None:
    """No error and no refusal on the console, no sideways scrolling, no serious barrier; one heading each."""
    with place.browser.visit(width=width, dark=dark) as visit:
        place.enter(visit)
        found = pages(visit)
        assert len(found) >= 6, found
        for path in found:
            place.go(visit, path)
            assert visit.page.locator("h1").count() == 1, path
            assert (
                visit.page.evaluate("document.contentType + document.documentElement.lang") == "text/htmlen"
            )
            assert visit.overflow() <= 0, f"{path} scrolls sideways"
            assert visit.barriers() == [], path
            assert visit.page.evaluate("window.owned ?? 0") == 0, "hostile text was obeyed"
            assert visit.page.title() != "owned"
        schemes = visit.page.evaluate("getComputedStyle(document.body).backgroundColor")
        light = sum(int(n) for n in schemes[4:-1].split(",")[:3]) > 3 * 128
        assert light is not dark, schemes


def test_the_pages_are_walked_by_keys(place: Place) -> None:
    """`j` and `k` choose, Enter opens, `g` and a letter change the page, `?` tells, `/` searches."""
    with place.browser.visit() as visit:
        place.enter(visit)
        page = visit.page
        chosen = "document.activeElement.closest('[data-item]')?.getAttribute('href') ?? ''"
        page.keyboard.press("j")
        first = page.evaluate(chosen)
        page.keyboard.press("j")
        second = page.evaluate(chosen)
        page.keyboard.press("k")
        assert page.evaluate(chosen) == first != second
        assert first.startswith("/verdict/ses_")
        page.keyboard.press("Enter")
        page.wait_for_url(f"**{first}*")
        page.keyboard.press("g")
        page.keyboard.press("h")
        page.wait_for_url("**/history*")
        page.keyboard.press("?")
        page.wait_for_selector("dialog[open]")
        page.keyboard.press("Escape")
        page.wait_for_selector("dialog:not([open])", state="attached")
        page.keyboard.press("/")
        assert page.evaluate("'search' in document.activeElement.dataset")
        page.keyboard.type("jk?d/")
        assert page.evaluate("document.activeElement.value").endswith("jk?d/"), "keys are letters in a field"


def test_a_dispute_by_keys_keeps_a_case(place: Place) -> None:
    """`d` on a verdict, a choice and Enter: the case is on the disk, as `reflectd dispute` leaves it."""
    with place.browser.visit() as visit:
        place.enter(visit, "/verdict/ses_plain/1")
        page = visit.page
        page.keyboard.press("d")
        assert page.evaluate("document.activeElement.name") == "should_be"
        page.locator("#dispute input[value=complete]").focus()
        page.keyboard.press("Space")
        page.keyboard.press("Enter")
        page.wait_for_selector("text=You keep this case as a test")
    listed = said(reflectd(place.box, "case", "list"), 0, "done")
    assert "ses_plain" in listed or "login" in listed


@pytest.mark.main("the dashboard in a browser")
def test_a_verdict_appears_without_a_reload(place: Place) -> None:
    """A turn ends while the page Now is open: judging and the verdict show up, and the page stays."""
    with place.browser.visit() as visit:
        place.enter(visit)
        visit.page.evaluate("window.stayed = true")
        texts = unfinished(place.box.project, title="Seen at once")
        with WireHost(place.box.socket, place.box.project, texts, "host-live") as host:
            host.send(host.turn("ses_live", title="Seen at once"))
            wait_until(lambda: "Seen at once" in visit.text(), "the new session", visit.text)
            row = visit.page.locator("li.card", has_text="Seen at once")
            wait_until(lambda: "not done" in row.inner_text(), "its verdict", visit.text)
            before = len([url for url in visit.requests if url.endswith("/stream")])
            host.send([host.event("session.status", sessionID="ses_live", status={"type": "busy"})])
        assert visit.page.evaluate("window.stayed"), "the page was loaded again"
        assert before == 1


def test_the_cookie_is_out_of_reach(place: Place) -> None:
    """No script reads it, no other site sends it, and the token is gone from the address and its history."""
    with place.browser.visit() as visit:
        link = place.link()
        visit.page.goto(link)
        visit.page.wait_for_selector("nav[aria-label=Pages]")
        assert visit.page.evaluate("document.cookie") == ""
        (cookie,) = visit.context.cookies()
        assert (cookie["httpOnly"], cookie["sameSite"], cookie["domain"]) == (True, "Strict", "127.0.0.1")
        token = link.partition("#")[2]
        assert token not in visit.page.url
        assert token not in visit.page.evaluate("JSON.stringify([{...localStorage}, {...sessionStorage}])")
        assert [url for url in visit.requests if token in url.partition("#")[0]] == []


@pytest.fixture
def other() -> Iterator[str]:
    """Another server of this machine: its pages send the dashboard's cookie, because a port is no site."""

    class Answer(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("content-type", "text/html")
            self.end_headers()
            self.wfile.write(b"<!doctype html><link rel=icon href=/x><h1>other</h1>")

        def log_message(self, *_: object) -> None:
            """Nothing is printed."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answer) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join()


def test_another_server_gets_nothing(place: Place, other: str) -> None:
    """Its page can't read or frame the dashboard, and what it posts has no effect."""
    before = said(reflectd(place.box, "case", "list"), 0)
    with place.browser.visit() as visit:
        place.enter(visit)
        page, origin = visit.page, visit.page.evaluate("location.origin")
        page.goto(other)
        read = "u => fetch(u, {credentials: 'include'}).then(a => a.text(), () => 'refused')"
        assert page.evaluate(read, f"{origin}/cost") == "refused"
        body = json.dumps({"session": "ses_hostile", "round": 1, "should_be": "complete", "why": ""})
        post = (
            "([u, body]) => fetch(u, {method: 'POST', mode: 'no-cors', credentials: 'include', body})"
            ".then(() => 'sent', () => 'refused')"
        )
        assert page.evaluate(post, [f"{origin}/dispute", body]) in {"sent", "refused"}
        page.evaluate(
            "u => new Promise(done => {const f = document.createElement('iframe');"
            "f.onload = done; f.src = u; document.body.append(f)})",
            f"{origin}/",
        )
        (frame,) = [frame for frame in page.frames if frame.parent_frame is not None]
        assert "Waits for you" not in frame.content()
        wait_until(
            lambda: any("frame" in e.lower() for e in visit.errors), "the refusal", lambda: visit.errors
        )
        visit.errors.clear()  # the browser tells of all three
    assert said(reflectd(place.box, "case", "list"), 0) == before


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("new Image().src = 'http://example.invalid/x.png'", "requests left this machine"),
        ("console.error('broken')", "the page reported errors"),
        ("setTimeout(() => { throw new Error('broken') })", "the page reported errors"),
    ],
)
def test_the_harness_sees_what_it_promises_to_see(place: Place, script: str, words: str) -> None:
    """A request that leaves this machine, and an error of a script, fail the visit."""

    def misbehave() -> None:
        with place.browser.visit("about:blank") as visit:
            visit.page.evaluate(script)
            wait_until(lambda: [*visit.outside(), *visit.errors, visit.text()][:1] != [""], "a trace of it")

    with pytest.raises(AssertionError, match=words):
        misbehave()

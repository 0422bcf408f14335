"""The door of the dashboard: who gets in, what is refused, what every answer says, and when it ends."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from aiohttp import ClientSession

from daemon import config, paths
from daemon.app import Daemon as InProcess
from daemon.testing import FakeClock
from daemon.web.entry import BROWSERS, HEADERS, Entry
from daemon.web.site import IDLE_S
from harness.machine.reflectd import Daemon
from harness.machine.sandbox import REPO, sandbox
from tests.support.hosts.claude_code_sim import until
from tests.support.machine.command_line import reflectd, said
from tests.web.browsing import Browser

BEHIND = ("/history", "/cost", "/health", "/verdict/ses_1/1", "/stream", "/static/dashboard.js", "/nothing")


@pytest.fixture(scope="module")
def daemon() -> Iterator[Daemon]:
    with sandbox() as box, Daemon(box) as daemon:
        yield daemon
        daemon.new_log()


@pytest.fixture
def door(daemon: Daemon) -> Browser:
    """A browser with a fresh link and no cookie."""
    return Browser.at(daemon.call("POST", "/v1/dashboard", {})["url"])


@pytest.fixture
def browser(daemon: Daemon) -> Browser:
    return Browser.inside(daemon)


def test_a_link_works_once(door: Browser) -> None:
    """The token gives a cookie that no script can read and no other site can make the browser send."""
    page = door.enter()
    assert page.status == 204
    assert page.text == ""
    cookie = page.headers["set-cookie"]
    assert re.fullmatch(rf"reflectd_{door.port}=[\w-]{{43}}; HttpOnly; Path=/; SameSite=Strict", cookie)
    assert "<h1>Now</h1>" in door.get("/").text
    again = Browser(door.port, door.token)
    assert again.enter().status == 403
    assert "set-cookie" not in again.enter().headers


@pytest.mark.parametrize("path", BEHIND)
def test_nothing_is_shown_without_the_cookie(door: Browser, path: str) -> None:
    """Every address behind the door is refused alike, whether there is such a page or not."""
    for cookie in ("", f"reflectd_{door.port}=", f"reflectd_{door.port}={'A' * 43}", "reflectd=1"):
        door.cookie = cookie
        page = door.get(path)
        assert (page.status, page.text) == (403, "open the dashboard with: reflectd dashboard\n")


def test_the_door_tells_nothing(door: Browser) -> None:
    """What is answered without a cookie is the same text for everybody, without inline script or style."""
    page = door.get("/")
    assert page.status == 200
    assert "<script src=" in page.text
    assert not re.search(r"<script(?! src)|<style|style=|\son\w+=", page.text)
    assert page.text == Browser(door.port, "").get("/").text


@pytest.mark.parametrize(
    "host", ["localhost", "localhost:PORT", "127.0.0.1", "127.0.0.1:1", "evil.test:PORT"]
)
def test_another_host_is_refused(browser: Browser, host: str) -> None:
    """A name that leads to loopback is not our address, with the cookie too."""
    page = browser.get("/", Host=host.replace("PORT", str(browser.port)))
    assert page.status == 421
    assert "Now" not in page.text


@pytest.mark.parametrize(
    "origin", ["http://evil.test", "null", "http://127.0.0.1:1", "http://localhost:PORT", ""]
)
def test_another_origin_is_refused(browser: Browser, origin: str) -> None:
    """Forms and scripts of other pages get nothing; a POST without an origin neither."""
    given = origin.replace("PORT", str(browser.port))
    assert browser.post("/dispute", {}, Origin=given).status == 403
    assert browser.get("/", Origin=given).status == (403 if given else 200)


@pytest.mark.parametrize("method", ["HEAD", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])
def test_other_methods_are_refused(browser: Browser, method: str) -> None:
    """Only GET and POST are answered, and no page takes a POST."""
    page = browser.ask(method, "/")
    assert (page.status, page.headers["allow"]) == (405, "GET, POST")
    assert browser.post("/history", {}).status == 405


def test_every_answer_has_the_headers(browser: Browser, door: Browser) -> None:
    """Whatever is answered: the door, pages, files, refusals, what is missing."""
    answers = [
        door.get("/"),
        door.get("/history"),
        browser.get("/"),
        browser.get("/static/style.css"),
        browser.get("/static/none.css"),
        browser.get("/nothing"),
        browser.get("/", Host="evil.test"),
        browser.ask("PUT", "/"),
        browser.post("/dispute", {}),
        door.enter(),
    ]
    assert [a.status for a in answers] == [200, 403, 200, 200, 404, 404, 421, 405, 400, 204]
    for answer in answers:
        assert {k: answer.headers.get(k.lower()) for k in HEADERS} == HEADERS
        assert "access-control-allow-origin" not in answer.headers
    policy = HEADERS["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    with_stream = browser.stream()
    stream = with_stream.getresponse()
    assert {k: stream.getheader(k) for k in HEADERS} == HEADERS
    with_stream.close()


def test_the_verb(daemon: Daemon, browser: Browser) -> None:
    """A second link leads to the same dashboard; `--stop` closes it, and old cookies are worth nothing."""
    box = daemon.box
    link = said(reflectd(box, "dashboard"), 0, f"{browser.origin}/#", "works once").split()[0]
    again = json.loads(reflectd(box, "dashboard", "--json").stdout)
    assert again["until_idle_s"] == IDLE_S
    assert Browser.at(link).enter().status == Browser.at(again["url"]).enter().status == 204
    assert browser.get("/").status == 200
    said(reflectd(box, "dashboard", "--stop"), 0, "closed")
    assert browser.is_gone()
    said(reflectd(box, "dashboard", "--stop"), 0, "no dashboard was open")
    after = Browser.inside(daemon)
    old = browser.cookie.partition("=")[2]
    after.cookie = f"reflectd_{after.port}={old}"
    assert after.get("/history").status == 403


def test_it_ends_with_the_daemon() -> None:
    """SIGTERM leaves no port behind, while a page is watched too, and the end is not delayed by it."""
    with sandbox() as box, Daemon(box) as daemon:
        browser = Browser.inside(daemon)
        connection = browser.stream()
        stream = connection.getresponse()
        assert stream.readline() == b": open\n"
        assert daemon.stop() == 0
        assert browser.is_gone()
        connection.close()
        daemon.new_log()
        said(reflectd(box, "dashboard"), 1, "reflectd start")


async def test_it_ends_when_nobody_looks(tmp_path: Path) -> None:
    """An hour without a request ends it, by the clock; while a page shows what happens now it stays."""
    clock = FakeClock()
    where = paths.resolve({"HOME": str(tmp_path), "REFLECTD_SOCKET": "/tmp/none.sock"})
    daemon = InProcess(config.from_text('[judge]\nprovider = "offline"'), where, clock=clock)
    try:
        found = await daemon.site.open()
        browser = Browser.at(str(found["url"]))
        async with ClientSession() as session:
            origin = {"Origin": browser.origin}
            async with session.post(
                f"{browser.origin}/enter", json={"token": browser.token}, headers=origin
            ) as a:
                cookie = {"Cookie": a.headers["Set-Cookie"].partition(";")[0]}
            async with session.get(f"{browser.origin}/stream", headers=cookie) as stream:
                assert await stream.content.readline() == b": open\n"
                clock.advance(IDLE_S + 1)
                daemon.site.sweep()
                clock.advance(IDLE_S - 1)
                daemon.site.sweep()
                assert daemon.site.is_open
            clock.advance(IDLE_S - 1)
            daemon.site.sweep()
            assert daemon.site.is_open
            await until(lambda: _ended(daemon, clock))
        assert browser.is_gone()
    finally:
        await daemon.site.close()
        for client in daemon._clients:
            await client.close()
        daemon.db.close()


def _ended(daemon: InProcess, clock: FakeClock) -> bool:
    """Ever later, until the server noticed that the reader of the stream went away, and an hour more."""
    clock.advance(IDLE_S + 1)
    daemon.site.sweep()
    return not daemon.site.is_open


@pytest.mark.shows("I44")
def test_only_so_many_browsers() -> None:
    """The oldest cookie ends when too many were given; unused links do not pile up, and last a minute."""
    clock = FakeClock()
    entry = Entry(1, clock)
    late = entry.token()
    clock.advance(61)
    assert entry.enter(late) == ""
    links = [entry.token() for _ in range(40)]
    assert entry.enter(links[0]) == ""
    assert entry.enter(links[-1])
    cookies = [entry.enter(entry.token()) for _ in range(BROWSERS + 1)]
    assert len(set(cookies)) == BROWSERS + 1
    assert len(entry._cookies) == BROWSERS
    assert len(entry._tokens) <= BROWSERS


def test_the_port_is_on_loopback_only(daemon: Daemon, browser: Browser) -> None:
    """No other address of the machine is listened on."""
    listening = [
        c.laddr for c in psutil.Process(daemon.status()["pid"]).net_connections("tcp") if c.status == "LISTEN"
    ]
    assert [tuple(a) for a in listening] == [("127.0.0.1", browser.port)]


def test_the_templates_are_not_imported_before() -> None:
    """A daemon whose dashboard nobody opens does not pay for it."""
    code = "import sys, daemon.app; print('jinja2' in sys.modules, 'daemon.web.site' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=REPO)
    assert found.stdout == "False True\n"

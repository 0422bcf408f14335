"""A browser without a browser: requests to the dashboard of a real daemon, with and without its cookie."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import time
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any, Self

from harness.machine.reflectd import Daemon
from harness.machine.waiting import PATIENCE_S


@dataclass
class Page:
    """What came back. The names of ``headers`` are in lower case."""

    status: int
    headers: dict[str, str]
    text: str

    @property
    def json(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.text)
        return found


@dataclass
class Browser:
    """``port`` and ``token`` of a link; ``cookie`` once it was entered."""

    port: int
    token: str
    cookie: str = ""
    headers: dict[str, str] = field(default_factory=dict)

    @classmethod
    def at(cls, url: str) -> Self:
        """A browser in front of the door."""
        address, _, token = url.partition("/#")
        return cls(int(address.rpartition(":")[2]), token)

    @classmethod
    def inside(cls, daemon: Daemon) -> Self:
        """A browser that has its cookie."""
        browser = cls.at(daemon.call("POST", "/v1/dashboard", {})["url"])
        assert browser.enter().status == 204
        return browser

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def enter(self, token: str = "") -> Page:
        """Post the token of the link, or another one, as the page of the door does."""
        page = self.post("/enter", {"token": token or self.token})
        self.cookie = page.headers.get("set-cookie", "").partition(";")[0] or self.cookie
        return page

    def get(self, path: str, **headers: str) -> Page:
        return self.ask("GET", path, headers=headers)

    def post(self, path: str, body: object, **headers: str) -> Page:
        given = {"Content-Type": "application/json", "Origin": self.origin} | headers
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        return self.ask("POST", path, data, given)

    def leaves(self, path: str, body: object) -> None:
        """Post, and go away before there is an answer, as soon as the other end has all of it."""
        data = json.dumps(body)
        head = (
            f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\nOrigin: {self.origin}\r\n"
            f"Cookie: {self.cookie}\r\nContent-Type: application/json\r\nContent-Length: {len(data)}\r\n\r\n"
        )
        with socket.create_connection(("127.0.0.1", self.port), PATIENCE_S) as s:
            s.sendall(f"{head}{data}".encode())
            time.sleep(0.05)

    def ask(
        self, method: str, path: str, body: bytes | None = None, headers: dict[str, str] | None = None
    ) -> Page:
        """One request. A header that is empty is left out."""
        sent = {"Cookie": self.cookie} | (headers or {})
        with contextlib.closing(self._connection()) as connection:
            connection.request(method, path, body, {k: v for k, v in sent.items() if v})
            answer = connection.getresponse()
            text = answer.read().decode()
            return Page(answer.status, {k.lower(): v for k, v in answer.getheaders()}, text)

    def stream(self) -> http.client.HTTPConnection:
        """A connection on which ``/stream`` was asked for; close it."""
        connection = self._connection()
        connection.request("GET", "/stream", headers={"Cookie": self.cookie})
        return connection

    def is_gone(self) -> bool:
        """Nobody listens on the port any more."""
        try:
            socket.create_connection(("127.0.0.1", self.port), PATIENCE_S).close()
        except ConnectionRefusedError:
            return True
        return False

    def _connection(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)


class Read(HTMLParser):
    """The elements and the text of a page, as a browser would take them."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data

    def links(self) -> list[str]:
        return [str(a["href"]) for tag, a in self.tags if tag == "a"]

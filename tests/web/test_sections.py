"""Pages of features through the seam: data becomes a table with buttons, which reach the feature."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest
from aiohttp import ClientSession

from daemon import config, paths
from daemon.app import Daemon as InProcess
from daemon.engine.feature import Feature, Page
from tests.support.features.toy import Toy
from tests.web.browsing import Browser, Read


class Failing(Feature):
    """Has a page with a bug."""

    name = "failing"

    def pages(self) -> Sequence[Page]:
        async def read(_: object) -> dict[str, object]:
            return {"sections": [{"rows": [{"cells": [object()]}]}]}

        return (Page("failing", "Notes", read),)


@pytest.fixture
async def toys(tmp_path: Path) -> AsyncIterator[tuple[ClientSession, str]]:
    """A session with its cookie at a daemon with two features, and the address."""
    where = paths.resolve({"HOME": str(tmp_path), "REFLECTD_SOCKET": "/tmp/none.sock"})
    settings = config.from_text('[judge]\nprovider = "offline"')
    daemon = InProcess(settings, where, features=(Toy, Failing))
    browser = Browser.at(str((await daemon.site.open())["url"]))
    async with ClientSession(headers={"Origin": browser.origin}) as session:
        async with session.post(f"{browser.origin}/enter", json={"token": browser.token}) as answer:
            session.headers["Cookie"] = answer.headers["Set-Cookie"].partition(";")[0]
        yield session, browser.origin
    await daemon.site.close()
    for client in daemon._clients:
        await client.close()
    daemon.db.close()


async def test_a_feature_has_a_page(toys: tuple[ClientSession, str]) -> None:
    """Data of a feature becomes a table with buttons; what it wrote is text; its page is in the menu."""
    session, origin = toys
    async with session.get(f"{origin}/toys?before=x") as answer:
        page = Read(await answer.text())
    assert "<i>task</i>" in page.text
    assert "80 % 60\N{EN DASH}90 %" in page.text.replace("\n", "")
    assert "/verdict/ses%2F1%20x/2" in page.links()
    assert "?before=xa%26b" in page.links()
    (button,) = [a for tag, a in page.tags if tag == "button" and "data-post" in a]
    assert button["data-post"] == "/do/toy/praise"
    assert json.loads(str(button["data-body"])) == {"who": "<b>me</b>"}
    async with session.post(f"{origin}{button['data-post']}", json={"who": "<b>me</b>"}) as done:
        assert (done.status, await done.json()) == (200, {"praised": 1})
    async with session.get(f"{origin}/toys") as answer:
        assert "&lt;b&gt;me&lt;/b&gt;" in await answer.text()
    keys = {str(a["data-go"]): str(a["href"]) for _, a in page.tags if "data-go" in a}
    assert keys == {"n": "/", "h": "/history", "c": "/cost", "e": "/health", "t": "/toys", "o": "/failing"}


async def test_what_a_feature_refuses(toys: tuple[ClientSession, str]) -> None:
    """Its own refusal is told; an action that is none, or no POST route, does nothing; so does no object."""
    session, origin = toys
    for route, body, status in (
        ("toy/praise", {"who": "nobody"}, 409),
        ("toy/praise", ["x"], 400),
        ("toy/tasks", {}, 400),
        ("toy/none", {}, 400),
        ("none/praise", {}, 400),
    ):
        async with session.post(f"{origin}/do/{route}", json=body) as answer:
            assert answer.status == status, route
            assert (await answer.json())["error"]


async def test_a_page_with_a_bug_harms_no_other(toys: tuple[ClientSession, str]) -> None:
    """500 with a sentence; the others are shown."""
    session, origin = toys
    async with session.get(f"{origin}/failing") as answer:
        assert answer.status == 500
        assert "A bug of reflectd" in await answer.text()
    async with session.get(f"{origin}/cost") as answer:
        assert "<h1>Cost</h1>" in await answer.text()

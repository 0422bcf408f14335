"""The pages Learned and Quality in a real browser: buttons, keys, the question before what stays done."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import NamedTuple
from urllib.parse import quote

import pytest

from harness.browser import Browser, Visit
from harness.machine import processes
from harness.machine.reflectd import Daemon, call
from harness.machine.sandbox import Sandbox, sandbox
from tests.web.test_learned import fill, rules_of

pytestmark = [pytest.mark.needs("chromium"), pytest.mark.needs("axe-core")]


class Place(NamedTuple):
    """A daemon in whose project something was learned, and the browser that looks at it."""

    box: Sandbox
    browser: Browser

    def enter(self, visit: Visit, path: str = "") -> None:
        """Come in as a person does, and go to a page: that of the project."""
        visit.page.goto(str(call(self.box.socket, "POST", "/v1/dashboard", {})["url"]))
        visit.page.wait_for_selector("nav[aria-label=Pages]")
        path = path or f"/learned?directory={quote(str(self.box.project))}"
        visit.page.goto(visit.page.evaluate("location.origin") + path)
        visit.page.wait_for_selector("h1")


@pytest.fixture(scope="module")
def place() -> Iterator[Place]:
    """One daemon and one chromium for this file."""
    with sandbox() as box, processes.none_left_over():
        box.state.mkdir(exist_ok=True)
        asyncio.run(fill(box))
        with Daemon(box), Browser() as browser:
            yield Place(box, browser)


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (390, True)], ids=["wide", "narrow and dark"])
def test_the_pages_of_what_was_learned_are_sound(place: Place, width: int, dark: bool) -> None:
    """No error on the console, no sideways scrolling, no serious barrier."""
    with place.browser.visit(width=width, dark=dark) as visit:
        for path in ("", "/quality"):
            place.enter(visit, path)
            assert visit.overflow() <= 0
            assert visit.barriers() == []


def test_what_can_not_be_undone_is_asked_once_more(place: Place) -> None:
    """No and Escape leave the point; Yes removes it, and the page shows so without a reload."""
    with place.browser.visit() as visit:
        place.enter(visit)
        page = visit.page
        waiting = page.locator("section", has_text="Waiting for you")
        row, sure = waiting.locator("tr", has_text="pat-003"), page.locator("dialog#sure")
        for leave in (
            lambda: page.keyboard.press("Escape"),
            lambda: sure.get_by_role("button", name="No").click(),
        ):
            row.get_by_role("button", name="dismiss").click()
            sure.wait_for()
            assert page.locator("#sure-text").inner_text().startswith("Dismiss pat-003?")
            leave()
            sure.wait_for(state="hidden")
        assert "pat-003" in rules_of(place.box).playbook.path.read_text()
        row.get_by_role("button", name="dismiss").click()
        sure.get_by_role("button", name="Yes").click()
        row.wait_for(state="detached")
        page.get_by_role("status").get_by_text("removed pat-003").wait_for()
        assert "pat-003" not in rules_of(place.box).playbook.path.read_text()


def test_what_was_learned_is_settled_by_keys(place: Place) -> None:
    """`x` in the row that has the focus dismisses; `u` in that of a change undoes it."""
    with place.browser.visit() as visit:
        place.enter(visit)
        page = visit.page
        waiting, in_use = (page.locator("section", has_text=title) for title in ("Waiting for you", "In use"))
        lesson = waiting.locator("tr", has_text="Stop the workers first.")
        lesson.focus()
        page.keyboard.press("x")
        lesson.wait_for(state="detached")
        page.get_by_role("status").get_by_text("dismissed bbbb").wait_for()
        assert "Start the database" in page.evaluate("document.activeElement.textContent"), "what came there"
        rule, change = (part.locator("tr", has_text="rule-003") for part in (in_use, page))
        change.last.focus()
        page.keyboard.press("u")
        rule.wait_for(state="detached")
        assert "rule-003" not in [r.id for r in rules_of(place.box).look().rows if r.active]

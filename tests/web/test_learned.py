"""The pages Learned and Quality over HTTP: a real daemon, real files, a person who clicks with the cookie.

What each button does is shown in ``learning/test_page.py``.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from daemon.clock import SystemClock
from daemon.learning import tables
from daemon.learning.lessons.episodes import Episode
from daemon.learning.lessons.repositories import project_of
from daemon.learning.lessons.store import Episodes
from daemon.learning.playbook.project_playbook import dumped
from daemon.learning.rules.learned_rules import LearnedRules
from daemon.store.db import Database
from harness.machine import processes
from harness.machine.reflectd import Daemon, call
from harness.machine.sandbox import Sandbox, sandbox
from tests.learning.playbook.books import book, point
from tests.web.browsing import Browser, Page, Read

TEXT = "The tests need a running database, else all of them fail."
MARKUP = "Use <script>alert(1)</script> & \x1b[31mred\u202e."


class Person:
    """A browser that came in, and looks at the page Learned of the project."""

    def __init__(self, daemon: Daemon) -> None:
        self.box, self.browser = daemon.box, Browser.inside(daemon)

    def reads(self) -> str:
        page = self.browser.get(f"/learned?directory={quote(str(self.box.project))}")
        assert page.status == 200, page.text
        return page.text

    def button(self, route: str, word: str) -> tuple[str, dict[str, object]]:
        """Address and body of the button with this route, whose body has the word."""
        given = [a for tag, a in Read(self.reads()).tags if tag == "button" and a.get("data-post") == route]
        return route, json.loads(next(str(a["data-body"]) for a in given if word in str(a["data-body"])))

    def clicks(self, route: str, word: str) -> Page:
        return self.browser.post(*self.button(route, word))


@pytest.fixture(scope="module")
def person() -> Iterator[Person]:
    """One daemon for all tests of this file, in whose project everything was learned that a page shows."""
    with sandbox() as box, processes.none_left_over():
        box.state.mkdir(exist_ok=True)
        asyncio.run(fill(box))
        with Daemon(box) as daemon:
            yield Person(daemon)


def rules_of(box: Sandbox) -> LearnedRules:
    return LearnedRules(box.project, box.state, SystemClock())


async def fill(box: Sandbox) -> None:
    rules = rules_of(box)
    for text in ("Use bun", "Commit often", "Name things well"):
        rules.learn(text)
    file = rules.playbook.path
    file.parent.mkdir(exist_ok=True)
    texts = ("Use pathlib.", MARKUP, "Keep files short.")
    file.write_bytes(dumped(book(*(point(f"pat-{i:03d}", t) for i, t in enumerate(texts, 1)))))
    db = Database(box.state / "reflectd.sqlite3", SystemClock().now_ms)
    project = str(Path(box.project).resolve())
    for text in (TEXT, "The linter runs before each commit."):
        await db.commit(tables.quarantine(project, "PROJECT CONTEXT", text, "s1", 1))
    repository = project_of(str(box.project))
    for name, lesson in (("a", "Start the database first."), ("b", "Stop the workers first.")):
        await Episodes(db).add(
            Episode(name * 32, repository, "Fix the parser", -0.6, "It failed.", lesson, "", at=ord(name))
        )
    db.close()


def test_what_an_agent_wrote_is_text(person: Person) -> None:
    """Markup, escape sequences and marks that turn the direction are shown, not obeyed."""
    page = person.reads()
    assert "Use &lt;script&gt;alert(1)&lt;/script&gt; &amp; " in page
    assert [part for part in ("<script>alert", "\x1b", "\u202e") if part in page] == []


def test_only_a_click_reaches_what_changes_files(person: Person) -> None:
    """The socket, which an agent's shell can reach, has no such routes; a cookie is needed."""
    route, body = person.button("/do/learned/forget", "pat-003")
    for name in ("learned/forget", "learned/undo", "learned/approve"):
        with pytest.raises(AssertionError, match="404"):
            call(person.box.socket, "POST", f"/v1/features/{name}", body)
    assert Browser(person.browser.port, "", "none=1").post(route, body).status == 403
    assert "pat-003" in rules_of(person.box).playbook.path.read_text()

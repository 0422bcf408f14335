"""The pages Learned and Quality over HTTP: a real daemon, real files, a person who clicks with the cookie."""

from __future__ import annotations

import asyncio
import http.client
import json
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

import pytest

from daemon.clock import SystemClock
from daemon.core.episodes import Episode
from daemon.core.learned import Origin
from daemon.engine.repositories import project_of
from daemon.files.learned_rules import LearnedRules
from daemon.files.playbook import dumped
from daemon.files.reflect_state import ReflectState
from daemon.files.rule_changes import digest
from daemon.store import learning
from daemon.store.db import Database
from daemon.store.episodes import SqliteEpisodes
from harness.machine import processes
from harness.machine.reflectd import Daemon, call
from harness.machine.sandbox import Sandbox, sandbox
from harness.machine.waiting import PATIENCE_S, wait_until
from tests.playbook.books import book, point
from tests.support.machine.command_line import reflectd, said

if TYPE_CHECKING:
    from collections.abc import Iterator

Json = dict[str, Any]
TEXT = "The tests need a running database, else all of them fail."
MARKUP = "Use <script>alert(1)</script> & \x1b[31mred\u202e."


class Buttons(HTMLParser):
    """The buttons of a page: by row, each with its label, route, body and question."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.rows: list[tuple[list[str], dict[str, dict[str, str]]]] = []
        self._button: dict[str, str] | None = None
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag == "tr":
            self.rows.append(([], {}))
        if tag == "button" and "data-post" in given:
            self._button = given

    def handle_endtag(self, tag: str) -> None:
        if tag == "button":
            self._button = None

    def handle_data(self, data: str) -> None:
        if self._button is not None and self.rows and "label" not in self._button:
            self._button["label"] = data.strip()
            self.rows[-1][1][data.strip()] = self._button
        elif self._button is None and self.rows and data.strip():
            self.rows[-1][0].append(data.strip())

    def of(self, first: str, label: str) -> dict[str, str]:
        """The button in the row that begins with this text."""
        return next(buttons for cells, buttons in self.rows if cells and cells[0] == first)[label]


class Person:
    """A browser that came in with the token, without the browser."""

    def __init__(self, daemon: Daemon, box: Sandbox) -> None:
        self.box = box
        url = urlsplit(daemon.call("POST", "/v1/dashboard", {})["url"])
        self.port, self.cookie = url.port, ""
        status, _, headers = self.asks("POST", "/enter", {"token": url.fragment})
        assert status == 204
        self.cookie = headers["set-cookie"].partition(";")[0]

    def asks(self, method: str, path: str, body: Json | None = None) -> tuple[int, str, Any]:
        """Status, text and headers of an answer."""
        client = http.client.HTTPConnection("127.0.0.1", self.port or 0, timeout=PATIENCE_S)
        origin = f"http://127.0.0.1:{self.port}"
        headers = {"cookie": self.cookie, "origin": origin, "content-type": "application/json"}
        try:
            client.request(method, path, None if body is None else json.dumps(body), headers)
            answer = client.getresponse()
            return answer.status, answer.read().decode(), answer.headers
        finally:
            client.close()

    def reads(self, more: str = "") -> str:
        """The page Learned of the project."""
        status, text, _ = self.asks("GET", f"/learned?directory={quote(str(self.box.project))}{more}")
        assert status == 200, text
        return text

    def clicks(self, button: dict[str, str]) -> tuple[int, Json]:
        """Status and answer of a button."""
        status, text, _ = self.asks("POST", button["data-post"], json.loads(button["data-body"]))
        return status, json.loads(text)


@pytest.fixture(scope="module")
def person() -> Iterator[Person]:
    """One daemon for all tests of this file, in whose project everything was learned that a page shows."""
    with sandbox() as box, processes.none_left_over():
        box.state.mkdir(exist_ok=True)
        asyncio.run(fill(box))
        with Daemon(box) as daemon:
            yield Person(daemon, box)


def rules_of(box: Sandbox) -> LearnedRules:
    return LearnedRules(box.project, box.state, SystemClock())


async def fill(box: Sandbox) -> None:
    rules = rules_of(box)
    for text in ("Use bun", "Commit often", "Name things well"):
        rules.learn(text, rules.places()[0], digest(rules.places()[0].read()))
    file = rules.steps.playbook.path
    file.parent.mkdir(exist_ok=True)
    texts = ("Use pathlib.", MARKUP, "Keep files short.")
    file.write_bytes(dumped(book(*(point(f"pat-{i:03d}", t) for i, t in enumerate(texts, 1)))))
    db = Database(box.state / "reflectd.sqlite3", SystemClock().now_ms)
    project = str(Path(box.project).resolve())
    for text in (TEXT, "The linter runs before each commit."):
        await db.commit(
            learning.quarantine(project, "PROJECT CONTEXT", text, "s1", 1, Origin("curator", "s1"))
        )
    repository = project_of(str(box.project), str(box.home))
    said = ("Fix the parser", -0.6, "It failed.", "Start the database first.", "")
    await SqliteEpisodes(db, SystemClock().now_ms).add(Episode("a" * 32, repository, *said, at=1))
    db.close()


def test_a_text_that_waits_is_approved(person: Person) -> None:
    """The point is written by a job, and the page shows it as given to agents."""
    status, told = person.clicks(Buttons(person.reads()).of("new-1", "approve"))
    assert (status, told) == (200, {"said": "approved new-1"})
    wait_until(lambda: f">{TEXT}<" in person.reads() and "new-1" not in person.reads(), "the new point")
    assert "confirmed by a person&#39;s word in the dashboard" in person.reads()


def test_a_text_that_waits_is_dismissed(person: Person) -> None:
    """Its button asks first; then it is never learned again."""
    button = Buttons(person.reads()).of("new-2", "dismiss")
    assert button["data-confirm"] == "Dismiss new-2? What says the same is never learned again."
    assert person.clicks(button)[0] == 200
    stones = ReflectState(person.box.state, person.box.project).load("tombstones")
    assert "The linter runs before each commit." in stones
    assert person.clicks(button) == (409, {"error": "nothing called 'new-2' waits"})


def test_a_point_is_approved_and_one_is_removed(person: Person) -> None:
    """As the verbs do it, with a revision that says who did it."""
    assert person.clicks(Buttons(person.reads()).of("pat-001", "approve"))[0] == 200
    assert rules_of(person.box).steps.playbook.known().is_approved("Use pathlib.")
    assert person.clicks(Buttons(person.reads()).of("pat-003", "remove"))[0] == 200
    history = rules_of(person.box).steps.playbook.history()
    assert "took back pat-003" in [r.what for r in history if r.by == "dashboard"]


def test_a_rule_is_archived_and_the_change_undone(person: Person) -> None:
    """The file changes, and is byte for byte what it was after the undo."""
    file = person.box.project / "CLAUDE.md"
    before = file.read_bytes()
    assert person.clicks(Buttons(person.reads()).of("rule-001", "archive"))[0] == 200
    assert "(archived: " in file.read_text()
    newest = rules_of(person.box).changes.all()[0]
    assert (newest.what, newest.by) == ("archived rule-001", "dashboard")
    said(
        reflectd(person.box, "reflect", "history"),
        0,
        "archived rule-001: no longer applies, in the dashboard",
    )
    assert person.clicks(Buttons(person.reads()).of(str(newest.number), "undo"))[0] == 200
    assert file.read_bytes() == before


def test_a_file_that_was_edited_since_is_left_alone(person: Person) -> None:
    """The refusal is in the words of the verb."""
    button = Buttons(person.reads()).of("rule-002", "archive")
    file = person.box.project / "CLAUDE.md"
    before = file.read_bytes()
    file.write_bytes(before + b"\nMine.\n")
    status, told = person.clicks(button)
    assert file.read_bytes() == before + b"\nMine.\n"
    file.write_bytes(before)
    assert status == 409
    assert "was edited while you were asked: nothing was changed; try again" in told["error"]


def test_a_lesson_is_confirmed_and_forgotten(person: Person) -> None:
    """Forgetting asks once more."""
    lesson = Buttons(person.reads()).of("Fix the parser", "confirm")
    assert person.clicks(lesson)[0] == 200
    assert "confirmed: given to agents" in person.reads()
    button = Buttons(person.reads()).of("Fix the parser", "forget")
    assert button["data-confirm"].startswith("Forget this lesson for good?")
    assert person.clicks(button)[0] == 200
    assert "Start the database first." not in person.reads()


def test_what_an_agent_wrote_is_text(person: Person) -> None:
    """Markup, escape sequences and marks that turn the direction are shown, not obeyed."""
    page = person.reads()
    assert "Use &lt;script&gt;alert(1)&lt;/script&gt; &amp; " in page
    assert [part for part in ("<script>alert", "\x1b", "\u202e") if part in page] == []


def test_only_a_click_reaches_what_changes_files(person: Person) -> None:
    """The socket, which an agent's shell can reach, does not have these routes; without the cookie nothing is
    done either.
    """
    body = json.loads(Buttons(person.reads()).of("rule-003", "archive")["data-body"])
    for route in ("rules/unlearn", "rules/undo", "playbook/approve", "playbook/dismiss", "playbook/remove"):
        with pytest.raises(AssertionError, match="404"):
            call(person.box.socket, "POST", f"/v1/features/{route}", body)
    cookie, person.cookie = person.cookie, "none=1"
    try:
        status, _, _ = person.asks("POST", "/do/rules/unlearn", body)
    finally:
        person.cookie = cookie
    assert status == 403
    assert "rule-003" in [r.id for r in rules_of(person.box).look().rows if r.active]


def test_a_folder_that_is_gone_is_told_of(person: Person) -> None:
    """With the status of a refusal and a sentence."""
    status, text, _ = person.asks("GET", "/learned?directory=/nowhere/at/all")
    assert status == 409
    assert "there is no folder /nowhere/at/all" in text


def test_quality_is_a_page(person: Person) -> None:
    """With its sections, also when nothing was judged yet."""
    status, text, _ = person.asks("GET", "/quality")
    assert status == 200
    for title in ("Agreement with your labels", "Disputes by week", "States by week", "Disputes"):
        assert f">{title}</h2>" in text

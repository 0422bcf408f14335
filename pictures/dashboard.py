"""``python -m pictures.dashboard``: a picture of each page of the dashboard, as a browser shows it.

Writes ``docs/pictures/dashboard-<page>-<width>-<light or dark>.png``. The daemon, its judgements and chromium
are real. What the agents did and what the judge says is scripted, the costs of the days before are made up.
An ``AssertionError`` says which scene did not go as it should.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import sqlite3
import sys
import time
from typing import TYPE_CHECKING, Any

from daemon.clock import SystemClock
from daemon.learning import tables
from daemon.learning.lessons.episodes import Episode
from daemon.learning.lessons.repositories import project_of
from daemon.learning.lessons.store import Episodes
from daemon.learning.playbook.project_playbook import dumped
from daemon.learning.rules.learned_rules import LearnedRules
from daemon.store.db import Database
from harness.browser import Browser
from harness.machine.reflectd import Daemon, call
from harness.machine.sandbox import REPO, Sandbox, sandbox
from harness.machine.waiting import wait_until
from harness.models.scripts import COMPLETE, UNDEFENDED, verdict
from harness.models.server import ModelServer
from tests.learning.playbook.books import book, point
from tests.support.hosts.wire import WireHost

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from harness.browser import Visit

FOLDER = REPO / "docs" / "pictures"
SIZES = ((1280, 860), (390, 844))
DAY_MS = 86_400_000
MODEL = "gpt-5-mini"
Json = dict[str, Any]

LOGIN = verdict(
    complete=False,
    severity="HIGH",
    missing=[("the tests of the login page do not pass", "with tests that pass")],
    next_actions=["make test_login pass", "run the tests again"],
    feedback="test_login still fails: the form has no field for the password. Add it, and run them again.",
)
CHECKOUT = verdict(
    complete=False,
    severity="MEDIUM",
    missing=[("the test was skipped, not mended", "Fix the flaky checkout test")],
    next_actions=["take the skip away and wait for the response"],
    feedback="test_checkout was marked as skipped. Wait for the response instead, and take the mark away.",
)
WAITS = verdict(
    complete=False,
    human=True,
    feedback="The agent asks which of the two names it shall keep: `timeout_s` or `timeout`.",
)
Step = tuple[str, str, int, str]  # command, output, exit code, what the agent says last


def main() -> int:
    """Draw all pages."""
    FOLDER.mkdir(exist_ok=True)
    with contextlib.ExitStack() as all_:
        box, llm = all_.enter_context(sandbox()), all_.enter_context(ModelServer())
        settings = {
            "REFLECTD_JUDGE_PROVIDER": "openai",
            "REFLECTD_OPENAI_BASE_URL": llm.url,
            "REFLECTD_OPENAI_MODEL": MODEL,
            "REFLECTD_PLAYBOOK_ENABLED": "true",
            "REFLECTD_MEMORY_ENABLED": "true",
        }
        daemon = all_.enter_context(Daemon(box, **settings))
        for host in _story(box, daemon, llm):
            all_.enter_context(host)
        _days_before(box.state / "reflectd.sqlite3")
        _learned_before(box.root / "site", box.state)
        browser = all_.enter_context(Browser())
        for width, height in SIZES:
            for dark in (False, True):
                with browser.visit(width=width, height=height, dark=dark) as visit:
                    visit.page.goto(call(box.socket, "POST", "/v1/dashboard", {})["url"])
                    visit.page.wait_for_selector("nav[aria-label=Pages]")
                    _take(visit, f"{width}-{'dark' if dark else 'light'}", str(box.root))
    return 0


def _take(visit: Visit, look: str, root: str) -> None:
    """A picture of each page of the menu, and of a verdict."""
    menu = visit.page.eval_on_selector_all("nav[aria-label=Pages] a", "all => all.map(a => a.pathname)")
    for path in [*menu, "/verdict/ses_login/1"]:
        visit.page.goto(visit.page.evaluate("location.origin") + path)
        visit.page.wait_for_selector("h1")
        visit.page.evaluate(
            "([from, to]) => {const all = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);"
            "while (all.nextNode()) all.currentNode.data = all.currentNode.data.replaceAll(from, to)}",
            [root, "/home/me"],
        )
        name = path.split("/")[1] or "now"
        file = FOLDER / f"dashboard-{name}-{look}.png"
        visit.page.screenshot(path=file, animations="disabled")
        print(f"{file.relative_to(REPO)}: {file.stat().st_size // 1024} KB")


def _story(box: Sandbox, daemon: Daemon, llm: ModelServer) -> Iterator[WireHost]:
    """Three projects; what is judged is judged when the host is given back, which goes on working."""
    failed = ("npm test", "FAIL test/login.test.js\\n  1 failed, 14 passed", 1, "The login page is ready.")
    passed = (
        "npm test",
        "PASS test/login.test.js\\n  15 passed",
        0,
        "The login page is ready, and its tests pass.",
    )
    shop = _Agent(box.root / "shop", daemon)
    llm.api(LOGIN, UNDEFENDED, COMPLETE, CHECKOUT, UNDEFENDED, WAITS, COMPLETE)
    shop.turn("ses_login", "Add a login page", "Add a login page, with tests that pass", failed, "incomplete")
    shop.turn(
        "ses_login",
        "Add a login page",
        "Add a login page, with tests that pass",
        passed,
        "complete",
        again=True,
    )
    skipped = (
        "npm test",
        "PASS test/checkout.test.js\\n  14 passed, 1 skipped",
        0,
        "The test is no longer flaky.",
    )
    shop.turn(
        "ses_checkout", "Fix the flaky checkout test", "Fix the flaky checkout test", skipped, "incomplete"
    )
    shop.works("ses_checkout")
    yield shop.host
    api = _Agent(box.root / "api", daemon)
    asked = (
        "git grep -n timeout",
        "config.py:12: timeout_s = 30",
        0,
        "Shall I keep `timeout_s` or `timeout`?",
    )
    api.turn("ses_keys", "One name for each setting", "Give each setting one name", asked, "awaiting_user")
    api.begins("ses_import", "Read CSV files in pieces")
    yield api.host
    site = _Agent(box.root / "site", daemon)
    done = ("make check", "all links are fine", 0, "The help page is translated, and make check passes.")
    site.turn(
        "ses_help",
        "Translate the help page",
        "Translate the help page; make check must pass",
        done,
        "complete",
    )
    yield site.host


class _Agent:
    """A host in a folder, whose agent does what it is told to have done."""

    def __init__(self, folder: Path, daemon: Daemon) -> None:
        folder.mkdir()
        (folder / ".reflection").mkdir()
        self._daemon, self._messages = daemon, dict[str, list[Json]]()
        self._folder, self._titles, self._n = folder, dict[str, str](), 0
        self.host = WireHost(daemon.box.socket, folder, self._answer, f"host-{folder.name}")
        self.host.connect()

    def turn(
        self, session: str, title: str, request: str, step: Step, state: str, *, again: bool = False
    ) -> None:
        """One turn, until it has its verdict."""
        if not again:
            self.begins(session, title, request)
        command, output, code, said = step
        call_of_tool = {"command": command}
        tool = {"status": "completed", "input": call_of_tool, "output": output, "exit": code}
        edit = {"status": "completed", "input": {"filePath": "src/page.js", "content": "…"}, "output": "ok"}
        parts = [
            _tool("write", edit, self._n),
            _tool("bash", tool, self._n + 1),
            {"type": "text", "id": "p", "text": said},
        ]
        by = {"providerID": "anthropic", "modelID": "claude-sonnet-5", "tokens": 31_000 + 900 * self._n}
        self._add(session, {"role": "assistant", "finish": "stop", **by}, parts)
        self.host.send([self.host.event("session.idle", sessionID=session)])
        wait_until(
            lambda: self._last(session) == (state, 2 if again else 1),
            f"a verdict on {title}",
            self._daemon.log,
        )

    def begins(self, session: str, title: str, request: str = "Go on") -> None:
        """A person asked, and the agent is at work."""
        self._titles[session] = title
        message = self._add(session, {"role": "user"}, [{"type": "text", "id": "q", "text": request}])
        info = {"id": session, "title": title, "directory": str(self._folder)}
        host = self.host
        host.send(
            [
                host.event("session.created", sessionID=session, info=info),
                host.event("chat.message", sessionID=session, messageID=message, human=True),
            ]
        )
        self.works(session)

    def works(self, session: str) -> None:
        """The agent goes on."""
        self.host.send([self.host.event("session.status", sessionID=session, status={"type": "busy"})])

    def _last(self, session: str) -> tuple[str, int]:
        found = call(self._daemon.box.socket, "GET", f"/v1/verdicts?session={session}")["verdicts"]
        return (found[0]["state"], len(found)) if found else ("", 0)

    def _add(self, session: str, info: Json, parts: list[Json]) -> str:
        self._n += 2
        message = f"msg_{self._n:04d}"
        at = {"created": int(time.time() * 1000)}
        self._messages.setdefault(session, []).append(
            {"info": {"id": message, "time": at, **info}, "parts": parts}
        )
        return message

    def _answer(self, order: Json) -> Json:
        session = order["session"]
        if order["kind"] == "feedback":
            text = [{"type": "text", "id": "f", "text": order["data"]["text"], "order": order["id"]}]
            self._add(session, {"role": "user"}, text)
        if order["kind"] != "read":
            return {"status": "done"}
        told = {"id": session, "title": self._titles.get(session, ""), "directory": str(self._folder)}
        data = {"missing": False, "busy": False, "session": told, "todos": []}
        return {"status": "done", "data": data | {"messages": self._messages.get(session, [])}}


def _tool(name: str, state: Json, n: int) -> Json:
    return {"type": "tool", "id": f"t{n}", "callID": f"c{n}", "tool": name, "state": state}


def _learned_before(project: Path, state: Path) -> None:
    """What the person and agents taught about one project: made up."""
    rules = LearnedRules(project, state, SystemClock())
    for text in ("Write commit messages in English", "Run make check before you say that it is done"):
        rules.learn(text)

    with rules.journal.change() as draft:
        draft.journal["signals"].append({
            "id": "sig-20261120-001", "type": "correction", "content": "Keep the English page as it is",
            "severity": "high", "status": "pending", "occurrences": 3, "first_seen": "2026-11-12",
            "last_seen": "2026-11-20", "sightings": {},
        })  # fmt: skip

    file = rules.playbook.path
    file.parent.mkdir(exist_ok=True)
    texts = (
        "The translations are in `locale/`, one file a language.",
        "`make check` needs the network once.",
    )
    file.write_bytes(dumped(book(*(point(f"pat-{i:03d}", t, 4 - i, 0) for i, t in enumerate(texts, 1)))))
    rules.playbook.approve(texts[:1])
    asyncio.run(_waits_for_a_word(project.resolve(), state))


async def _waits_for_a_word(project: Path, state: Path) -> None:
    clock = SystemClock()
    db = Database(state / "reflectd.sqlite3", clock.now_ms)
    text = "Links to other pages of the manual have no file ending."
    why = "make check failed until the endings were gone"
    row = tables.quarantine(str(project), "PROJECT CONTEXT", text, "ses_help", clock.now_ms(), why)
    await db.commit(row)
    where = project_of(str(project))
    lesson = (
        "Translate the start page",
        -0.6,
        "The links were broken.",
        "Run make check on each language.",
        "",
    )
    made = Episode("a" * 32, where, *lesson, at=clock.now_ms(), session="ses_help", state="confirmed")
    await Episodes(db).add(made)
    db.close()


def _days_before(database: Path) -> None:
    """What judging cost in the last month: made up, the same each time."""
    chance, now = random.Random(17), int(time.time() * 1000)  # noqa: S311 - a picture, no secret
    row = (
        "INSERT INTO ledger (at, purpose, session, provider, model, input, output, cost, ms, outcome, "
        "directory) VALUES (?, ?, 'ses_past', 'openai', ?, ?, 300, ?, 2400, 'ok', ?)"
    )
    with contextlib.closing(sqlite3.connect(database, timeout=60)) as db, db:
        for day in range(30):
            for _ in range(chance.randrange(2, 14) if day % 7 not in {1, 2} else 0):
                used = chance.randrange(1500, 9000)
                project = f"/home/me/{chance.choice(('shop', 'shop', 'api', 'site'))}"
                purpose = chance.choice(("judge", "judge", "judge", "defence"))
                cost = used * 1.1e-6 * chance.randrange(2, 9)
                at = now - day * DAY_MS - chance.randrange(DAY_MS // 2)
                db.execute(
                    row,
                    (at, purpose, MODEL, used, cost, project),
                )


if __name__ == "__main__":
    os.environ.setdefault("TZ", "UTC")
    sys.exit(main())

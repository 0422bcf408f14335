"""What the pages show of a real daemon with judged sessions, and what their buttons do."""

from __future__ import annotations

import json
import re
import sqlite3
import time
from collections.abc import Iterator

import pytest

from daemon.files.cases import CaseFolder
from harness.machine.reflectd import Daemon
from harness.machine.sandbox import sandbox
from harness.machine.waiting import wait_until
from tests.support.hosts.wire import Json, WireHost, unfinished
from tests.support.machine.command_line import case_files, judged, reflectd, said
from tests.web.browsing import Browser, Read

EVIL = "<script>alert(1)</script><img src=x onerror=alert(2)> \u202egpj.exe \x1b[31mred\x1b[0m \x9bm \u2066x"
MANY = 75


@pytest.fixture(scope="module")
def daemon() -> Iterator[Daemon]:
    with sandbox() as box, Daemon(box) as daemon:
        judged(box, daemon, "ses_plain", title="Add a login page", todo="write the docs")
        hostile = {"title": EVIL, "request": f"Add tests {EVIL}", "todo": EVIL, "content": EVIL}
        judged(box, daemon, "ses_evil", **hostile, output=f"2 failed {EVIL}", final=f"Done {EVIL}")
        daemon.mark()
        yield daemon
        daemon.new_log()


@pytest.fixture(scope="module")
def browser(daemon: Daemon) -> Browser:
    return Browser.inside(daemon)


def test_now_lists_each_session_where_it_belongs(daemon: Daemon, browser: Browser) -> None:
    """One that asks for a permission waits for the person, one that works is at work, others come last."""
    with WireHost(daemon.box.socket, daemon.box.project, instance="now") as host:
        status = {"status": {"type": "busy"}}
        asking, working = host.turn("ses_asks", title="Asks")[:2], host.turn("ses_works", title="Works")[:2]
        asking.append(host.event("session.status", sessionID="ses_asks", **status))
        asking.append(host.event("permission.asked", sessionID="ses_asks", id="per_1"))
        assert host.send([*asking, *working]).status == 200
        host.send([host.event("session.status", sessionID="ses_works", **status)])
        page = browser.get("/").text
        waits, works, lately = (page.index(f'id="now-{name}"') for name in ("waits", "works", "recent"))
        assert (
            waits
            < page.index("ses_asks")
            < works
            < page.index("ses_works")
            < lately
            < page.index("ses_plain")
        )
        assert "asks for your permission" in page
        host.send([host.event("session.deleted", sessionID=s) for s in ("ses_asks", "ses_works")])


def test_now_names_the_agents_model_and_its_context(daemon: Daemon, browser: Browser) -> None:
    """As the host told it with the messages; a model's name is text."""
    without = unfinished(daemon.box.project)

    def answer(order: Json) -> Json | None:
        found = without(order)
        if order["kind"] == "read" and found is not None:
            last = found["data"]["messages"][-1]["info"]
            last |= {"providerID": "p", "modelID": "own <b>model", "tokens": 84_000}
        return found

    with WireHost(daemon.box.socket, daemon.box.project, answer, instance="model") as host:
        assert host.send(host.turn("ses_model")).status == 200
        wait_until(lambda: daemon.verdicts("ses_model"), "a verdict", daemon.log)
        page = browser.get("/").text
        host.send([host.event("session.deleted", sessionID="ses_model")])
    assert "own &lt;b&gt;model" in page
    assert "84,000 tokens of context" in page


def test_now_hears_of_what_happens(daemon: Daemon, browser: Browser) -> None:
    """The stream has a line for each verdict, and one for the passing of time when nothing happens."""
    connection = browser.stream()
    stream = connection.getresponse()
    assert stream.getheader("content-type") == "text/event-stream"
    assert stream.readline() == b": open\n"
    judged(daemon.box, daemon, "ses_live")
    kinds: list[str] = []
    while not {"verdict", "time"} <= set(kinds):
        line = stream.readline()
        if line.startswith(b"data: "):
            entry = json.loads(line[6:])
            kinds.append(entry["kind"])
            assert entry.get("session", "ses_live") == "ses_live"
    connection.close()


def test_history_has_rounds_and_what_followed(daemon: Daemon, browser: Browser) -> None:
    """By day and project, with a link to each round."""
    today = time.strftime("%Y-%m-%d")
    for query in ("", f"?project={daemon.box.project}", f"?day={today}", "?session=ses_plain"):
        page = Read(browser.get(f"/history{query}").text)
        assert "/verdict/ses_plain/1" in page.links(), query
        assert "it reached the agent" in page.text
    for query in ("?day=2001-01-01", "?project=/elsewhere"):
        assert "Nothing was judged there" in browser.get(f"/history{query}").text


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/history?day=yesterday", 400),
        ("/history?project=project", 400),
        ("/history?day=9999-12-31", 400),
        ("/history?before=x", 400),
        ("/history?before=1", 400),
        ("/history?session=nobody", 404),
        ("/history?session=ses_", 400),
        ("/verdict/nobody/1", 404),
        ("/verdict/ses_plain/9", 400),
        ("/verdict/ses_plain/-1", 400),
        ("/verdict/ses_plain/x", 400),
        ("/verdict/" + "x" * 4000 + "/1", 404),
        ("/verdict/%2e%2e%2f%00/1", 404),
        ("/static/..%2fentry.py", 404),
        ("/nowhere", 404),
    ],
)
def test_what_is_not_there(browser: Browser, path: str, status: int) -> None:
    """Bad input: a page with a sentence, and the menu to go on from."""
    page = browser.get(path)
    assert page.status == status
    assert "Traceback" not in page.text
    assert path.startswith("/static") or 'href="/cost"' in page.text


def test_a_verdict_shows_what_it_stands_on(daemon: Daemon, browser: Browser) -> None:
    """Rows, log, changes, prompt, reply, feedback and cost; each link leads to a place on the page."""
    page = Read(browser.get("/verdict/ses_plain/1").text)
    for words in (
        "the task is not done",
        "it reached the agent",
        "bash `pytest -q` → exit 1",
        "+ x = 1",
        "You judge whether a coding agent may stop",
        "No model was asked for this round",
        "reflectd why ses_plain --round 1",
        str(case_files(daemon.box, "ses_plain")[0]),
    ):
        assert words in page.text, words
    places = {str(a["id"]) for _, a in page.tags if "id" in a}
    inside = {link[1:] for link in page.links() if link.startswith("#")}
    assert {"row-E2"} <= inside <= places
    assert len(places) == sum("id" in a for _, a in page.tags), "an id twice"
    last = browser.get("/verdict/ses_plain/0").text
    assert last == browser.get("/verdict/ses_plain/1").text


def test_hostile_text_is_shown_as_text(browser: Browser) -> None:
    """Markup, escape sequences, and marks that reorder a line, whoever wrote them."""
    for path in ("/", "/history", "/verdict/ses_evil/1", "/cost", "/health"):
        text = browser.get(path).text
        assert not set(text) & {"\x1b", "\x9b", "\u202e", "\u2066", "\0"}, path
        page = Read(text)
        assert [a for tag, a in page.tags if tag == "script"] == [
            {"src": "/static/dashboard.js", "defer": None}
        ]
        assert [a["src"] for tag, a in page.tags if tag == "img"] == ["/static/mark.svg"]
        assert not [a for _, a in page.tags for name in a if name.startswith("on") or name == "style"]
    shown = Read(browser.get("/verdict/ses_evil/1").text).text
    assert shown.count("<script>alert(1)</script>") > 3


def test_cost_and_health(daemon: Daemon, browser: Browser) -> None:
    """Sums as the command line has them, a bar for each day, limits; and that nothing is wrong."""
    page = Read(browser.get("/cost").text)
    assert sum(a.get("class") == "share" for _, a in page.tags) == 1
    assert "at most 0.50 USD" in page.text
    assert "verdicts by the rules" in page.text
    health = browser.get("/health").text
    assert "knows of nothing that is wrong" in health
    assert f"<dd>{daemon.status()['pid']}, since" in health


def test_a_dispute_keeps_the_case_as_the_command_does(daemon: Daemon, browser: Browser) -> None:
    """The click gives the same file and label as `reflectd dispute`; the page says so; a later one counts."""
    folder = CaseFolder(daemon.box.state)
    body = {"session": "ses_plain", "round": 1, "should_be": "complete", "why": "the docs were done"}
    told = browser.post("/dispute", body).json["said"]
    (case,) = folder.list()
    assert (case.session, case.expect, case.why) == ("ses_plain", "complete", "the docs were done")
    assert told.endswith(f"reflectd dispute remove {case.path.stem}")
    by_click = case.path.read_bytes()
    assert (
        "You keep this case as a test: it should be <strong>done" in browser.get("/verdict/ses_plain/1").text
    )
    said(reflectd(daemon.box, "case", "remove", case.path.stem), 0)
    args = ("dispute", "ses_plain", "--round", "1", "--should-be", "complete", "--why", "the docs were done")
    said(reflectd(daemon.box, *args), 0)
    assert folder.list()[0].path.read_bytes() == by_click
    assert browser.post("/dispute", body | {"should_be": "awaiting_user"}).status == 200
    assert [c.expect for c in folder.list()] == ["awaiting_user"]


@pytest.mark.parametrize(
    "change",
    [
        {"should_be": "fine"},
        {"why": "x" * 2_001},
        {"round": 0},
        {"round": "one"},
        {"round": 7},
        *({"session": name} for name in ("nobody", "", "ses_e", None, "ses_\ud800", "ses_\0")),
    ],
    ids=str,
)
def test_a_dispute_that_makes_no_sense(browser: Browser, change: dict[str, object]) -> None:
    """Bad input: said in a sentence, nothing is kept; a part of a session's name is not guessed at."""
    body = {"session": "ses_evil", "round": 1, "should_be": "complete", "why": ""} | change
    page = browser.post("/dispute", body)
    assert page.status == 400
    assert page.json["error"]
    assert "You keep this case" not in browser.get("/verdict/ses_evil/1").text


def test_a_click_is_carried_out_when_the_browser_goes_away(daemon: Daemon, browser: Browser) -> None:
    """To its end, and with its line in the log."""
    judged(daemon.box, daemon, "ses_left")
    (path,) = case_files(daemon.box, "ses_left")
    whole = json.loads(path.read_text())
    whole["case"]["final"] = "z" * 3_000_000
    path.write_text(json.dumps(whole))
    daemon.mark()
    browser.leaves("/dispute", {"session": "ses_left", "round": 1, "should_be": "complete", "why": "it was"})
    wait_until(lambda: "a person clicked" in daemon.new_log(), "the log's line", daemon.new_log)
    (kept,) = (f for f in CaseFolder(daemon.box.state).paths() if "ses_left" in f.name)
    kept.unlink()


def test_a_round_without_a_case(daemon: Daemon, browser: Browser) -> None:
    """The page says that the file is gone, and a dispute is refused with the reason."""
    judged(daemon.box, daemon, "ses_gone")
    (path,) = case_files(daemon.box, "ses_gone")
    path.write_text("[]")
    assert "is not a case of reflectd" in browser.get("/verdict/ses_gone/1").text
    path.unlink()
    page = browser.get("/verdict/ses_gone/1").text
    assert "There is no case file" in page
    assert 'id="dispute"' not in page
    refused = browser.post("/dispute", {"session": "ses_gone", "round": 1, "should_be": "complete"})
    assert (refused.status, "no saved case" in refused.json["error"]) == (409, True)


def test_a_damaged_case_is_shown_as_far_as_it_goes(daemon: Daemon, browser: Browser) -> None:
    """A case may come with a clone: whatever its fields are, the page is there; a line of 1 MB is cut."""
    judged(daemon.box, daemon, "ses_odd")
    (path,) = case_files(daemon.box, "ses_odd")
    whole = json.loads(path.read_text())
    whole["case"]["final"] = "z" * 1_000_000
    path.write_text(json.dumps(whole))
    page = browser.get("/verdict/ses_odd/1").text
    assert "characters more in this line are not shown]" in page
    assert len(page) < 100_000
    for damage in (
        {"evidence": 7},
        {"evidence": {"rows": [1, {"cites": 3}], "log": [None], "files": ["x"]}},
        None,
    ):
        case = whole["case"] | damage if damage else "no case"
        path.write_text(json.dumps(whole | {"case": case, "prompts": 1, "replies": [[], {"text": None}]}))
        assert browser.get("/verdict/ses_odd/1").status == 200


def test_every_session_is_on_one_page_of_the_history() -> None:
    """Page after page each session comes once, also those that were judged in the same millisecond."""
    with sandbox() as box, Daemon(box) as daemon:
        judged(box, daemon, "ses_first")
        daemon.stop()
        with sqlite3.connect(box.state / "reflectd.sqlite3") as db:
            for n in range(MANY):
                row = (f"ses_{n:03d}", f"turn_{n}", 1_700_000_000_000 + n // 20)
                db.execute(
                    "INSERT INTO verdicts (session, turn, task, directory, at, state, body) "
                    "SELECT ?, ?, task, directory, ?, state, body FROM verdicts WHERE session = 'ses_first'",
                    row,
                )
        db.close()
        daemon.start()
        browser = Browser.inside(daemon)
        found: list[str] = []
        path = "/history"
        while path:
            page = Read(browser.get(path).text)
            found += [link.split("/")[2] for link in page.links() if re.fullmatch("/verdict/.*/0", link)]
            path = next((str(a["href"]) for _, a in page.tags if a.get("rel") == "next"), "")
        assert len(found) == MANY + 1
        assert len(set(found)) == MANY + 1
        daemon.new_log()


def test_the_script_and_the_style_load_nothing_from_elsewhere(browser: Browser) -> None:
    """No address of another machine, and nothing that makes markup or runs texts."""
    for name in ("dashboard.js", "enter.js", "style.css"):
        text = browser.get(f"/static/{name}").text
        assert not re.search(r"https?://|//[a-z]+\.|@import|url\(", text), name
        assert not re.search(r"eval|innerHTML\s*=[^=]|insertAdjacent|document\.write|new Function", text), (
            name
        )

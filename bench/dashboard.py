"""The dashboard with 10,000 sessions, or 2,000 in a quick run: each page over loopback, and its paint.

The pages are asked for as a browser does, with its cookie. Where chromium is there, it also opens each page
and presses a key: the time to its first paint, and from the key to the next frame.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import shutil
import sqlite3
import tempfile
import time
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import msgspec
from msgspec.structs import replace

from bench.stand import Connection, Failed, Server, Table, median, percentile
from daemon.core.session import Session
from daemon.core.verdict import JudgedBy, Severity, Verdict
from daemon.store import ledger, verdicts
from harness.machine.waiting import wait_until

SESSIONS, QUICK_SESSIONS = 10_000, 2_000
FOLDERS = 200
MINUTE_MS = 60_000
PAGES = ("/", "/history", "/history?project=/home/me/project7", "/verdict/ses_001999/0", "/cost", "/health")
KEY_MS = (
    "() => new Promise(done => { const t = performance.now(); "
    "document.dispatchEvent(new KeyboardEvent('keydown', { key: 'j', bubbles: true })); "
    "requestAnimationFrame(() => done(performance.now() - t)); })"
)
PAINT_MS = "() => performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? 0"


def run(*, quick: bool) -> Table:
    """Medians and 95th percentiles in ms."""
    sessions, runs = (QUICK_SESSIONS, 5) if quick else (SESSIONS, 40)
    table = Table(
        f"Dashboard, {sessions:,} sessions ({runs} runs)", ("ms", "median", "p95", "first paint", "key")
    )
    with tempfile.TemporaryDirectory(prefix="rdb-") as name:
        folder = Path(name).resolve()
        with Server(folder / "d"):
            pass  # it makes the database
        _fill(folder / "d" / "state" / "reflectd.sqlite3", sessions)
        with Server(folder / "d") as server:
            times = _asked(server.socket, runs)
            painted = _painted(server.socket, max(2, runs // 8)) if shutil.which("chromium") else {}
    for page, values in times.items():
        middle, high = median(values), percentile(values, 0.95)
        seen = dict(zip(("paint", "key"), painted.get(page, ()), strict=False))
        shown = [f"{seen[what]:.0f}" if what in seen else "-" for what in ("paint", "key")]
        table.rows.append((page, f"{middle:.1f}", f"{high:.1f}", *shown))
        table.values[page] = {"median": middle, "p95": high, **seen}
    table.notes = ["aim: first paint < 300 ms, an interaction < 100 ms"]
    if not painted:
        table.notes.append("paint and key are left out: there is no chromium")
    return table


def _link(path: Path) -> str:
    with Connection(path) as c:
        return str(c.post("/v1/dashboard", {})["url"])


def _asked(path: Path, runs: int) -> dict[str, list[float]]:
    """How long each page takes, on one connection with the cookie."""
    url = urlsplit(_link(path))
    connection = http.client.HTTPConnection(url.hostname or "", url.port, timeout=60)
    with contextlib.closing(connection):
        origin = {"Origin": f"http://{url.netloc}", "Content-Type": "application/json"}
        connection.request("POST", "/enter", json.dumps({"token": url.fragment}), origin)
        entered = connection.getresponse()
        entered.read()
        cookie = {"Cookie": (entered.headers["Set-Cookie"] or "").partition(";")[0]}
        found: dict[str, list[float]] = {}
        for turn in range(runs + 1):
            for page in PAGES:
                began = time.perf_counter()
                connection.request("GET", page, headers=cookie)
                answer = connection.getresponse()
                answer.read()
                if answer.status != 200:
                    raise Failed(f"{page} answered {answer.status}")
                if turn:
                    found.setdefault(page, []).append((time.perf_counter() - began) * 1000)
    return found


def _painted(path: Path, runs: int) -> dict[str, tuple[float, float]]:
    """By page: the time to the first paint, and from a key to the next frame."""
    from harness.browser import Browser

    found: dict[str, list[tuple[float, float]]] = {}
    with Browser() as browser, browser.visit(_link(path)) as visit:
        visit.page.wait_for_selector("nav[aria-label=Pages]")
        origin = visit.page.evaluate("location.origin")
        for turn in range(runs + 1):
            for page in PAGES:
                visit.page.goto(origin + page)
                wait_until(partial(visit.page.evaluate, PAINT_MS), "a first paint")
                times = float(visit.page.evaluate(PAINT_MS)), float(visit.page.evaluate(KEY_MS))
                if turn:
                    found.setdefault(page, []).append(times)
    return {page: (median([p for p, _ in t]), median([k for _, k in t])) for page, t in found.items()}


def _fill(database: Path, sessions: int) -> None:
    """Sessions with two rounds each and their calls, a minute apart: 10,000 are a week without a pause."""
    now, encode = int(time.time() * 1000), msgspec.json.Encoder().encode
    by = JudgedBy("openai", "gpt-5-mini", 2000, 0.002)
    rounds = (("incomplete", Severity.HIGH, "The tests still fail."), ("complete", Severity.NONE, ""))
    with contextlib.closing(sqlite3.connect(database)) as db, db:
        for n in range(sessions):
            at, name, folder = now - (sessions - n) * MINUTE_MS, f"ses_{n:06d}", _folder(n)
            s = Session(id=name, directory=folder, title=f"Task {n}", active_at=at, phase="complete")
            db.execute(
                "INSERT INTO sessions (id, directory, phase, open, top, updated, state) "
                "VALUES (?, ?, ?, 0, 1, ?, ?)",
                (name, folder, s.phase, at, encode(s)),
            )
            for turn, (state, severity, told) in enumerate(rounds):
                v = Verdict(name, "m", f"t{turn}", state, at + turn, severity, told, judge=by)  # type: ignore[arg-type]
                db.executemany(*verdicts.add(v, folder))
                call = ledger.Entry(
                    v.at, "judge", name, by.provider, by.model, 2000, 300, by.cost, by.ms, "ok"
                )
                db.executemany(*ledger.add(replace(call, directory=folder)))
        db.execute("UPDATE verdicts SET filed = 1")  # else the daemon writes their files first


def _folder(n: int) -> str:
    return f"/home/me/project{n % FOLDERS}"

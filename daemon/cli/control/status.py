"""``reflectd status``: whether the daemon runs, what it sees, and what does not work."""

from __future__ import annotations

import os
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from ...client import request
from ...core.errors import Unavailable
from ...core.proof import in_words
from ...core.words import HOSTS, state_name
from ...files.project import find_project
from ...paths import find_socket
from ..judging import allows, read, who_judges
from ..render import (
    Paint,
    ago,
    clock,
    count,
    dear,
    place,
    plain,
    print_json,
    short,
    span,
    standstill,
    times,
    waiting,
)
from ..settings import add_flags, database, look
from ..setup.agents import HOST
from ..terminal import show
from ..verdicts.why import is_inside, reason
from . import start_failure

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Sequence

    from ...paths import Paths

Json = dict[str, Any]
Row = tuple[str, str]

NOT_RUNNING = 3
MINE = 3  # sessions of this project
SHOWN = 10
DAY_MS = 86_400_000


def add_parser(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    add_flags(verbs.add_parser("status"), run, json="print status and all sessions as JSON")


def run(args: argparse.Namespace) -> int:
    _, where = look(args)
    socket = find_socket(where)
    try:
        status = request(socket, "GET", "/v1/status")
        sessions = request(socket, "GET", f"/v1/sessions?limit={SHOWN}")["sessions"]
    except Unavailable as e:
        off, failed = _off(where), start_failure.read(where)
        if args.json:
            print_json({"running": False, "error": str(e), "start_failed": failed, "off": off})
            return NOT_RUNNING
        paint, rows = Paint(), list[Row]()
        if not where.database.exists():
            rows.append(("new", "`reflectd setup` connects your coding agent"))
        if failed:
            rows.append(("FAILED", paint(plain(failed), "red")))
        if where.stopped.exists():
            rows.append(("stopped", "by you: no agent starts it, `reflectd start` does"))
        rows += [("off", _off_text(folder)) for folder in off]
        head = paint.row("reflectd is not running: ", str(e), "  ")
        show([*head, *(line for row in rows for line in _row(*row, paint))])
        return NOT_RUNNING
    if args.json:
        print_json({"running": True, **status, "sessions_shown": sessions})
    else:
        known = [*(i["directory"] for i in status["instances"]), *status["off"]]
        more, project = [*_silenced()], find_project(known=known)
        lines = render(status, sessions, Paint(), time.time() * 1000, more, project=project)
        show(lines)
    return 0


def _silenced() -> Iterator[Row]:
    for host in HOST.values():
        yield from (("SILENCED", plain(why)) for why in host.silenced(os.environ, Path.cwd()))


def render(
    status: Json,
    sessions: list[Json],
    paint: Paint,
    now_ms: float,
    more: Sequence[Row] = (),
    *,
    project: Path | None = None,
) -> list[str]:
    """The status in about ten lines: problems first, then the sessions of ``project``. ``now_ms``: epoch ms,
    from which the age of sessions is told. ``more``: what this command found out itself.
    """
    title = paint(f"reflectd {status['version']} runs", "bold")
    runs = f"(pid {status['pid']}, up {span(status['uptime_s'])}, {status['rss_mb']} MB)"
    lines = paint.row("", f"{title} {runs}", "  ")
    for label, text in _problems(status, paint, now_ms):
        lines += _row(label, text, paint)
    mine = [s for s in sessions if project is None or is_inside(s["directory"], project)][:MINE]
    for s in mine:
        lines += _session(s, paint, now_ms)
    if left := len(sessions) - len(mine):
        lines += _row("others", f"{count(left, 'more session')} (`reflectd history --all`)", paint)
    facts: list[Row] = [("mode", status["mode"])] if status["mode"] != "act" else []
    facts += [*_judges(status), *_learning(status), *more, *_proof(status), *_spent(status)]
    counts = Counter[str]()
    for state, number in status["verdicts"].items():
        counts[state_name(state)] += number
    told = ", ".join(f"{n:,} {name}" for name, n in counts.most_common())
    facts.append(("verdicts", told or "none yet"))
    for line in (*facts, *_hosts(status), *(("off", _off_text(f)) for f in status.get("off", ()))):
        lines += _row(*line, paint)
    return lines


class Fault(NamedTuple):
    """A fault that the running daemon tells of: a row of ``status``, and a finding of ``doctor``."""

    label: str
    check: str
    outcome: Literal["ok", "warn", "fail"]
    text: str
    mend: str = ""


def faults(status: Json, now_ms: float) -> Iterator[Fault]:
    """The faults of a daemon with this status, at ``now_ms`` (epoch ms)."""
    if degraded := status["degraded"]:
        yield Fault("DEGRADED", "daemon", "fail", degraded, "mend what it names; until then nothing is sent")
    for name, words in status["providers_down"].items():
        error = words.removeprefix(f"{name}: ")
        if name in status["providers_refused"]:
            mend = "give it a valid key or login, then reflectd restart"
            refused = f"{name} is refused again and again: {error}"
            yield Fault("REFUSED", "providers", "fail", refused, mend)
        else:
            text = f"{name} did not answer when last asked: {error}"
            yield Fault("silent", "providers", "warn", text, "reflectd doctor --online")
    if (dead := status["dead_letters"])["count"]:
        useless, last = count(dead["count"], "reply", "replies"), clock(dead["last_at"])
        text = f"{useless} of models could not be used, the last at {last}: {short(dead['last_why'], 120)}"
        recent = now_ms - dead["last_at"] < DAY_MS
        mend = "another model may do better: judge.provider, judge.model" if recent else ""
        yield Fault("useless", "replies", "warn" if recent else "ok", text, mend)
    for stands in status["standstill"]:
        mend = "set the clock right, or `reflectd prune` if it is right"
        yield Fault("prune", "prune", "warn", standstill(stands), mend)


def _problems(status: Json, paint: Paint, now_ms: float) -> list[Row]:
    rows = []
    for fault in faults(status, now_ms):
        text = short(fault.text, 400)
        rows.append((fault.label, paint(text, "red") if fault.label == "DEGRADED" else text))
    rows += [
        ("month", f"about {m['expected']:.2f} {m['currency']} at its end, {over}")
        for m in status["month"]
        if (over := dear(m))
    ]
    return rows + [("key", allows(name, v)) for name, v in status["keys_unused"].items()]


def _spent(status: Json) -> list[Row]:
    spent, limits, asked = status["spent_today"], status["limits"], status["asked_today"]
    if status["providers"] == ["offline"]:
        return []
    unknown = f", {spent['tokens']:,} of {limits['tokens_per_day']:,} unpriced tokens"
    usd = f"{spent['today']:.4f} of {limits['cents_per_day'] / 100:.2f} USD"
    told = f"{usd} in 24 h{unknown if spent['tokens'] else ''}"
    if asked["today"] or asked["tokens"]:
        more = f" and {asked['tokens']:,} unpriced tokens" if asked["tokens"] else ""
        told += f"; besides, {asked['today']:.4f} USD{more} asked for"
    return [("spent", told)]


def _proof(status: Json) -> list[Row]:
    """The time that checks took, and the one that runs or ran last; nothing where proof is off."""
    found = status.get("features", {}).get("proof")
    if not found:
        return []
    told = f"{found['minutes']:g} of {found['limit']} minutes in 24 h"
    if found["runs"]:
        return [("proof", f"{told}; `{short(found['runs'], 80)}` runs")]
    if (last := found["last"]) is not None:
        told += f"; {short(in_words(last), 100)} in {place(last['project'])}, {clock(last['at'])}"
    return [("proof", told)]


def _hosts(status: Json) -> list[Row]:
    if not status["instances"]:
        return [("host", "none connected; start your agent, or see `reflectd setup --help`")]
    counts = Counter(HOSTS.get(i["host"], i["host"]) for i in status["instances"])
    return [("host", f"connected: {', '.join(f'{n} {name}' for name, n in counts.items())}")]


def _off(where: Paths) -> list[str]:
    """The folders that are off, from the database; none when it can't be read."""
    from ...store.sessions import Sessions

    try:
        with database(where) as db:
            return Sessions(db).off_folders() if db is not None else []
    except Unavailable:
        return []


def _off_text(folder: str) -> str:
    return f"{place(folder)} and everything below it"


def _row(label: str, text: str, paint: Paint) -> list[str]:
    return paint.row(f"  {paint(f'{label:8}', 'red' if label.isupper() else 'dim')} ", text)


def _session(s: Json, paint: Paint, now_ms: float) -> list[str]:
    """A session: state, title, when its agent last did something."""
    state = "off" if s["off"] else waiting(s) or ("busy" if s["busy"] else s["phase"])
    why = f" ({short(reason(s), 100)})" if reason(s) and state == s["phase"] else ""
    rounds = f", sent back {times(s['attempts'])}" if s["attempts"] else ""
    told = state if state.startswith("waits for ") else paint.state(state, s["reason"])
    title = f"  {short(s['title'], 60)}" if s["title"] else ""
    age = f"  {paint(ago(s['active_at'], now_ms), 'dim')}" if s["active_at"] else ""
    return _row("session", f"{short(s['session'], 120)}  {told}{why}{rounds}{title}{age}", paint)


def _judges(status: Json) -> list[Row]:
    """The judge of each host's sessions; one line where it is the same for all."""
    told = {HOSTS.get(h, h): who_judges(h, read(found)) for h, found in status["judges"].items()}
    if len(set(told.values())) == 1:
        return [("judge", next(iter(told.values())))]
    return [("judge", f"{host} -> {text}") for host, text in told.items()]


def _learning(status: Json) -> list[Row]:
    """The waiting and lapsed texts, where the person switched learning on."""
    book, memory = (status.get("features", {}).get(name) or {} for name in ("playbook", "memory"))
    if not (book or memory):
        return []
    connected = {i["host"] for i in status["instances"]}
    if book and (not book["hosts"] or (connected and connected.isdisjoint(book["hosts"]))):
        return [("learns", "nothing: no model is set up, and the rules can't learn")]
    found = {**book, "lessons_due": memory.get("waiting", 0), "lessons_waiting": memory.get("unproven", 0)}
    said = [
        f"{count(found.get(key, 0), one, many)} {what}"
        for key, one, many, what in (
            ("cases_waiting", "turn", "turns", "to look back on"),
            ("lessons_due", "bad task", "bad tasks", "to learn from"),
            ("texts_waiting", "text", "texts", "to be confirmed (`reflectd learned approve`)"),
            ("lessons_waiting", "lesson", "lessons", "that nothing proves (`reflectd learned approve`)"),
            ("stretches", "stretch", "stretches", "looked back on"),
            ("lapsed", "turn", "turns", "lapsed for want of money or a model"),
        )
        if found.get(key)
    ]
    waits = book.get("over_limit") or memory.get("over_limit")
    over = " · it waits, over spend.learning_percent of what judging cost (`reflectd cost`)" if waits else ""
    if not over and status["features"].get("lessons", {}).get("over_limit"):
        over = " · over spend.learning_percent: the newest task got no lesson"
    if not over and found.get("waits"):
        over = f" · it waits: {short(found['waits'], 120)}"
    return [("learns", f"{', '.join(said) or 'nothing yet'}{over}")]

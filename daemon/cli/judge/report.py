"""The report of ``reflectd judge --past`` for a person. Pure: a report in, lines out."""

from __future__ import annotations

import time
from pathlib import PurePath
from typing import TYPE_CHECKING, Final

from ...core.words import PROVIDERS
from ...replay.report import GROUPS, SAMPLE
from ..render import clock, count, money, place, plain, short, table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...replay.report import Group, Precision, Report, Result
    from ..render import Paint, Style

SHOWN: Final = 12  # projects
TEXT: Final = 1_500  # characters of one feedback or answer
NAME: Final = 18  # characters of a project's name
TITLES: Final[dict[Group, str]] = {
    "complete": "done",
    "sent": "sent back",
    "awaiting": "your turn",
    "unscored": "not judged",
    "stopped": "ended by a guard",
}
COLUMNS: Final[dict[Group, str]] = {**TITLES, "sent": "back", "awaiting": "yours", "stopped": "ended"}
NOTES: Final[dict[Group, str]] = {
    "complete": "nothing is sent",
    "sent": "the agent would have been told what is missing",
    "awaiting": "the agent asked you, or you stopped it at a call",
    "unscored": "nothing proves it, and nothing is sent",
    "stopped": "Esc, an error, too many rounds",
}
COLOURS: Final[dict[Group, Style]] = {"complete": "green", "sent": "yellow", "awaiting": "blue"}
SEVERITIES: Final = ("BLOCKER", "HIGH", "MEDIUM", "LOW", "none")


def lines(report: Report, quality: Precision, files: int, paint: Paint) -> list[str]:
    total = report.total
    head = f"{count(report.sessions, 'session')}, {count(total.stops, 'stop')}"
    found = paint.row("", f"{paint(head, 'bold')} in {count(files, 'file')}{_span(report)}", "  ")
    judge = report.judge
    by = "the fixed rules, for free" if judge == "offline" else PROVIDERS.get(judge, judge)
    found += paint.row("  judged by ", by)
    if not total.stops:
        return [*found, *paint.row("  ", "No agent came to a stop in them.")]
    found += ["", *_groups(report, paint)]
    found += _severities(report, paint)
    found += _a_day(report, paint)
    found += _projects(report, paint)
    return [*found, "", *_quality(quality, paint)]


def _span(report: Report) -> str:
    if not report.first:
        return ""
    first, last = (time.strftime("%Y-%m-%d", time.localtime(ms / 1000)) for ms in (report.first, report.last))
    return f", {first} to {last}" if first != last else f", {first}"


def _groups(report: Report, paint: Paint) -> list[str]:
    total, rows = report.total, list[str]()
    for group in GROUPS:
        number = total.groups[group]
        share = f"{100 * number / total.stops:.0f}%"
        style = COLOURS.get(group)
        title = f"{TITLES[group]:<17}"
        label = f"  {paint(title, style) if style else title} {number:>7,} {share:>5}  "
        rows += paint.row(label, NOTES[group])
    return rows


def _severities(report: Report, paint: Paint) -> list[str]:
    there = [f"{name} {report.severities[name]:,}" for name in SEVERITIES if report.severities[name]]
    return paint.row("  sent back as      ", ", ".join(there)) if there else []


def _a_day(report: Report, paint: Paint) -> list[str]:
    """The cost of a day, over the days on which an agent stopped."""
    if not report.days:
        return []
    total, days = report.total, report.days
    sent = f"{total.groups['sent'] / days:.1f} sent back"
    stops = f"{total.stops / days:.1f} stops, {sent} (on {count(days, 'day')} with work)"
    if report.judge == "offline":
        said = f"a model would be asked about {total.asks / days:.1f} stops a day; the rules cost nothing"
    else:
        unknown = f", {total.unpriced:,} at an unknown price" if total.unpriced else ""
        said = f"{total.calls / days:.1f} calls and {money(total.cost / days)} a day "
        said += f"({count(total.calls, 'call')} in all{unknown})"
    return [*paint.row(f"  {'a day':<17} ", stops), *paint.row(f"  {'cost':<17} ", said)]


def names(projects: Sequence[str]) -> dict[str, str]:
    """A short name for each folder: its last part, with a number where two have the same."""
    found: dict[str, str] = {}
    for path in projects:
        base = PurePath(path).name or path or "(no folder)"
        same = sum(name.partition(" #")[0] == base for name in found.values())
        found[path] = f"{base} #{same + 1}" if same else base
    return found


def _projects(report: Report, paint: Paint) -> list[str]:
    """One row for each, at most ``SHOWN``; with calls and cost where a model judged."""
    counted = report.by_stops()
    called = names([path for path, _ in counted])
    paid = report.judge != "offline"
    rows = [("by project", "stops", *(COLUMNS[g] for g in GROUPS), *(("calls", "USD") if paid else ()))]
    for path, c in counted[:SHOWN]:
        unknown = "+" if c.unpriced else ""
        cost = (f"{c.calls:,}", f"{c.cost:.2f}{unknown}") if paid else ()
        row = (f"{c.stops:,}", *(f"{c.groups[g]:,}" for g in GROUPS), *cost)
        rows.append((short(plain(called[path]), NAME), *row))
    head, *rest = table(rows, right=range(1, 9))
    left = len(counted) - SHOWN
    more = [f"… and {left:,} more (--json has all)"] if left > 0 else []
    return ["", paint(head, "bold"), *rest, *more]


def _quality(quality: Precision, paint: Paint) -> list[str]:
    if quality.share.of or quality.unknown:
        return [
            *paint.row("", f"By your answers: {quality.sentence}.", "  "),
            *paint.row("", proposal(quality), "  "),
        ]
    if not quality.sent:
        return paint.row("", "Nothing would have been sent, so there is nothing to look at.", "  ")
    looked = min(SAMPLE, quality.sent)
    shows = f"`reflectd judge --past --label` shows {looked} of {quality.sent:,}"
    said = f"Are they right? {shows}, one letter each."
    return paint.row("", said, "  ")


def proposal(quality: Precision) -> str:
    """The proposal for the setting, which only the person changes."""
    if quality.proposes == "act":
        return 'That is enough for judge.mode = "act" (`reflectd config set judge.mode act`).'
    return (
        'That is not enough to act: judge.mode = "observe" judges and sends nothing '
        "(`reflectd config set judge.mode observe`)."
    )


def shown(r: Result, number: str, paint: Paint) -> list[str]:
    title = paint(f"{number}  {r.severity}  {clock(r.at)}  {place(r.project)}", "bold")
    lines = ["", *paint.row("", title, "  ")]
    lines += _field("you asked", r.request, paint)
    lines += _field("the agent", r.final[-TEXT:], paint)
    for row in r.happened:
        lines += paint.row("            ", short(row, 220) if row.startswith("!") else f"  {short(row, 218)}")
    lines += _field("feedback", r.feedback[:TEXT], paint)
    if r.said:
        lines += _field("you then", r.said, paint)
    if r.calls:
        lines += _field("cost", f"{count(r.calls, 'call')}, {money(r.cost)}", paint)
    return lines


def _field(name: str, text: str, paint: Paint) -> list[str]:
    found = [line for line in plain(text).splitlines() if line.strip()] or ["(nothing)"]
    rows = (paint.row(f"  {name if not i else '':<10}", line) for i, line in enumerate(found))
    return [line for row in rows for line in row]

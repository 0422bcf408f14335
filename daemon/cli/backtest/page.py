"""The report of a back-test as one page: no network, no script, every text escaped; quotes where asked for.

What is quoted was redacted when it was stored. Written in one step, readable by the person alone.
"""

from __future__ import annotations

import os
from html import escape
from importlib.resources import files
from string import Template
from typing import TYPE_CHECKING, Final

from ... import __version__
from ...files.atomic import write_atomic
from ...replay.backtest import GROUPS, SIGNS, names
from ..render import clock, count
from .scanning import results
from .text import SEVERITIES, TITLES, day_lines, judge_name, span, usd

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from ...replay.backtest import Count, Report, Result
    from ...replay.sample import Precision
    from ...store.backtests import Backtests
    from .judging import Judging

QUOTED: Final = 500  # feedbacks


def write(
    path: Path,
    report: Report,
    quality: Precision,
    kept: Backtests,
    judging: Judging,
    since: int,
    *,
    quotes: bool,
) -> None:
    """Write the page. Raises ``Unavailable``."""
    sent = (r for _, _, r in results(kept, report.judge, judging, since) if r.feedback) if quotes else ()
    write_atomic(
        path.absolute(), page(report, quality, sent, quotes=quotes).encode("utf-8", "replace"), 0o600
    )


def page(report: Report, quality: Precision, sent: Iterable[Result], *, quotes: bool) -> str:
    """The whole page. ``sent``: what would have been sent, for ``quotes``."""
    template = files(__package__).joinpath("page.html").read_text("utf-8")
    total = report.total
    head = f"{count(report.sessions, 'session')}, {count(total.stops, 'stop')}{span(report)}; judged by "
    named = names([path for path, _ in report.by_stops()])
    there = [f"{name} {report.severities[name]:,}" for name in SEVERITIES if report.severities[name]]
    return Template(template).substitute(
        head=escape(head + judge_name(report.judge)),
        bar=_bar(total),
        groups=_rows(_group_cells(total)),
        severities=escape(f"Sent back as: {', '.join(there)}" if there else "Nothing would have been sent."),
        day="<br>".join(escape(f"{name}: {text}") for name, text in day_lines(report)),
        quality=escape(_quality(quality)),
        signs=_rows(
            (TITLES[g], *(f"{report.signs[g, s]:,}" for s in SIGNS)) for g in GROUPS if total.groups[g]
        ),
        columns=_heads(
            "", "stops", *TITLES.values(), *(("calls", "USD") if report.judge != "offline" else ())
        ),
        projects=_rows(_cells(named[path], c, report) for path, c in report.by_stops()),
        weeks=_rows(_cells(week, c, report) for week, c in report.by_week()),
        quotes="".join(_quoted(sent, named)) if quotes else "",
        version=escape(__version__),
    )


def _bar(total: Count) -> str:
    """The shares as one bar; the table below says the same in figures."""
    parts = (
        f'<span class="{g}" style="flex: {total.groups[g]}" title="{escape(TITLES[g])}"></span>'
        for g in GROUPS
        if total.groups[g]
    )
    return f'<div class="bar" aria-hidden="true">{"".join(parts)}</div>' if total.stops else ""


def _group_cells(total: Count) -> Iterator[tuple[str, ...]]:
    for g in GROUPS:
        share = f"{100 * total.groups[g] / total.stops:.0f} %" if total.stops else ""
        yield TITLES[g], f"{total.groups[g]:,}", share


def _cells(name: str, c: Count, report: Report) -> tuple[str, ...]:
    cost = (f"{c.calls:,}", usd(c)) if report.judge != "offline" else ()
    return (name, f"{c.stops:,}", *(f"{c.groups[g]:,}" for g in GROUPS), *cost)


def _heads(*titles: str) -> str:
    cells = "".join(f'<th scope="col">{escape(title)}</th>' for title in titles)
    return f"<thead><tr>{cells}</tr></thead>"


def _rows(rows: Iterable[tuple[str, ...]]) -> str:
    marked = {title: group for group, title in TITLES.items()}
    found = []
    for first, *rest in rows:
        key = f'<span class="key {marked[first]}"></span>' if first in marked else ""
        cells = "".join(f"<td>{escape(cell)}</td>" for cell in rest)
        found.append(f"<tr><td>{key}{escape(first)}</td>{cells}</tr>")
    return "".join(found)


def _quality(quality: Precision) -> str:
    if not quality.share.of:
        return "Nobody has looked at them yet."
    return f"By the person's answers: {quality.sentence} (95 % interval)."


def _quoted(sent: Iterable[Result], named: dict[str, str]) -> Iterator[str]:
    home = os.path.expanduser("~")  # noqa: PTH111 - pathlib raises without a home
    yield "<h2>What would have been sent</h2>"
    for n, r in enumerate(sent):
        if n == QUOTED:
            yield f"<p>Only the first {QUOTED:,} are shown.</p>"
            return
        title = " · ".join(x for x in (r.severity, clock(r.at), named.get(r.project, "")) if x)
        yield f"<article><p><strong>{escape(title)}</strong></p>"
        rows = "\n".join(row.strip() for row in r.happened)
        for name, text in (
            ("asked", r.request),
            ("evidence", rows),
            ("feedback", r.feedback),
            ("next", r.said),
        ):
            if text:
                shown = escape(text.replace(home, "~") if len(home) > 1 else text)
                yield f'<p class="muted">{name}</p><blockquote>{shown}</blockquote>'
        yield "</article>"

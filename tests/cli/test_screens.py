"""What ``status``, ``why``, ``watch``, ``cost`` and other verbs look like on 80 columns.

``tests/data/screens/answers.json`` has answers of a daemon, and the ``.txt`` files beside it what each verb
makes of them, as a person reads it. When a change of the text is meant, `.venv/bin/python -m
tests.cli.test_screens` writes the files anew; then look at the difference.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from daemon.cli.control import status
from daemon.cli.judge import report as judge_report
from daemon.cli.learned import learned
from daemon.cli.render import Paint
from daemon.cli.terminal import columns
from daemon.cli.verdicts import cost, watch, why
from daemon.core.verdict import FinalState
from daemon.engine.page import wilson
from daemon.learning.records import AT_START, CHOSEN, NOBODY, Record
from daemon.replay.report import Precision, Report, Result
from harness.machine.sandbox import REPO

SCREENS = Path(__file__).parents[1] / "data" / "screens"
ANSWERS: dict[str, Any] = json.loads((SCREENS / "answers.json").read_text("utf-8"))
STATUS = (ANSWERS["status"], ANSWERS["sessions"]["sessions"])
COLUMNS = 80


def paint(width: int) -> Paint:
    return Paint(io.StringIO(), width=width)


def status_lines(width: int) -> list[str]:
    return status.render(*STATUS, paint(width), ANSWERS["now"], project=Path("/home/ada/code/web/shop"))


def why_lines(width: int) -> list[str]:
    return why.explained(ANSWERS["why"], paint(width))


def why_full_lines(width: int) -> list[str]:
    return why.explained(ANSWERS["why"], paint(width), full=True)


def watch_lines(width: int) -> list[str]:
    entries = [{"kind": "verdict", "at": v["timestamp"], **v} for v in ANSWERS["verdicts"]["verdicts"]]
    told = (watch.told(entry, paint(width), everywhere=True) for entry in reversed(entries))
    return [line for text in told for line in text.splitlines()]


def cost_lines(width: int) -> list[str]:
    return cost.lines(ANSWERS["cost"], argparse.Namespace(by="day", days=7, session=""), paint(width))


def learned_lines(width: int) -> list[str]:
    """Each kind in use, something that waits, something that no agent is given, something taken back."""
    rule, read = "Run the tests before you push", "Claude Code and opencode read CLAUDE.md themselves"
    records = [
        Record("rule-001", "rule", "in use", rule, read, "", "learned 2025-11-20", "CLAUDE.md:12"),
        Record("sig-20251127-001", "rule", "waiting", "Use bun", "", "`reflectd reflect`", "3 sessions"),
        Record("pat-003", "point", "in use", "The tests need redis, else all of them fail after a minute.",
               AT_START, "", "session ses_1: the suite failed", used=5, helped=4),
        Record("oth-002", "point", "in use", "Use curl.", "", "it holds a command line", "in the file"),
        Record("new-12", "point", "waiting", "Views convert dates.", "", NOBODY, "session ses_9", key="12"),
        Record("0f3c9a1b2c3d", "lesson", "in use", "Stop the workers first.", CHOSEN, "", "session ses_4",
               task="Migrate the database", used=1, key="0f3c9a1b2c3d" + "0" * 20),
        Record("9a1b0f3c2c3d", "lesson", "dismissed", "Deploy late.", "", "you dismissed it", "you wrote it",
               task="Deploy", key="9a1b0f3c2c3d" + "0" * 20),
    ]  # fmt: skip
    return learned.lines_of(records, paint(width))


def backtest_lines(width: int) -> list[str]:
    """A back-test by a model, in three projects, with some answers of the person."""
    figures, at = Report("anthropic"), 1_763_985_600_000
    states: tuple[tuple[FinalState, str], ...] = (
        ("complete", ""),
        ("incomplete", "HIGH"),
        ("incomplete", "MEDIUM"),
        ("awaiting_user", ""),
        ("complete", ""),
        ("unscored", ""),
        ("stopped", ""),
    )
    projects = ("/home/ada/shop", "/home/ada/blog\x1b[2J", "/srv/a-folder-with-a-very-long-name/shop")
    for n in range(140):
        state, severity = states[n % 7]
        figures.add(
            Result(
                "claude-code", projects[n % 3], f"s{n // 3}", f"t{n}", at + n * 9_000_000, state, severity,
                feedback="x" if state == "incomplete" else "", asks=True, calls=1 + n % 2,
                cost=0.004 if n else None,
            )
        )  # fmt: skip
    return judge_report.lines(figures, Precision(40, wilson(18, 20), 1), 48, paint(width))


VERBS: dict[str, Callable[[int], list[str]]] = {
    "backtest": backtest_lines,
    "status": status_lines,
    "why": why_lines,
    "why_full": why_full_lines,
    "watch": watch_lines,
    "cost": cost_lines,
    "learned": learned_lines,
}


def words(lines: list[str]) -> list[str]:
    """What is said, without the marks before quoted lines and the bars of a chart."""
    found = " ".join(lines).split()
    return [word for word in found if word not in {"|", "S", "U", "A"} and word.strip("█▏▎▍▌▋▊▉")]


@pytest.fixture
def in_utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Where and whose the screens are: in UTC, with the home folder of the recorded answers."""
    monkeypatch.setenv("TZ", "UTC")
    monkeypatch.setenv("HOME", "/home/ada")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.usefixtures("in_utc")
def test_a_screen_is_as_it_was(verb: str) -> None:
    """At 80 columns: the text of the golden file, and no line is wider, but for a path that can be copied."""
    lines = VERBS[verb](COLUMNS)
    assert "\n".join(lines) + "\n" == (SCREENS / f"{verb}.txt").read_text("utf-8")
    assert [x for x in lines if columns(x) > COLUMNS and not x.startswith("Everything: /")] == []


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.usefixtures("in_utc")
def test_a_wider_screen_has_the_same_words(verb: str) -> None:
    """At 200 columns and into a pipe nothing is missing or added. (``cost`` has another form, its table.)"""
    wide, piped = words(VERBS[verb](200)), words(VERBS[verb](0))
    assert wide == piped
    assert max(map(columns, VERBS[verb](200))) <= 200
    assert words(VERBS[verb](60)) == wide or verb.startswith("cost")


def test_the_answers_are_such_as_a_daemon_gives() -> None:
    """They keep to the schemas of the protocol."""
    for name in ("status", "sessions", "verdicts"):
        schema = json.loads((REPO / "design" / "schemas" / f"{name}.schema.json").read_text("utf-8"))
        jsonschema.validate(ANSWERS[name], schema)


if __name__ == "__main__":
    os.environ |= {"TZ": "UTC", "HOME": "/home/ada"}
    time.tzset()
    for verb, lines in VERBS.items():
        (SCREENS / f"{verb}.txt").write_text("\n".join(lines(COLUMNS)) + "\n", encoding="utf-8")

"""``collect`` reads a transcript once and never guesses: a row is ``open`` only where it proves by itself
that something is unfinished. What can be read either way stays a closed row or no row, because a false
"incomplete" is the costly error.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from daemon.core.checks import excused, wanted_red
from daemon.core.endings import ending
from daemon.core.evidence import Ending, Evidence, Row, Topic
from daemon.core.gaps import gaps
from daemon.core.handover import handed_over
from daemon.core.look import Look
from daemon.core.moves import moves
from daemon.core.reading import read
from daemon.core.requirements import prose, requirements, topics, wants
from daemon.core.rows import (
    MAX_ROWS,
    check_row,
    deed_rows,
    denied_rows,
    error_rows,
    requirement_rows,
    shorten,
    todo_rows,
    weak_rows,
    write_rows,
)
from daemon.core.topics import gate_lines
from daemon.core.weakened import is_test
from daemon.core.writes import is_prose

if TYPE_CHECKING:
    from daemon.core.checks import Run
    from daemon.core.reading import Found
    from daemon.core.topics import Said
    from daemon.core.transcript import Message, Transcript

_GENERIC: Final = frozenset(
    {"index", "main", "utils", "util", "helpers", "common", "base", "core", "test", "tests"}
)
_TOOLS_PLAN: Final = re.compile(r"\b(?:terraform|tofu|terragrunt)\b[^;&|\n]{0,60} plan\b|\bpulumi preview\b")
MAX_FINAL: Final = 20_000  # characters of the final text that rules look at
_ENDINGS: Final[dict[Ending, str]] = {
    "statement": "the final text ends with a statement",
    "question": "the final text asks the person",
    "next_steps": "the final text ends with a list of next steps",
    "announced": "the final text announces an action and stops before it",
    "cut_off": "the final text breaks off",
    "empty": "there is no final text",
}


def collect(transcript: Transcript, project: str = "") -> Evidence:
    """The rows of the current task: what was asked, written, checked, left open, and how the turn ended.

    ``project``: the lines of AGENTS.md and CLAUDE.md that ask for checks.
    """
    messages = [m.text for m in transcript.requests]
    work = transcript.work
    calls = tuple(c for m in work for c in m.calls)
    final = next((m for m in reversed(work) if m.role == "assistant"), None)
    text = final.text[-MAX_FINAL:].replace("\u2019", "'") if final else ""
    asked = requirements(messages)
    wanted = wants(messages, asked)
    gates = gate_lines(project)
    requested, forbids = topics(asked)
    by_project, forbids = _with_project(gates, requested, forbids)
    found = read(calls, transcript.directory)
    if wanted == "plan" and found.code_writes and any(_TOOLS_PLAN.search(s[:2000]) for s in found.scripts):
        wanted = "change"  # the plan is what a tool prints
    end = _ending(final, planned=not found.writes and wanted == "plan")
    steps = moves(calls)
    denied = denied_rows(calls) or handed_over(steps, text, "\n".join(messages))
    rows = _numbered(
        [
            *(Row("", "gate", f"the project's rules: {line}") for line, _ in gates),
            *write_rows(found),
            *weak_rows(found, "\n".join(messages), text, [r.text for r in asked if r.change and r.by < 0]),
            *_checks(found, transcript.directory, "\n".join(messages), text, clean="lint" in requested),
            *deed_rows(found),
            *todo_rows(transcript.todos, calls),
            *denied,
            *error_rows(calls, asked=end == "question"),
        ],
        1,
    )
    checks = [r for r in rows if r.kind == "check"]
    errors = tuple(r.detail for r in rows if r.kind == "tool_error")
    said = "\n".join(prose(m) for m in messages)[:MAX_FINAL]
    look = Look(
        asked, requested, by_project, forbids, wanted, found, text, end, checks, bool(denied), errors, said,
        steps,
    )  # fmt: skip
    rows += _numbered([*gaps(look), _ending_row(final, end)], len(rows) + 1)
    return Evidence(
        rows=(*requirement_rows(asked), *rows),
        ending=end,
        tool_calls=len(calls),
        writes=len(found.writes),
        code_writes=found.code_writes,
        delegated=found.delegated,
        asks=tuple(sorted({*requested, *by_project} - set(forbids))),
        forbids=forbids,
        wants=wanted,
    )


def _with_project(
    gates: tuple[tuple[str, Said], ...], requested: tuple[Topic, ...], forbids: tuple[Topic, ...]
) -> tuple[tuple[Topic, ...], tuple[Topic, ...]]:
    """What the project's rules ask for, and all that is ruled out; the request overrules the project."""
    asks = {t for _, said in gates for t in said.asks} - set(forbids)
    ruled_out = ({t for _, said in gates for t in said.forbids} - set(requested)) | set(forbids)
    return tuple(sorted(asks - ruled_out)), tuple(sorted(ruled_out))


def _numbered(rows: list[Row], start: int) -> list[Row]:
    return [replace(row, id=f"E{i}") for i, row in enumerate(rows, start)]


def _checks(found: Found, directory: str, asked: str, final: str, *, clean: bool) -> list[Row]:
    shown = [run for run in found.runs.current if not found.runs.settled(run)][-MAX_ROWS:]
    if not any(run.outcome.result == "failed" for run in shown):
        return [check_row(run, found, directory, counts=False) for run in shown]
    asked = asked[:MAX_FINAL]
    before = any(r.code_at < 0 and r.outcome.result == "failed" for r in found.runs.all)
    backed = before or bool(found.base_failed)
    regressed = not backed and any(_regressed(run, found) for run in shown)
    counts = found.last_code >= 0 and not excused(
        asked, final, _stems(found), backed=backed, regressed=regressed
    )
    red = wanted_red(asked) and all(is_test(w.path) or is_prose(w.path) for w in found.writes)
    return [check_row(run, found, directory, counts=counts, red=red, clean=clean) for run in shown]


def _regressed(run: Run, found: Found) -> bool:
    """Whether a failed check had passed before the first edit: its failure is this work's."""
    return run.outcome.result == "failed" and any(
        old.code_at < 0 and old.outcome.result == "passed" and old.check.covers(run.check)
        for old in found.runs.all
    )


def _stems(found: Found) -> frozenset[str]:
    """The names of the code files written, without ending, where they say anything."""
    names = (w.path.rsplit("/", 1)[-1].split(".", 1)[0].lower() for w in found.writes if not is_test(w.path))
    return frozenset(n for n in names if len(n) >= 4 and n not in _GENERIC)


def _ending_row(final: Message | None, end: Ending) -> Row:
    said = f": {_last_line(final)}" if final and final.text.strip() else ""
    return Row(
        "",
        "ending",
        _ENDINGS[end] + said,
        open=end in {"announced", "cut_off"},
        detail=_last_line(final) if final and end == "announced" else "",
    )


def _ending(final: Message | None, *, planned: bool) -> Ending:
    if final is None:
        return "empty"
    found = ending(final.text, final.finish)
    if found not in {"announced", "cut_off"} or final.finish in {"length", "max_tokens"}:
        return found
    # With calls in the same message the text may stand before them; a plan speaks of what would be done.
    harmless = final.calls or (found == "announced" and (planned or final.agent == "plan"))
    return "statement" if harmless else found


def _last_line(final: Message) -> str:
    lines = final.text[-2000:].strip().rsplit("\n", 1)
    return shorten(lines[-1].strip()[-200:], 200)

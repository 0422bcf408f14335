"""``collect``: the evidence of one task, composed from the request, the calls and the final text, once.

It never guesses: a row is ``open`` only where it proves by itself that something is unfinished. What can be
read either way stays a closed row or no row, because a false "incomplete" is the costly error.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from ..core.evidence import Ending, Evidence, Row, Topic
from .activity import activity
from .answer.endings import ending
from .calls.reading import read
from .diffs import file_changes
from .facts import Facts
from .request.obligations import obligations
from .request.requirements import prose, requirements, topics, wants
from .rows import deed_rows, denied_rows, error_rows, requirement_rows, todo_rows, write_rows
from .rules.check_rows import check_rows
from .rules.claimed import claimed
from .rules.leaks import leaks
from .rules.leftovers import leftovers
from .rules.named_commands import named_commands
from .rules.named_files import named_files
from .rules.offered import offered
from .rules.plan_only import plan_only
from .rules.topics_unmet import topics_unmet
from .rules.unfinished_calls import unfinished_calls
from .rules.weakened_tests import weakened_tests
from .words import shorten

if TYPE_CHECKING:
    from ..core.transcript import Message, Transcript
    from .request.topics import Said

_TOOLS_PLAN: Final = re.compile(r"\b(?:terraform|tofu|terragrunt)\b[^;&|\n]{0,60} plan\b|\bpulumi preview\b")
MAX_FINAL: Final = 20_000  # characters of the final text that rules look at
MAX_ROWS: Final = 10  # of one kind that the rules below make
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
    calls = tuple(c for m in transcript.work for c in m.calls)
    final = next((m for m in reversed(transcript.work) if m.role == "assistant"), None)
    text = final.text[-MAX_FINAL:].replace("\u2019", "'") if final else ""
    asked = requirements(messages)
    wanted = wants(messages, asked)
    rules = obligations(project)
    requested, forbids = topics(asked)
    by_project, forbids = _with_project(rules, requested, forbids)
    work = read(calls, transcript.directory)
    if wanted == "plan" and work.code_writes and any(_TOOLS_PLAN.search(s[:2000]) for s in work.scripts):
        wanted = "change"  # the plan is what a tool prints
    end = _ending(final, planned=not work.writes and wanted == "plan")
    every, changes = "\n".join(messages), [r.text for r in asked if r.change and r.by < 0]
    checks = check_rows(work, transcript.directory, every, text, clean="lint" in requested)
    denied = denied_rows(calls, work)
    rows = _numbered(
        [
            *(Row("", "project_rule", f"the project's rules: {line}") for line, _ in rules),
            *write_rows(work),
            *weakened_tests(work, every, text, changes),
            *checks,
            *deed_rows(work),
            *leaks(work, every, "\n".join(m.text for m in transcript.work if m.order)),
            *todo_rows(transcript.todos, calls, work),
            *denied,
            *error_rows(calls, asked=end == "question"),
        ],
        1,
    )
    facts = Facts(
        asked=asked,
        requested=requested,
        by_project=by_project,
        forbids=forbids,
        wants=wanted,
        said="\n".join(prose(m) for m in messages)[:MAX_FINAL],
        work=work,
        final=text,
        ending=end,
        checks=[r for r in rows if r.kind == "check"],
        denied=bool(denied),
        errors=tuple(r.detail for r in rows if r.kind == "tool_error"),
    )
    rows += _numbered([*_missing(facts), _ending_row(final, end)], len(rows) + 1)
    return Evidence(
        rows=(*requirement_rows(asked), *rows),
        ending=end,
        tool_calls=len(calls),
        writes=len(work.writes),
        code_writes=work.code_writes,
        delegated=work.delegated,
        asks=tuple(sorted({*requested, *by_project} - set(forbids))),
        forbids=forbids,
        wants=wanted,
        messages=len(messages),
        request_bytes=len(every.encode("utf-8", "replace")),
        log=activity(transcript, work),
        files=file_changes(calls, work, transcript.directory),
    )


def _missing(facts: Facts) -> list[Row]:
    """The rows of kind ``unmet`` and ``offer``. What one rule found is not said again by another."""
    unmet: list[Row] = []
    if facts.ending != "question" and not facts.denied:
        unmet = plan_only(facts) or topics_unmet(facts)
    unmet += unfinished_calls(facts)
    unmet += named_files(facts, unmet)
    unmet += named_commands(facts)
    offers = offered(facts)
    covered = {r.topic for r in unmet if r.topic}
    left = [] if any(r.open for r in (*unmet, *offers)) else leftovers(facts)
    return [
        *unmet[:MAX_ROWS],
        *claimed(facts),
        *[r for r in offers if not (r.topic and r.topic in covered)][:MAX_ROWS],
        *left,
    ]


def _with_project(
    rules: tuple[tuple[str, Said], ...], requested: tuple[Topic, ...], forbids: tuple[Topic, ...]
) -> tuple[tuple[Topic, ...], tuple[Topic, ...]]:
    """What the project's rules ask for, and all that is ruled out; the request overrules the project."""
    asks = {t for _, said in rules for t in said.asks} - set(forbids)
    ruled_out = ({t for _, said in rules for t in said.forbids} - set(requested)) | set(forbids)
    return tuple(sorted(asks - ruled_out)), tuple(sorted(ruled_out))


def _numbered(rows: list[Row], start: int) -> list[Row]:
    return [replace(row, id=f"E{i}") for i, row in enumerate(rows, start)]


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

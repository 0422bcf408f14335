"""Test, build and lint runs: how each ended, and whether a failure proves that work is left (I24)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from ..core.evidence import Position, Row
from .calls.writes import file_name
from .words import shorten

if TYPE_CHECKING:
    from .calls.actions import Check
    from .calls.checks import Run
    from .calls.outcomes import Outcome
    from .calls.work import Work

MAX_ROWS: Final = 20
MAX_TESTS: Final = 6  # names in one row
_FAILED_COUNT: Final = re.compile(
    r"\b(?:failures|failed|fail|failing)[=: ]{1,3}(\d{1,6})\b|\b(\d{1,6}) (?:tests? )?fail\w*", re.IGNORECASE
)
_REDIRECTED: Final = re.compile(r"\s{0,4}(?:2>&1|2>/dev/null)")


def check_rows(work: Work, directory: str) -> list[Row]:
    """The test, build and lint runs that no later run replaced or answered, without ids.

    A failure is open only after a change of code, and only where the runs don't show that it is older than
    the work. Whether the person wanted or excluded it, a model reads.
    """
    shown = [run for run in work.runs.current if not work.runs.settled(run)][-MAX_ROWS:]
    return [_row(run, work, directory) for run in shown]


def _row(run: Run, work: Work, directory: str) -> Row:
    result, summary = run.outcome.result, run.outcome.summary
    last = work.last_code  # a pass stays one when documents are written, a failure may be mended by any file
    if result == "failed":
        last = work.last_edit if run.check.kind == "lint" else work.last_data
    position: Position = "after_last_write" if run.at > last else "before_last_write"
    if work.last_code < 0 and (result != "failed" or last < 0):
        position = ""
    old = result == "failed" and _is_old(run, work)
    elsewhere = _elsewhere(run, work)
    unanswered = work.last_code >= 0 and not (old or elsewhere) and work.runs.unanswered(run)
    command = _command(run.check, directory)
    said = {"passed": "passed", "failed": "failed", "unknown": f"ran (see {run.call}),"}[result]
    when = {"": "", "after_last_write": " after the last edit", "before_last_write": " before the last edit"}[
        position
    ]
    again = " and was not run again" if unanswered and position == "before_last_write" else ""
    if position == "after_last_write" and result == "failed" and work.last_edit > run.at:
        when = " after the last edit of code"
    flaky = f" (flaky: failed {run.flaky}x before, with no edit in between)" if run.flaky else ""
    text = f"{run.check.kind} at {run.call}: `{command}` {said}{when}{again}".rstrip(",") + flaky
    text += " (it failed too without the changes)" if old else ""
    text += " (only in files that were not written)" if elsewhere else ""
    return Row(
        "",
        "check",
        text + (f": {summary}" if summary else "") + _tests(run, work),
        outcome=result,
        position=position,
        open=unanswered,
        detail=summary,
        command=command,
        check=run.check.kind,
        settled=old or elsewhere,
    )


def _tests(run: Run, work: Work) -> str:
    """The names of the tests that failed, and which of them had failed before the first edit."""
    names = run.outcome.tests
    if not names:
        return ""
    before = {
        name
        for r in work.runs.all
        if r.code_at < 0 and r.at < run.at
        for name in r.outcome.tests
        if name in names
    }
    shown = "; ".join(names[:MAX_TESTS]) + (
        f" and {len(names) - MAX_TESTS} more" if len(names) > MAX_TESTS else ""
    )
    old = [name for name in names if name in before][:MAX_TESTS]
    same = "all of them" if len(before) == len(names) else "; ".join(old)
    return f"; failed tests: {shown}" + (f"; failed before the first edit too: {same}" if before else "")


def _elsewhere(run: Run, work: Work) -> bool:
    """Whether all that a style checker found lies in files that this work never wrote."""
    if not run.outcome.places or work.blind_writes or work.delegated:
        return False
    written = {file_name(w.path) for w in work.writes}
    return not any(file_name(place) in written for place in run.outcome.places)


def _is_old(run: Run, work: Work) -> bool:
    """Whether the same check failed without the work too (stashed away, or before the first edit), with as
    many failures or with the same names.
    """
    before = [
        r.outcome for r in work.runs.all if r.code_at < 0 and r.at < run.at and r.check.covers(run.check)
    ]
    if run.check.tool in work.base_failed:
        before.append(work.base_failed[run.check.tool])
    return any(_no_worse(run.outcome, outcome) for outcome in before if outcome.result == "failed")


def _no_worse(now: Outcome, before: Outcome) -> bool:
    counts = _FAILED_COUNT.search(now.summary), _FAILED_COUNT.search(before.summary)
    if counts[0] and counts[1] and _count(counts[0]) > _count(counts[1]):
        return False
    if now.tests and before.tests:
        return set(now.tests) <= set(before.tests)
    if counts[0] and counts[1]:
        return True
    if now.failing and before.failing:
        return set(now.failing) <= set(before.failing)
    return not (now.tests or now.failing)  # in doubt it is no proof


def _count(found: re.Match[str]) -> int:
    return int(found[1] or found[2])


def _command(check: Check, directory: str) -> str:
    """What to type again, with the folder where it isn't the session's own."""
    command = _REDIRECTED.sub("", check.text)
    if check.cwd and directory and check.cwd != directory:
        folder = check.cwd.removeprefix(directory.rstrip("/") + "/")
        command = f"cd {folder} && {command}"
    return shorten(command, 300)

"""The check runs of one task: which of them no later run has replaced, and which failures are unanswered.

A later run replaces an earlier one of the same kind when it looks at the same files or more. A failure is
answered by a later run that passed for what had failed.
"""

from __future__ import annotations

import re
from collections import deque
from dataclasses import dataclass, replace
from typing import Final

from .actions import Check
from .outcomes import Outcome

MAX_RUNS: Final = 50

_LEAVES_OUT: Final = re.compile(
    r"--deselect|--ignore|--skip|--exclude|-LE |-[km][ =]?['\"]?not |-Dtest=['\"]?!|--grep-invert"
    r"|--testPathIgnorePatterns"
)


_PACKAGE: Final = re.compile(r"(?:--filter|-F|--workspace|-w|--package|--project)[ =]")


@dataclass(frozen=True, slots=True)
class Run:
    """One check that ran, at position ``at``. Before it, ``code_at`` is the last write to code and
    ``edit_at`` the last one to any file (-1: none).
    """

    at: int
    code_at: int
    check: Check
    outcome: Outcome
    call: str = ""  # its number in the activity log
    flaky: int = 0  # earlier runs that failed on the same files, nothing written in between
    edit_at: int = -1


class Runs:
    """The runs that no later run has replaced, oldest first; at most ``MAX_RUNS``.

    ``all`` keeps the latest runs, replaced or not.
    """

    def __init__(self) -> None:
        self.current: list[Run] = []
        self.all: deque[Run] = deque(maxlen=MAX_RUNS)

    @property
    def failing_tests(self) -> bool:
        """Whether the last word of some test run so far is a failure."""
        return any(r.outcome.result == "failed" and r.check.kind == "test" for r in self.current)

    def add(self, run: Run) -> None:
        """Take a run in, and drop those it covers."""
        replaced = [old for old in self.current if _replaces(run, old)]
        same = [old for old in replaced if old.edit_at == run.edit_at and old.check.covers(run.check)]
        if run.outcome.result == "passed":
            run = replace(run, flaky=sum(old.flaky + (old.outcome.result == "failed") for old in same))
        gone = {id(old) for old in replaced}
        self.current = [old for old in self.current if id(old) not in gone][1 - MAX_RUNS :]
        self.current.append(run)
        self.all.append(run)

    def settled(self, run: Run) -> bool:
        """Whether later, narrower runs passed for every file that ``run`` named as failed."""
        parts = [p for p in self._parts(run) if not p.check.filters]
        names = run.outcome.failing
        return bool(names) and all(any(p.check.reaches(name) for p in parts) for name in names)

    def unanswered(self, run: Run) -> bool:
        """Whether nothing after the failed ``run`` speaks for what failed in it, not even a partial run."""
        if run.outcome.result != "failed":
            return False
        parts = [p for p in self._parts(run) if not _leaves_out(p.check)]
        if run.outcome.failing:
            return not all(
                any(p.check.filters or p.check.reaches(name) for p in parts) for name in run.outcome.failing
            )
        return not any(p.edit_at > run.edit_at for p in parts)

    def _parts(self, run: Run) -> list[Run]:
        return [
            later
            for later in self.current
            if later.at > run.at
            and later.outcome.result == "passed"
            and later.check.same_kind(run.check)
            and not _other_part(later.check, run.check)
        ]


def _other_part(new: Check, old: Check) -> bool:
    """Whether two runs look at different packages of one repository."""
    parts = [{f for f in c.filters if _PACKAGE.match(f)} for c in (new, old)]
    return bool(parts[0] and parts[1]) and not parts[0] & parts[1]


def _leaves_out(check: Check) -> bool:
    """Whether a run's filters keep something out: its pass says nothing about what was kept out."""
    return any(_LEAVES_OUT.match(f) for f in check.filters)


def _replaces(new: Run, old: Run) -> bool:
    """A run of unknown outcome replaces a failure only when something was written in between."""
    if new.outcome.result == "unknown" and old.outcome.result != "unknown" and new.edit_at == old.edit_at:
        return False
    return new.check.covers(old.check)

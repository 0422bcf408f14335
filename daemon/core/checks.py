"""The runs of one task: which are the last word on their kind and scope, and which failures nothing answered.

A later run replaces an earlier one that it covers. A failure counts only when something was written in
the task, nobody says that it is expected or older than the work, and no later run spoke for what had failed.
"""

from __future__ import annotations

import re
from collections import deque
from dataclasses import dataclass, replace
from typing import Final

from daemon.core.actions import Check
from daemon.core.outcomes import Outcome

MAX_RUNS: Final = 50

# The final text calls the failure old, unrelated or not its own: a judge has to weigh that, not a rule.
_EXCUSED: Final = re.compile(
    r"pre-?existing|(?:were|was|been|are|is) (?:already )?there before|existed before|(?:did(?:n't| not)"
    r"|haven't|never) touch\w*"
    r"|already (?:fail|broken)|(?:was|were|been) (?:already )?fail\w* before"
    r"|fail\w* before (?:my|the|this)"
    r"|unrelated|not related|not caused by|independent of (?:my|this|these)|also fails? (?:on|without"
    r"|before|with)"
    r"|fail\w* the same way|untouched (?:code|tree)|nothing to do with|git stash"
    r"|without (?:my|the|these) changes?|clean checkout|flaky|known (?:failure|issue)|fail\w* (?:on"
    r"|in) (?:main|master|the base|HEAD)"
    r"|(?:was|were|been) (?:already (?:there|present|red|broken)"
    r"|(?:there|present|red|broken) (?:already|before|long before))"
    r"|existed (?:already|before)|predates?\b|(?:fail\w*|errors?) (?:that are )?(?:older|from before)"
    r"|(?:schon|bereits) (?:vorher|zuvor|davor)|(?:schon|bereits) (?:rot|kaputt)|déjà (?:là|rouge|cassé)"
    r"|ya (?:estaba\w*|fallaba\w*)|já (?:estava\w*|falhava\w*)"
    r"|expected(?:ly)? (?:to )?fail"
    r"|environment\w* (?:issue|problem|limitation|error)|not (?:available|installed) (?:here|in this)"
    r"|no network"
    r"|(?:can't|cannot|could not|couldn't) (?:be )?run (?:here|in this|it|them|the)|intentional",
    re.IGNORECASE,
)
_LOOKED: Final = re.compile(
    r"stash|check(?:ed|ing) out|clean checkout|worktree|(?:on|in) (?:main|master|HEAD|the base)"
    r"|without (?:my|the|these) change"
    r"|before (?:my|the|this|these) change|i (?:checked|verified|confirmed)|untouched code",
    re.IGNORECASE,
)
_OTHER_CAUSE: Final = re.compile(
    r"flaky|environment|no network|network|not (?:available|installed)|intentional"
    r"|expected(?:ly)? (?:to )?fail|known (?:failure|issue)"
    r"|(?:can't|cannot|could not|couldn't) (?:be )?run",
    re.IGNORECASE,
)
_NAMED: Final = re.compile(r"`([\w.:/#>\[\]-]{4,160})`")
_PARTS: Final = re.compile(r"[A-Z]?[a-z]{3,40}|[A-Z]{4,40}")
# The person asked for a failing test, or for a run and not for a fix.
_WANTED: Final = re.compile(
    r"\b(?:write|add|create|commit)\b[^.\n]{0,60}\b(?:(?:failing|red)(?: \w+){0,2} tests?\b|tests? (?:that"
    r"|which)[^.\n]{0,20}\bfail)"
    r"|\b(?:don't|do not|without) (?:try to )?fix|\bno fix\b|\b(?:ohne|nicht|sans|sin|sem) (?:den |es "
    r"|le |la |lo |o )?(?:fix\w*|beheb\w*|corrig\w*|correction|arreglar\w*)|\b(?:just|only) (?:run|report"
    r"|reproduce)\b",
    re.IGNORECASE,
)

_NO_FIX: Final = re.compile(
    r"\b(?:don'?t|do not|without|no|not|never|ohne|nicht|sans|sin|sem|i(?:'ll| will| want to)|we(?:'ll"
    r"| will))\b[^.;\n]{0,40}",
    re.IGNORECASE,
)
_THEN_FIX: Final = re.compile(
    r"\b(?:fix|solve|repair|implement|resolve|correct|refactor|make (?:it|them|the tests?) (?:pass|green)"
    r"|beheb\w*|corrig\w*|arregl\w*)\b",
    re.IGNORECASE,
)
_LEAVES_OUT: Final = re.compile(
    r"--deselect|--ignore|--skip|--exclude|-LE |-[km][ =]?['\"]?not |-Dtest=['\"]?!|--grep-invert"
    r"|--testPathIgnorePatterns"
)


_PACKAGE: Final = re.compile(r"(?:--filter|-F|--workspace|-w|--package|--project)[ =]")


@dataclass(frozen=True, slots=True)
class Run:
    """One check that ran, at position ``at``; ``code_at`` is the last write before it (-1: none)."""

    at: int
    code_at: int
    check: Check
    outcome: Outcome
    flaky: int = 0  # earlier runs that failed on the same files, nothing written in between


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
        same = [old for old in replaced if old.code_at == run.code_at and old.check.covers(run.check)]
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
        return not any(p.code_at > run.code_at for p in parts)

    def _parts(self, run: Run) -> list[Run]:
        return [
            later
            for later in self.current
            if later.at > run.at
            and later.outcome.result == "passed"
            and later.check.same_kind(run.check)
            and not _other_part(later.check, run.check)
        ]


def excused(
    request: str,
    final: str,
    stems: frozenset[str] = frozenset(),
    *,
    backed: bool = True,
    regressed: bool = False,
) -> bool:
    """Whether the person wanted the failure, or the final text gives a reason why it stays.

    Where no run backs it (``backed``), "pre-existing" and "unrelated" don't excuse a failure whose name holds
    the name of a file that was changed (``stems``), nor one of a check that passed before the work
    (``regressed``).
    """
    if _WANTED.search(request):
        return True
    if not _EXCUSED.search(final):
        return False
    if regressed:
        return bool(_OTHER_CAUSE.search(final))
    if backed or _LOOKED.search(final) or _OTHER_CAUSE.search(final):
        return True
    named = {part.lower() for m in _NAMED.finditer(final) for part in _PARTS.findall(m[1])}
    return not named & stems


def wanted_red(request: str) -> bool:
    """Whether the person asked for a test that fails, or for a run, and for no fix."""
    return bool(_WANTED.search(request)) and not _THEN_FIX.search(_NO_FIX.sub("", request))


def _other_part(new: Check, old: Check) -> bool:
    """Whether two runs look at different packages of one repository."""
    parts = [{f for f in c.filters if _PACKAGE.match(f)} for c in (new, old)]
    return bool(parts[0] and parts[1]) and not parts[0] & parts[1]


def _leaves_out(check: Check) -> bool:
    """Whether a run's filters keep something out: its pass says nothing about what was kept out."""
    return any(_LEAVES_OUT.match(f) for f in check.filters)


def _replaces(new: Run, old: Run) -> bool:
    """A run of unknown outcome replaces a failure only when something was written in between."""
    if new.outcome.result == "unknown" and old.outcome.result != "unknown" and new.code_at == old.code_at:
        return False
    return new.check.covers(old.check)

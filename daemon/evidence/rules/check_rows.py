"""Test, build and lint runs: how each ended, and whether a failure proves that work is left (I24).

The final text may call a failure old, unrelated or not its own, and the person may have wanted it: then the
row stays closed and a judge has to weigh it, unless the runs themselves say otherwise.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from ...core.evidence import CheckKind, Position, Row, Topic
from ..answer.claims import claims
from ..calls.weakened import is_test
from ..calls.writes import file_name, is_prose
from ..words import shorten

if TYPE_CHECKING:
    from ..calls.actions import Check
    from ..calls.checks import Run
    from ..calls.work import Work

MAX_ROWS: Final = 20
_TOPICS: Final[dict[CheckKind, Topic]] = {"test": "tests", "build": "build", "lint": "lint"}
MAX_TESTS: Final = 6  # names in one row
MAX_ASKED: Final = 20_000  # characters of the request
_GENERIC: Final = frozenset(
    {"index", "main", "utils", "util", "helpers", "common", "base", "core", "test", "tests"}
)
_FAILED_COUNT: Final = re.compile(
    r"\b(?:failures|failed|fail|failing)[=: ]{1,3}(\d{1,6})\b|\b(\d{1,6}) (?:tests? )?fail\w*", re.IGNORECASE
)
_EXCUSED: Final = re.compile(
    r"pre-?existing|(?:were|was|been|are|is) (?:already )?there before|existed before|(?:did(?:n't| not)"
    r"|haven't|never) touch\w{0,12}"
    r"|already (?:fail|broken)|(?:was|were|been) (?:already )?fail\w{0,12} before"
    r"|fail\w{0,12} before (?:my|the|this)"
    r"|unrelated|not related|not caused by|independent of (?:my|this|these)|also fails? (?:on|without"
    r"|before|with)"
    r"|fail\w{0,12} the same way|untouched (?:code|tree)|nothing to do with|git stash"
    r"|without (?:my|the|these) changes?|clean checkout|flaky|known (?:failure|issue)|fail\w{0,12} (?:on"
    r"|in) (?:main|master|the base|HEAD)"
    r"|(?:was|were|been) (?:already (?:there|present|red|broken)"
    r"|(?:there|present|red|broken) (?:already|before|long before))"
    r"|existed (?:already|before)|predates?\b|(?:fail\w{0,12}|errors?) (?:that are )?(?:older|from before)"
    r"|(?:schon|bereits) (?:vorher|zuvor|davor)|(?:schon|bereits) (?:rot|kaputt)|déjà (?:là|rouge|cassé)"
    r"|ya (?:estaba\w{0,12}|fallaba\w{0,12})|já (?:estava\w{0,12}|falhava\w{0,12})"
    r"|expected(?:ly)? (?:to )?fail"
    r"|environment\w{0,12} (?:issue|problem|limitation|error)|not (?:available|installed) (?:here|in this)"
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
_REDIRECTED: Final = re.compile(r"\s{0,4}(?:2>&1|2>/dev/null)")
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

_LEFT_OUT: Final = re.compile(
    r"\b(?:ignor\w*|except(?: for)?|apart from|besides|other than|known to|skip"
    r"|(?:don'?t|do not) (?:fix|touch|mind)|leave [^.;\n]{0,60}(?:alone|as it is|red|failing)"
    r"|außer|bekannt\w*|sauf|connus?|salvo|conocid\w+|exceto|conhecid\w+|oprócz|pomi\w+)\b"
    r"|忽略|除了|以外|無視|кроме",
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


def check_rows(work: Work, directory: str, asked: str, final: str, *, clean: bool) -> list[Row]:
    """The test, build and lint runs that no later run replaced or answered, without ids.

    A failure is open only after a change of code, or where the final text says that the check passes. It is
    closed where the request or the final text excuses it.
    ``clean``: the request wants no lint findings, not even old ones.
    """
    shown = [run for run in work.runs.current if not work.runs.settled(run)][-MAX_ROWS:]
    if not any(run.outcome.result == "failed" for run in shown):
        return [_row(run, work, directory, counts=False) for run in shown]
    asked = asked[:MAX_ASKED]
    before = any(r.code_at < 0 and r.outcome.result == "failed" for r in work.runs.all)
    backed = before or bool(work.base_failed)
    regressed = not backed and any(_regressed(run, work) for run in shown)
    excused = _excused(asked, final, _stems(work), backed=backed, regressed=regressed)
    said = {c.topic for c in claims(final)}
    red = _wanted_red(asked) and all(is_test(w.path) or is_prose(w.path) for w in work.writes)
    return [
        _row(
            run,
            work,
            directory,
            counts=not excused and (work.last_code >= 0 or _TOPICS[run.check.kind] in said),
            red=red or _excluded(run, asked),
            clean=clean,
        )
        for run in shown
    ]


def _excluded(run: Run, asked: str) -> bool:
    """Whether the request leaves out every failed test by its name."""
    names = [re.split(r"::|#|\.|\s|>|/", name.split("[")[0].strip())[-1] for name in run.outcome.tests]
    parts = [part for part in re.split(r"(?<=[.;!?])\s|\n|。", asked) if _LEFT_OUT.search(part)]
    return bool(names) and all(len(n) >= 4 and any(n in part for part in parts) for n in names)


def _regressed(run: Run, work: Work) -> bool:
    """Whether a failed check had passed before the first edit: its failure is this work's."""
    return run.outcome.result == "failed" and any(
        old.code_at < 0 and old.outcome.result == "passed" and old.check.covers(run.check)
        for old in work.runs.all
    )


def _stems(work: Work) -> frozenset[str]:
    """The names of the code files written, without ending, where they say anything."""
    names = (file_name(w.path).split(".", 1)[0].lower() for w in work.writes if not is_test(w.path))
    return frozenset(n for n in names if len(n) >= 4 and n not in _GENERIC)


def _excused(
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


def _wanted_red(request: str) -> bool:
    """Whether the person asked for a test that fails, or for a run, and for no fix."""
    return bool(_WANTED.search(request)) and not _THEN_FIX.search(_NO_FIX.sub("", request))


def _row(run: Run, work: Work, directory: str, *, counts: bool, red: bool = False, clean: bool = True) -> Row:
    """A test, build or lint run. ``counts``: whether a failure of this task's work can be open at all.

    ``clean``: the request wants no lint findings, not even old ones.
    """
    result, summary = run.outcome.result, run.outcome.summary
    last = work.last_code  # a pass stays one when documents are written, a failure may be mended by any file
    if result == "failed":
        last = work.last_edit if run.check.kind == "lint" else work.last_data
    position: Position = "after_last_write" if run.at > last else "before_last_write"
    if work.last_code < 0 and (result != "failed" or last < 0):
        position = ""
    old = run.outcome.result == "failed" and run.check.tool in work.base_failed
    elsewhere = not clean and _elsewhere(run, work)
    unanswered = counts and not (red or old or elsewhere) and work.runs.unanswered(run)
    command = _command(run.check, directory)
    said = {"passed": "passed", "failed": "failed", "unknown": "ran, its outcome is not visible,"}[result]
    when = {"": "", "after_last_write": " after the last edit", "before_last_write": " before the last edit"}[
        position
    ]
    again = " and was not run again" if unanswered and position == "before_last_write" else ""
    if position == "after_last_write" and result == "failed" and work.last_edit > run.at:
        when = " after the last edit of code"
    flaky = f" (flaky: failed {run.flaky}x before, with no edit in between)" if run.flaky else ""
    text = f"{run.check.kind}: `{command}` {said}{when}{again}".rstrip(",") + flaky
    text += " (it failed too with the changes stashed away)" if old else ""
    text += " (only in files that were not written)" if elsewhere else ""
    text += " (the person wanted or excluded this failure)" if red and result == "failed" else ""
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
        settled=result == "failed" and (red or elsewhere or (old and _proven_old(run, work))),
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


def _proven_old(run: Run, work: Work) -> bool:
    """Whether what fails now failed without the work too: as many tests, or the same names."""
    before = work.base_failed[run.check.tool]
    names = set(run.outcome.failing)
    counts = _FAILED_COUNT.search(run.outcome.summary), _FAILED_COUNT.search(before.summary)
    if counts[0] and counts[1]:
        return _count(counts[0]) <= _count(counts[1])
    return bool(names) and names <= set(before.failing)


def _count(found: re.Match[str]) -> int:
    return int(found[1] or found[2])


def _command(check: Check, directory: str) -> str:
    """What to type again, with the folder where it isn't the session's own."""
    command = _REDIRECTED.sub("", check.text)
    if check.cwd and directory and check.cwd != directory:
        folder = check.cwd.removeprefix(directory.rstrip("/") + "/")
        command = f"cd {folder} && {command}"
    return shorten(command, 300)

"""Makes a run of the project's check part of the verdict: evidence like the agent's own. Pure."""

from __future__ import annotations

import posixpath
import re
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from ..core.evidence import FAILED, Act, Row
from ..core.proof import Ended, Proof, some
from ..core.verdict import Judgement, Missing, Severity
from ..evidence.outcomes import judge_check
from ..evidence.outputs import clean, ends, failure_lines
from ..judge.citations import cited_rows
from ..redact import redact
from .choice import check_of

if TYPE_CHECKING:
    from collections.abc import Collection

    from ..core.evidence import Evidence, Outcome
    from ..core.proof import Known, ProofState
    from ..judge.case import Case
    from .run import Ran

FIRST, LAST = 4, 16  # lines of the output in the evidence
SENT: Final = 12  # lines of the output in the feedback
CALL: Final = "P1"
MARKS: Final = 50
_FULL: Final = "No space left on device"
_ASKS: Final = re.compile(  # what a program prints that reads from a terminal and has none
    r"EOFError: EOF when reading a line|/dev/tty: (?:No such device|Device not configured)"
    r"|No such device or address: '/dev/tty'|the input device is not a TTY|stdin is not a (?:tty|terminal)",
    re.IGNORECASE,
)
_NUMBER: Final = re.compile(r"0x[0-9a-f]+|\d+(?:\.\d+)?")


def ended(known: Known, ran: Ran, directory: str) -> Ended:
    """The run as a proof: passed, failed, timed out or not started. A check that ran no test, or that
    lacked a terminal or room on the disk, started none.
    """
    output = redact(clean(ran.output))
    check = replace(
        check_of(known.command, posixpath.join(directory, known.folder)), proves_pass=True, proves_fail=True
    )
    found = judge_check(check, output, ran.exit)
    state: ProofState
    if ran.why:
        state = ran.why
    elif ran.exit is None or (ran.exit and _lacks(output, tests=bool(found.tests))):
        state = "not_started"  # somebody killed it, or what it lacks is no fault of the work
    elif found.result == "unknown":  # it printed a failure and ended with 0, or ran nothing
        state = "failed" if ran.exit == 0 and found.tests else "not_started"
    else:
        state = "passed" if found.result == "passed" else "failed"
    code = None if state == "not_started" and _FULL in output else ran.exit  # it is tried again
    proof = Proof(known.command, code, round(ran.seconds, 1), state, found.tests, known.folder)
    picked = failure_lines(output)[0]
    lines = tuple(line for line, _ in ends(output, FIRST, LAST, picked))
    marks = found.tests or tuple(_NUMBER.sub("#", line.strip()) for _, line in picked)[:MARKS]
    return Ended(known, proof, lines, found.summary, marks if state == "failed" else ())


def _lacks(output: str, *, tests: bool) -> bool:
    """Says whether a check failed for want of room on the disk, or of a terminal. ``tests``: some failed."""
    return not tests and (_FULL in output or _ASKS.search(output) is not None)


def compared(end: Ended, before: Collection[str]) -> Ended:
    """A failed run beside what failed before the task's first edit (its marks): all of it old, or some."""
    if end.proof.state != "failed" or not before:
        return end
    if end.marks and set(end.marks) <= set(before):
        return replace(end, proof=replace(end.proof, state="failed_before"), old=end.proof.tests)
    return replace(end, old=tuple(name for name in end.proof.tests if name in before))


def with_run(evidence: Evidence, end: Ended) -> tuple[Evidence, Row]:
    """The evidence with the run as its last row and the last line of the log, and that row."""
    proof = end.proof
    failed = proof.state == "failed"
    outcome: Outcome = (
        "passed"
        if proof.state in {"passed", "tests_changed"}
        else "failed"
        if proof.state.startswith("failed")
        else "unknown"
    )
    text = f"check run by reflectd after the last edit ({CALL}): {proof.text}"
    row = Row(
        f"E{len(evidence.rows) + 1}", "check", text + (f": {end.summary}" if end.summary else ""),
        outcome=outcome, position="after_last_write", open=failed, detail=end.summary,
        command=proof.typed, check="test", settled=proof.state == "failed_before",
    )  # fmt: skip
    act = Act(
        CALL,
        text,
        said=end.lines[-LAST:],
        raw=end.lines,
        rank=FAILED if outcome == "failed" else 3,
        verifies=True,
    )
    return replace(evidence, rows=(*evidence.rows, row), log=(*evidence.log, act)), row


def judged(before: Judgement | None, end: Ended, row: Row) -> Judgement | None:
    """The judgement with the run. A failure that is new makes the turn incomplete, without a second look. A
    pass makes it complete. All else leaves it as it was.
    """
    proof = end.proof
    if proof.state == "failed":
        what = f"`{proof.typed}` fails after the last edit (exit {proof.exit})"
        ran = f"`{proof.typed}` after the last edit, and it fails (exit {proof.exit})"
        lines = "\n".join(end.lines[-SENT:])
        new = tuple(name for name in proof.tests if name not in end.old)
        names = f"\nFailed: {some(new)}" if new else ""
        names += f"\nFailed before your first edit too: {some(end.old)}" if end.old else ""
        feedback = f"reflectd ran {ran}.{names}" + (f"\nIts last lines:\n{lines}" if lines else "")
        kept = tuple(m for m in before.missing) if before is not None and not before.complete else ()
        item = Missing(f"{what}{f': {some(new)}' if new else ''}", row.id)
        return Judgement(
            complete=False,
            severity=Severity.HIGH,
            feedback=feedback,
            missing=(item, *kept),
            next_actions=(f"Make `{proof.typed}` pass, then run it again",),
        )
    if proof.state == "passed":
        if before is not None and before.complete:
            return before
        return Judgement(complete=True)
    return before


def wants_a_run(judgement: Judgement | None, case: Case, *, no_proof: bool) -> bool:
    """Says whether a run of the check can decide: the turn counts as done, nobody could judge it, or all that
    is missing is a check that did not run after the last edit, or whose outcome nobody saw.
    """
    if judgement is None:
        return no_proof
    if judgement.complete:
        return judgement.severity is not Severity.BLOCKER
    if judgement.requires_human_action or not judgement.missing:
        return False
    stale = {
        row.id
        for row in case.evidence.of("check")
        if row.outcome == "unknown" or (row.outcome == "passed" and row.position == "before_last_write")
    }
    cited = [set(cited_rows(m, case)) for m in judgement.missing]
    return all(rows and rows <= stale for rows in cited)

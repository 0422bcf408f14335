"""``decide``: what an opinion means for this session, what the host is told, and the state after it.

The table of the seed's decision flow; every branch is a row of ``tests/judge/test_decide.py``.
"""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from ..core.guards import Limits, Skip, may_prompt, normalise_items, rounds_without_progress
from ..core.orders import SendFeedback, ShowToast, StoredOrder, Variant
from ..core.proof import Proof
from ..core.session import Progress, Session, settled
from ..core.transcript import looks_up
from ..core.verdict import NO_PROOF, FinalState, JudgedBy, Judgement, Severity, Verdict
from .case import Case
from .citations import ITEM_CHARS, cited_rows, is_cited

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..core.evidence import Row, RowKind
    from ..core.verdict import Missing
    from .flow import Opinion

# What a case says of a task's progress: its files, its checks, its open items (design/anti-loop.md).

_CALL: Final = re.compile(r"\bA\d{1,6}(?:\.\d{1,6})?\b")
_SAYS: Final[frozenset[RowKind]] = frozenset({"check", "git", "run", "tests_changed"})


def progress(case: Case, missing: tuple[Missing, ...]) -> Progress:
    """Where the task stands. A tool that is not known counts as a change of files each time it is used."""
    from ..evidence.actions import AGENT_TOOLS, SHELL_TOOLS, WRITE_TOOLS  # not needed to start

    known = SHELL_TOOLS | WRITE_TOOLS | AGENT_TOOLS
    calls = case.transcript.calls if case.transcript is not None else ()
    other = sum(
        c.status == "completed" and c.tool.lower() not in known and not looks_up(c.tool) for c in calls
    )
    files = [
        (f.path, f.how, f.added, f.removed, f.lines, f.by if f.how == "by_command" else ())
        for f in case.evidence.files
    ]
    said = [
        (r.kind, *normalise_items((r.command,)), r.outcome, *_printed(r))
        for r in case.evidence.rows
        if r.kind in _SAYS
    ]
    rows = {row.id: row for row in case.evidence.rows}
    items = {item for m in missing for item in _cites(m, case, rows)}
    cited = [f for f in files if any(_names(m, f[0], case, rows) for m in missing)]
    return Progress(_digest((*files, other)), _digest(said), tuple(sorted(items)), _digest(cited))


def _names(missing: Missing, path: str, case: Case, rows: dict[str, Row]) -> bool:
    """Says whether the item, or a row that it cites, names this file."""
    cited = (rows[name] for name in cited_rows(missing, case))
    said = (missing.text, missing.cites, *(part for r in cited for part in (r.text, r.detail, r.command)))
    name = re.compile(rf"(?<![\w.-]){re.escape(path.rpartition('/')[2])}(?![\w-])")
    return any(name.search(text) for text in said)


def _cites(missing: Missing, case: Case, rows: dict[str, Row]) -> tuple[str, ...]:
    """The item's cites, without the numbers of rows, which move; its own words where it cites nothing."""
    cited = [rows[name] for name in cited_rows(missing, case)]
    if cited:
        return tuple(
            f"{r.kind} {' '.join(normalise_items((r.command,)) if r.command else _words(r))}" for r in cited
        )
    return normalise_items((missing.cites or missing.text,))


def _printed(row: Row) -> tuple[str, ...]:
    """A check's output, without our remarks on it, which change with the calls around it."""
    if row.kind != "check":
        return _words(row)
    return normalise_items((row.detail, row.text.partition("; failed tests: ")[2]))


def _words(row: Row) -> tuple[str, ...]:
    """A row's text without the numbers of calls, which move from round to round."""
    return normalise_items((_CALL.sub("A", row.text),))


def _digest(found: Iterable[object]) -> str:
    return hashlib.sha256(repr(tuple(found)).encode()).hexdigest()[:16]


HEADING = "## Reflection-3: Task Incomplete"
FEEDBACK_CHARS = 8_000  # of what the judge says; the agent pays for each of them, round after round
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")  # a terminal would obey them
UNJUDGED = "Stopped; no model judged it"


class Decision(Struct, frozen=True):
    """The commit: the verdict, the orders that follow it, and the session after it."""

    session: Session
    verdict: Verdict
    orders: tuple[StoredOrder, ...] = ()


class Round(Struct, frozen=True):
    """One judged round: the session as it is now, the case it was judged on, who judged, and when."""

    session: Session
    case: Case
    limits: Limits
    at: int
    by: JudgedBy
    proof: Proof | None = None


def skip(s: Session, turn: str, why: Skip, at: int, limits: Limits) -> Decision | None:
    """A guard's no as a decision; None when nothing is to be written."""
    if why.final is None:
        return None
    verdict = Verdict(s.id, s.task, turn, why.final, at, reason=f"guard:{why.guard}", attempt=s.attempts)
    tell = why.tell and limits.toasts
    orders = (ShowToast(s.id, why.tell, "warning"),) if tell else ()
    return Decision(_stopped(s, turn, why.final, why), verdict, orders)


def _stopped(s: Session, turn: str, final: FinalState, why: Skip) -> Session:
    """The session when a guard said no; what is told once counts as told."""
    told = s.prompts_told or why.guard == "prompt_limit"
    return replace(settled(s, turn, final, why.guard), prompts_told=told)


def decide(r: Round, opinion: Opinion) -> Decision:
    """The decision on one judged turn (design/judge.md)."""
    decision, told = _decide(r, opinion), _rotate(r)
    if not told or told[0] not in decision.orders:
        return decision
    return replace(decision, session=replace(decision.session, rotate=told[0].message))


def _decide(r: Round, opinion: Opinion) -> Decision:
    by = replace(r.by, provider=opinion.provider or r.by.provider, model=opinion.model, cost=opinion.cost)
    r = replace(r, by=by, proof=opinion.proof)
    found = opinion.judgement
    if found is None:
        return _no_proof(r, opinion.why) if opinion.no_proof else _unscored(r, opinion.why)
    cited = tuple(m for m in found.missing if is_cited(m, r.case))
    if found.complete and found.severity is not Severity.BLOCKER:
        return _complete(r, replace(found, missing=cited))
    if found.missing and not cited:
        return _unscored(r, "no missing item cites a row or the request")
    found = replace(found, complete=False, missing=cited)
    nothing_missing = found.severity is Severity.NONE and not found.missing
    if nothing_missing or (found.requires_human_action and not found.next_actions):
        return _awaiting(r, found)
    if not (found.missing or found.feedback or found.next_actions):
        return _unscored(r, "the judge does not say what is missing")
    return _incomplete(r, found)


def feedback_text(found: Judgement, case: Case, attempt: int, limits: Limits) -> str:
    """The text for the agent, at most ``FEEDBACK_CHARS`` of it the judge's. Published consumers search for
    the first line.
    """
    rows = {row.id: row for row in case.evidence.rows}
    lines = [f"{HEADING} ({found.severity})", ""]
    if found.feedback:
        lines += [found.feedback, ""]
    unsaid = [m for m in found.missing if m.text not in found.feedback]
    if unsaid:
        lines.append("Still open:")
        for i, item in enumerate(unsaid, 1):
            row = next((rows[name] for name in cited_rows(item, case)), None)
            known = row is None or row.text in item.text or item.text in row.text
            lines.append(
                f"{i}. {item.text}"
                + ("" if known or row is None else f" ({row.id}: {row.text[:ITEM_CHARS]})")
            )
        lines.append("")
    actions = [action for action in found.next_actions if action not in found.feedback]
    if actions:
        lines += ["Do next:", *(f"- {action}" for action in actions), ""]
    body = _CONTROL.sub("", "\n".join(lines))
    if len(body) > FEEDBACK_CHARS:
        body = f"{body[:FEEDBACK_CHARS]}\n({len(body) - FEEDBACK_CHARS} more characters are left out)\n"
    return body + (
        "\nGo on with the task. If this is wrong, or only the person can decide, "
        "say so in one sentence and stop. "
        f"(reflectd, round {attempt} of at most {limits.max_attempts})"
    )


def _verdict(r: Round, state: FinalState, found: Judgement | None) -> Verdict:
    s, case = r.session, r.case
    usd, tokens = case.transcript.used if case.transcript is not None else (None, 0)
    verdict = Verdict(
        s.id,
        case.task,
        case.turn,
        state,
        r.at,
        judge=r.by,
        attempt=s.attempts,
        reason="judged",
        work_usd=usd,
        work_tokens=tokens,
        proof=r.proof,
    )
    if found is None:
        return verdict
    return replace(
        verdict,
        severity=found.severity,
        feedback=found.feedback,
        missing=found.missing,
        next_actions=found.next_actions,
        requires_human_action=found.requires_human_action,
    )


def _complete(r: Round, found: Judgement) -> Decision:
    """Never prompts (I2); the toast names what is left."""
    left = "; ".join(m.text for m in found.missing)
    if not left and found.severity is not Severity.NONE:
        left = found.feedback
    proved = f", {r.proof.text}" if r.proof is not None and r.proof.state == "passed" else ""
    silent = r.proof is None or proved or r.proof.state == "not_run"
    unproved = f"; {r.proof.text}" if r.proof is not None and not silent else ""
    note = f"Task complete{proved}{f': {left}' if left else ''}{unproved}"
    after = settled(r.session, r.case.turn, "complete", "judged")
    return Decision(after, _verdict(r, "complete", found), _toast(r, note[:ITEM_CHARS], "success"))


def _awaiting(r: Round, found: Judgement) -> Decision:
    after = settled(replace(r.session, unscored=0), r.case.turn, "awaiting_user", "judged")
    return Decision(
        after, _verdict(r, "awaiting_user", found), _rotate(r) or _toast(r, "Awaiting user input", "info")
    )


def _unscored(r: Round, why: str) -> Decision:
    """Open and quiet; three in a row stop the task (guard 5)."""
    s, turn = replace(r.session, unscored=r.session.unscored + 1), r.case.turn
    verdict = replace(_verdict(r, "unscored", None), reason=f"unscored: {why}")
    if s.unscored < r.limits.max_unscored:
        return Decision(settled(s, turn, "unscored", why), verdict)
    tell = f"Stopped judging this task: {s.unscored} rounds could not be scored"
    verdict = replace(verdict, state="stopped", reason=f"guard:unscored_rounds ({why})")
    return Decision(settled(s, turn, "stopped", "unscored_rounds"), verdict, _toast(r, tell, "warning"))


def _no_proof(r: Round, why: str) -> Decision:
    """No model judged, and the calls prove nothing: quiet, and no round that could not be scored."""
    verdict = replace(_verdict(r, "unscored", None), reason=f"{NO_PROOF}: {why}")
    return Decision(
        settled(r.session, r.case.turn, "unscored", NO_PROOF),
        verdict,
        _rotate(r) or _toast(r, UNJUDGED, "info"),
    )


def _incomplete(r: Round, found: Judgement) -> Decision:
    s, case, limits = replace(r.session, unscored=0), r.case, r.limits
    stands = progress(case, found.missing)
    items = normalise_items(tuple(m.text for m in found.missing) or (found.feedback,))
    if limits.observe:
        verdict = replace(_verdict(r, "incomplete", found), reason="observe: nothing sent")
        return Decision(settled(s, case.turn, "incomplete", "observe"), verdict)
    rounds = rounds_without_progress(s, progress=stands, items=items)
    no = may_prompt(s, rounds, r.at, limits)
    if no is not None:
        verdict = replace(_verdict(r, "stopped", found), reason=f"guard:{no.guard}")
        after = _stopped(s, case.turn, "stopped", no)
        return Decision(after, verdict, _toast(r, no.tell, "warning") if no.tell else ())
    after = replace(
        settled(s, case.turn, "incomplete", "judged"),
        attempts=s.attempts + 1,
        stalled=rounds.stalled,
        repeated=rounds.repeated,
        unchanged=rounds.unchanged,
        progress=stands,
        open_items=items,
    )
    text = feedback_text(found, case, after.attempts, limits)
    order = SendFeedback(s.id, case.task, case.turn, text, agent=case.agent, model=case.model)
    verdict = replace(_verdict(r, "incomplete", found), attempt=after.attempts, will_prompt=True)
    return Decision(after, verdict, (order, *_rotate(r)))


def _rotate(r: Round) -> tuple[ShowToast, ...]:
    """The person's part in a secret that was pushed; told once."""
    pushed = next((row for row in r.case.evidence.of("leak") if row.detail == "pushed"), None)
    told = f"Pushed: {pushed.command}. Rotate the secrets in it"[:ITEM_CHARS] if pushed is not None else ""
    return _toast(r, told, "error") if told and _CONTROL.sub("", told) != r.session.rotate else ()


def _toast(r: Round, message: str, variant: Variant) -> tuple[ShowToast, ...]:
    return (ShowToast(r.session.id, _CONTROL.sub("", message), variant),) if r.limits.toasts else ()

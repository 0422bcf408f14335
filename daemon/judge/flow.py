"""The judge as a flow: ``case -> Generator[Prompt, Reply, Opinion]`` (design/judge.md).

One call in most cases, none where the outcome is certain. Once more where the reply broke the form, or called
a turn complete against a failed check. A second look before feedback that no row proves, where the judge is a
small or a local model. Failures of the provider are thrown in by the driver and end the flow unscored, never
as a verdict (I18). At most four calls.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct
from msgspec.structs import replace

from ..core.evidence import ending
from ..core.llm import Prompt, Reply
from ..core.proof import Proof
from ..core.question import Answer, BadForm, ask, cost_of
from ..core.verdict import OVER_LIMIT, Judgement, Missing, Severity
from .citations import cited_rows, is_cited, is_excuse, named_rows
from .prompts import MAX_TEXT, first, judgement, second

if TYPE_CHECKING:
    from ..core.evidence import Row, RowKind
    from ..core.question import Question
    from .case import Case
    from .prompts import Said

RULES: Final = "offline"
PROOF: Final[frozenset[RowKind]] = frozenset({"check", "todo", "tool_error", "leak"})
SecondLook = Callable[[str, str], bool]
"""Says whether this provider and model gets a second look before feedback that no row proves."""


def always(provider: str, model: str) -> bool:
    """A second look for every judge."""
    del provider, model
    return True


class Opinion(Struct, frozen=True):
    """How the flow ended. ``judgement`` is None when the turn is unscored; ``why`` says why. ``no_proof``: no
    model was asked, and the calls prove neither that it is done nor that it is not. ``proof``: a run of the
    project's check that it rests on.

    ``prompts`` and ``replies`` keep what was asked and answered, for the case file; ``bad`` what could not be
    read.
    """

    judgement: Judgement | None
    why: str = ""
    provider: str = ""
    model: str = ""
    cost: float | None = None
    prompts: tuple[Prompt, ...] = ()
    replies: tuple[Reply, ...] = ()
    bad: tuple[BadForm, ...] = ()
    no_proof: bool = False
    proof: Proof | None = None


def judge(case: Case, *, second_look: SecondLook = always) -> Generator[Prompt, Reply, Opinion]:
    """Judge one turn. Yields prompts, returns the opinion."""
    if (sure := certain(case)) is not None:
        return replace(Opinion(sure), why="a question was answered", provider="rules", cost=0.0)
    question, answers = first(case), list[Answer[Any]]()
    found = yield from _asked(question, case, answers)
    if found is not None and found.complete and (rows := contradicting(case, found)):
        found = yield from _asked(replace(question, again=_against(rows)), case, answers)
        if found is not None and found.complete and contradicting(case, found):
            return _opinion(answers, None, f"the judge calls it complete against {rows[0].id}")
    by = answers[-1]
    if found is None:
        return _opinion(answers, None, by.why)
    if by.provider == RULES:  # they say only what a row proves
        return _opinion(answers, found)
    if not (_needs_second_look(case, found) and second_look(by.provider, by.model)):
        return _opinion(answers, found)
    look = yield from ask(second(case, found), case.templates)
    answers.append(look)
    if look.reply is None:
        return _opinion(answers, None, f"the second look could not be read: {look.why}")
    if not look.reply.defended:
        return _opinion(answers, found)
    return _opinion(answers, *_defended(case, found, look.reply.reasons.strip()[:MAX_TEXT]))


def _asked(
    question: Question[Said], case: Case, answers: list[Answer[Any]]
) -> Generator[Prompt, Reply, Judgement | None]:
    answers.append(answer := (yield from ask(question, case.templates)))
    return judgement(answer.reply, case) if answer.reply is not None else None


def _opinion(answers: Sequence[Answer[Any]], judgement: Judgement | None, why: str = "") -> Opinion:
    """How it ended: the first reply's provider and model, the sum of all costs where all are known."""
    replies = tuple(r for a in answers for r in a.replies)
    limit = replies[-1].limit if replies else None
    if judgement is None and limit is not None:
        why = f"{OVER_LIMIT}: {limit.tell or limit.reason}"
    return Opinion(
        judgement=judgement,
        why=why,
        provider=replies[0].provider if replies else "",
        model=replies[0].model if replies else "",
        cost=cost_of(replies),
        prompts=tuple(p for a in answers for p in a.prompts),
        replies=replies,
        bad=tuple(b for a in answers for b in a.bad),
        no_proof=judgement is None and bool(replies) and replies[-1].provider == RULES,
    )


def certain(case: Case) -> Judgement | None:
    """The outcome where no call is needed: the person's one message is a question, no tool was called, and
    there is an answer. A turn without tools after anything else is judged.
    """
    if case.evidence.tool_calls or case.evidence.ending != "statement" or len(case.requests) != 1:
        return None
    return Judgement(complete=True) if ending(case.requests[0]) == "question" else None


def contradicting(case: Case, found: Judgement | None = None) -> tuple[Row, ...]:
    """Failed checks without a later write that nothing answered, and secrets in a commit: with them a turn
    cannot be complete, unless ``found`` cites what excuses them.
    """
    failed = (
        r for r in case.evidence.of("check") if r.outcome == "failed" and r.position != "before_last_write"
    )
    rows = (r for r in (*failed, *case.evidence.of("leak")) if r.open)
    excuses = found.excused if found is not None else ()
    return tuple(
        r for r in rows if not any(r.id in named_rows(m, case) and is_excuse(m, case, r) for m in excuses)
    )


def backed(case: Case, found: Judgement) -> tuple[Missing, ...]:
    """The missing items that a row proves: a failed check, an open todo, an unanswered tool error. Other open
    rows read the agent's words, which a model may weigh once more.
    """
    proven = {r.id for r in case.evidence.open if r.kind in PROOF}
    return tuple(m for m in found.missing if proven & set(cited_rows(m, case)))


def _against(rows: tuple[Row, ...]) -> str:
    """Why the judge is asked again that called it complete against these rows."""
    said = "; ".join(f"{r.id}: {r.text[:300]}" for r in rows)
    what = "a commit holds secrets" if rows[0].kind == "leak" else "a check failed and no later run passed"
    return (
        f"You called this complete, but {what}: {said}. If the person wanted or excluded that, or it is "
        "older than the work, name the row in `excused` and quote the person's words word for word, or "
        "cite the call that failed before the first change."
    )


def _needs_second_look(case: Case, found: Judgement) -> bool:
    """Only what would be sent as feedback and no row proves."""
    if found.complete and found.severity is not Severity.BLOCKER:
        return False
    cited = tuple(m for m in found.missing if is_cited(m, case))
    if found.missing and (not cited or cited == backed(case, found)):
        return False
    if found.requires_human_action and not found.next_actions:
        return False
    return found.severity is not Severity.NONE or bool(found.missing)


def _defended(case: Case, found: Judgement, reasons: str) -> tuple[Judgement | None, str]:
    """The rest of a judgement, and the reason, when the second look defended the stop: only proven items are
    sent.
    """
    why = "the second look defended the stop"
    if proven := backed(case, found):
        return replace(
            found, missing=proven, next_actions=(), feedback=""
        ), "the second look defended the rest"
    if found.severity is Severity.BLOCKER:  # a danger is never complete (I20)
        return None, f"two looks disagree about a danger: {reasons[:300]}"
    if rows := contradicting(case):
        return None, f"two looks disagree, and {rows[0].id} failed"
    if found.requires_human_action:  # defended because it is the person's turn, which is not complete
        return replace(found, severity=Severity.NONE, missing=(), next_actions=()), why
    return replace(found, complete=True, severity=Severity.LOW, next_actions=(), feedback=reasons), why

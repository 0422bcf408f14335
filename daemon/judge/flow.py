"""The judge as a flow: ``case -> Generator[Prompt, Reply, Opinion]`` (design/judge.md).

One call in most cases, none where the outcome is certain. Once more where the reply broke the form, or called
a turn complete against a failed check. A second look before feedback that no row proves, where the judge is a
small or a local model. Failures of the provider are thrown in by the driver and end the flow unscored, never
as a verdict (I18). At most four calls.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from ..core.errors import BadReply, Unavailable
from ..core.evidence import ending
from ..core.llm import Prompt, Reply
from ..core.question import BadForm
from ..core.reply import Talk
from ..core.verdict import Defence, Judgement, Missing, Severity
from . import prompts
from .citations import cited_rows, is_cited, is_excuse, named_rows, without_destruction
from .parse import parse, parse_defence

if TYPE_CHECKING:
    from ..core.evidence import Row, RowKind
    from .case import Case

Asking = Generator[Prompt, Reply, "Judgement | None"]
RULES: Final = "offline"
PROOF: Final[frozenset[RowKind]] = frozenset({"check", "todo", "tool_error", "leak"})
SecondLook = Callable[[str, str], bool]
"""Whether the answer of this provider and model is looked at once more before feedback that no row proves."""


def always(provider: str, model: str) -> bool:
    """A second look for every judge."""
    del provider, model
    return True


@dataclass(frozen=True, slots=True)
class Opinion:
    """How the flow ended. ``judgement`` is None when the turn is unscored; ``why`` says why. ``no_proof``: no
    model was asked, and the calls prove neither that it is done nor that it is not.

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


def _opinion(talk: Talk, judgement: Judgement | None, why: str = "") -> Opinion:
    """How it ended: the first reply's provider and model, the sum of all costs where all are known."""
    provider, model = talk.by
    return Opinion(
        judgement=judgement,
        why=why or (talk.why if judgement is None else ""),
        provider=provider,
        model=model,
        cost=talk.cost,
        prompts=tuple(talk.prompts),
        replies=tuple(talk.replies),
        bad=tuple(talk.bad),
        no_proof=judgement is None and bool(talk.replies) and talk.replies[-1].provider == RULES,
    )


def judge(case: Case, *, second_look: SecondLook = always) -> Generator[Prompt, Reply, Opinion]:
    """Judge one turn. Yields prompts, returns the opinion."""
    if (sure := certain(case)) is not None:
        return replace(Opinion(sure), why="a question was answered", provider="rules", cost=0.0)
    talk = Talk()
    try:
        found = yield from _judgement(case, talk, prompts.first(case))
        if found is not None and found.complete and (rows := contradicting(case, found)):
            found = yield from _reconsider(case, talk, rows)
        if found is None:
            return _opinion(talk, None)
        by = talk.replies[-1]  # the rules say only what a row proves
        if (
            by.provider == RULES
            or not _needs_second_look(case, found)
            or not second_look(by.provider, by.model)
        ):
            return _opinion(talk, found)
        return (yield from _second_look(case, talk, found))
    except Unavailable as e:
        return _opinion(talk, None, f"no judge answered: {e}")


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


def _judgement(case: Case, talk: Talk, prompt: Prompt, tries: int = 2) -> Asking:
    """One readable judgement: asked once more when the form was broken (a rule's "no" stands)."""
    for _ in range(tries):
        reply = yield from talk.ask(prompt)
        if reply is not None:
            try:
                return without_destruction(parse(reply, case.nonce), case)
            except BadReply as e:
                if reply.data is not None and "unscored" in reply.data:
                    talk.why = str(reply.data["unscored"])[:300]
                    return None
                talk.broke(reply, prompt, e)
        prompt = prompts.again(case, f"The reply could not be used: {talk.why[:300]}.")
    return None


def _reconsider(case: Case, talk: Talk, rows: tuple[Row, ...]) -> Asking:
    """Called complete against a failed check: once more, with the decisive row. Twice is unscored."""
    said = "; ".join(f"{r.id}: {r.text[:300]}" for r in rows)
    what = "a commit holds secrets" if rows[0].kind == "leak" else "a check failed and no later run passed"
    why = (
        f"You called this complete, but {what}: {said}. If the person wanted or excluded that, or it is "
        "older than the work, name the row in `excused` and quote the person's words word for word, or "
        "cite the call that failed before the first change."
    )
    found = yield from _judgement(case, talk, prompts.again(case, why), tries=1)
    if found is not None and found.complete and contradicting(case, found):
        talk.why = f"the judge calls it complete against {rows[0].id}"
        return None
    return found


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


def _second_look(case: Case, talk: Talk, found: Judgement) -> Generator[Prompt, Reply, Opinion]:
    """Feedback goes out only when the stop cannot be defended. No answer to that: nothing is sent."""
    prompt = prompts.second(case, found)
    reply = yield from talk.ask(prompt)
    defence: Defence | None = None
    if reply is not None:
        try:
            defence = parse_defence(reply, case.nonce)
        except BadReply as e:
            talk.broke(reply, prompt, e)
    if defence is None:
        return _opinion(talk, None, f"the second look could not be read: {talk.why}")
    if not defence.defended:
        return _opinion(talk, found)
    why = "the second look defended the stop"
    if proven := backed(case, found):  # only against the rest of it
        kept = replace(found, missing=proven, next_actions=(), feedback="")
        return _opinion(talk, kept, "the second look defended the rest")
    if found.severity is Severity.BLOCKER:  # a danger is never complete (I20)
        return _opinion(talk, None, f"two looks disagree about a danger: {defence.why[:300]}")
    if rows := contradicting(case):
        return _opinion(talk, None, f"two looks disagree, and {rows[0].id} failed")
    if found.requires_human_action:  # defended because it is the person's turn, which is not complete
        waits = replace(found, severity=Severity.NONE, missing=(), next_actions=())
        return _opinion(talk, waits, why)
    kept = replace(found, complete=True, severity=Severity.LOW, next_actions=(), feedback=defence.why)
    return _opinion(talk, kept, why)

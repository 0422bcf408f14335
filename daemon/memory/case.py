"""What a reflexion may look at, frozen with the verdict (AC-2.6.1).

``Failure`` is a judged turn as it waits for its task to end; ``Case`` is one question about it. What is given
here is redacted already: the judge's case is, and ``engine.calls`` redacts every prompt.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ..core.cuts import head_and_tail, tokens
from ..core.episodes import Trigger
from ..core.transcript import Model

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from ..core.evidence import Evidence
    from ..core.verdict import Verdict

QUERY_CHARS: Final = 4_000
ANSWER_CHARS: Final = 4_000
LINE_CHARS: Final = 400
CONTEXT_TOKENS: Final = 3_000
MISSING_SHOWN: Final = 5
DECISIVE: Final = 1  # lines of the log of a higher rank are routine
FILES_KEPT: Final = 20
TRIGGERS: Final = 4
NO_CONTEXT: Final = "(no context was retrieved)"
NO_ANSWER: Final = "(the agent said nothing)"


@dataclass(frozen=True, slots=True)
class Settings:
    """How models are asked: ``model`` is preferred where the server has it, else its small model of today."""

    model: str = "claude-3-5-haiku-20241022"
    temperature: float = 0.7
    max_tokens: int = 1_000


EVALUATION: Final = Settings(temperature=0.0)


@dataclass(frozen=True, slots=True)
class Templates:
    """The prompt texts in force; ``files.prompts`` knows which ``{names}`` each must hold."""

    reflexion: str
    rules: str = ""

    @classmethod
    def of(cls, texts: Mapping[str, str]) -> Templates:
        """The memory's prompts among all of them."""
        return cls(texts["reflexion"], texts["reflexion_rules"])


@dataclass(frozen=True, slots=True)
class Failure:
    """A judged turn that went badly. ``query``: the task in the person's words. ``context``: what the
    activity log holds of it that decides, a line each. ``answer``: the agent's final message. ``reasoning``:
    the verdict in words. ``proof``: the row that proves it, empty when only a model's opinion does.
    ``cites`` are found when the lesson is written.
    """

    session: str
    task: str
    turn: str
    at: int
    directory: str
    host: str
    reward: float
    query: str
    context: tuple[str, ...]
    answer: str
    reasoning: str
    proof: str = ""
    files: tuple[str, ...] = ()
    triggers: tuple[Trigger, ...] = ()
    model: Model | None = None


@dataclass(frozen=True, slots=True)
class Case:
    """One question: ``generate_reflection`` with its four inputs, or ``evaluate_answer`` with three."""

    query: str
    context: tuple[str, ...]
    answer: str
    template: str
    reward: float = 0.0
    reasoning: str = ""
    rules: str = ""
    nonce: str = ""
    session: str = ""
    own: Model | None = None
    settings: Settings = Settings()


def failure(
    verdict: Verdict,
    *,
    requests: Sequence[str],
    final: str,
    evidence: Evidence,
    directory: str,
    host: str,
    rounds: Iterable[str] = (),
    model: Model | None = None,
) -> Failure | None:
    """What is kept of a judged turn; None when it has no reward or the person's words are not there."""
    query = head_and_tail("\n\n".join(t.strip() for t in requests if t.strip()), QUERY_CHARS)
    if verdict.reward is None or not query:
        return None
    return Failure(
        session=verdict.session,
        task=verdict.task,
        turn=verdict.turn,
        at=verdict.at,
        directory=directory,
        host=host,
        reward=verdict.reward,
        query=query,
        context=context_of(evidence),
        answer=head_and_tail(final.strip() or NO_ANSWER, ANSWER_CHARS),
        reasoning=reasoning_of(verdict, rounds),
        proof=proof_of(verdict, evidence),
        files=tuple(dict.fromkeys(f.path for f in evidence.files))[:FILES_KEPT],
        triggers=triggers_of(evidence),
        model=model,
    )


def asked(found: Failure, templates: Templates, settings: Settings, nonce: str) -> Case:
    """The question about a failure."""
    return Case(
        query=found.query,
        context=found.context,
        answer=found.answer,
        template=templates.reflexion,
        reward=found.reward,
        reasoning=found.reasoning,
        rules=templates.rules,
        nonce=nonce,
        session=found.session,
        own=found.model,
        settings=settings,
    )


def context_of(evidence: Evidence, most: int = CONTEXT_TOKENS) -> tuple[str, ...]:
    """The lines that decide, the most decisive kept first, in the order rows, log, files."""
    lines = [
        (
            0 if row.open or row.outcome == "failed" else 2,
            f"{row.id} [{f'{row.kind} {row.outcome}'.strip()}] {head_and_tail(row.text, LINE_CHARS)}",
        )
        for row in evidence.rows
        if row.kind != "requirement"
    ]
    for act in evidence.log:
        if act.rank <= DECISIVE:
            said = "; ".join(head_and_tail(s, LINE_CHARS) for s in act.said)
            text = head_and_tail(act.text, LINE_CHARS)
            lines.append((act.rank + 1, f"{act.id} {text}{f' → {said}' if said else ''}".strip()))
    lines += [(2, f"{f.path} ({f.how}, +{f.added} -{f.removed})") for f in evidence.files]
    kept, room = set[int](), most
    for i in sorted(range(len(lines)), key=lambda i: (lines[i][0], -i)):
        if (cost := tokens(lines[i][1])) <= room:
            kept.add(i)
            room -= cost
    return tuple(text for i, (_, text) in enumerate(lines) if i in kept)


def triggers_of(evidence: Evidence) -> tuple[Trigger, ...]:
    """The commands of the checks that prove the task unfinished: a later failure of the same confirms it."""
    commands = dict.fromkeys(row.command for row in evidence.open if row.command)
    return tuple(Trigger("command", command) for command in commands)[:TRIGGERS]


def reasoning_of(verdict: Verdict, rounds: Iterable[str] = ()) -> str:
    """Why the verdict is what it is, in words."""
    said = [f"{verdict.state}, severity {verdict.severity}"]
    said += [f"open: {m.text}" for m in verdict.missing[:MISSING_SHOWN]]
    said += [f"feedback before: {text}" for text in rounds]
    if verdict.feedback:
        said.append(verdict.feedback)
    return head_and_tail("; ".join(said), ANSWER_CHARS)


def proof_of(verdict: Verdict, evidence: Evidence) -> str:
    """The row that alone proves that the task was not done, one that the verdict cites before others."""
    rows = evidence.open
    named = {m.cites for m in verdict.missing}
    row = next((r for r in rows if r.id in named), rows[0] if rows else None)
    return f"{row.id} [{row.kind}] {head_and_tail(row.text, LINE_CHARS)}" if row is not None else ""

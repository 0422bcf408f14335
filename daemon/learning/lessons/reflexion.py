"""The question what went wrong in a task that ended badly, and what to do next time (AC-2.6.1, AC-2.6.2).

``Failure`` is a judged turn as it waits for its task to end, frozen with the verdict; ``Case`` is one
question about it; ``episode`` is what is stored of the answer. What is given here is redacted already: the
judge's case is, and ``engine.calls`` redacts every prompt. Nothing is asked twice; tries are the policy's.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Final

from ...core.cuts import head_and_tail, tokens
from ...core.errors import BadReply
from ...core.llm import Prompt
from ...core.reply import answered, wanted_object
from ...core.template import fill
from ...core.transcript import Model
from ...redact import redact
from ..texts import CHARS, refusal
from .episodes import Episode, Trigger

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Mapping, Sequence

    from ...core.evidence import Evidence
    from ...core.llm import Reply
    from ...core.reply import Answer
    from ...core.verdict import Verdict
    from ...judge.case import Case as Judged

# The question how good an answer is, from -1 to 1.

EVALUATION: Final = "haiku_eval"
TEMPERATURE: Final = 0.0
MAX_REASONING: Final = 4_000
_SCHEMA: Final[dict[str, object]] = {
    "type": "object",
    "properties": {
        "nonce": {"type": "string"},
        "reasoning": {"type": "string"},
        "reward": {"type": "number"},
    },
    "required": ["nonce", "reasoning", "reward"],
    "additionalProperties": False,
}


@dataclass(frozen=True, slots=True)
class Evaluation:
    """``reward``: -1 to 1."""

    reward: float
    reasoning: str


def evaluate(case: Case) -> Generator[Prompt, Reply, Answer[Evaluation]]:
    """How good is the answer, from -1 to 1?"""
    prompt = prompt_of(case, EVALUATION, {"nonce": case.nonce}, _SCHEMA)
    return answered(prompt, lambda reply: evaluation(reply, case.nonce))


def evaluation(reply: Reply, nonce: str) -> Evaluation:
    """The reward, brought into -1 to 1, and its reasons. Raises ``BadReply``."""
    found = wanted_object(reply, nonce, "reward", "reasoning", what="evaluation")
    reward, reasoning = found["reward"], found["reasoning"]
    if isinstance(reward, bool) or not isinstance(reward, int | float) or not math.isfinite(reward):
        raise BadReply("the reward is no number", raw=reply.text)
    if not isinstance(reasoning, str):
        raise BadReply("the reasoning is no text", raw=reply.text)
    return Evaluation(max(-1.0, min(1.0, float(reward))), reasoning.strip()[:MAX_REASONING])


REFLEXION: Final = "haiku_reflexion"
THRESHOLD: Final = 0.3
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
_SECTION: Final = re.compile(
    r"[*_#\s>-]{0,8}(problem|lesson)[*_]{0,2}\s{0,4}:[*_]{0,2}\s*(.*)", re.IGNORECASE
)
_SENTENCE: Final = re.compile(r"(?<=[.!?。！？])\s+")  # noqa: RUF001 - the ends of sentences in other scripts


@dataclass(frozen=True, slots=True)
class Settings:
    """How models are asked: ``model`` is preferred where the server has it, else its small model of today."""

    model: str = "claude-3-5-haiku-20241022"
    temperature: float = 0.7
    max_tokens: int = 1_000


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


@dataclass(frozen=True, slots=True)
class Reflection:
    """``problem``: what went wrong. ``lesson``: what to do next time. ``full``: the whole reply."""

    problem: str
    lesson: str
    full: str


def should_reflect(reward: float | None, threshold: float = THRESHOLD) -> bool:
    """Whether a reward is so low that a lesson is drawn."""
    return reward is not None and reward < threshold


def identity(session: str, task: str) -> str:
    """The id of the one episode of a task."""
    return sha256(f"{session}\0{task}".encode("utf-8", "surrogatepass")).hexdigest()[:32]


def shortened(text: str, most: int = CHARS) -> str:
    """The whole sentences at its beginning that fit; the text itself when the first one is too long."""
    if len(text) <= most:
        return text
    kept = ""
    for sentence in _SENTENCE.split(text):
        longer = f"{kept} {sentence}".strip()
        if len(longer) > most:
            break
        kept = longer
    return kept or text


def failure(verdict: Verdict, case: Judged, directory: str, host: str) -> Failure | None:
    """What is kept of a judged turn; None when it has no reward or the person's words are not there."""
    query = head_and_tail("\n\n".join(t.strip() for t in case.requests if t.strip()), QUERY_CHARS)
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
        context=context_of(case.evidence),
        answer=head_and_tail(case.final.strip() or NO_ANSWER, ANSWER_CHARS),
        reasoning=reasoning_of(verdict, case.rounds),
        proof=proof_of(verdict, case.evidence),
        files=tuple(dict.fromkeys(f.path for f in case.evidence.files))[:FILES_KEPT],
        triggers=triggers_of(case.evidence),
        model=case.model,
    )


def asked(found: Failure, texts: Mapping[str, str], settings: Settings, nonce: str) -> Case:
    """The question about a failure. ``texts``: the prompts in force, by name."""
    return Case(
        query=found.query,
        context=found.context,
        answer=found.answer,
        template=texts["reflexion"],
        reward=found.reward,
        reasoning=found.reasoning,
        rules=texts["reflexion_rules"],
        nonce=nonce,
        session=found.session,
        own=found.model,
        settings=settings,
    )


def prompt_of(
    case: Case, purpose: str, values: Mapping[str, str], schema: dict[str, object] | None = None
) -> Prompt:
    """The case in its template, with the values that belong to one question only."""
    context = "\n".join(f"  {i}. {text}" for i, text in enumerate(case.context, 1))
    said = {
        "query": case.query,
        "context": f"\n{context}" if context else NO_CONTEXT,
        "answer": case.answer or NO_ANSWER,
    }
    return Prompt(
        purpose=purpose,
        tier="fast",
        system=case.rules,
        text=fill(case.template, {**said, **values}),
        session=case.session,
        model=case.own,
        nonce=case.nonce,
        schema=schema,
        max_tokens=case.settings.max_tokens,
        temperature=case.settings.temperature,
        wanted=case.settings.model,
    )


def reflect(case: Case, *, whole: bool = False) -> Generator[Prompt, Reply, Answer[Reflection]]:
    """What went wrong, and what to do next time? (AC-2.6.1, AC-2.6.2) ``whole``: a reply without ``Lesson:``
    is a lesson as a whole; else it broke the form.
    """
    values = {"reward_score": f"{case.reward:.2f}", "evaluation_reasoning": case.reasoning}

    def read(reply: Reply) -> Reflection:
        found = (or_whole if whole else reflection)(reply.text)
        if found is None or not found.lesson:
            raise BadReply("the reply has no lesson", raw=reply.text)
        return found

    return answered(prompt_of(case, REFLEXION, values), read)


def reflection(text: str) -> Reflection | None:
    """The two sections of a reply; each goes to the next one's name, its lines joined by spaces. None for a
    reply without ``Lesson:``: whatever else a model said is no lesson.
    """
    full = text.strip()
    parts: dict[str, list[str]] = {}
    current = ""
    for raw in full.splitlines():
        line = raw.strip()
        match = _SECTION.fullmatch(line)
        if match is not None:
            current = match[1].lower()
            parts[current] = [match[2].strip()]
        elif current and line:
            parts[current].append(line)
    problem, lesson = (" ".join(filter(None, parts.get(name, ()))) for name in ("problem", "lesson"))
    return Reflection(problem, lesson, full) if lesson else None


def or_whole(text: str) -> Reflection:
    """The same, and of a reply without ``Lesson:`` the whole reply as lesson: for callers of the library, who
    look at it themselves.
    """
    return reflection(text) or Reflection("", text.strip(), text.strip())


def episode(
    found: Failure, said: Reflection, *, project: str, author: str = "", cites: Sequence[str] = ()
) -> Episode | str:
    """The episode; why it may not be stored, when its lesson must not be put in front of an agent."""
    lesson, problem = shortened(redact(said.lesson)), shortened(redact(said.problem))
    if why := refusal(lesson):
        return why
    return Episode(
        id=identity(found.session, found.task),
        project=project,
        query=found.query,
        reward=found.reward,
        problem="" if refusal(problem) else problem,
        lesson=lesson,
        reflection=redact(said.full),
        triggers=found.triggers,
        cites=tuple(cites),
        files=found.files,
        proof=found.proof,
        author=author,
        session=found.session,
        turn=found.turn,
        task=found.task,
        at=found.at,
    )


def confirms(new: Episode, old: Episode) -> bool:
    """Whether a new episode shows by a row that an older one of another session was right: both hung on the
    same, in the same project.
    """
    same = new.project == old.project and new.session != old.session
    return same and bool(new.proof) and not set(new.triggers).isdisjoint(old.triggers)


def context_of(evidence: Evidence, most: int = CONTEXT_TOKENS) -> tuple[str, ...]:
    """The lines that decide, the most decisive kept first, in the order rows, log, files."""
    lines = [
        (
            0 if row.open or row.outcome == "failed" else 2,
            f"{row.id} [{f'{row.kind} {row.outcome}'.strip()}] {head_and_tail(row.text, LINE_CHARS)}",
        )
        for row in evidence.rows
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

"""The memory's three questions to a model: which lessons belong to a task, how good an answer is, and what
went wrong in a task that ended badly (AC-2.6.1, AC-2.6.2).

``Failure`` is a judged turn as it waits for its task to end, frozen with the verdict. The judge's case is
redacted already, and ``engine.calls`` redacts every prompt. Nothing is asked twice; tries are the policy's.
"""

from __future__ import annotations

import json
import math
import re
from hashlib import sha256
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from ...core.cuts import fit, head_and_tail
from ...core.evidence import FAILED
from ...core.question import Question
from ...core.transcript import Model
from ...redact import redact
from ..playbook.questions import ended, head_of, ranked_rows
from .episodes import LONGEST, TOP_K, Episode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...core.evidence import Evidence, Row
    from ...core.verdict import Verdict
    from ...judge.case import Case

MARK: Final = "Lesson from Episode Memory"
SAID: Final = "Past experience from similar query suggests: {}"
SHOWN: Final = 40
TASK_CHARS: Final = 4_000
QUERY_CHARS: Final = 200
LESSON_CHARS: Final = 400

EVALUATION: Final = "haiku_eval"
REFLEXION: Final = "haiku_reflexion"
MODEL: Final = "claude-3-5-haiku-20241022"
"""Answers where the server has it, else its small model of today."""
TEMPERATURE: Final = 0.7
MAX_TOKENS: Final = 1_000
THRESHOLD: Final = 0.3
MAX_REASONING: Final = 4_000
ANSWER_CHARS: Final = 4_000
LINE_CHARS: Final = 400
RAW_CHARS: Final = 1_500  # as printed
CONTEXT_TOKENS: Final = 3_000
DECISIVE: Final = 1  # lines of the log of a higher rank are routine
FILES_KEPT: Final = 20
TRIGGERS: Final = 4
NO_CONTEXT: Final = "(no context was retrieved)"
NO_ANSWER: Final = "(the agent said nothing)"
_SECTION: Final = re.compile(
    r"[*_#\s>-]{0,8}(problem|lesson)[*_]{0,2}\s{0,4}:[*_]{0,2}\s*(.*)", re.IGNORECASE
)


# --- which lessons belong to a task -----------------------------------------------------------------


class Picked(Struct, kw_only=True):
    """Numbers of lessons, the most useful first."""

    nonce: str = ""
    lessons: list[int]


def which_lessons(task: str, lessons: Sequence[Episode], own: Model | None = None) -> Question[Picked]:
    """Which of at most ``SHOWN`` lessons belong to the task? ``own``: the session's model, next to which a
    small one is looked for. An answer that names a lesson that was not shown breaks the form.
    """
    rows = [
        {
            "n": n,
            **({"task": head_and_tail(redact(query), QUERY_CHARS)} if query else {}),
            "lesson": head_and_tail(redact(e.lesson), LESSON_CHARS),
        }
        for n, e in enumerate(lessons[:SHOWN], 1)
        for query in [" ".join(e.query[:LONGEST].split())]
    ]
    slots = {
        "lessons": "\n".join(json.dumps(row, ensure_ascii=False) for row in rows),
        "task": head_and_tail(redact(task), TASK_CHARS),
    }

    def check(picked: Picked) -> str:
        wrong = [n for n in picked.lessons if not 1 <= n <= len(rows)]
        return f"the list names lesson {wrong[0]}, which was not shown" if wrong else ""

    return Question("lessons", slots, Picked, max_tokens=200, model=own, check=check)


def named_by(picked: Picked | None, lessons: Sequence[Episode]) -> list[Episode]:
    """The lessons that the answer names, each once and at most three; none without an answer."""
    numbers = dict.fromkeys(picked.lessons if picked is not None else ())
    return [lessons[n - 1] for n in numbers][:TOP_K]


# --- how good an answer is --------------------------------------------------------------------------


class Evaluation(Struct, kw_only=True):
    """``reward``: -1 to 1, or a number beyond, which counts as that end."""

    nonce: str = ""
    reasoning: str
    reward: float


def how_good(query: str, context: Sequence[str], answer: str) -> Question[Evaluation]:
    """How good is the answer?"""

    def check(e: Evaluation) -> str:
        return "" if math.isfinite(e.reward) else "the reward is no number"

    slots = _case(query, context, answer)
    return Question(
        "evaluation", slots, Evaluation, purpose=EVALUATION, max_tokens=MAX_TOKENS, wanted=MODEL, check=check
    )


# --- what went wrong, and what to do next time ------------------------------------------------------


class Reflection(Struct, frozen=True):
    """``problem``: what went wrong. ``lesson``: what to do next time. ``full``: the whole reply."""

    problem: str
    lesson: str
    full: str


def what_went_wrong(
    query: str,
    context: Sequence[str],
    answer: str,
    reward: float,
    reasoning: str,
    *,
    own: Model | None = None,
    rules: str = "",
    whole: bool = False,
) -> Question[str]:
    """Asks for the problem and the lesson of a bad task. ``rules``: the template of the system prompt.
    ``whole``: a reply without ``Lesson:`` is a lesson as a whole; else it breaks the form.
    """
    slots = _case(query, context, answer) | {
        "reward_score": f"{reward:.2f}",
        "evaluation_reasoning": reasoning,
    }

    def check(reply: str) -> str:
        found = or_whole(reply) if whole else reflection(reply)
        return "" if found is not None and found.lesson else "the reply has no lesson"

    return Question(
        "reflexion",
        slots,
        str,
        purpose=REFLEXION,
        max_tokens=MAX_TOKENS,
        temperature=TEMPERATURE,
        wanted=MODEL,
        model=own,
        rules=rules,
        check=check,
    )


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


def should_reflect(reward: float | None, threshold: float = THRESHOLD) -> bool:
    """Says whether a reward is so low that a lesson is drawn."""
    return reward is not None and reward < threshold


def _case(query: str, context: Sequence[str], answer: str) -> dict[str, str]:
    lines = "\n".join(f"  {i}. {text}" for i, text in enumerate(context, 1))
    return {"query": query, "context": f"\n{lines}" if lines else NO_CONTEXT, "answer": answer or NO_ANSWER}


# --- the task that ended badly ----------------------------------------------------------------------


class Failure(Struct, frozen=True):
    """A judged turn that went badly. ``episode``: the part of it that is kept, still without a lesson.
    ``context``: the lines of the activity log that decide. ``answer``: the agent's final message.
    ``reasoning``: the verdict in words.
    """

    episode: Episode
    directory: str
    host: str
    context: tuple[str, ...]
    answer: str
    reasoning: str
    model: Model | None = None

    @property
    def question(self) -> Question[str]:
        """The question about it, with the rules for lessons before it."""
        e, rules = self.episode, "reflexion_rules"
        return what_went_wrong(
            e.query, self.context, self.answer, e.reward, self.reasoning, own=self.model, rules=rules
        )

    def with_lesson(self, said: Reflection, project: str, author: str) -> Episode:
        """The whole episode; ``episodes.checked`` says whether it may be kept."""
        more = {"problem": said.problem, "lesson": said.lesson, "reflection": said.full}
        return replace(self.episode, project=project, author=author, **more)


def identity(session: str, task: str) -> str:
    """The id of the one episode of a task."""
    return sha256(f"{session}\0{task}".encode("utf-8", "surrogatepass")).hexdigest()[:32]


def failure(verdict: Verdict, case: Case, directory: str, host: str) -> Failure | None:
    """The kept part of a judged turn; None when it has no reward or the person's words are not there."""
    query = head_and_tail("\n\n".join(t.strip() for t in case.requests if t.strip()), TASK_CHARS)
    if verdict.reward is None or not query:
        return None
    proofs = _proofs(verdict, case.evidence)
    commands = dict.fromkeys(row.command[:LINE_CHARS] for row in proofs if row.command)
    e = Episode(
        identity(verdict.session, verdict.task), "", query, verdict.reward, "", "", "",
        triggers=tuple(commands)[:TRIGGERS],
        files=tuple(dict.fromkeys(f.path for f in case.evidence.files))[:FILES_KEPT],
        proof=next((f"{r.id} [{r.kind}] {head_and_tail(r.text, LINE_CHARS)}" for r in proofs), ""),
        session=verdict.session, turn=verdict.turn, task=verdict.task, at=verdict.at,
    )  # fmt: skip
    answer = head_and_tail(case.final.strip() or NO_ANSWER, ANSWER_CHARS)
    why = head_and_tail(
        "; ".join(filter(None, [ended(verdict, case.rounds), verdict.feedback])), ANSWER_CHARS
    )
    return Failure(e, directory, host, context_of(case.evidence), answer, why, case.model)


def context_of(evidence: Evidence, most: int = CONTEXT_TOKENS) -> tuple[str, ...]:
    """The lines that decide, the most decisive kept first, in the order rows, log, files. Of the last failed
    command stands what it printed: no picked line may have said why.
    """
    lines = ranked_rows(evidence)
    last = next((act for act in reversed(evidence.log) if act.rank == FAILED), None)
    for act in evidence.log:
        if act.rank <= DECISIVE:
            said = "; ".join(head_and_tail(s, LINE_CHARS) for s in act.said)
            if act is last and act.raw:
                said = head_and_tail("\n".join(act.raw), RAW_CHARS)
            text = head_and_tail(act.text, LINE_CHARS)
            lines.append((act.rank + 1, f"{act.id} {text}{f' → {said}' if said else ''}".strip()))
    lines += [(2, head_of(f)) for f in evidence.files]
    kept = fit(lines, most)
    return tuple(text for i, (_, text) in enumerate(lines) if i in kept)


def _proofs(verdict: Verdict, evidence: Evidence) -> list[Row]:
    """The rows that prove that the task was not done, those that the verdict cites before others: open ones,
    and a check that failed after the last edit where the verdict cites it. No edit of code makes such a row
    open (``evidence.rows``), and the judge says that the work rests on it.
    """
    cited = {m.cites for m in verdict.missing}
    failed = (
        r
        for r in evidence.rows
        if r.id in cited and r.kind == "check" and r.outcome == "failed" and not (r.open or r.settled)
    )
    rows = [*evidence.open, *(r for r in failed if r.position == "after_last_write")]
    return sorted(rows, key=lambda row: row.id not in cited)

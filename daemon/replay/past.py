"""A session of the past as learning looks back on it: its transcript becomes a stretch (`playbook/stretch`).

Each task counts that the daemon would have judged; what a guard would have ended (Esc, an error of the host,
a plan) teaches nothing. What we told the session is taken out of it first. A task that another session held
before is left out: a fork copies the lines of the first one, and would prove what that one taught. Reads no
files; the case of a task is computed anew, and no model is asked.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import TYPE_CHECKING, Final

import msgspec

from ..core.cuts import tokens
from ..core.given import without
from ..core.guards import Limits, may_judge_messages
from ..core.session import Session
from ..core.verdict import Verdict
from ..judge.case import Templates, make_case
from ..learning.playbook.learn import Judged, Stretch, ended, stretch_of
from ..learning.playbook.reflector import REFLECTOR_TOKENS, Question, of_task
from ..redact import redact_head

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..core.transcript import Transcript
    from ..core.verdict import FinalState
    from ..judge.case import Case

TASKS: Final = 20  # of one session, the newest
TITLE: Final = 200  # characters
BYTES: Final = 1_000_000  # of what is sent of one session, as of one judged case
WAITING_TOKENS: Final = 1_100  # of the texts that wait for confirmation, which only the daemon knows
LEARNED_FROM: Final[frozenset[FinalState]] = frozenset({"complete", "incomplete", "awaiting_user"})
NOT_JUDGED: Final = "nobody judged it at the time"
_encode = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True)
class Known:
    """What the daemon knows of the session: the texts that it was given behind results of calls, by the
    call's id, and its verdicts by turn.
    """

    given: Mapping[str, Collection[str]] = field(default_factory=dict)
    verdicts: Mapping[str, Verdict] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Past:
    """``at``: when its last answer ended, epoch ms. ``title``: its first request. ``marks``: those of all its
    tasks. ``tasks``: the ids of those that teach; ``left_out``: how many do not. ``why``: why there is no
    ``stretch``.
    """

    session: str
    at: int
    title: str = ""
    marks: frozenset[str] = frozenset()
    tasks: frozenset[str] = frozenset()
    left_out: int = 0
    stretch: Stretch | None = None
    why: str = ""


def past_of(
    transcript: Transcript,
    host: str,
    known: Known,
    *,
    seen: Collection[str] = (),
    only: Collection[str] | None = None,
    project: str = "",
) -> Past:
    """The session as one stretch. ``seen``: marks of tasks that other sessions held; ``only``: the ids of
    those to be looked at, all where None. ``project``: the lines of AGENTS.md and CLAUDE.md that ask for
    checks.
    """
    tasks, turn = transcript.tasks, transcript.turn
    marks = [_marks(task) for task in tasks]
    found = Past(
        transcript.session,
        (turn.completed or turn.at) if turn is not None else 0,
        redact_head(tasks[0].messages[0].text, TITLE) if tasks else "",
        frozenset(mark for each in marks for mark in each),
    )
    if not tasks:
        return replace(found, why="no message that a person typed is in it")
    judged: list[tuple[str, Judged]] = []
    for task, (first, said) in list(zip(tasks, marks, strict=True))[-TASKS:]:
        if first in seen or said in seen or (only is not None and first not in only):
            continue
        one = _judged(task, host, known, project)
        if one is not None:
            judged.append((first, one))
    judged = _fitting(judged)
    stretch = stretch_of(one for _, one in judged)
    found = replace(found, tasks=frozenset(first for first, _ in judged), left_out=len(tasks) - len(judged))
    if stretch is None:
        return replace(found, why="no task of its own was brought to an end")
    if not stretch.teaches:
        return replace(found, why="too little happened")
    return replace(found, stretch=stretch)


def prompt_tokens(stretch: Stretch, template: str) -> int:
    """How many tokens the reflector's prompt has at most."""
    case = of_task(
        Question("0" * 16, template, stretch.session),
        requests=stretch.requests,
        final=stretch.final,
        evidence=stretch.evidence,
        ended=stretch.ended,
        given=(),
        cited=stretch.cited,
    )
    return min(REFLECTOR_TOKENS, tokens(template) + tokens(case.transcript) + WAITING_TOKENS)


def _marks(task: Transcript) -> tuple[str, str]:
    """A copy of the task has one of them too: its first message, or a digest of what was said and called."""
    turn = task.turn
    words = (*(m.text for m in task.requests), turn.text if turn is not None else "")
    said = "\x00".join((*words, *(c.id for c in task.calls)))
    return task.messages[0].id, sha256(said.encode("utf-8", "replace")).hexdigest()


def _judged(task: Transcript, host: str, known: Known, project: str) -> Judged | None:
    last, turn = task.task, task.turn
    if last is None or turn is None:
        return None
    verdict = known.verdicts.get(turn.id)
    if verdict is not None and verdict.state not in LEARNED_FROM:
        return None
    s = Session(id=task.session, task=last.id, turn=turn.id)
    if may_judge_messages(s, task, Limits()) is not None:
        return None
    case = make_case(
        without(task, known.given),
        at=turn.completed or turn.at,
        nonce="",
        templates=Templates("", ""),
        project=project,
    )
    return Judged(
        session=case.session,
        task=case.task,
        turn=case.turn,
        at=case.at,
        directory=task.directory,
        host=host,
        ended=ended(verdict, case.rounds) if verdict is not None else _unjudged(case),
        requests=case.requests,
        final=case.final,
        evidence=case.evidence,
        reward=verdict.reward if verdict is not None else None,
        cited=case.cited,
        model=case.model,
    )


def _unjudged(case: Case) -> str:
    open_rows = [f"open: {row.id} {row.text[:300]}" for row in case.evidence.open[:5]]
    return "; ".join((NOT_JUDGED, *open_rows))


def _fitting(judged: Sequence[tuple[str, Judged]]) -> list[tuple[str, Judged]]:
    """The newest that fit into one request to the daemon, oldest first."""
    kept, left = list[tuple[str, Judged]](), BYTES
    for mark, one in reversed(judged):
        left -= len(_encode(one))
        if left < 0:
            break
        kept.append((mark, one))
    return kept[::-1]

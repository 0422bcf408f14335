"""A stretch: what a session did from one look back to the next, or in all of its past. Pure.

A judged turn is a stretch of one turn (``of_case``), and waits as such in the store. Turns of one task hold
each other: a later case of a task shows all that the earlier one showed. So ``joined`` takes the last turn of
each task, and several tasks become one stretch.

A session of the past (``of_past``) is made of its transcript: each task counts that the daemon would have
judged; what a guard would have ended (Esc, an error of the host, a plan) teaches nothing. What we told the
session is taken out of it first. A task that another session held before is left out: a fork copies the lines
of the first one, and would prove what that one taught.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from hashlib import sha256
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from ...core.evidence import Act, Evidence, FileChange, Row
from ...core.given import without
from ...core.guards import Limits, may_judge_messages
from ...core.session import Session
from ...core.transcript import Model
from ...judge.case import make_case
from ...redact import redact_head

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from ...core.transcript import Transcript
    from ...core.verdict import FinalState, Verdict
    from ...judge.case import Case

LOW: Final = 0.3
CALLS: Final = 3
MISSING_SHOWN: Final = 5
TASKS: Final = 20  # of one past session, the newest
BYTES: Final = 1_000_000  # of them, of which again the newest count
TITLE: Final = 200  # characters
LEARNED_FROM: Final[frozenset[FinalState]] = frozenset({"complete", "incomplete", "awaiting_user"})
NOT_JUDGED: Final = "nobody judged it at the time"
_encode: Final = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True)
class Stretch:
    """Judged turns as one. ``task``: of the last turn. ``ended``: the verdicts in words. ``cited``: the names
    of points in all that the agent wrote. ``lowest``: the lowest reward, None where there is none. Ids of
    rows and lines of the log name their task where there are several: ``T2.E3``.
    """

    session: str
    directory: str
    task: str
    turns: tuple[str, ...]
    requests: tuple[str, ...]
    ended: str
    final: str
    evidence: Evidence
    cited: tuple[str, ...] = ()
    lowest: float | None = None
    model: Model | None = None

    @property
    def teaches(self) -> bool:
        """Whether it is worth a question: something was cited, it went badly, or some work was done."""
        low = self.lowest is not None and self.lowest < LOW
        return bool(self.cited) or low or self.evidence.tool_calls >= CALLS


def of_case(case: Case, directory: str, verdict: Verdict | None) -> Stretch:
    """One judged turn."""
    return Stretch(
        session=case.session,
        directory=directory,
        task=case.task,
        turns=(case.turn,),
        requests=case.requests,
        ended=_ended(case, verdict),
        final=case.final,
        evidence=case.evidence,
        cited=case.cited,
        lowest=verdict.reward if verdict is not None else None,
        model=case.model,
    )


def _ended(case: Case, verdict: Verdict | None) -> str:
    """How a turn ended, in words."""
    if verdict is None:
        open_rows = (f"open: {row.id} {row.text[:300]}" for row in case.evidence.open[:MISSING_SHOWN])
        return "; ".join((NOT_JUDGED, *open_rows))
    words = [f"{verdict.state}, severity {verdict.severity}"]
    words += [f"reward {verdict.reward:g}"] if verdict.reward is not None else []
    words += [f"open: {m.text}" for m in verdict.missing[:MISSING_SHOWN]]
    return "; ".join([*words, *(f"feedback before: {text}" for text in case.rounds)])


def joined(turns: Iterable[Stretch]) -> Stretch | None:
    """These turns of one session, oldest first, as one stretch; None when there is none."""
    every = list(turns)
    if not every:
        return None
    tasks = list({turn.task: turn for turn in every}.values())  # the last one of each task
    many = len(tasks) > 1
    return replace(
        every[-1],
        turns=tuple(name for turn in every for name in turn.turns),
        requests=tuple(text for turn in tasks for text in turn.requests),
        ended="\n".join(f"T{i}: {turn.ended}" if many else turn.ended for i, turn in enumerate(tasks, 1)),
        evidence=_together(turn.evidence for turn in tasks) if many else every[-1].evidence,
        cited=tuple(dict.fromkeys(name for turn in every for name in turn.cited)),
        lowest=min((turn.lowest for turn in every if turn.lowest is not None), default=None),
    )


def _together(parts: Iterable[Evidence]) -> Evidence:
    """The evidence of several tasks, each with ids of its own."""
    rows, log, files, calls, writes = list[Row](), list[Act](), list[FileChange](), 0, 0
    for i, e in enumerate(parts, 1):
        rows += [replace(r, id=f"T{i}.{r.id}") for r in e.rows]
        log += [replace(a, id=f"T{i}.{a.id}" if a.id else "") for a in e.log]
        files += e.files
        calls, writes = calls + e.tool_calls, writes + e.writes
    return Evidence(tuple(rows), tool_calls=calls, writes=writes, log=tuple(log), files=tuple(files))


# --- sessions of the past ----------------------------------------------------------------------------------


class Past(NamedTuple):
    """``at``: when its last answer ended, epoch ms. ``title``: its first request. ``marks``: those of all its
    tasks. ``why``: why there is no ``stretch``.
    """

    session: str
    at: int = 0
    title: str = ""
    marks: frozenset[str] = frozenset()
    stretch: Stretch | None = None
    why: str = ""


def of_past(
    transcript: Transcript,
    given: Mapping[str, Collection[str]],
    verdicts: Mapping[str, Verdict],
    seen: Collection[str] = (),
    project: str = "",
) -> Past:
    """The session as one stretch. ``given``: the texts that it was given behind results of calls, by the
    call's id. ``verdicts``: by turn. ``seen``: marks of tasks that other sessions held. ``project``: the
    lines of AGENTS.md and CLAUDE.md that ask for checks.
    """
    tasks, turn = transcript.tasks, transcript.turn
    if not tasks:
        return Past(transcript.session, why="no message that a person typed is in it")
    marks = [_marks(task) for task in tasks]
    past = Past(
        transcript.session,
        (turn.completed or turn.at) if turn is not None else 0,
        redact_head(tasks[0].messages[0].text, TITLE),
        frozenset(mark for each in marks for mark in each),
    )
    newest = list(zip(tasks, marks, strict=True))[-TASKS:]
    own = (task for task, mine in newest if not any(mark in seen for mark in mine))
    turns = [end for task in own if (end := _turn(task, given, verdicts, project)) is not None]
    while sum(len(_encode(turn)) for turn in turns) > BYTES:
        del turns[0]
    stretch = joined(turns)
    if stretch is None:
        return past._replace(why="no task of its own was brought to an end")
    return past._replace(stretch=stretch) if stretch.teaches else past._replace(why="too little happened")


def _marks(task: Transcript) -> tuple[str, str]:
    """A copy of the task has one of them too: its first message, or a digest of what was said and called."""
    turn = task.turn
    words = (*(m.text for m in task.requests), turn.text if turn is not None else "")
    content = "\x00".join((*words, *(c.id for c in task.calls)))
    return task.messages[0].id, sha256(content.encode("utf-8", "replace")).hexdigest()


def _turn(
    task: Transcript, given: Mapping[str, Collection[str]], verdicts: Mapping[str, Verdict], project: str
) -> Stretch | None:
    """The end of one task as the judge would have seen it; None for one that teaches nothing."""
    last, turn = task.task, task.turn
    if last is None or turn is None:
        return None
    verdict = verdicts.get(turn.id)
    session = Session(id=task.session, task=last.id, turn=turn.id)
    ended = verdict is not None and verdict.state not in LEARNED_FROM
    if ended or may_judge_messages(session, task, Limits()) is not None:
        return None
    at = turn.completed or turn.at
    case = make_case(without(task, given), at=at, nonce="", templates={}, project=project)
    return of_case(case, task.directory, verdict)

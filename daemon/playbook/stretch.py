"""A stretch: what a session did from one look back to the next, as the judged cases that wait for it.

Turns of one task hold each other: a later case of a task shows all that the earlier one showed. So the last
case of each task counts, and several tasks become one case.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from ..core.evidence import Act, Evidence, FileChange, Row
from ..core.transcript import Model

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..core.verdict import Verdict

LOW: Final = 0.3
CALLS: Final = 3
MISSING_SHOWN: Final = 5


@dataclass(frozen=True, slots=True)
class Judged:
    """One judged turn, as it waits. ``ended``: the verdict in words. ``cited``: the names of points in all
    that the agent wrote for the task. ``reward``: None where there is none.
    """

    session: str
    task: str
    turn: str
    at: int
    directory: str
    host: str
    ended: str
    requests: tuple[str, ...]
    final: str
    evidence: Evidence
    reward: float | None = None
    cited: tuple[str, ...] = ()
    model: Model | None = None


@dataclass(frozen=True, slots=True)
class Stretch:
    """Several judged turns as one. Ids of rows and lines of the log name their task where there are several:
    ``T2.E3``.
    """

    session: str
    directory: str
    turns: tuple[str, ...]
    requests: tuple[str, ...]
    ended: str
    final: str
    evidence: Evidence
    cited: tuple[str, ...]
    lowest: float | None
    model: Model | None

    @property
    def teaches(self) -> bool:
        """Whether it is worth a question: something was cited, it went badly, or some work was done."""
        low = self.lowest is not None and self.lowest < LOW
        return bool(self.cited) or low or self.evidence.tool_calls >= CALLS


def ended(verdict: Verdict, rounds: Iterable[str]) -> str:
    """How a turn ended, in words. ``rounds``: the feedback of earlier rounds, a line each."""
    reward = verdict.reward
    said = [f"{verdict.state}, severity {verdict.severity}"]
    said += [f"reward {reward:g}"] if reward is not None else []
    said += [f"open: {m.text}" for m in verdict.missing[:MISSING_SHOWN]]
    return "; ".join([*said, *(f"feedback before: {text}" for text in rounds)])


def stretch_of(cases: Iterable[Judged]) -> Stretch | None:
    """The stretch of these cases, oldest first; None when there is none."""
    found = list(cases)
    if not found:
        return None
    tasks = {c.task: c for c in found}  # the last one of each task
    many = len(tasks) > 1
    last = found[-1]
    rewards = [c.reward for c in found if c.reward is not None]
    return Stretch(
        session=last.session,
        directory=last.directory,
        turns=tuple(c.turn for c in found),
        requests=tuple(text for c in tasks.values() for text in c.requests),
        ended="\n".join(f"T{i}: {c.ended}" if many else c.ended for i, c in enumerate(tasks.values(), 1)),
        final=last.final,
        evidence=_joined(c.evidence for c in tasks.values()) if many else last.evidence,
        cited=tuple(dict.fromkeys(name for c in found for name in c.cited)),
        lowest=min(rewards, default=None),
        model=last.model,
    )


def _joined(parts: Iterable[Evidence]) -> Evidence:
    """The evidence of several tasks, each with ids of its own."""
    rows, log, files, calls, writes = list[Row](), list[Act](), list[FileChange](), 0, 0
    for i, e in enumerate(parts, 1):
        rows += [replace(r, id=f"T{i}.{r.id}") for r in e.rows]
        log += [replace(a, id=f"T{i}.{a.id}" if a.id else "") for a in e.log]
        files += e.files
        calls, writes = calls + e.tool_calls, writes + e.writes
    return Evidence(tuple(rows), tool_calls=calls, writes=writes, log=tuple(log), files=tuple(files))

"""Judge a saved case outside the daemon: the same flow, policy and decision, and nothing is sent."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from .. import log
from ..clock import SystemClock
from ..core.guards import Limits
from ..core.ports import drive
from ..core.session import Session
from ..core.verdict import JudgedBy
from ..engine.calls import Calls
from ..judge.case import Case
from ..judge.decide import Decision, Round, decide
from ..judge.flow import Opinion, SecondLook, always, judge
from ..store.ledger import Entry

if TYPE_CHECKING:
    from ..core.llm import Prompt, Reply
    from ..core.ports import Provider


@dataclass(frozen=True, slots=True)
class Replayed:
    """What judging a case gave, and the calls it took."""

    case: Case
    opinion: Opinion
    decision: Decision
    calls: tuple[Entry, ...]


async def replay(
    case: Case,
    *providers: Provider,
    timeout_s: float = 180.0,
    limits: Limits | None = None,
    second_look: SecondLook = always,
) -> Replayed:
    """Judge ``case`` with the first of ``providers`` that answers. A failure ends unscored."""
    clock, entries = SystemClock(), list[Entry]()
    calls = Calls(providers, clock, log.get("replay"), entries.append)
    limits = limits or Limits()

    async def ask(prompt: Prompt, left_s: float) -> Reply:
        return await calls.ask(prompt, left_s, limits)

    started = clock.monotonic()
    opinion = await drive(judge(case, second_look=second_look), ask, clock, timeout_s)
    if not opinion.provider:
        opinion = replace(opinion, provider=providers[0].name)
    ms = int((clock.monotonic() - started) * 1000)
    session = Session(id=case.session, task=case.task, turn=case.turn, phase="judging")
    decision = decide(Round(session, case, limits, case.at, JudgedBy(ms=ms)), opinion)
    return Replayed(case, opinion, decision, tuple(entries))

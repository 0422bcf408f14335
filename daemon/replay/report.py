"""Figures of a back-test: how many stops of each state and project, what it would cost a day, and what a
person's answers say of the feedbacks that would have been sent.

A result is one stop; ``Report`` counts results as they come and keeps none of them. Times are in the zone of
this machine. Pure but for that: reads no files.
"""

from __future__ import annotations

from collections import Counter
from datetime import date, datetime
from hashlib import sha256
from typing import TYPE_CHECKING, Final, Literal

from msgspec import Struct, field

from ..core.orders import SendFeedback
from ..core.verdict import FinalState
from ..engine.page import Share, wilson
from ..redact import redact_head

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from ..judge.case import Case
    from ..judge.decide import Decision
    from ..judge.flow import Opinion
    from .stops import Prepared

Answer = Literal["right", "complete", "awaiting_user", "unknown"]
Mode = Literal["act", "observe"]
SAMPLE: Final = 20  # feedbacks that a person looks at
FEWEST: Final = 10  # answers below which nothing is proposed but to observe
TRUSTED: Final = 70  # percent: the lower end of the interval from which acting is proposed
Group = Literal["complete", "sent", "awaiting", "unscored", "stopped"]
GROUPS: Final[tuple[Group, ...]] = ("complete", "sent", "awaiting", "unscored", "stopped")
REQUEST: Final = 600  # characters that are kept
FEEDBACK: Final = 4_000
SAID: Final = 200
FINAL: Final = 600
ROWS: Final = 12
OTHERS: Final = "(others)"
MOST_PROJECTS: Final = 1_000  # counted apart


class Result(Struct, frozen=True):
    """One stop, judged. ``at``: when its answer ended, epoch ms. ``feedback``: the whole text that would have
    been sent, empty when none would. Only with a feedback there are ``request``, ``final`` (how the answer
    ended), ``happened`` (the rows of evidence) and ``said`` (what the person typed next). ``asks``: a model
    would be asked about it, or was. ``tokens``: of the first prompt, about. ``calls``, ``input``, ``output``
    and ``cost`` (USD, None unknown): of the models that were asked.
    """

    host: str
    project: str
    session: str
    turn: str
    at: int
    state: FinalState
    severity: str = ""
    reason: str = ""
    request: str = ""
    final: str = ""
    happened: tuple[str, ...] = ()
    feedback: str = ""
    said: str = ""
    asks: bool = False
    tokens: int = 0
    calls: int = 0
    input: int = 0
    output: int = 0
    cost: float | None = 0.0

    @property
    def group(self) -> Group:
        match self.state:
            case "complete" | "unscored":
                return self.state
            case "incomplete":
                return "sent"
            case "awaiting_user":
                return "awaiting"
            case _:
                return "stopped"


def result_of(found: Prepared, host: str, decision: Decision, opinion: Opinion | None = None) -> Result:
    """The stop as it is kept: redacted, and short. ``opinion``: None where a guard decided."""
    transcript, case, verdict = found.stop.transcript, found.case, decision.verdict
    sent = next((o.text for o in decision.orders if isinstance(o, SendFeedback)), "")
    replies = opinion.replies if opinion is not None else ()
    asked = [r for r in replies if r.provider != "offline"]
    costs = [r.usage.cost for r in asked]
    known = [c for c in costs if c is not None]
    words = case if sent else None  # what nobody would be told is not kept
    return Result(
        host=host,
        project=transcript.directory,
        session=transcript.session,
        turn=verdict.turn,
        at=verdict.at,
        state=verdict.state,
        severity="" if str(verdict.severity) == "NONE" else str(verdict.severity),
        reason=verdict.reason[:300],
        request=redact_head(words.requests[-1], REQUEST) if words is not None and words.requests else "",
        final=words.final[-FINAL:] if words is not None else "",
        happened=_happened(words) if words is not None else (),
        feedback=sent[:FEEDBACK],
        said=redact_head(found.stop.said, SAID) if words is not None else "",
        asks=bool(opinion is not None and opinion.prompts),
        calls=len(asked),
        input=sum(r.usage.input for r in asked),
        output=sum(r.usage.output for r in asked),
        cost=sum(known) if len(known) == len(costs) else None,
    )


def _happened(case: Case) -> tuple[str, ...]:
    ordered = sorted(case.evidence.rows, key=lambda r: not r.open)
    return tuple(f"{'! ' if r.open else '  '}{r.text[:200]}" for r in ordered[:ROWS])


class Count(Struct):
    """Stops together: all of them, or one project's. ``cost`` is what is known of it; ``unpriced``: calls
    whose price nobody told.
    """

    stops: int = 0
    groups: Counter[Group] = field(default_factory=Counter)
    asks: int = 0
    calls: int = 0
    tokens: int = 0
    cost: float = 0.0
    unpriced: int = 0

    def add(self, r: Result) -> None:
        self.stops += 1
        self.groups[r.group] += 1
        self.asks += r.asks
        self.calls += r.calls
        self.tokens += r.input + r.output
        self.cost += r.cost or 0.0
        self.unpriced += r.cost is None


class Report(Struct):
    """All figures of one back-test. ``severities``: of what would have been sent. ``days``: those on which
    there was a stop.
    """

    judge: str
    total: Count = field(default_factory=Count)
    severities: Counter[str] = field(default_factory=Counter)
    projects: dict[str, Count] = field(default_factory=dict)
    hosts: Counter[str] = field(default_factory=Counter)
    first: int = 0
    last: int = 0
    _sessions: set[int] = field(default_factory=set)
    _days: set[date] = field(default_factory=set)

    def add(self, r: Result) -> None:
        self.total.add(r)
        self._sessions.add(hash((r.host, r.session)))
        self.hosts[r.host] += 1
        if r.group == "sent":
            self.severities[r.severity or "none"] += 1
        project = r.project if r.project in self.projects or len(self.projects) < MOST_PROJECTS else OTHERS
        self.projects.setdefault(project, Count()).add(r)
        if r.at > 0:
            day = datetime.fromtimestamp(r.at / 1000).date()  # noqa: DTZ006 - local days, as a person counts
            self._days.add(day)
            self.first, self.last = min(self.first or r.at, r.at), max(self.last, r.at)

    @property
    def sessions(self) -> int:
        return len(self._sessions)

    @property
    def days(self) -> int:
        return len(self._days)

    def by_stops(self) -> list[tuple[str, Count]]:
        return sorted(self.projects.items(), key=lambda item: (-item[1].stops, item[0]))

    def json(self) -> dict[str, object]:
        return {
            "judge": self.judge,
            "sessions": self.sessions,
            **_object(self.total),
            "severities": dict(sorted(self.severities.items())),
            "from": self.first,
            "to": self.last,
            "days": self.days,
            "hosts": dict(sorted(self.hosts.items())),
            "projects": [{"project": name, **_object(c)} for name, c in self.by_stops()],
        }


def _object(c: Count) -> dict[str, object]:
    usd = None if c.unpriced else round(c.cost, 6)
    groups: dict[str, int] = {g: c.groups[g] for g in GROUPS}
    return {"stops": c.stops, **groups, "asks": c.asks, "calls": c.calls, "tokens": c.tokens, "usd": usd}


class Precision(Struct, frozen=True):
    """The labels of feedbacks. ``sent``: the feedbacks that would have been sent in all. ``unknown``: looked
    at, with no answer.
    """

    sent: int
    share: Share
    unknown: int

    @property
    def proposes(self) -> Mode:
        sure = self.share.of >= FEWEST and round(100 * self.share.low) >= TRUSTED
        return "act" if sure else "observe"

    @property
    def sentence(self) -> str:
        said = f"of {self.sent:,} that would have been sent"
        if not self.share.of:
            return f"{said}, none was looked at with an answer"
        low, high = round(100 * self.share.low), round(100 * self.share.high)
        return f"{said}, {self.share.hits} of {self.share.of} looked at were right: {low}–{high} %"  # noqa: RUF001

    def json(self) -> dict[str, object]:
        share = self.share
        known = {"looked_at": share.of, "right": share.hits, "unknown": self.unknown, "sent": self.sent}
        if not share.of:
            return {**known, "precision": None, "low": None, "high": None, "proposes": self.proposes}
        figures = {"precision": share.value, "low": share.low, "high": share.high}
        return {**known, **figures, "proposes": self.proposes, "sentence": self.sentence}


def sample(marks: Iterable[str]) -> list[str]:
    """At most ``SAMPLE`` of the marks, drawn by their digests: as good as by chance, always the same."""
    return sorted(marks, key=lambda mark: sha256(mark.encode()).hexdigest())[:SAMPLE]


def precision(sent: Sequence[str], answers: Mapping[str, Answer]) -> Precision:
    """``sent``: the marks of all that would have been sent; ``answers``: by mark."""
    given = [answers[mark] for mark in sent if mark in answers]
    known = [a for a in given if a != "unknown"]
    return Precision(len(sent), wilson(sum(a == "right" for a in known), len(known)), len(given) - len(known))

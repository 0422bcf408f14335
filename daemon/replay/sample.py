"""Which of the would-be feedbacks a person looks at, and what their answers say about all of them. Pure.

The sample has of each severity as many as its share of all, and within one severity it takes one project
after the other. So the share of right ones in the sample stands for that of all, and the same feedbacks are
chosen each time.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Final, Literal

from ..engine.page import Share, wilson

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

Answer = Literal["right", "complete", "awaiting_user", "unknown"]
Mode = Literal["act", "observe"]
SIZE: Final = 20
FEWEST: Final = 10  # answers below which nothing is proposed but to observe
TRUSTED: Final = 70  # percent: the lower end of the interval from which acting is proposed


@dataclass(frozen=True, slots=True)
class Candidate:
    """A feedback that would have been sent."""

    mark: str
    severity: str
    project: str


@dataclass(frozen=True, slots=True)
class Precision:
    """What the answers show. ``sent``: how many would have been sent in all. ``unknown``: looked at, with
    no answer.
    """

    sent: int
    share: Share
    unknown: int

    @property
    def proposes(self) -> Mode:
        """``act`` where the interval allows it."""
        sure = self.share.of >= FEWEST and round(100 * self.share.low) >= TRUSTED
        return "act" if sure else "observe"

    @property
    def sentence(self) -> str:
        """In words."""
        said = f"of {self.sent:,} that would have been sent"
        if not self.share.of:
            return f"{said}, none was looked at with an answer"
        low, high = round(100 * self.share.low), round(100 * self.share.high)
        return f"{said}, {self.share.hits} of {self.share.of} looked at were right: {low}–{high} %"  # noqa: RUF001


def sample(candidates: Iterable[Candidate], size: int = SIZE) -> list[str]:
    """The marks of at most ``size`` of them, those of all severities mixed."""
    strata: defaultdict[str, list[Candidate]] = defaultdict(list)
    for each in candidates:
        strata[each.severity].append(each)
    total = sum(len(found) for found in strata.values())
    if total <= size:
        chosen = [c.mark for found in strata.values() for c in found]
    else:
        shares = _shares({name: len(found) for name, found in strata.items()}, size)
        chosen = [c.mark for name, found in strata.items() for c in _spread(found)[: shares[name]]]
    return sorted(chosen, key=_place)


def _shares(sizes: Mapping[str, int], size: int) -> dict[str, int]:
    """How many of each stratum: its share, rounded so that they are ``size`` together."""
    total = sum(sizes.values())
    exact = {name: size * n / total for name, n in sizes.items()}
    found = {name: int(share) for name, share in exact.items()}
    by_rest = sorted(exact, key=lambda name: (found[name] - exact[name], name))
    for name in by_rest[: size - sum(found.values())]:
        found[name] += 1
    return found


def _spread(candidates: Sequence[Candidate]) -> list[Candidate]:
    """One of each project, then a second one of each, and so on; which one, a digest says."""
    rounds: list[tuple[int, str, Candidate]] = []
    seen: defaultdict[str, int] = defaultdict(int)
    for c in sorted(candidates, key=lambda c: _place(c.mark)):
        rounds.append((seen[c.project], _place(c.mark), c))
        seen[c.project] += 1
    return [c for _, _, c in sorted(rounds, key=lambda r: r[:2])]


def _place(mark: str) -> str:
    return sha256(mark.encode()).hexdigest()


def precision(sent: Sequence[str], answers: Mapping[str, Answer]) -> Precision:
    """``sent``: the marks of all that would have been sent; ``answers``: by mark."""
    given = [answers[mark] for mark in sent if mark in answers]
    known = [a for a in given if a != "unknown"]
    return Precision(len(sent), wilson(sum(a == "right" for a in known), len(known)), len(given) - len(known))

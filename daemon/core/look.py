"""What the rules about missing things look at: the request, the calls, the final text. Values only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from daemon.core.evidence import CheckKind, Ending, Row, Topic, Wants
from daemon.core.moves import Move
from daemon.core.reading import Found
from daemon.core.requirements import Requirement

if TYPE_CHECKING:
    from collections.abc import Iterator


GATES: Final[dict[Topic, CheckKind]] = {"tests": "test", "build": "build", "lint": "lint"}


@dataclass(frozen=True, slots=True)
class Look:
    """All that the rules look at. ``requested``: topics of the request itself; ``gates``: of the project."""

    asked: Sequence[Requirement]
    requested: tuple[Topic, ...]
    gates: tuple[Topic, ...]
    forbids: tuple[Topic, ...]
    wants: Wants
    found: Found
    final: str
    ending: Ending
    checks: Sequence[Row]
    denied: bool = False
    errors: tuple[str, ...] = ()  # the calls that failed at the very end
    said: str = ""  # what the person wrote, without code and logs
    moves: Sequence[Move] = ()

    @property
    def live(self) -> Iterator[tuple[str, Requirement]]:
        """(row id, requirement) of those that nothing took back."""
        numbered = ((f"R{i}", r) for i, r in enumerate(self.asked, 1))
        return ((i, r) for i, r in numbered if r.by < 0 and not r.negative)

    def first(self) -> str:
        """The id of the first requirement that asks for something, or ``""``."""
        return next((i for i, _ in self.live), "")

    def source(self, topic: Topic) -> str:
        """The id of the requirement that asks for ``topic``, or ``""``."""
        return next((i for i, r in self.live if topic in r.asks), "")

    def runs(self, topic: Topic) -> list[Row]:
        """The check rows that speak of ``topic``."""
        kind = GATES.get(topic)
        return [r for r in self.checks if kind and r.check == kind]

    def rerun(self, topic: Topic) -> str:
        """The command that ran last for ``topic``, or ``""``."""
        runs = self.runs(topic)
        return runs[-1].command if runs else ""


def short(text: str) -> str:
    """One line of at most 160 characters."""
    text = " ".join(text[:800].split())
    return text if len(text) <= 160 else text[:159] + "…"

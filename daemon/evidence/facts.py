"""What the rules look at: the request, the work of the calls, the final text. Values only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ..core.evidence import CheckKind, Ending, Row, Topic, Wants
from .calls.work import Work
from .request.requirements import Requirement

if TYPE_CHECKING:
    from collections.abc import Iterator

CHECK_OF: Final[dict[Topic, CheckKind]] = {"tests": "test", "build": "build", "lint": "lint"}


@dataclass(frozen=True, slots=True)
class Facts:
    """All facts of one task.

    ``requested``: topics of the request itself; ``by_project``: those that the project's rules ask for.
    ``said``: what the person wrote, without code and logs. ``errors``: the calls that failed at the very end.
    """

    asked: Sequence[Requirement]
    requested: tuple[Topic, ...]
    by_project: tuple[Topic, ...]
    forbids: tuple[Topic, ...]
    wants: Wants
    said: str
    work: Work
    final: str
    ending: Ending
    checks: Sequence[Row]
    denied: bool = False
    errors: tuple[str, ...] = ()

    @property
    def live(self) -> Iterator[tuple[str, Requirement]]:
        """(row id, requirement) of those that no later message took back."""
        numbered = ((f"R{i}", r) for i, r in enumerate(self.asked, 1))
        return ((i, r) for i, r in numbered if r.by < 0 and not r.negative)

    def source(self, topic: Topic) -> str:
        """The id of the requirement that asks for ``topic``, or ``""``."""
        return next((i for i, r in self.live if topic in r.asks), "")

    def runs(self, topic: Topic) -> list[Row]:
        """The check rows that speak of ``topic``."""
        kind = CHECK_OF.get(topic)
        return [r for r in self.checks if kind and r.check == kind]

    def rerun(self, topic: Topic) -> str:
        """The command that ran last for ``topic``, or ``""``."""
        runs = self.runs(topic)
        return runs[-1].command if runs else ""

"""Opinions on an answer that has not ended its turn yet.

In `run` mode the host asks before it exits. The judge's opinion on that text is kept until the idle that
follows, so that the same text is not judged twice.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from ..judge.case import Case
    from ..judge.flow import Opinion

KEPT: Final = 100


@dataclass(frozen=True, slots=True)
class Formed:
    """An opinion, the case that it is about, and how long the judge took, in ms."""

    case: Case
    opinion: Opinion
    ms: int


class Foretold:
    """At most one opinion for each session; the oldest is forgotten first."""

    def __init__(self) -> None:
        self._formed: OrderedDict[str, Formed] = OrderedDict()

    def keep(self, session: str, formed: Formed) -> None:
        """Keep it for the idle that follows."""
        self._formed[session] = formed
        while len(self._formed) > KEPT:
            self._formed.popitem(last=False)

    def take(self, session: str) -> Formed | None:
        """The session's opinion, which is forgotten with that."""
        return self._formed.pop(session, None)

"""Episodes: tasks that ended badly, each with the lesson that was drawn from it (AC-2.6.2, AC-2.6.3).

The types that every store of episodes and the feature share, and the port that the stores
implement. Nothing here waits, reads a file or asks a model.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, Protocol

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

State = Literal["quarantined", "confirmed", "dismissed"]
"""``quarantined``: kept apart until another session or a person confirms it. ``dismissed``: a person took it
back, or the verdict that it rests on was disputed; it is kept so that it is not learned again.
"""
TriggerKind = Literal["command"]
SIMILAR: Final = 0.70
"""The similarity above which the API and MCP call an episode similar (AC-2.6.4)."""
TOP_K: Final = 3


@dataclass(frozen=True, slots=True)
class Trigger:
    """What a failure hung on: the command of a check that failed to the end."""

    kind: TriggerKind
    text: str


@dataclass(frozen=True, slots=True)
class Vector:
    """An embedding: little-endian 32-bit floats of length 1, and the model that made it. Vectors of two
    models are never compared.
    """

    model: str
    data: bytes


@dataclass(frozen=True, slots=True)
class Episode:
    """A task that ended badly, and what to do next time.

    ``id``: 32 hexadecimal digits. ``project``: what names the repository for all its worktrees; empty for
    an episode that a client of the API stored without one. ``query``: the task in the person's words.
    ``reward``: -1 to 1. ``reflection``: the model's whole reply, ``problem`` and ``lesson`` its parts.
    ``proof``: the decisive evidence row, empty when only a model's opinion says that the task failed.
    ``cites``: paths and commands that the lesson names. ``files``: what the task changed. ``author``: who
    learned it, shown where a store is shared. ``task``: the person's message that began it. ``at``: epoch ms.
    """

    id: str
    project: str
    query: str
    reward: float
    problem: str
    lesson: str
    reflection: str
    state: State = "quarantined"
    triggers: tuple[Trigger, ...] = ()
    cites: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    proof: str = ""
    author: str = ""
    session: str = ""
    turn: str = ""
    task: str = ""
    at: int = 0


@dataclass(frozen=True, slots=True)
class Use:
    """What became of an episode's lesson. ``given``: sessions that it was put in front of. ``helped`` and
    ``failed``: of these, whose first verdict afterwards was good or bad. ``last``: epoch ms, 0 for never.
    """

    given: int = 0
    helped: int = 0
    failed: int = 0
    last: int = 0


@dataclass(frozen=True, slots=True)
class Candidate:
    """An episode that a search found. ``similarity``: the cosine of its query's vector, None without one.
    ``bm25``: how well its words match, higher is better, None when it was not found by its words.
    ``vouched``: whether this daemon wrote it or its person settled it, and nobody changed it since; of a
    store of one's own all are.
    """

    episode: Episode
    similarity: float | None = None
    bm25: float | None = None
    use: Use = Use()
    vouched: bool = True


class Episodes(Protocol):
    """A store of episodes. Each method raises ``Unavailable`` when the store can't be reached."""

    async def add(self, episode: Episode, vector: Vector | None = None) -> bool:
        """Store it. False when the store has an episode of this id already; then nothing changes."""
        ...

    async def get(self, ids: Collection[str]) -> list[Candidate]:
        """Those of these ids that are stored, without scores."""
        ...

    async def page(
        self,
        projects: Collection[str] | None,
        *,
        state: State | None = None,
        after: str = "",
        limit: int = 100,
    ) -> list[Candidate]:
        """The next episodes after the id ``after``, newest first. ``projects``: None for all."""
        ...

    async def search(
        self, words: str, vector: Vector | None, projects: Collection[str] | None, limit: int
    ) -> list[Candidate]:
        """The nearest by vector; without one the best by words. At most ``limit``, no dismissed ones. Only
        vectors of the same model are compared.
        """
        ...

    async def settle(self, ids: Collection[str], state: State) -> int:
        """How many are in that state now that were not."""
        ...

    async def count_use(
        self, id_: str, session: str, at: int, outcome: Literal["given", "helped", "failed"]
    ) -> None:
        """Count once for each session and outcome."""
        ...

    async def forget(self, ids: Collection[str]) -> int:
        """Delete them for good. How many there were."""
        ...

    async def unembedded(self, model: str, limit: int) -> list[Episode]:
        """Those that have no vector of this model, newest first."""
        ...

    async def embed(self, vectors: Mapping[str, Vector]) -> None:
        """Store the vectors of these ids. An earlier vector, of any model, is replaced."""
        ...

    async def counts(self, projects: Collection[str] | None) -> Mapping[str, int]:
        """How many in each state, and ``bytes``."""
        ...

    async def close(self) -> None:
        """Give back connections."""
        ...

"""Finds lessons: those that may belong to a task, and those similar to a text for whoever asks (AC-2.6.4).

``for_task`` gives only lessons that may be put in front of an agent in this project now:
proven or confirmed, not refused, with all that the lesson cites still there. ``similar`` answers the API and
MCP by similarity alone. A store that can't be reached is a fault that is set once, and cleared when it
answers.
"""

from __future__ import annotations

import asyncio
import shutil
from collections import OrderedDict
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from ..core.episodes import SIMILAR, TOP_K
from ..core.errors import Unavailable
from ..files.bounded import read_text
from ..memory.decide import may_show
from ..memory.lessons import SHOWN
from ..memory.stale import gone
from .repositories import project_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Coroutine, Iterable

    from ..core.episodes import Candidate, Episode, Episodes, Vector
    from .vectors import Vectors
    from .world import World

FAULT: Final = "episodes"
FEW: Final = 5 * SHOWN
"""Of a project with fewer episodes all are looked at; of one with more those that a search finds."""
PROJECTS_KEPT: Final = 50
ROOTS_KEPT: Final = 5
MAKEFILE_BYTES: Final = 200_000
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Found:
    """An episode that was asked for. ``shows``: whether its lesson may be put in front of an agent here."""

    candidate: Candidate
    shows: bool


class FindLessons:
    """One for the daemon. ``home``: a folder that is no project."""

    def __init__(self, world: World, store: Episodes, vectors: Vectors, home: str) -> None:
        self._world = world
        self._store = store
        self._vectors = vectors
        self._home = home
        self._roots: OrderedDict[str, OrderedDict[str, None]] = OrderedDict()

    async def project(self, directory: str) -> str:
        """What names the project that a folder belongs to; "" for none."""
        project = await asyncio.to_thread(project_of, directory, self._home)
        if project:
            roots = self._roots.setdefault(project, OrderedDict())
            roots[directory] = None
            roots.move_to_end(directory)
            while len(roots) > ROOTS_KEPT:
                roots.popitem(last=False)
            self._roots.move_to_end(project)
            while len(self._roots) > PROJECTS_KEPT:
                self._roots.popitem(last=False)
        return project

    async def for_task(self, project: str, text: str, given: Collection[str] = ()) -> list[Episode]:
        """At most ``SHOWN`` lessons for a model to choose from, without those of the ids ``given``: all that
        there are, else the nearest to the text by meaning and, where vectors are missing, by words. Raises
        ``Unavailable``.
        """

        def usable(candidates: Iterable[Candidate]) -> list[Episode]:
            episodes = (c.episode for c in candidates)
            return [e for e in episodes if e.id not in given and may_show(e, project)]

        where = self._projects(project)
        all_ = await self._asked(lambda: self._store.page(where, limit=FEW))
        found = usable(all_)
        if len(found) > SHOWN or len(all_) == FEW:
            vector = await self._vectors.one(text)
            found = usable(await self._search(project, text, vector, FEW)) if vector is not None else []
            if len(found) < SHOWN:
                more = await self._search(project, text, None, FEW)
                known = {e.id for e in found}
                found += [e for e in usable(more) if e.id not in known]
        standing = await asyncio.to_thread(lambda: [e for e in found if not self._gone(e, project)])
        return standing[:SHOWN]

    async def counted(self, ids: Collection[str], session: str, outcome: Any) -> None:  # noqa: ANN401 - a Literal
        """Count an outcome of these lessons. What can't be counted is not."""
        now = self._world.clock.now_ms()
        for id_ in ids:
            try:
                await self._asked(partial(self._store.count_use, id_, session, now, outcome))
            except Unavailable as e:
                self._world.log.info("not counted", lesson=id_, outcome=outcome, error=str(e))

    async def similar(
        self,
        project: str,
        text: str,
        *,
        least: float = SIMILAR,
        limit: int = TOP_K,
        by_words: bool = False,
        vouched: bool = False,
    ) -> list[Found]:
        """The episodes of this project whose similarity to ``text`` is above ``least``, best first. Without a
        model for embeddings none, or with ``by_words`` those that share words with it. ``vouched``: only
        those. Raises ``Unavailable``.
        """
        vector = await self._vectors.one(text)
        if vector is None and not by_words:
            return []
        found = await self._search(project, text, vector, max(FEW, limit))
        wanted = [c for c in found if c.episode.state != "dismissed" and (c.vouched or not vouched)]
        if vector is not None:
            wanted = [c for c in wanted if (c.similarity or -1.0) > least]
        return [Found(c, may_show(c.episode, project)) for c in wanted[:limit]]

    async def _search(self, project: str, text: str, vector: Vector | None, limit: int) -> list[Candidate]:
        """The nearest to this vector, and without one the best by words."""
        where = self._projects(project)
        return await self._asked(lambda: self._store.search(text, vector, where, limit))

    def _projects(self, project: str) -> list[str] | None:
        return None if self._world.settings.memory.scope == "all" else [project]

    async def _asked(self, ask: Callable[[], Coroutine[Any, Any, T]]) -> T:
        try:
            found = await ask()
        except Unavailable as e:
            self._world.health.failed(FAULT, str(e))
            raise
        self._world.health.works(FAULT)
        return found

    def _gone(self, episode: Episode, project: str) -> bool:
        """Whether something that the lesson cites is no longer there. Blocks."""
        roots = list(self._roots.get(project, ()))
        return bool(roots) and bool(gone(episode, lambda name: any(is_there(r, name) for r in roots)))


def is_there(root: str, name: str) -> bool:
    """Whether a path or a command line that a lesson cites can be used in this folder. Blocks."""
    first, _, rest = name.partition(" ")
    if not rest:
        return Path(root, name).exists()
    target = rest.split()[-1] if rest.split() else ""
    if first == "make" and not target.startswith("-"):
        return f"\n{target}:" in f"\n{_text(Path(root, 'Makefile'))}"
    if first in {"npm", "pnpm", "yarn", "bun"} and rest.startswith("run "):
        return f'"{target}"' in _text(Path(root, "package.json"))
    return shutil.which(first) is not None or Path(root, first).exists()


def _text(path: Path) -> str:
    try:
        return read_text(path, MAKEFILE_BYTES, follow=False) or ""
    except (OSError, ValueError):
        return ""

"""Finds lessons again: for a task, for an action, and for whoever asks (AC-2.6.4).

``lookup`` and ``triggers`` give only what may be put in front of an agent in this project now: proven or
confirmed, not refused, with all that the lesson cites still there. ``similar`` answers the API and MCP by
similarity alone. A store that can't be reached is a fault that is set once, and cleared when it answers.
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
from ..memory.rank import Query, Ranked, rank, worth_showing
from ..memory.stale import gone
from .repositories import project_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Coroutine, Sequence

    from ..core.episodes import Candidate, Episode, Episodes, Vector
    from .vectors import Vectors
    from .world import World

FAULT: Final = "episodes"
FOUND: Final = 50  # of one search, by meaning and by words
SHARE: Final = 0.35  # of the time that a prompt waits, for its vector
PROJECTS_KEPT: Final = 50
ROOTS_KEPT: Final = 5
MAKEFILE_BYTES: Final = 200_000
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Found:
    """An episode that was asked for. ``ranked``: its place by the ranking. ``shows``: whether its lesson may
    be put in front of an agent here.
    """

    ranked: Ranked
    shows: bool


class Recall:
    """One for the daemon. ``home``: a folder that is no project."""

    def __init__(self, world: World, store: Episodes, vectors: Vectors, home: str) -> None:
        self._world = world
        self._store = store
        self._vectors = vectors
        self._home = home
        self._warming = False
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

    async def lookup(
        self,
        project: str,
        text: str,
        *,
        files: Sequence[str] = (),
        errors: Sequence[str] = (),
        limit: int = TOP_K,
    ) -> list[Ranked]:
        """The lessons for a task that are worth showing, best first. Raises ``Unavailable``.

        While the model for embeddings is not loaded, or slow, they are found by their words.
        """
        vector = await self._in_time(text)
        found = await self._search(project, text, vector, FOUND)
        shown = [c for c in found if may_show(c.episode, project)]
        ranked = worth_showing(rank(Query(text, project, files, errors), shown), len(shown))
        kept = list[Ranked]()
        for one in ranked:
            if len(kept) == limit:
                break
            if await self.stands(one.candidate.episode, project):
                kept.append(one)
        return kept

    async def warm(self) -> None:
        """Load what the next prompt needs: the model and the vectors. Does nothing while that is under way.
        Never raises.
        """
        if self._warming:
            return
        self._warming = True
        try:
            await self._vectors.warm()
            if self._vectors.loaded:
                await self._asked(lambda: self._store.warm(self._vectors.model))
        except Unavailable as e:
            self._world.log.info("not warmed", error=str(e))
        finally:
            self._warming = False

    async def _in_time(self, text: str) -> Vector | None:
        """The vector of a prompt, or None when it is not there soon: then its words must do."""
        if not self._vectors.loaded or not self._store.warmed(self._vectors.model):
            self._world.spawn(self.warm(), "vectors")
            return None
        try:
            async with asyncio.timeout(self._world.settings.memory.prompt_ms / 1000 * SHARE):
                return await self._vectors.one(text)
        except TimeoutError:
            return None

    async def stands(self, episode: Episode, project: str) -> bool:
        """Whether all that the lesson cites is there, in the project in which it would be shown."""
        return not episode.cites or not await asyncio.to_thread(self._gone, episode, project)

    async def triggers(self, project: str) -> list[Candidate]:
        """The lessons that may be shown and have triggers. Raises ``Unavailable``."""
        found = await self._asked(lambda: self._store.triggered([project]))
        shown = [c for c in found if may_show(c.episode, project)]
        left = await asyncio.to_thread(lambda: [c for c in shown if not self._gone(c.episode, project)])
        return list(left)

    async def told(self, id_: str, session: str) -> None:
        """A session was given this lesson."""
        await self.counted((id_,), session, "given")

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
        ranked: bool = False,
        vouched: bool = False,
    ) -> list[Found]:
        """The episodes of this project that are like ``text``: by similarity above ``least``, or all that
        were found in their ranking. Without a model for embeddings the ranking decides. ``vouched``: only
        those. Raises ``Unavailable``.
        """
        vector = await self._vectors.one(text)
        found = await self._search(project, text, vector, max(FOUND, limit))
        wanted = [c for c in found if c.episode.state != "dismissed" and (c.vouched or not vouched)]
        places = await asyncio.to_thread(rank, Query(text, project), wanted)
        if ranked:
            chosen = places
        elif vector is None:
            chosen = worth_showing(places, limit)
        else:
            near = [r for r in places if (r.candidate.similarity or -1.0) > least]
            chosen = sorted(near, key=lambda r: -(r.candidate.similarity or 0.0))
        return [Found(r, may_show(r.candidate.episode, project)) for r in chosen[:limit]]

    async def _search(self, project: str, text: str, vector: Vector | None, limit: int) -> list[Candidate]:
        projects = None if self._world.settings.memory.scope == "all" else [project]
        return await self._asked(lambda: self._store.search(text, vector, projects, limit))

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

"""Lessons for tasks: which belong to one, and how the agent gets them (AC-2.6.4, design/memory.md).

``FindLessons`` gives only lessons that may be put in front of an agent in this project now: proven or
confirmed, not refused, with all that the lesson cites still there. ``GiveLessons`` has the fast model choose.
The prompt waits ``memory.prompt_ms`` for its answer; a later one stands behind the next tool result of that
task. ``engine.offering`` composes and records what is given: each lesson once a session. A store that can't
be reached is a fault that is set once, and cleared when it answers.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections import OrderedDict
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

from ...core import events as ev
from ...core.errors import ReflectdError, Unavailable
from ...core.offers import Offer
from ...engine.hosts.host import capabilities
from ...engine.offering import ACTION
from ...files.safe import write_atomic
from ...store import injections
from .citations import stand
from .episodes import may_show
from .questions import MARK, SAID, SHOWN, named_by, which_lessons
from .repositories import project_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Collection, Iterable, Sequence

    from ...core.offers import Moment
    from ...core.session import Session
    from ...engine.asking import Asking
    from ...engine.feature import Place
    from ...engine.world import World
    from ..embed.vectors import Embeddings
    from .episodes import Episode, Outcome
    from .store import Episodes

FAULT: Final = "episodes"
FOLDER: Final = "lessons"
KEPT_S: Final = 7 * 86_400  # a mark
FEW: Final = 5 * SHOWN
"""Of a project with fewer episodes all are looked at; of one with more those that a search finds."""
ANSWER_S: Final = 30.0
SESSIONS_KEPT: Final = 1_000
T = TypeVar("T")


class FindLessons:
    """One for the daemon."""

    def __init__(self, world: World, store: Episodes, vectors: Embeddings) -> None:
        self._world, self._store, self._vectors = world, store, vectors

    async def project(self, directory: str) -> str:
        """The name of the folder's project; "" for none, as for the home folder."""
        return await asyncio.to_thread(project_of, directory, os.environ.get("HOME", "/"))

    async def for_task(
        self, project: str, text: str, given: Collection[str] = (), directory: str = ""
    ) -> list[Episode]:
        """At most ``SHOWN`` lessons for a model to choose from, without those of the ids ``given``: all that
        there are, else the nearest to the text by meaning and, where vectors are missing, by words. What they
        cite is in ``directory`` or at the top of the project. Raises ``Unavailable``.
        """
        where = self.scope(project)

        def usable(episodes: Iterable[Episode]) -> list[Episode]:
            return [e for e in episodes if e.id not in given and may_show(e, project)]

        newest = await self.asked(self._store.page(where, limit=FEW))
        found = usable(newest)
        if len(found) > SHOWN or len(newest) == FEW:
            vector = await self._vectors.one(text)
            found = []
            for by in [vector, None] if vector is not None else [None]:
                if len(found) < SHOWN:
                    known = {e.id for e in found}
                    near = await self.asked(self._store.search(text, by, where, FEW))
                    found += [e for e in usable(near) if e.id not in known]
        top = str(Path(project).parent) if Path(project).name == ".git" else project
        standing = [e for e in found if await asyncio.to_thread(stand, e.cites, (directory, top))]
        return standing[:SHOWN]

    async def counted(self, ids: Collection[str], session: str, outcome: Outcome) -> None:
        """Count an outcome of these lessons. One that can't be counted is not."""
        try:
            await self.asked(self._store.count(ids, session, self._world.clock.now_ms(), outcome))
        except Unavailable as e:
            self._world.log.info("not counted", session=session, outcome=outcome, error=str(e))

    async def asked(self, answer: Awaitable[T]) -> T:
        """The store's answer. Raises ``Unavailable``."""
        try:
            found = await answer
        except Unavailable as e:
            self._world.health.failed(FAULT, str(e))
            raise
        self._world.health.works(FAULT)
        return found

    def scope(self, project: str) -> list[str] | None:
        """The projects whose lessons this one may have; None for all."""
        return None if self._world.settings.memory.scope == "all" else [project]


class GiveLessons:
    """One for the daemon."""

    def __init__(self, world: World, asking: Asking, find: FindLessons) -> None:
        self._world, self._asking, self._find = world, asking, find
        self._chosen: OrderedDict[str, list[Offer]] = OrderedDict()  # for the newest task of a session

    def places(self, directory: str) -> dict[Place, int]:
        """Where a host has to ask, in this folder, and how many ms it waits: nowhere, where a person or the
        project switched lessons off.
        """
        settings = self._world.project(directory)
        memory = settings.memory
        on = self._world.settings.memory.enabled and memory.enabled
        if not (on and settings.enabled and settings.offer.enabled):
            return {}
        return {"lessons": memory.prompt_ms, "late_lessons": memory.prompt_ms // ACTION}

    def heard(self, s: Session, event: object) -> None:
        """A session ends. Must not wait."""
        if isinstance(event, ev.SessionEnded | ev.SessionDeleted):
            self._drop(s)

    async def ready(self, s: Session, moment: Moment) -> None:
        """Ask the model about a new task, and wait for as long as whoever calls allows. The question goes on
        after that; the answer counts for nothing when another task of the session began meanwhile.
        """
        if moment.when != "prompt":
            return
        self._chosen.pop(s.id, None)
        chosen = self._chosen[s.id] = list[Offer]()
        while len(self._chosen) > SESSIONS_KEPT:
            self._chosen.popitem(last=False)

        async def look() -> None:
            await self._mark(s)
            if moment.text.strip() and self.places(s.directory):
                chosen.extend(await self._choose(s, moment))
                await self._mark(s)

        await asyncio.wait({self._world.spawn(look(), "lessons")})

    def offers(self, s: Session, moment: Moment) -> Sequence[Offer]:
        """The lessons that were chosen for the session's task, once. Must not wait."""
        offers = self._chosen.get(s.id, []) if moment.when in {"prompt", "action"} else []
        if offers:
            names = [o.name for o in offers]
            self._world.spawn(self._find.counted(names, s.id, "given"), "lessons given")
            self._drop(s)
        return offers

    def _drop(self, s: Session) -> None:
        self._chosen.pop(s.id, None)
        self._world.spawn(self._mark(s), "lessons")

    async def _choose(self, s: Session, moment: Moment) -> list[Offer]:
        """The lessons that the model names; none when nobody answers."""
        world = self._world
        try:
            project = await self._find.project(s.directory)
            given = {g.name for g in injections.given(world.db, s.id)}
            found = await self._find.for_task(project, moment.text, given, s.directory) if project else []
            if not found:
                return []
            question = which_lessons(moment.text, found, moment.model)
            answer = await self._asking.ask(question, s, ANSWER_S)
        except ReflectdError as e:
            world.log.info("no lessons", session=s.id, error=str(e))
            return []
        picked = named_by(answer.reply, found)
        ids = [e.id for e in picked]
        world.log.info("lessons", session=s.id, shown=len(found), picked=ids, why=answer.why)
        return [
            Offer(f"lesson:{e.id}", "lesson", SAID.format(e.lesson), -n, MARK, project, e.id)
            for n, e in enumerate(picked)
        ]

    async def _mark(self, s: Session) -> None:
        """Write down for a host without a stream of orders whether a lesson waits; another one asks at each
        call. What can't be written is left out.
        """
        if capabilities(s.host).order_stream:
            return
        state_dir = self._world.db.path.parent
        try:
            await asyncio.to_thread(lambda: mark(state_dir, s.id, waits=bool(self._chosen.get(s.id))))
        except Unavailable as e:
            self._world.log.info("no mark for hooks", session=s.id, error=str(e))


def mark(state_dir: Path, session: str, *, waits: bool) -> None:
    """Says whether a lesson waits for this session: one empty file. ``hook.sh`` asks the daemon at a tool
    call only where there is one, so a session without lessons costs no request. Blocks. Raises
    ``Unavailable``.
    """
    if not 0 < len(session) <= 100 or not all(c.isascii() and (c.isalnum() or c in "-_") for c in session):
        return  # no name of a file, or that of another one
    file = state_dir / FOLDER / session
    try:
        if not waits:
            file.unlink(missing_ok=True)
            return
        file.parent.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise Unavailable(f"can't write {file}: {error.strerror}") from error
    write_atomic(file, "", durable=False)


def remove_old(state_dir: Path) -> None:
    """The marks of sessions that ended without a word go. Blocks."""
    with suppress(OSError):
        for file in (state_dir / FOLDER).iterdir():
            if time.time() - file.stat().st_mtime > KEPT_S:
                file.unlink(missing_ok=True)

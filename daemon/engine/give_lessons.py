"""Gives lessons to agents for the task that a person just gave.

The fast model chooses them (``memory.lessons``). The prompt waits ``memory.prompt_ms`` for its answer; a
later one stands behind the next tool result of that task. ``offering`` composes and records what is given:
each lesson once a session, and never when ``core.learned.refusal`` has anything against it. Whatever fails or
takes too long gives nothing.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from typing import TYPE_CHECKING, Final

from ..core import events as ev
from ..core.compose import Offer
from ..core.errors import ReflectdError, Unavailable
from ..core.learned import refusal
from ..files import lesson_marks
from ..memory.decide import MARK, SAID
from ..memory.lessons import PURPOSE, Lesson, pick, prompt_of
from ..store import learning
from .hosts.host import capabilities

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..core.compose import Moment
    from ..core.episodes import Episode
    from ..core.session import Session
    from .asking import Asking
    from .features.feature import Place
    from .find_lessons import FindLessons
    from .world import World

OFFER: Final = "lesson"
ANSWER_S: Final = 30.0
PROJECTS_KEPT: Final = 50
SESSIONS_KEPT: Final = 1_000


class GiveLessons:
    """One for the daemon."""

    def __init__(self, world: World, asking: Asking, find: FindLessons) -> None:
        self._world = world
        self._asking = asking
        self._find = find
        self._projects: OrderedDict[str, str] = OrderedDict()
        self._asked: OrderedDict[str, object] = OrderedDict()  # the newest question of a session
        self._answered: OrderedDict[str, tuple[Offer, ...]] = OrderedDict()  # and not given yet
        self._waiting: set[str] = set()  # the sessions whose prompt waits for the answer
        self._marked: OrderedDict[str, None] = OrderedDict()

    def on(self, directory: str) -> bool:
        """Whether lessons are given in this project, which may only switch it off."""
        settings = self._world.project(directory)
        on = self._world.settings.memory.enabled and settings.memory.enabled and settings.memory.at_prompt
        return on and settings.enabled and settings.offer.enabled

    def places(self, directory: str) -> dict[Place, int]:
        """Where a host has to ask, in this folder, and how many ms it waits."""
        memory = self._world.project(directory).memory
        ms: dict[Place, int] = {"lessons": memory.prompt_ms, "late_lessons": memory.action_ms}
        return ms if self.on(directory) else {}

    def heard(self, s: Session, event: ev.SessionEvent) -> None:
        """A session ends. Must not wait."""
        if isinstance(event, ev.SessionEnded | ev.SessionDeleted):
            self._drop(s.id)
            self._world.spawn(self._mark(s), "lessons")

    async def ready(self, s: Session, moment: Moment) -> None:
        """Ask the model about a new task, and wait for as long as whoever calls allows. The question goes on
        after that.
        """
        if moment.when != "prompt":
            return
        self._drop(s.id)
        await self._mark(s)
        if not moment.text.strip() or not self.on(s.directory):
            return
        asked = self._asked[s.id] = object()
        while len(self._asked) > SESSIONS_KEPT:
            self._asked.popitem(last=False)
        task = self._world.spawn(self._look(s, moment, asked), "lessons")
        self._waiting.add(s.id)
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError:
            self._world.spawn(self._mark(s), "lessons")
            raise
        finally:
            self._waiting.discard(s.id)

    def offers(self, s: Session, moment: Moment) -> Sequence[Offer]:
        """What was chosen for the session's task."""
        return self._answered.get(s.id, ()) if moment.when in {"prompt", "action"} else ()

    def gave(self, s: Session, offers: Sequence[Offer]) -> None:
        """The session was given these. Must not wait."""
        names = list(dict.fromkeys(o.name for o in offers if o.kind == "lesson"))
        if names:
            self._answered.pop(s.id, None)
            self._world.spawn(self._find.counted(names, s.id, "given"), "lessons given")
            self._world.spawn(self._mark(s), "lessons")

    def prune(self) -> None:
        """The marks of sessions that ended without a word go. It blocks: call it in a thread."""
        lesson_marks.remove_old(self._world.db.path.parent)

    async def _look(self, s: Session, moment: Moment, asked: object) -> None:
        """Keep what the model chose, unless another task of the session began meanwhile."""
        offers = await self._choose(s, moment)
        if self._asked.get(s.id) is not asked:
            return
        del self._asked[s.id]
        if not offers:
            return
        self._answered[s.id] = offers
        while len(self._answered) > SESSIONS_KEPT:
            self._answered.popitem(last=False)
        if s.id not in self._waiting:
            await self._mark(s)

    async def _choose(self, s: Session, moment: Moment) -> tuple[Offer, ...]:
        """The lessons that the model names; none when nobody answers."""
        world = self._world
        try:
            project = await self._project(s.directory)
            given = {g.name for g in learning.given(world.db, s.id)}
            found = await self._find.for_task(project, moment.text, given) if project else []
            found = [e for e in found if not refusal(_line(e))]
            if not found:
                return ()
            texts = await asyncio.to_thread(world.prompt_texts, s.directory)
            lessons = [Lesson(e.id, _line(e), " ".join(e.query.split())) for e in found]
            prompt = prompt_of(moment.text, lessons, texts[PURPOSE], world.nonce(), s.id, moment.model)
            picked = await self._asking.run(pick(prompt, lessons), s, ANSWER_S, None, lambda _no: None)
        except ReflectdError as e:
            world.log.info("no lessons", session=s.id, error=str(e))
            return ()
        world.log.info("lessons", session=s.id, shown=len(lessons), picked=list(picked.ids), why=picked.why)
        by_id, many = {e.id: e for e in found}, len(picked.ids)
        return tuple(_offer(by_id[id_], project, many - n) for n, id_ in enumerate(picked.ids))

    def _drop(self, session: str) -> None:
        """The task for which lessons were chosen is over; an answer that is under way counts for nothing."""
        self._asked.pop(session, None)
        self._answered.pop(session, None)

    async def _project(self, directory: str) -> str:
        found = self._projects.get(directory)
        if found is None:
            found = self._projects[directory] = await self._find.project(directory)
            while len(self._projects) > PROJECTS_KEPT:
                self._projects.popitem(last=False)
        return found

    async def _mark(self, s: Session) -> None:
        """Write down for a host without a stream of orders whether a lesson waits; another one asks at each
        call. What can't be written is left out.
        """
        waits = s.id in self._answered
        if capabilities(s.host).order_stream or waits == (s.id in self._marked):
            return
        if waits:
            self._marked[s.id] = None
        else:
            del self._marked[s.id]
        while len(self._marked) > SESSIONS_KEPT:
            self._marked.popitem(last=False)
        try:
            await asyncio.to_thread(lesson_marks.mark, self._world.db.path.parent, s.id, waits=waits)
        except Unavailable as e:
            self._world.log.info("no mark for hooks", session=s.id, error=str(e))


def _line(episode: Episode) -> str:
    """The lesson as one line."""
    return " ".join(episode.lesson.split())


def _offer(episode: Episode, project: str, worth: float) -> Offer:
    text = SAID.format(_line(episode))
    return Offer(f"{OFFER}:{episode.id}", "lesson", text, worth, MARK, project, episode.id)

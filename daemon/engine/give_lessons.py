"""Gives lessons to agents: for a task that a person just gave, and at a call that failed as one did before.

For a task the fast model chooses (``memory.lessons``). The prompt waits ``memory.prompt_ms`` for its answer;
a later one stands behind the next tool result of that task. At a failed call the triggers decide.
``offering`` composes and records what is given: each lesson once a session, and never when
``core.learned.refusal`` has anything against it. Whatever fails or takes too long gives nothing.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ..core import events as ev
from ..core.compose import Offer
from ..core.errors import ReflectdError, Unavailable
from ..core.learned import refusal
from ..files import reminder_marks
from ..memory.decide import MARK, SAID
from ..memory.lessons import PURPOSE, Lesson, pick, prompt_of
from ..memory.triggers import Triggers
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
MOST_AT_ACTION: Final = 2
ANSWER_S: Final = 30.0
FRESH_S: Final = 60.0  # then the store is asked again: another daemon may share it
PROJECTS_KEPT: Final = 50
SESSIONS_KEPT: Final = 1_000


@dataclass(slots=True)
class _Known:
    """The lessons with triggers of one project, as they were read at ``at``."""

    at: float
    triggers: Triggers


class GiveLessons:
    """One for the daemon."""

    def __init__(self, world: World, asking: Asking, find: FindLessons) -> None:
        self._world = world
        self._asking = asking
        self._find = find
        self._projects: OrderedDict[str, str] = OrderedDict()
        self._known: OrderedDict[str, _Known] = OrderedDict()
        self._asked: OrderedDict[str, object] = OrderedDict()  # the newest question of a session
        self._answered: OrderedDict[str, tuple[Offer, ...]] = OrderedDict()  # and not given yet
        self._waiting: set[str] = set()  # the sessions whose prompt waits for the answer
        self._met: OrderedDict[str, tuple[Offer, ...]] = OrderedDict()
        self._marked: OrderedDict[str, reminder_marks.At | None] = OrderedDict()

    def at_prompt(self, directory: str) -> bool:
        """Whether lessons are given for tasks in this project."""
        return self._on(directory) and self._world.project(directory).memory.at_prompt

    def at_action(self, directory: str) -> bool:
        """Whether lessons are given at failed calls in this project."""
        return self._on(directory) and self._world.project(directory).memory.at_action

    def _on(self, directory: str) -> bool:
        """A project may only switch it off."""
        settings = self._world.project(directory)
        on = self._world.settings.memory.enabled and settings.memory.enabled
        return on and settings.enabled and settings.offer.enabled

    def places(self, directory: str) -> dict[Place, int]:
        """Where a host has to ask, in this folder, and how many ms it waits."""
        memory, for_task = self._world.project(directory).memory, self.at_prompt(directory)
        found: dict[Place, int] = {"lessons": memory.prompt_ms} if for_task else {}
        if for_task or self.at_action(directory):
            found["reminders"] = memory.action_ms
        return found

    def heard(self, s: Session, event: ev.SessionEvent) -> None:
        """A session ends. Must not wait."""
        if isinstance(event, ev.SessionEnded | ev.SessionDeleted):
            self._drop(s.id)
            if self._marked.pop(s.id, None):
                self._world.spawn(self._write(s.id, None), "lessons")

    def forget(self) -> None:
        """There are other lessons now, of whatever project. Must not wait."""
        self._known.clear()
        for session in list(self._marked):
            s = self._world.sessions.get(session)
            if s is not None:
                self._world.spawn(self._renewed(s), "lessons")

    async def ready(self, s: Session, moment: Moment) -> None:
        """Choose what this moment calls for."""
        self._met.pop(s.id, None)
        try:
            if moment.when == "action":
                await self._meet(s, moment)
                return
            if moment.when == "prompt":
                self._drop(s.id)
            await self._mark(s)
            if moment.when == "prompt" and moment.text.strip() and self.at_prompt(s.directory):
                await self._answer(s, moment)
        except Unavailable as e:
            self._world.log.info("no lessons", session=s.id, error=str(e))

    def offers(self, s: Session, moment: Moment) -> Sequence[Offer]:
        """What was chosen for the session's task, and at an action what the call met."""
        if moment.when == "prompt":
            return self._answered.get(s.id, ())
        if moment.when == "action":
            return (*self._answered.get(s.id, ()), *self._met.pop(s.id, ()))
        return ()

    def gave(self, s: Session, offers: Sequence[Offer]) -> None:
        """The session was given these. Must not wait."""
        names = list(dict.fromkeys(o.name for o in offers if o.kind == "lesson"))
        if names:
            self._answered.pop(s.id, None)
            self._world.spawn(self._find.counted(names, s.id, "given"), "lessons given")
            self._world.spawn(self._renewed(s), "lessons")

    def prune(self) -> None:
        """The marks of sessions that ended without a word go. It blocks: call it in a thread."""
        reminder_marks.remove_old(self._world.db.path.parent)

    # --- for a task -------------------------------------------------------------------------------

    async def _answer(self, s: Session, moment: Moment) -> None:
        """Ask the model, and wait for as long as whoever calls allows. The question goes on after that."""
        asked = self._asked[s.id] = object()
        while len(self._asked) > SESSIONS_KEPT:
            self._asked.popitem(last=False)
        task = self._world.spawn(self._look(s, moment, asked), "lessons")
        self._waiting.add(s.id)
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError:
            if s.id in self._answered:
                self._world.spawn(self._renewed(s), "lessons")
            raise
        finally:
            self._waiting.discard(s.id)

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
            await self._renewed(s)

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

    # --- at a failed call -------------------------------------------------------------------------

    async def _meet(self, s: Session, moment: Moment) -> None:
        project = await self._project(s.directory) if moment.call is not None else ""
        if not project or moment.call is None or not self.at_action(s.directory):
            return
        met = (await self._triggers(project)).met_by(moment.call)
        given = {g.name for g in learning.given(self._world.db, s.id)} if met else set()
        chosen = list[Offer]()
        for episode in [e for e in met if e.id not in given and not refusal(_line(e))]:
            if len(chosen) < MOST_AT_ACTION and await self._find.stands(episode, project):
                chosen.append(_offer(episode, project, 0.0))
        if chosen:
            self._met[s.id] = tuple(chosen)
            while len(self._met) > SESSIONS_KEPT:
                self._met.popitem(last=False)

    async def _project(self, directory: str) -> str:
        found = self._projects.get(directory)
        if found is None:
            found = self._projects[directory] = await self._find.project(directory)
            while len(self._projects) > PROJECTS_KEPT:
                self._projects.popitem(last=False)
        return found

    async def _triggers(self, project: str) -> Triggers:
        known, now = self._known.get(project), self._world.clock.monotonic()
        if known is None or now - known.at > FRESH_S:
            found = Triggers(await self._find.triggered(project))
            known = self._known[project] = _Known(now, found)
            while len(self._known) > PROJECTS_KEPT:
                self._known.popitem(last=False)
        return known.triggers

    # --- marks ------------------------------------------------------------------------------------

    async def _mark(self, s: Session) -> None:
        """Write down at which tool calls this session's hooks ask; a host with a stream of orders asks each
        time. Raises ``Unavailable``.
        """
        if capabilities(s.host).order_stream:
            return
        at: reminder_marks.At | None = "any" if s.id in self._answered else None
        if at is None and self.at_action(s.directory):
            project = await self._project(s.directory)
            at = "failed" if project and await self._triggers(project) else None
        if at == self._marked.get(s.id):
            self._marked.setdefault(s.id, at)
            return
        self._marked[s.id] = at
        while len(self._marked) > SESSIONS_KEPT:
            self._marked.popitem(last=False)
        await self._write(s.id, at)

    async def _renewed(self, s: Session) -> None:
        try:
            await self._mark(s)
        except Unavailable as e:
            self._world.log.info("no lessons", session=s.id, error=str(e))

    async def _write(self, session: str, at: reminder_marks.At | None) -> None:
        try:
            await asyncio.to_thread(reminder_marks.mark, self._world.db.path.parent, session, at)
        except Unavailable as e:
            self._world.log.info("no marks for hooks", session=session, error=str(e))


def _line(episode: Episode) -> str:
    """The lesson as one line."""
    return " ".join(episode.lesson.split())


def _offer(episode: Episode, project: str, worth: float) -> Offer:
    text = SAID.format(_line(episode))
    return Offer(f"{OFFER}:{episode.id}", "lesson", text, worth, MARK, project, episode.id)

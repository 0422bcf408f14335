"""Brings lessons back: at the action that went wrong before, and at a similar prompt.

It chooses what is offered; ``offering`` composes it, records it and puts it in front of the agent. A lesson
is given once a session at each of the two places, and never when ``core.learned.refusal`` has anything
against it. At an action only the triggers decide, which stand in memory; at a prompt the ranking. Whatever
fails or takes too long gives nothing: no host waits for it.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from ..core import events as ev
from ..core.compose import Offer
from ..core.errors import Unavailable
from ..core.learned import refusal
from ..files import reminder_marks
from ..memory.triggers import Index, words_of
from ..store import learning
from .hosts.host import capabilities

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..core.compose import Moment
    from ..core.episodes import Candidate, Episode
    from ..core.session import Session
    from ..memory.rank import Ranked
    from .features.feature import Place
    from .world import World

HEADING: Final = "Lesson from Episode Memory"
SAYS: Final = "Past experience from similar query suggests: {}"
AT_PROMPT: Final = "lesson"
AT_ACTION: Final = "reminder"
MOST_AT_ACTION: Final = 2
MOST_AT_PROMPT: Final = 3
FEWEST_WORDS: Final = 2  # "continue" and "yes, go on" are no tasks
FRESH_S: Final = 60.0  # then the store is asked again: another daemon may share it
PROJECTS_KEPT: Final = 50
SESSIONS_KEPT: Final = 1_000


class Lessons(Protocol):
    """What knows the lessons: only those that may be shown in this project, to this person, now."""

    async def project(self, directory: str) -> str:
        """What names the project that a folder belongs to; "" for none."""
        ...

    async def lookup(self, project: str, text: str, *, limit: int = 3) -> Sequence[Ranked]:
        """The lessons for a task that are worth showing, best first. Raises ``Unavailable``."""
        ...

    async def triggers(self, project: str) -> Sequence[Candidate]:
        """The lessons that have triggers. Raises ``Unavailable``."""
        ...

    async def stands(self, episode: Episode, project: str) -> bool:
        """Whether all that the lesson cites is there now."""
        ...

    async def told(self, id_: str, session: str) -> None:
        """A session was given this lesson."""
        ...


@dataclass(slots=True)
class _Known:
    """The lessons with triggers of one project, as they were read at ``at``."""

    at: float
    index: Index


class Reminders:
    """One for the daemon."""

    def __init__(self, world: World, lessons: Lessons) -> None:
        self._world = world
        self._lessons = lessons
        self._projects: OrderedDict[str, str] = OrderedDict()
        self._known: OrderedDict[str, _Known] = OrderedDict()
        self._chosen: OrderedDict[str, tuple[Offer, ...]] = OrderedDict()
        self._marked: OrderedDict[str, None] = OrderedDict()  # the sessions that have a mark

    def at_prompt(self, directory: str) -> bool:
        """Whether lessons are brought back at prompts of this project."""
        return self._on(directory) and self._world.project(directory).memory.at_prompt

    def at_action(self, directory: str) -> bool:
        """Whether lessons are brought back at actions in this project."""
        return self._on(directory) and self._world.project(directory).memory.at_action

    def _on(self, directory: str) -> bool:
        """A project may only switch it off."""
        settings = self._world.project(directory)
        on = self._world.settings.memory.enabled and settings.memory.enabled
        return on and settings.enabled and settings.offer.enabled

    def places(self, directory: str) -> dict[Place, int]:
        """Where a host has to ask, in this folder, and how many ms it waits."""
        memory = self._world.project(directory).memory
        at_prompt: dict[Place, int] = {"lessons": memory.prompt_ms} if self.at_prompt(directory) else {}
        return at_prompt | ({"reminders": memory.action_ms} if self.at_action(directory) else {})

    def heard(self, s: Session, event: ev.SessionEvent) -> None:
        """A session ends. Must not wait."""
        if isinstance(event, ev.SessionEnded | ev.SessionDeleted) and s.id in self._marked:
            del self._marked[s.id]
            self._world.spawn(self._write(s.id, ()), "reminders")

    def forget(self) -> None:
        """There are other lessons now, of whatever project. Must not wait."""
        self._known.clear()
        for session in self._marked:
            s = self._world.sessions.get(session)
            if s is not None:
                self._world.spawn(self._renewed(s), "reminders")

    async def ready(self, s: Session, moment: Moment) -> None:
        """Choose what this moment calls for."""
        self._chosen.pop(s.id, None)
        offers: tuple[Offer, ...] = ()
        try:
            if moment.when != "action" and s.id not in self._marked:
                await self._mark(s)
            if moment.when == "prompt" and self.at_prompt(s.directory):
                offers = await self._for_task(s, moment.text)
            elif moment.when == "action" and moment.call is not None and self.at_action(s.directory):
                offers = await self._for_call(s, moment)
        except Unavailable as e:
            self._world.log.info("no lessons", session=s.id, error=str(e))
            return
        if offers:
            self._chosen[s.id] = offers
            while len(self._chosen) > SESSIONS_KEPT:
                self._chosen.popitem(last=False)

    def offers(self, s: Session, moment: Moment) -> Sequence[Offer]:
        """What was chosen for this moment, once."""
        return self._chosen.pop(s.id, ()) if moment.when in {"prompt", "action"} else ()

    def gave(self, s: Session, offers: Sequence[Offer]) -> None:
        """The session was given these. Must not wait."""
        lessons = [o for o in offers if o.kind == "lesson"]
        for name in dict.fromkeys(o.name for o in lessons):
            self._world.spawn(self._lessons.told(name, s.id), "lesson told")
        if s.id in self._marked and any(o.id.startswith(f"{AT_ACTION}:") for o in lessons):
            self._world.spawn(self._renewed(s), "reminders")

    def prune(self) -> None:
        """The marks of sessions that ended without a word go. It blocks: call it in a thread."""
        reminder_marks.remove_old(self._world.db.path.parent)

    # --- choosing ---------------------------------------------------------------------------------

    async def _for_task(self, s: Session, text: str) -> tuple[Offer, ...]:
        if len(text.split()) < FEWEST_WORDS:
            return ()
        project = await self._project(s.directory)
        if not project:
            return ()
        ranked = await self._lessons.lookup(project, text, limit=MOST_AT_PROMPT)
        found = [
            _offer(AT_PROMPT, one.candidate.episode, project, one.score)
            for one in ranked[:MOST_AT_PROMPT]
            if one.margin >= 0 and not refusal(_line(one.candidate.episode))
        ]
        return tuple(found)

    async def _for_call(self, s: Session, moment: Moment) -> tuple[Offer, ...]:
        project = await self._project(s.directory)
        if not project or moment.call is None:
            return ()
        found = (await self._triggers(project)).matching(moment.call, s.directory)
        given = self._given(s.id) if found else set()
        chosen = list[Offer]()
        for episode in [m.episode for m in found if not refusal(_line(m.episode))]:
            offer = _offer(AT_ACTION, episode, project, 0.0)
            if offer.id not in given and await self._lessons.stands(episode, project):
                chosen.append(offer)
            if len(chosen) == MOST_AT_ACTION:
                break
        return tuple(chosen)

    def _given(self, session: str) -> set[str]:
        return {g.offer for g in learning.given(self._world.db, session)}

    async def _project(self, directory: str) -> str:
        found = self._projects.get(directory)
        if found is None:
            found = self._projects[directory] = await self._lessons.project(directory)
            while len(self._projects) > PROJECTS_KEPT:
                self._projects.popitem(last=False)
        return found

    async def _triggers(self, project: str) -> Index:
        known, now = self._known.get(project), self._world.clock.monotonic()
        if known is None or now - known.at > FRESH_S:
            found = await self._lessons.triggers(project)
            index = await asyncio.to_thread(Index, [c.episode for c in found])
            known = self._known[project] = _Known(now, index)
            while len(self._known) > PROJECTS_KEPT:
                self._known.popitem(last=False)
        return known.index

    # --- marks ------------------------------------------------------------------------------------

    async def _mark(self, s: Session) -> None:
        """Write down at which words this session's hooks ask; a host with a stream of orders asks each time.
        Raises ``Unavailable``.
        """
        if capabilities(s.host).order_stream or not self.at_action(s.directory):
            return
        project = await self._project(s.directory)
        if not project:
            return
        episodes = (await self._triggers(project)).episodes
        given = self._given(s.id)
        self._marked[s.id] = None
        while len(self._marked) > SESSIONS_KEPT:
            self._marked.popitem(last=False)
        left = [e for e in episodes if f"{AT_ACTION}:{e.id}" not in given]
        await self._write(s.id, await asyncio.to_thread(words_of, left))

    async def _renewed(self, s: Session) -> None:
        try:
            await self._mark(s)
        except Unavailable as e:
            self._world.log.info("no lessons", session=s.id, error=str(e))

    async def _write(self, session: str, found: Sequence[str]) -> None:
        try:
            await asyncio.to_thread(reminder_marks.mark, self._world.db.path.parent, session, found)
        except Unavailable as e:
            self._world.log.info("no marks for hooks", session=session, error=str(e))


def _line(episode: Episode) -> str:
    """The lesson as one line."""
    return " ".join(episode.lesson.split())


def _offer(place: str, episode: Episode, project: str, worth: float) -> Offer:
    text = SAYS.format(_line(episode))
    return Offer(f"{place}:{episode.id}", "lesson", text, worth, HEADING, project, episode.id)

"""Lessons for tasks: which belong to one, and how the agent gets them (AC-2.6.4, design/memory.md).

Only lessons are given that may be put in front of an agent in this project now: proven or confirmed, not
refused, with all that the lesson cites still there. Of them the fast model chooses. The prompt waits
``memory.prompt_ms`` for its answer; a later one stands behind the next tool result of that task.
``engine.offering`` composes and records what is given: each lesson once a session.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections import Counter, OrderedDict
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final

from ...core import events as ev
from ...core.errors import ReflectdError, Unavailable
from ...core.given import folded
from ...core.offers import Offer
from ...engine.feature import Feature
from ...engine.hosts.host import capabilities
from ...engine.offering import ACTION
from ...files.safe import write_atomic
from ...store import injections
from .citations import stand
from .episodes import LONGEST, may_show
from .questions import MARK, SAID, SHOWN, named_by, should_reflect, which_lessons
from .repositories import project_of
from .store import Episodes

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from ...core.offers import Moment
    from ...core.session import Session
    from ...core.verdict import Verdict
    from ...engine.engine import Engine
    from ...engine.feature import Heard, Place
    from ...judge.case import Case
    from ...store.db import Statement
    from .episodes import Episode, Outcome

FOLDER: Final = "lessons"
KEPT_S: Final = 7 * 86_400  # a mark
LOOKED_AT: Final = 1_000  # the newest lessons of a project
ANSWER_S: Final = 30.0
SESSIONS_KEPT: Final = 1_000
_WORD: Final = re.compile(r"\w+")


class GiveLessons(Feature):
    """One for the daemon."""

    name: ClassVar = "lessons"

    def __init__(self, parts: Engine) -> None:
        super().__init__(parts)
        self._world, self._asking, self._store = parts.world, parts.asking, Episodes(parts.world.db)
        self._chosen: OrderedDict[str, list[Offer]] = OrderedDict()  # for the newest task of a session
        self._over_limit = False  # the newest question, which nobody was asked

    async def for_task(
        self, project: str, text: str, given: Collection[str] = (), directory: str = ""
    ) -> list[Episode]:
        """At most ``SHOWN`` lessons for a model to choose from, each text once, without those of the ids
        ``given``: all that there are, else the nearest to the text by meaning and, where vectors are missing,
        by words. Their cites are in ``directory`` or at the top of the project. Raises ``Unavailable``.
        """
        every = await self._store.page([project], limit=LOOKED_AT)

        def usable() -> list[Episode]:
            texts: dict[str, Episode] = {}
            for e in every:
                if may_show(e, project):
                    texts.setdefault(folded(e.lesson), e)
            had = {folded(e.lesson) for e in every if e.id in given}
            found = [e for said, e in texts.items() if said not in had]
            return by_words(text, found) if len(found) > SHOWN else found

        found = await asyncio.to_thread(usable)
        if len(found) > SHOWN and (vector := await self._world.embeddings.one(text)) is not None:
            near = [e.id for e in await self._store.search(vector, [project], len(every))]
            ranks = {id_: rank for rank, id_ in enumerate(near)}
            found.sort(key=lambda e: ranks.get(e.id, len(ranks)))
        top = str(Path(project).parent) if Path(project).name == ".git" else project
        standing = (e for e in found if stand(e.cites, (directory, top)))
        return await asyncio.to_thread(lambda: list(islice(standing, SHOWN)))

    def judged(self, verdict: Verdict, case: Case | None, *, sent: bool) -> None:  # noqa: ARG002 - the seam
        """The first verdict after lessons were given says whether they helped, those that the agent read."""
        memory = self._world.settings.memory
        if not memory.enabled or verdict.state not in {"complete", "incomplete"} or verdict.reward is None:
            return
        transcript = case.transcript if case is not None else None
        unshown = transcript.unshown if transcript is not None else ()
        texts = injections.first_after(self._world.db, verdict.session).items()
        if given := [name for name, text in texts if text not in unshown]:
            outcome: Outcome = "failed" if should_reflect(verdict.reward, memory.threshold) else "helped"
            self._world.spawn(self._counted(given, verdict.session, outcome), "memory")

    def heard(self, before: Session | None, after: Session, event: Heard) -> None:  # noqa: ARG002 - the seam
        """A session that ends is given nothing more."""
        if self._world.settings.memory.enabled and isinstance(event, ev.SessionEnded | ev.SessionDeleted):
            self._drop(after)

    def status(self) -> Mapping[str, Any]:
        """``over_limit`` when the question about the newest task would have cost too much."""
        return {"over_limit": True} if self._over_limit else {}

    def prune(self, now_ms: int) -> Sequence[Statement]:  # noqa: ARG002 - the seam
        """The marks of sessions that ended without a word go."""
        self._world.spawn(asyncio.to_thread(remove_old, self._world.db.path.parent), "marks for hooks")
        return ()

    async def _counted(self, ids: Collection[str], session: str, outcome: Outcome) -> None:
        """Count an outcome of these lessons. One that can't be counted is not."""
        try:
            await self._store.count(ids, self._world.clock.now_ms(), outcome)
        except Unavailable as e:
            self._world.log.info("not counted", session=session, outcome=outcome, error=str(e))

    def has_context(self, directory: str) -> Mapping[Place, int]:
        """With a prompt and behind a tool call; nowhere, where a person or the project switched lessons
        off.
        """
        settings = self._world.project(directory)
        memory = settings.memory
        on = self._world.settings.memory.enabled and memory.enabled
        if not (on and settings.enabled and settings.offer.enabled):
            return {}
        return {"lessons": memory.prompt_ms, "late_lessons": memory.prompt_ms // ACTION}

    async def prepare_context(self, s: Session, moment: Moment) -> None:
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
            if moment.text.strip() and self.has_context(s.directory):
                chosen.extend(await self._choose(s, moment))
                await self._mark(s)

        await asyncio.wait({self._world.spawn(look(), "lessons")})

    def context(self, s: Session, moment: Moment) -> Sequence[Offer]:
        """The lessons that were chosen for the session's task, once."""
        offers = self._chosen.get(s.id, []) if moment.when in {"prompt", "action"} else []
        if offers:
            names = [o.name for o in offers]
            self._world.spawn(self._counted(names, s.id, "given"), "lessons given")
            self._drop(s)
        return offers

    def _drop(self, s: Session) -> None:
        """It is over, or was given what was chosen for it."""
        self._chosen.pop(s.id, None)
        self._world.spawn(self._mark(s), "lessons")

    async def _choose(self, s: Session, moment: Moment) -> list[Offer]:
        """The lessons that the model names; none when nobody answers."""
        world = self._world
        try:
            project = await asyncio.to_thread(project_of, s.directory)
            given = {g.name for g in injections.given(world.db, s.id)}
            found = await self.for_task(project, moment.text, given, s.directory) if project else []
            if not found:
                return []
            question = which_lessons(moment.text, found, moment.model)
            answer = await self._asking.ask(question, s, ANSWER_S)
            self._over_limit = answer.limit is not None
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
        call. A file that can't be written is left out.
        """
        if capabilities(s.host).order_stream:
            return
        state_dir = self._world.db.path.parent
        try:
            await asyncio.to_thread(lambda: mark(state_dir, s.id, waits=bool(self._chosen.get(s.id))))
        except Unavailable as e:
            self._world.log.info("no mark for hooks", session=s.id, error=str(e))


def by_words(text: str, episodes: Sequence[Episode]) -> list[Episode]:
    """Those first that share the most words with the text; the rarer a word, the more it counts."""

    def words(said: str) -> set[str]:
        return set(_WORD.findall(said[:LONGEST].casefold()))

    asked = words(text)
    shared = {e.id: asked & words(f"{e.lesson} {e.query}") for e in episodes}
    often = Counter(word for both in shared.values() for word in both)
    return sorted(episodes, key=lambda e: -sum(1 / often[word] for word in shared[e.id]))


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
    """Marks that are old go. Blocks."""
    with suppress(OSError):
        for file in (state_dir / FOLDER).iterdir():
            if time.time() - file.stat().st_mtime > KEPT_S:
                file.unlink(missing_ok=True)

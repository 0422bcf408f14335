"""Lessons for tasks: which belong to one, and how the agent gets them (AC-2.6.4, design/lessons.md).

``FindLessons`` gives only lessons that may be put in front of an agent in this project now: proven or
confirmed, not refused, with all that the lesson cites still there; ``similar`` answers the API and MCP by
similarity alone. ``GiveLessons`` has the fast model choose (``learning.lessons.picking``). The prompt waits
``memory.prompt_ms`` for its answer; a later one stands behind the next tool result of that task. ``offering``
composes and records what is given: each lesson once a session, and never when ``learning.texts.refusal`` has
anything against it. Whatever fails or takes too long gives nothing; a store that can't be reached is a fault
that is set once, and cleared when it answers.
"""

from __future__ import annotations

import asyncio
import shutil
import time
from collections import OrderedDict
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from ...core import events as ev
from ...core.errors import ReflectdError, Unavailable
from ...core.offers import Offer
from ...engine.hosts.host import capabilities
from ...engine.offering import ACTION
from ...engine.repositories import project_of
from ...files.safe import read_text, write_atomic
from ...store import injections
from ..texts import refusal
from .episodes import SIMILAR, TOP_K, Candidate, gone, may_show
from .picking import MARK, PURPOSE, SAID, SHOWN, Lesson, pick, prompt_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Coroutine, Iterable, Sequence

    from ...core.offers import Moment
    from ...core.session import Session
    from ...engine.asking import Asking
    from ...engine.features.feature import Place
    from ...engine.world import World
    from ..embed.vectors import Vector, Vectors
    from .episodes import Episode
    from .sqlite import Episodes

FAULT: Final = "episodes"
FOLDER: Final = "lessons"
KEPT_S: Final = 7 * 86_400  # a mark
FEW: Final = 5 * SHOWN
"""Of a project with fewer episodes all are looked at; of one with more those that a search finds."""
MAKEFILE_BYTES: Final = 200_000
OFFER: Final = "lesson"
ANSWER_S: Final = 30.0
QUERY_CHARS: Final = 20_000  # of a task that another program may have written
SESSIONS_KEPT: Final = 1_000
T = TypeVar("T")


@dataclass(slots=True)
class _Task:
    """A session's newest task. ``waiting``: its prompt waits for the answer."""

    waiting: bool = True
    offers: tuple[Offer, ...] = ()


class FindLessons:
    """One for the daemon. ``home``: a folder that is no project."""

    def __init__(self, world: World, store: Episodes, vectors: Vectors, home: str) -> None:
        self._world = world
        self._store = store
        self._vectors = vectors
        self._home = home

    async def project(self, directory: str) -> str:
        """What names the project that a folder belongs to; "" for none."""
        return await asyncio.to_thread(project_of, directory, self._home)

    async def for_task(
        self, project: str, text: str, given: Collection[str] = (), directory: str = ""
    ) -> list[Episode]:
        """At most ``SHOWN`` lessons for a model to choose from, without those of the ids ``given``: all that
        there are, else the nearest to the text by meaning and, where vectors are missing, by words. What they
        cite is in ``directory`` or at the top of the project. Raises ``Unavailable``.
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
        top = str(Path(project).parent) if Path(project).name == ".git" else project
        roots = [folder for folder in (directory, top) if folder]

        def there(name: str) -> bool:
            return any(is_there(root, name) for root in roots)

        standing = await asyncio.to_thread(lambda: [e for e in found if not gone(e, there)])
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
    ) -> list[Candidate]:
        """The episodes of this project whose similarity to ``text`` is above ``least``, best first. Without a
        model for embeddings none, or with ``by_words`` those that share words with it. ``vouched``: only
        those that are, and whose lesson an agent may read. Raises ``Unavailable``.
        """
        vector = await self._vectors.one(text)
        if vector is None and not by_words:
            return []
        found = await self._search(project, text, vector, max(FEW, limit))
        wanted = [c for c in found if c.episode.state != "dismissed"]
        if vouched:
            wanted = [c for c in wanted if c.vouched and not refusal(c.episode.lesson)]
        if vector is not None:
            wanted = [c for c in wanted if (c.similarity or -1.0) > least]
        return wanted[:limit]

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


class GiveLessons:
    """One for the daemon."""

    def __init__(self, world: World, asking: Asking, find: FindLessons) -> None:
        self._world = world
        self._asking = asking
        self._find = find
        self._tasks: OrderedDict[str, _Task] = OrderedDict()  # of sessions

    def on(self, directory: str) -> bool:
        """Whether lessons are given in this project, which may only switch it off."""
        settings = self._world.project(directory)
        on = self._world.settings.memory.enabled and settings.memory.enabled
        return on and settings.enabled and settings.offer.enabled

    def places(self, directory: str) -> dict[Place, int]:
        """Where a host has to ask, in this folder, and how many ms it waits."""
        memory = self._world.project(directory).memory
        ms: dict[Place, int] = {"lessons": memory.prompt_ms, "late_lessons": memory.prompt_ms // ACTION}
        return ms if self.on(directory) else {}

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
        self._tasks.pop(s.id, None)
        await self._mark(s)
        if not moment.text.strip() or not self.on(s.directory):
            return
        task = self._tasks[s.id] = _Task()
        while len(self._tasks) > SESSIONS_KEPT:
            self._tasks.popitem(last=False)

        async def look() -> None:
            task.offers = await self._choose(s, moment)
            if not task.waiting:
                await self._mark(s)

        try:
            await asyncio.wait({self._world.spawn(look(), "lessons")})
        except asyncio.CancelledError:
            self._world.spawn(self._mark(s), "lessons")
            raise
        finally:
            task.waiting = False

    def offers(self, s: Session, moment: Moment) -> Sequence[Offer]:
        """What was chosen for the session's task, once. Must not wait."""
        task = self._tasks.get(s.id) if moment.when in {"prompt", "action"} else None
        offers = task.offers if task is not None else ()
        if offers:
            names = list(dict.fromkeys(o.name for o in offers))
            self._world.spawn(self._find.counted(names, s.id, "given"), "lessons given")
            self._drop(s)
        return offers

    def prune(self) -> None:
        """The marks of sessions that ended without a word go. It blocks: call it in a thread."""
        remove_old(self._world.db.path.parent)

    def _drop(self, s: Session) -> None:
        self._tasks.pop(s.id, None)
        self._world.spawn(self._mark(s), "lessons")

    async def _choose(self, s: Session, moment: Moment) -> tuple[Offer, ...]:
        """The lessons that the model names; none when nobody answers."""
        world = self._world
        try:
            project = await self._find.project(s.directory)
            given = {g.name for g in injections.given(world.db, s.id)}
            found = await self._find.for_task(project, moment.text, given, s.directory) if project else []
            found = [e for e in found if not refusal(_line(e))]
            if not found:
                return ()
            texts = await asyncio.to_thread(world.prompt_texts, s.directory)
            lessons = [Lesson(e.id, _line(e), " ".join(e.query[:QUERY_CHARS].split())) for e in found]
            prompt = prompt_of(moment.text, lessons, texts[PURPOSE], world.nonce(), s.id, moment.model)
            answer = await self._asking.run(pick(prompt, lessons), s, ANSWER_S, None, lambda _no: None)
        except ReflectdError as e:
            world.log.info("no lessons", session=s.id, error=str(e))
            return ()
        ids = answer.found or ()
        world.log.info("lessons", session=s.id, shown=len(lessons), picked=list(ids), why=answer.why)
        by_id, many = {e.id: e for e in found}, len(ids)
        return tuple(_offer(by_id[id_], project, many - n) for n, id_ in enumerate(ids))

    async def _mark(self, s: Session) -> None:
        """Write down for a host without a stream of orders whether a lesson waits; another one asks at each
        call. What can't be written is left out.
        """
        if capabilities(s.host).order_stream:
            return

        def now() -> None:
            task = self._tasks.get(s.id)
            mark(self._world.db.path.parent, s.id, waits=task is not None and bool(task.offers))

        try:
            await asyncio.to_thread(now)
        except Unavailable as e:
            self._world.log.info("no mark for hooks", session=s.id, error=str(e))


def mark(state_dir: Path, session: str, *, waits: bool) -> None:
    """Whether a lesson waits for this session: one empty file. ``hook.sh`` asks the daemon at a tool call
    only where there is one, so a session without lessons costs no request. Blocks. Raises ``Unavailable``.
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
    """The marks of sessions that ended without a word. Blocks."""
    with suppress(OSError):
        for file in (state_dir / FOLDER).iterdir():
            if time.time() - file.stat().st_mtime > KEPT_S:
                file.unlink(missing_ok=True)


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


def _line(episode: Episode) -> str:
    """The lesson as one line."""
    return " ".join(episode.lesson.split())


def _offer(episode: Episode, project: str, worth: float) -> Offer:
    text = SAID.format(_line(episode))
    return Offer(f"{OFFER}:{episode.id}", "lesson", text, worth, MARK, project, episode.id)

"""The playbook: what is learned from judged sessions, and offered to the next ones (design/learning.md).

Off unless the person switched it on; then each judged case is stored with its verdict, and a session that
ends, is compacted or falls silent is looked back on in the background. A session that starts is given the
points that somebody vouches for.
"""

from __future__ import annotations

import asyncio
import os
from collections import OrderedDict
from dataclasses import asdict, dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Any, ClassVar, Final

from ...core import events as ev
from ...core.errors import BadReply
from ...core.given import known_as
from ...core.offers import Moment, Offer
from ...engine.features.feature import Feature, Heard, Parts, Place, Route
from ...learning import tables
from ...store import injections
from ..texts import refusal
from .bootstrap import BOOTSTRAP, Bootstrap
from .look_back import LEARN, Lookback
from .playbooks import Line, Playbooks, Stamp

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ...core.session import Session
    from ...core.verdict import Verdict
    from ...judge.case import Case
    from ...learning.tables import Text
    from ...store.db import Statement
    from ...store.jobs import Job

WEEK_MS: Final = 7 * 86_400_000
DIRECTORIES_KEPT: Final = 50
LEARNED_FROM: Final = frozenset({"complete", "incomplete", "awaiting_user"})
SLOT: Final = "{key_points}"


@dataclass(frozen=True, slots=True)
class _Read:
    """A project's points as they were last read."""

    stamp: Stamp
    project: str
    lines: tuple[Line, ...]
    heading: str


class Playbook(Feature):
    """Hears what ends, keeps what was judged, offers what is known."""

    name: ClassVar = "playbook"
    job_kinds: ClassVar = frozenset({LEARN, BOOTSTRAP})

    def __init__(self, parts: Parts) -> None:
        super().__init__(parts)
        self._world = parts.world
        home, path = os.environ.get("HOME", "/"), parts.world.settings.playbook.path
        self._books = Playbooks(parts.world.db, parts.world.clock, home, path)
        self._learning = Lookback(parts.world, parts.asking, parts.jobs, self._books)
        self._bootstrap = Bootstrap(parts.world, parts.instances, parts.jobs, self._books, self._learning)
        self._read: OrderedDict[str, _Read] = OrderedDict()
        self._reading: dict[str, asyncio.Task[None]] = {}

    def deciding(self, verdict: Verdict, case: Case, directory: str) -> Sequence[Statement]:
        """The case is stored with its verdict."""
        s = self._world.sessions.get(verdict.session)
        if s is None or verdict.state not in LEARNED_FROM or not self._learning.on(directory, s.host):
            return ()
        return self._learning.keep(verdict, case, directory)

    def heard(self, before: Session | None, after: Session, event: Heard) -> None:
        """What ends a stretch makes its look back due; a new session, those that wait for a model."""
        if not self._world.settings.playbook.enabled or after.judge or after.parent:
            return
        match event:
            case ev.SessionEnded() | ev.SessionDeleted() | ev.SessionCompacted():
                self._world.spawn(self._due_soon(self._learning.soon(after.id)), "playbook")
            case ev.SessionSeen() if before is None:
                self._world.spawn(self._due_soon(self._learning.retry(after.directory)), "playbook")
                self._world.spawn(self.prepare_context(after, Moment("start")), "playbook")
            case _:
                pass

    async def _due_soon(self, statement: Statement) -> None:
        await self._world.db.commit(statement)
        self.parts.jobs.wake()

    async def work(self, job: Job) -> None:
        """Look back on a stretch, or write what a bootstrap had decided."""
        await (self._bootstrap if job.kind == BOOTSTRAP else self._learning).work(job)

    def has_context(self, directory: str) -> Mapping[Place, int]:
        """When a session starts, where it is switched on."""
        return {"context": 0} if self._learning.gives(directory) else {}

    async def prepare_context(self, s: Session, moment: Moment) -> None:
        """Read the project's points, if anything changed since they were last read."""
        if not moment.begins or not self._learning.gives(s.directory):
            return
        reading = self._reading.get(s.directory)
        if reading is None:
            reading = self._reading[s.directory] = self._world.spawn(self._reads(s.directory), "playbook")
            reading.add_done_callback(lambda _: self._reading.pop(s.directory, None))
        await asyncio.shield(reading)  # whoever waits may give up; what was read is there the next time

    async def _reads(self, directory: str) -> None:
        found = await asyncio.to_thread(self._look, directory, self._read.get(directory))
        if found is None:
            self._read.pop(directory, None)
            return
        self._read[directory] = found
        self._read.move_to_end(directory)
        while len(self._read) > DIRECTORIES_KEPT:
            self._read.popitem(last=False)

    def _look(self, directory: str, known: _Read | None) -> _Read | None:
        project = self._books.project(directory)
        if not project:
            return None
        template = self._world.prompt_texts(directory)["playbook"]
        heading = template.replace(SLOT, "").strip()
        stamp = (heading, *self._books.stamp(project))
        if known is not None and known.stamp == stamp:
            return known
        return _Read(stamp, project, tuple(self._books.lines(project)), heading)

    def context(self, s: Session, moment: Moment) -> Sequence[Offer]:
        """The points that are known, when a session starts and when it lost its context."""
        if not moment.begins or not self._learning.gives(s.directory):
            return ()
        found = self._read.get(s.directory)
        if found is None:
            return ()
        if held_out(s.id, self._world.settings.playbook.holdout_percent):
            self._world.later(injections.hold_out(s.id, found.project, self._world.clock.now_ms()))
            return ()
        return [
            Offer(
                f"point:{p.name}:{p.digest}", "point", p.text, p.worth, found.heading, found.project, p.name
            )
            for p in found.lines
        ]

    def routes(self) -> Sequence[Route]:
        """For `reflectd playbook`: what waits for a yes or for another session, a person's word on it, what
        it was worth, and looking back on sessions of the past.
        """
        return (
            Route("GET", "waiting", self._waiting),
            Route("GET", "confirmed", self._confirmed),
            Route("GET", "points", self._points),
            Route("POST", "settle", self._settle),
            Route("POST", "forget", self._forget),
            Route("POST", "bootstrap-plan", self._bootstrap.plan),
            Route("POST", "bootstrap", self._bootstrap.look_back),
        )

    async def _confirmed(self, query: Mapping[str, Any]) -> Mapping[str, Any]:
        """``directory`` → the digests of the texts that sessions confirmed in that project, and where each
        comes from.
        """
        project = await asyncio.to_thread(self._books.project, str(query.get("directory", "")))
        found = tables.texts(self._world.db, project, "confirmed")
        return {
            "directory": project,
            "digests": sorted(tables.confirmed(self._world.db, project)),
            "origins": {known_as(t.text): asdict(t.origin) for t in found},
        }

    async def _points(self, query: Mapping[str, Any]) -> Mapping[str, Any]:
        """``directory`` → the points that agents may be given in that project, best first."""
        project = await asyncio.to_thread(self._books.project, str(query.get("directory", "")))
        lines = await asyncio.to_thread(self._books.lines, project) if project else []
        return {"directory": project, "points": [{"name": p.name, "text": p.text} for p in lines]}

    async def _waiting(self, query: Mapping[str, Any]) -> Mapping[str, Any]:
        """``directory`` → the texts that are kept apart in that project, oldest first."""
        project = await asyncio.to_thread(self._books.project, str(query.get("directory", "")))
        blocked = await asyncio.to_thread(self._books.blocked, project)
        found = tables.texts(self._world.db, project)
        return {"directory": project, "texts": [_text_object(t) for t in found if not blocked(t.text)]}

    async def _settle(self, body: Mapping[str, Any]) -> Mapping[str, Any]:
        """``id``, ``yes``, ``by``: whether that text counts from now on. Raises ``BadReply``."""
        identity, yes = body.get("id"), body.get("yes")
        if type(identity) is not int or not 0 < identity < 1 << 63 or not isinstance(yes, bool):
            raise BadReply("name the text by `id`, a number, and say `yes`: true or false")
        text = tables.text(self._world.db, identity)
        if text is None or text.state != "quarantined":
            raise BadReply(f"no text {identity} waits; `reflectd learned approve` lists those that do")
        if yes and (why := refusal(text.text)):
            raise BadReply(f"text {identity} may not be offered to agents: {why}")
        word = "a person's word in the dashboard" if body.get("by") == "dashboard" else "a person's word"
        await self._learning.settle(text, yes=yes, word=word)
        return {"text": _text_object(text), "yes": yes}

    async def _forget(self, body: Mapping[str, Any]) -> Mapping[str, Any]:
        """``session``: take back what it taught. Raises ``BadReply``."""
        session = body.get("session")
        if not isinstance(session, str) or not session:
            raise BadReply("name the `session` whose verdict was wrong")
        counts, texts = await self._learning.forget(session)
        return {"session": session, "counts": counts, "texts": texts}

    def status(self) -> Mapping[str, Any]:
        """What waits, lapsed and was learned; nothing while it is off."""
        world = self._world
        if not world.settings.playbook.enabled:
            return {}
        waiting, size = tables.waiting(world.db)
        hosts = [host for host in world.calls.judges if self._learning.asks(host)]
        return {
            "enabled": True,
            "hosts": hosts,
            "cases_waiting": waiting,
            "bytes_waiting": size,
            "texts_waiting": tables.quarantined(world.db),
            **tables.counts(world.db),
            "spent": asdict(world.ledger.spent("", world.clock.now_ms() - WEEK_MS, "learning")),
            "over_limit": self._learning.over_limit,
            "waits": self._learning.waits,
        }

    def prune(self, now_ms: int) -> Sequence[Statement]:
        """What lapsed, and what is too old."""
        return tables.prune(now_ms)


def _text_object(t: Text) -> dict[str, Any]:
    return {
        "id": t.id,
        "section": t.section,
        "text": t.text,
        "replaces": list(t.replaces),
        "session": t.session,
        "at": t.at,
        "why": t.origin.why,
    }


def held_out(session: str, percent: int) -> bool:
    """Whether this session is one of those that are offered no points. The same answer each time."""
    return bool(percent) and int(sha256(session.encode()).hexdigest()[:8], 16) % 100 < percent

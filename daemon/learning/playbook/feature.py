"""The playbook: what is learned from judged sessions, and offered to the next ones (design/learning.md).

Off unless the person switched it on; then each judged case is stored with its verdict, and a session that
ends, is compacted or falls silent is looked back on in the background. A session that starts is given the
points that somebody vouches for.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Any, ClassVar, Final

from ...core import events as ev
from ...core.errors import BadReply
from ...core.given import known_as
from ...core.offers import Moment, Offer
from ...engine.calls import OVER_LIMIT
from ...engine.feature import Feature, Heard, Place, Route
from ...learning import tables
from ...store import injections
from ..texts import refusal
from .bootstrap import Bootstrap
from .look_back import LEARN, Lookback, project_of
from .points import Point, line
from .stretch import LEARNED_FROM

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ...core.session import Session
    from ...core.verdict import Verdict
    from ...engine.engine import Engine
    from ...judge.case import Case
    from ...store.db import Statement
    from ...store.jobs import Job

WEEK_MS: Final = 7 * 86_400_000
DIRECTORIES_KEPT: Final = 50
SLOT: Final = "{key_points}"


@dataclass(frozen=True, slots=True)
class _Read:
    """A project's points as they were last read, best first. ``stamp``: what they were read from."""

    stamp: tuple[object, ...]
    project: str
    points: Sequence[Point]
    heading: str


class Playbook(Feature):
    """Hears what ends, keeps what was judged, offers what is known."""

    name: ClassVar = "playbook"
    job_kinds: ClassVar = frozenset({LEARN})

    def __init__(self, parts: Engine) -> None:
        super().__init__(parts)
        self.parts = parts
        self._world = parts.world
        self._learning = Lookback(parts.world, parts.asking, parts.jobs)
        self._bootstrap = Bootstrap(parts.world, parts.instances, parts.jobs, self._learning)
        self._read: OrderedDict[str, _Read] = OrderedDict()
        self._reading: dict[str, asyncio.Task[None]] = {}

    def deciding(self, verdict: Verdict, case: Case, directory: str) -> Sequence[Statement]:
        """The case is stored with its verdict."""
        s = self._world.sessions.get(verdict.session)
        if s is None or verdict.state not in LEARNED_FROM:
            return ()
        return self._learning.keep(verdict, case, directory, s.host)

    def heard(self, before: Session | None, after: Session, event: Heard) -> None:
        """What ends a stretch makes its look back due; a new session, those that wait for a model."""
        if not self._world.settings.playbook.enabled or after.judge or after.parent:
            return
        match event:
            case ev.SessionEnded() | ev.SessionDeleted() | ev.SessionCompacted():
                self._world.spawn(self._learning.soon(after.id), "playbook")
            case ev.SessionSeen() if before is None:
                self._world.spawn(self._learning.retry(after.directory), "playbook")
                self._world.spawn(self.prepare_context(after, Moment("start")), "playbook")
            case _:
                pass

    async def work(self, job: Job) -> None:
        """Look back on a stretch."""
        await self._learning.work(job)

    # --- what sessions are given ----------------------------------------------------------------------------

    def has_context(self, directory: str) -> Mapping[Place, int]:
        """When a session starts, where it is switched on."""
        return {"context": 0} if self._learning.gives(directory) else {}

    async def prepare_context(self, s: Session, moment: Moment) -> None:
        """Read the project's points."""
        if not moment.begins or not self._learning.gives(s.directory):
            return
        reading = self._reading.get(s.directory)
        if reading is None:
            reading = self._reading[s.directory] = self._world.spawn(self._reads(s.directory), "playbook")
            reading.add_done_callback(lambda _: self._reading.pop(s.directory, None))
        await asyncio.shield(reading)  # whoever waits may give up; what was read is there the next time

    async def _reads(self, directory: str) -> None:
        def look() -> _Read:
            project, known = project_of(directory), self._read.get(directory)
            heading = self._world.prompt_texts(directory)["playbook"].replace(SLOT, "").strip()
            confirmed = tables.confirmed(self._world.db, project)
            stamp = (heading, confirmed, *self._learning.book(project).stamp())
            if known is not None and known.stamp == stamp:  # a host waits for a moment only
                return known
            return _Read(stamp, project, self._learning.best(project), heading)

        self._read[directory] = await asyncio.to_thread(look)
        self._read.move_to_end(directory)
        while len(self._read) > DIRECTORIES_KEPT:
            self._read.popitem(last=False)

    def context(self, s: Session, moment: Moment) -> Sequence[Offer]:
        """The points that are known, when a session starts and when it lost its context."""
        read = self._read.get(s.directory)
        if read is None or not read.project or not moment.begins or not self._learning.gives(s.directory):
            return ()
        if held_out(s.id, self._world.settings.playbook.holdout_percent):
            self._world.later(injections.hold_out(s.id, read.project, self._world.clock.now_ms()))
            return ()
        return [
            Offer(
                id=f"point:{p['name']}:{known_as(p['text'])[:16]}",
                kind="point",
                text=line(p),
                worth=p["helpful"] - p["harmful"],
                heading=read.heading,
                directory=read.project,
                name=p["name"],
            )
            for p in read.points
        ]

    # --- routes and status ----------------------------------------------------------------------------------

    def routes(self) -> Sequence[Route]:
        """For our commands: the points that agents are given, a person's word on what waits and on what a
        session taught, and looking back on sessions of the past.
        """
        return (
            Route("GET", "points", self._points),
            Route("POST", "settle", self._settle),
            Route("POST", "forget", self._forget),
            Route("POST", "bootstrap-plan", self._bootstrap.plan),
            Route("POST", "bootstrap", self._bootstrap.look_back),
        )

    async def _points(self, query: Mapping[str, Any]) -> Mapping[str, Any]:
        """``directory`` → the points that agents may be given in that project, best first."""
        project = await asyncio.to_thread(project_of, str(query.get("directory", "")))
        points = await asyncio.to_thread(self._learning.best, project)
        return {"directory": project, "points": [{"name": p["name"], "text": line(p)} for p in points]}

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
        return {"id": identity, "yes": yes}

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
        cases, size = tables.waiting(world.db)
        return {
            "enabled": True,
            "hosts": [host for host in world.calls.judges if self._learning.asks(host)],
            "cases_waiting": cases,
            "bytes_waiting": size,
            "texts_waiting": tables.quarantined(world.db),
            **tables.counts(world.db),
            "spent": asdict(world.ledger.spent("", world.clock.now_ms() - WEEK_MS, "learning")),
            "over_limit": OVER_LIMIT in self._learning.waits,
            "waits": self._learning.waits,
        }

    def prune(self, now_ms: int) -> Sequence[Statement]:
        """What lapsed, and what is too old."""
        return tables.prune(now_ms)


def held_out(session: str, percent: int) -> bool:
    """Whether this session is one of those that are offered no points. The same answer each time."""
    return bool(percent) and int(sha256(session.encode()).hexdigest()[:8], 16) % 100 < percent

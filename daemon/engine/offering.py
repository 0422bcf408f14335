"""Puts the features' offers in front of an agent: in one text, within one budget, each once a session.

A learned text is recorded byte for byte before the agent reads it: so it is not given twice, its use can be
counted, and our own words are taken out again before anything is judged or learned from them. A text that
can't be recorded is not given.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import OrderedDict
from typing import TYPE_CHECKING, Final

from msgspec import Struct, field

from ..core.errors import BadReply, Unavailable
from ..core.offers import LEARNED, Composed, Moment, When, compose
from ..store import injections

if TYPE_CHECKING:
    from ..core.session import Session
    from ..core.transcript import Model, Transcript
    from .hosts.host import Instance
    from .turn import Messages
    from .world import World

CHARS: Final = 9_000  # Claude Code cuts a hook's context at 10,000
READY_S: Final = 1.0  # at a start and after a compaction
CHARACTERS: Final = 4_000  # of what was learned, for one session
ACTION: Final = 3  # a tool call waits a third of what a prompt waits
SHARE: Final = 0.7  # of what a prompt or a tool call waits: the rest is the way to the host
SESSIONS_KEPT: Final = 1_000


class Offering(Struct, eq=False):
    """Asks the features and composes what they offer. ``_given``: the ids of offers, by session."""

    _world: World
    _messages: Messages
    _given: OrderedDict[str, tuple[str, ...]] = field(default_factory=OrderedDict)

    async def text(
        self,
        s: Session,
        when: When,
        instance: Instance,
        text: str = "",
        *,
        anew: bool = False,
        call: str = "",
        model: Model | None = None,
    ) -> str:
        """The text for the agent now; empty when nothing is offered. Never fails.

        ``anew``: the agent does not remember earlier texts, as after a compaction. ``model``: the one that
        answers a prompt, where the host says.
        """
        world = self._world
        # after Esc a person types, and the daemon hears of that last
        stopped = s.aborted and when not in {"start", "prompt"}
        if s.judge or s.parent or s.off or stopped or world.sessions.is_off(s.directory):
            return ""
        transcript: Transcript | None = None
        if when == "compacted":
            try:
                transcript = await self._messages.read(s, instance)
            except (Unavailable, BadReply) as e:
                world.log.info("nothing offered", session=s.id, when=when, error=str(e))
                return ""
        moment = Moment(when, text, transcript, call, model)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._wait_s(s, when)):
                await self._world.features.prepare_context(s, moment)
        found = await self._recorded(s, moment, anew=anew or when == "compacted")
        if found.given:
            world.log.info(
                "offered", session=s.id, when=when, given=list(found.given), left_out=found.left_out
            )
        return found.text

    async def _recorded(self, s: Session, moment: Moment, *, anew: bool) -> Composed:
        found = self.compose(s, moment, anew=anew)
        if not any(o.kind in LEARNED for o in found.offers):
            return found
        try:
            now = self._world.clock.now_ms()
            await self._world.db.commit(injections.give(s.id, moment.when, now, found, moment.call))
        except Unavailable as e:
            self._world.log.info("nothing learned is offered", session=s.id, error=str(e))
            self._given.pop(s.id, None)
            return self.compose(s, moment, anew=anew, learned=False)
        return found

    def compose(self, s: Session, moment: Moment, *, anew: bool = False, learned: bool = True) -> Composed:
        """The offers of the features that fit. An agent that lost its context was given nothing."""
        offers = self._world.features.context(s, moment)
        if not offers:
            return Composed("")
        before = () if anew else self._known(s)
        most = self._characters(s) if learned else 0
        found = compose(offers, CHARS, before, learned=most, tells=moment.begins)
        if found.given:
            self._given[s.id] = (*before, *found.given)
            self._given.move_to_end(s.id)
            while len(self._given) > SESSIONS_KEPT:
                self._given.popitem(last=False)
        return found

    def _wait_s(self, s: Session, when: When) -> float:
        memory = self._world.project(s.directory).memory
        waits = {"prompt": memory.prompt_ms, "action": memory.prompt_ms // ACTION}
        return SHARE * waits[when] / 1_000 if when in waits else READY_S

    def _characters(self, s: Session) -> int:
        """How much learned text it may be given: none where its work is not judged, or only observed."""
        settings = self._world.project(s.directory)
        on = settings.enabled and settings.offer.enabled and settings.judge.mode != "observe"
        return CHARACTERS if on else 0

    def _known(self, s: Session) -> tuple[str, ...]:
        """The ids of what the session was given, also by an earlier daemon."""
        known = self._given.get(s.id)
        if known is None:
            known = tuple(g.offer for g in injections.given(self._world.db, s.id))
        return known

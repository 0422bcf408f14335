"""Rules in the engine: what a person agreed to inside a host, and what they typed in past sessions.

Consent (design/rules.md): a host's own hook or event tells of an answer to a question of ours, or of our
command that the person typed, and the host's own record must say the same when it is used. Each counts once
and soon. What can't be shown to be a person's is refused, with the reason. Nothing here changes a file but a
click in the dashboard (``pages.rules``). History is read page by page, when somebody asks for it.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, ClassVar, Final

from ...core import events as ev
from ...core.errors import BadReply, Rejected, Unavailable
from ...store import consents
from ..pages.rules import RulesPage
from .feature import Feature, Page, Parts, Route

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ...core.session import Session
    from ...store.consents import Consent
    from ...store.db import Statement
    from ..hosts.host import Instance

FRESH_MS: Final = 3_600_000  # an answer is used at once; later it may not be what the person means any more
POLL_S: Final = 0.1
POLLS: Final = 10  # what a hook told is stored a moment later
PAGE: Final = 50  # sessions of a page of history
MOST_CHARS: Final = 200


class Rules(Feature):
    """Keeps what hosts told of a person's will until it is used."""

    name: ClassVar = "rules"

    def __init__(self, parts: Parts) -> None:
        super().__init__(parts)
        self._world = parts.world
        self._lock = asyncio.Lock()
        self._page = RulesPage(parts)

    def heard(self, before: Session | None, after: Session, event: ev.SessionEvent) -> None:  # noqa: ARG002
        """Note what a person was shown, answered and typed."""
        match event:
            case ev.QuestionShown():
                self._world.later(consents.show(event.session, event.digests, event.t))
            case ev.QuestionAnswered():
                statement = consents.answer(event.session, event.call, event.place, event.answers, event.t)
                self._world.later(statement)
            case ev.CommandTyped() if event.digest:
                statement = consents.type_in(event.session, event.digest, event.message, event.place, event.t)
                self._world.later(statement)
            case _:
                pass

    def routes(self) -> Sequence[Route]:
        """For `reflectd reflect`: which host a session is of, a person's consent, what was said before."""
        return (
            Route("GET", "session", self._session),
            Route("POST", "spend", self._spend),
            Route("GET", "history", self._history),
            *self._page.routes(),
        )

    def pages(self) -> Sequence[Page]:
        """Its part of what was learned: rules and preferences, and their changes."""
        return (Page("learned", "Learned", self._page.read),)

    async def _session(self, query: Mapping[str, Any]) -> Mapping[str, Any]:
        """``session`` → its host and folder. Raises ``BadReply`` and ``Rejected``."""
        s, instance = self._attended(str(query.get("session", "")))
        return {"session": s.id, "host": instance.host.name, "directory": s.directory}

    def _attended(self, session: str) -> tuple[Session, Instance]:
        """A session before which a person sits."""
        s = self._world.sessions.get(session) if session else None
        if s is None or s.judge or s.parent:
            raise BadReply(f"no session {session[:MOST_CHARS]!r} that a person could have typed in is known")
        instance = self.parts.instances.connected(s.instance, s.directory)
        if instance is None:
            raise Rejected(
                f"the host of session {s.id} is not connected, so nobody can say what was answered"
            )
        if instance.mode == "run":
            raise Rejected(
                f"nobody sits before session {s.id}: what is decided there is no person's decision"
            )
        return s, instance

    async def _spend(self, body: Mapping[str, Any]) -> Mapping[str, Any]:
        """``session`` and ``digest`` → the label that the person chose. From now on it is used. Raises
        ``BadReply`` and ``Rejected``.
        """
        session, digest = body.get("session"), body.get("digest")
        if not isinstance(session, str) or not isinstance(digest, str) or not 0 < len(digest) <= MOST_CHARS:
            raise BadReply("name the `session`, and the `digest` of what the person agreed to")
        s, instance = self._attended(session)
        async with self._lock:
            consent = await self._told(s.id, digest)
            try:
                found = await instance.host.recorded(s, instance, consent.source, consent.place)
            except Unavailable as e:
                raise Rejected(f"the host's own record could not be read: {e}") from e
            if consent.chosen not in found:
                self._world.log.warning("consent refused", session=s.id, source=consent.source)
                raise Rejected("the host's own record does not say that a person answered this")
            now = self._world.clock.now_ms()
            if not await self._world.db.commit(consents.spend(consent, now), durable=True):
                raise Rejected("this answer was used before; ask the person again, with a new question")
        self._world.log.info("consent used", session=s.id, source=consent.source)
        return {"session": s.id, "label": consent.label, "at": consent.at}

    async def _told(self, session: str, digest: str) -> Consent:
        """The newest answer that a host told of. Raises ``Rejected`` when there is none that counts."""
        db, since = self._world.db, self._world.clock.now_ms() - FRESH_MS
        for _ in range(POLLS):
            if found := consents.told(db, session, digest, since):
                break
            await asyncio.sleep(POLL_S)
        else:
            raise Rejected(
                "the host told of no answer of a person to exactly this, in this session, just now"
            )
        if found[0].is_typed:  # the same words may be typed again, and then count again
            found = [c for c in found if not c.spent]
        if not found or any(c.spent for c in found):
            raise Rejected("this answer was used before; ask the person again, with a new question")
        if not found[0].is_typed and not consents.was_shown(db, session, digest):
            raise Rejected("the host told of no dialog with this question, so something else answered it")
        return found[0]

    async def _history(self, query: Mapping[str, Any]) -> Mapping[str, Any]:
        """``directory``, ``after`` → a page of the past sessions of that folder. Raises ``Unavailable``."""
        directory, after = str(query.get("directory", "")), str(query.get("after", ""))
        instance = self.parts.instances.telling(directory)
        return {"page": await instance.host.history(instance, after[:MOST_CHARS], PAGE)}

    def prune(self, now_ms: int) -> Sequence[Statement]:
        """What nobody used."""
        return (consents.prune(now_ms),)

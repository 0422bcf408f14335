"""Rules in the engine: what a person agreed to inside a host, what they typed in past sessions, and the
questions of `/reflect` to a small model.

Consent (design/rules.md): the host's own hook or event tells of the person's answer to a question of ours,
or of our command that they typed. Each counts once and soon. Nothing here changes a file but a click in the
dashboard (``learning.page``). History is read page by page, when somebody asks for it. A model is asked only
for a session in which the person just typed `/reflect`.
"""

from __future__ import annotations

import asyncio
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, Literal, NamedTuple, TypeVar

import msgspec
from msgspec.structs import replace

from ...core import events as ev
from ...core.consent import TYPED
from ...core.errors import BadReply, Rejected, Unavailable, UserError
from ...core.given import folded, known_as
from ...core.offers import Moment, Offer
from ...core.question import Answer
from ...engine.feature import Feature, Heard, Place, Route
from ...store.retention import old
from ..playbook.project_playbook import rules_of
from ..state import ReflectState
from . import questions
from .places import those_that_count

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ...core.question import Question
    from ...core.session import Session
    from ...engine.engine import Engine
    from ...engine.hosts.host import Instance
    from ...store.db import Statement

T = TypeVar("T")
DIRECTORIES_KEPT: Final = 50
HEADING: Final = (
    "What the person prefers in this project (what they ask for in the session and the project's own rules "
    "come first):"
)
KEEP_MS: Final = 2 * 86_400_000
FRESH_MS: Final = 3_600_000  # an answer is used at once; later it may not be what the person means any more
POLL_S: Final = 0.1
POLLS: Final = 10  # what a hook told is stored a moment later
PAGE: Final = 50  # sessions of a page of history
MOST_CHARS: Final = 200
ANSWER_S: Final = 120.0  # for one question to a model
LINES_CHARS: Final = 100_000  # of one question


class Preferences(Feature):
    """Offers a person's preferences before anything that was learned. Of the project's file only texts that
    the person typed or trusted are given, and only those that ``learning.texts.refusal`` has nothing against.
    Workshop gives its own. A file that can't be read gives nothing, and the log says why.
    """

    name: ClassVar = "preferences"

    def __init__(self, parts: Engine) -> None:
        super().__init__(parts)
        self.parts = parts
        self._world = parts.world
        self._state = lru_cache(DIRECTORIES_KEPT)(lambda of: ReflectState(parts.world.db.path.parent, of))
        self._read: dict[str, tuple[Offer, ...]] = {}

    def has_context(self, directory: str) -> Mapping[Place, int]:
        """A place, where the person vouched for a preference. Asked with each batch of a host's events."""
        return {"context": 0} if self._state(directory).has("preferences") else {}

    async def prepare_context(self, s: Session, moment: Moment) -> None:
        """Read the project's file."""
        if not moment.begins or not self.has_context(s.directory):
            return
        offers = await asyncio.to_thread(self._look, s.directory)
        self._read = dict([*self._read.items(), (s.directory, offers)][-DIRECTORIES_KEPT:])

    def context(self, s: Session, moment: Moment) -> Sequence[Offer]:
        """When a session starts, and when it lost its context."""
        return self._read.get(s.directory, ()) if moment.begins and self.has_context(s.directory) else ()

    def _look(self, directory: str) -> tuple[Offer, ...]:
        try:
            said = folded("\n".join(rules_of(directory)))
            return tuple(
                Offer(f"preference:{known_as(p.text)[:16]}", "preference", f"- {p.text}", 0.0, HEADING)
                for p in those_that_count(Path(directory), self._state(directory))
                if p.known and not p.refused and folded(p.text) not in said
            )
        except (UserError, Unavailable) as error:
            self._world.log.warning("no preferences are offered", directory=directory, error=str(error))
            return ()


class Consent(NamedTuple):
    """An answer or a command that a host told of. ``source``: the id of the agent's call, or of the message
    that was typed. ``label``: ``TYPED`` for a command, for which there is no dialog.
    """

    source: str
    label: str
    at: int
    spent: int


class _Spend(msgspec.Struct):
    session: str
    digest: str


class _Asks(msgspec.Struct):
    session: str
    question: Literal["signals", "contradicts"]
    lines: Annotated[str, msgspec.Meta(max_length=LINES_CHARS)]


class Rules(Feature):
    """Keeps what hosts told of a person's will until it is used: digests, in the table ``consents``. Columns
    of it that stay empty were for other records.
    """

    name: ClassVar = "rules"

    def __init__(self, parts: Engine) -> None:
        super().__init__(parts)
        self.parts = parts
        self._world = parts.world
        self._lock = asyncio.Lock()

    def heard(self, before: Session | None, after: Session, event: Heard) -> None:  # noqa: ARG002
        """Note what a person answered and typed."""
        match event:
            case ev.QuestionAnswered():
                told = [(answer.digest, "answer", answer.label) for answer in event.answers]
                self._keep(event.session, event.call, told, event.t)
            case ev.CommandTyped():
                self._keep(event.session, event.message, [(event.digest, TYPED, TYPED)], event.t)
            case _:
                pass

    def _keep(self, session: str, source: str, told: Sequence[tuple[str, str, str]], at: int) -> None:
        """The same call again changes nothing."""
        self._world.later((
            "INSERT OR IGNORE INTO consents (session, digest, source, kind, label, place, at) "
            "VALUES (?, ?, ?, ?, ?, '', ?)",
            [(session, digest, source, kind, label, at) for digest, kind, label in told],
        ))  # fmt: skip

    def routes(self) -> Sequence[Route]:
        """For `reflectd reflect`: which host a session is of, a person's consent, what was said before."""
        return (
            Route("GET", "session", self._session),
            Route("POST", "spend", self._spend),
            Route("GET", "history", self._history),
            Route("POST", "ask", self._asks),
        )

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
        """``session``, ``digest`` → the chosen label, used from now on. Raises ``BadReply``, ``Rejected``."""
        asked = _of(body, _Spend)
        s, _ = self._attended(asked.session)
        async with self._lock:
            consent, now = await self._told(s.id, asked.digest), self._world.clock.now_ms()
            # no row changes when it was used before, or an answer to the same question was; the same words
            # may be typed again, and then count again
            used = await self._world.db.commit(
                (
                    "UPDATE consents SET spent = ?1 WHERE session = ?2 AND digest = ?3 AND source = ?4 "
                    "AND spent = 0 AND (kind = ?5 OR NOT EXISTS "
                    "(SELECT 1 FROM consents WHERE session = ?2 AND digest = ?3 AND spent > 0))",
                    [(now, s.id, asked.digest, consent.source, TYPED)],
                ),
                durable=True,
            )
            if not used:
                raise Rejected("this answer was used before; ask the person again, with a new question")
        self._world.log.info("consent used", session=s.id, source=consent.source)
        return {"session": s.id, "label": consent.label, "at": consent.at}

    async def _told(self, session: str, digest: str) -> Consent:
        """The newest answer that a host told of. Raises ``Rejected`` when there is none that counts."""
        since = self._world.clock.now_ms() - FRESH_MS
        for _ in range(POLLS):
            if told := self.told(session, digest, since):
                break
            await asyncio.sleep(POLL_S)
        else:
            raise Rejected(
                "the host told of no answer of a person to exactly this, in this session, just now"
            )
        return next((consent for consent in told if not consent.spent), told[0])

    def told(self, session: str, digest: str, since: int) -> list[Consent]:
        """The answers to that question, or the commands with that wish, newest first."""
        rows = self._world.db.read(
            "SELECT source, label, at, spent FROM consents WHERE session = ? AND digest = ? "
            "AND kind IN ('answer', ?) AND at >= ? ORDER BY at DESC, source DESC",
            (session, digest, TYPED, since),
        )
        return [Consent(*row) for row in rows]

    async def _history(self, query: Mapping[str, Any]) -> Mapping[str, Any]:
        """``directory``, ``after`` → a page of the past sessions of that folder. Raises ``Unavailable``."""
        directory, after = str(query.get("directory", "")), str(query.get("after", ""))
        instance = self.parts.instances.telling(directory)
        return {"page": await instance.host.history(instance, after[:MOST_CHARS], PAGE)}

    async def _asks(self, body: Mapping[str, Any]) -> Mapping[str, Any]:
        """``session``, ``question`` and its ``lines`` → the ``reply`` of the small model; ``why``: what
        failed, or why nobody was asked. Raises ``BadReply`` and ``Rejected``.
        """
        asked = _of(body, _Asks)
        about = questions.about_messages if asked.question == "signals" else questions.about_a_rule
        answer: Answer[Any] = await self._ask(asked.session, about(asked.lines))
        return {"reply": msgspec.to_builtins(answer.reply), "why": answer.why}

    async def _ask(self, session: str, question: Question[T]) -> Answer[T]:
        """Ask the small model of whoever judges this session, with the prompt that counts in its folder.
        Raises ``BadReply`` and ``Rejected``.
        """
        s, instance = self._attended(session)
        if not self._world.calls.models(s.host):
            return Answer(why="no model is set up for the sessions of this host")
        typed = "SELECT 1 FROM consents WHERE session = ? AND kind = ? AND at > ? LIMIT 1"
        if not self._world.db.read(typed, (s.id, TYPED, self._world.clock.now_ms() - FRESH_MS)):
            return Answer(why="nobody typed /reflect in this session just now")
        try:
            turn = (await self.parts.messages.read(s, instance)).turn
        except (Unavailable, BadReply) as e:
            raise Rejected(f"session {s.id} could not be read: {e}") from e
        asked = replace(question, model=turn.model if turn is not None else None)
        return await self.parts.asking.ask(asked, s, ANSWER_S)

    def prune(self, now_ms: int) -> Sequence[Statement]:
        """Consents that nobody used in time."""
        return ((f"DELETE FROM consents WHERE {old('consents')}", [(now_ms - KEEP_MS,)]),)


def _of(body: Mapping[str, Any], form: type[T]) -> T:
    """The body of a client's request. Raises ``BadReply``."""
    try:
        return msgspec.convert(body, form)
    except msgspec.ValidationError as e:
        raise BadReply(f"the request has another form: {e}") from None

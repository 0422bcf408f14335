"""Has a flow's questions answered by a model.

Replies that broke the form are kept. A person is told once when a limit on spending is reached, and when a
judge is refused again and again.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

from msgspec import Struct, field
from msgspec.structs import replace

from ..core.errors import Unavailable
from ..core.fast import needs_second_look
from ..core.orders import ShowToast
from ..core.ports import drive
from ..core.question import Answer, BadForm, Question, R, ask
from ..judge.flow import Opinion, judge
from ..redact import redact_head
from ..store.ledger import RAW_CHARS, DeadLetter, keep_letters
from .calls import REFUSED
from .world import DAY_MS, World

if TYPE_CHECKING:
    from collections.abc import Generator

    from ..core.guards import Skip
    from ..core.llm import Prompt, Reply
    from ..core.session import Session
    from ..judge.case import Case

KEPT: Final = 100


class Formed(Struct, frozen=True):
    """An opinion, the case that it is about, and how long the judge took, in ms."""

    case: Case
    opinion: Opinion
    ms: int


OFF = "reflectd was switched off while the model was asked"


class Outcome(Protocol):
    """The end of a flow."""

    @property
    def bad(self) -> tuple[BadForm, ...]:
        """The replies that could not be read."""
        ...


Result = TypeVar("Result", bound=Outcome)


class Asking(Struct, eq=False):
    """Every flow of the engine is run here. ``_calls``: those under way, by session."""

    _world: World
    _told_limits: set[tuple[int, str, str]] = field(default_factory=set)
    _calls: dict[str, set[asyncio.Task[Reply]]] = field(default_factory=dict)
    _told_refused: set[str] = field(default_factory=set)
    _early: OrderedDict[str, Formed] = field(default_factory=OrderedDict)

    async def ask(self, question: Question[R], s: Session, deadline_s: float) -> Answer[R]:
        """The answer to one question, by the prompts of the session's folder. The rest as in ``run``."""
        world = self._world
        texts = await asyncio.to_thread(world.prompt_texts, s.directory)
        question = replace(question, nonce=question.nonce or world.nonce(), session=question.session or s.id)
        return await self.run(ask(question, texts), s, deadline_s)

    async def run(self, flow: Generator[Prompt, Reply, Result], s: Session, deadline_s: float) -> Result:
        """The result of the flow. ``deadline_s``: for all its calls together."""
        world = self._world
        limits = world.limits(s)

        async def answer(prompt: Prompt, left_s: float) -> Reply:
            call = asyncio.ensure_future(world.calls.ask(replace(prompt, host=s.host), left_s, limits))
            under_way = self._calls.setdefault(s.id, set())
            under_way.add(call)
            try:
                reply = await call
            except Unavailable as e:
                self._over_limit(s, e.limit)
                raise
            except asyncio.CancelledError:
                me = asyncio.current_task()
                if me is not None and me.cancelling():
                    raise
                raise Unavailable(OFF, "gone") from None
            else:
                self._over_limit(s, reply.limit)
                return reply
            finally:
                under_way.discard(call)
                if not under_way:
                    self._calls.pop(s.id, None)

        found = await drive(flow, answer, world.clock, deadline_s)
        await world.projects.read(s.directory)  # a model takes its time
        self._keep_dead_letters(s, found.bad)
        self._tell_refused(s)
        return found

    def stop(self, session: str) -> None:
        """Switched off: the calls about it are cancelled. Their flows go on as if no model had answered."""
        for call in self._calls.get(session, ()):
            call.cancel()

    def keep(self, session: str, formed: Formed) -> None:
        """Keep the opinion that `opencode run` asked for before its end, for the idle that follows."""
        self._early[session] = formed
        while len(self._early) > KEPT:
            self._early.popitem(last=False)

    def take(self, session: str) -> Formed | None:
        return self._early.pop(session, None)

    async def judge(self, case: Case, s: Session) -> Formed:
        """The judge's opinion. Over the limit on spending the rules judge, and the person is told once."""
        world, started = self._world, self._world.clock.monotonic()
        settings = world.project(s.directory).judge
        longest = min(settings.timeout_s, world.limits(s).wait_s)
        second_look = partial(needs_second_look, world.project(s.directory))
        opinion = await self.run(judge(case, second_look=second_look), s, float(longest))
        return Formed(case, opinion, int((world.clock.monotonic() - started) * 1000))

    def _keep_dead_letters(self, s: Session, bad: tuple[BadForm, ...]) -> None:
        if not bad:
            return
        at = self._world.clock.now_ms()
        letters = [
            DeadLetter(
                at,
                b.purpose,
                s.id,
                b.provider,
                b.model,
                redact_head(b.why, 300),
                redact_head(b.raw, RAW_CHARS),
            )
            for b in bad
        ]
        for letter in letters:
            self._world.log.warning(
                "a reply broke the form", session=s.id, purpose=letter.purpose, why=letter.why
            )
        self._world.later(*keep_letters(letters))

    def _over_limit(self, s: Session, no: Skip | None) -> None:
        if no is None:
            return
        told = (self._world.clock.now_ms() // DAY_MS, no.guard, s.id if no.of_session else "")
        if told in self._told_limits:
            return
        self._told_limits = {t for t in self._told_limits if t[0] == told[0]} | {told}
        self._world.log.warning("spend limit", session=s.id, guard=no.guard, reason=no.reason)
        instance = self._world.instances.connected(s.instance)
        if instance is not None and no.tell and self._world.limits(s).toasts:
            instance.tell(ShowToast(s.id, no.tell, "warning"))

    def _tell_refused(self, s: Session) -> None:
        """Told once until it works again. Nobody sits before a `run`."""
        calls, instance = self._world.calls, self._world.instances.connected(s.instance)
        refused = calls.refused
        self._told_refused &= refused.keys()
        if instance is None or instance.mode == "run" or not self._world.limits(s).toasts:
            return
        for name in calls.judges.get(s.host, ()):
            if name in refused and name not in self._told_refused:
                self._told_refused.add(name)
                text = f"The judge was refused {REFUSED} times in a row. {refused[name]}"
                instance.tell(ShowToast(s.id, text[:300], "error"))

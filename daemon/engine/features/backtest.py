"""Answers `reflectd judge --past`: asks a model for it, and an open opencode for its past sessions.

The command judges. Here the provider that the person named is asked, one prompt at a time, on the account
``asked``, within the caps; when the command goes away, the call ends with it. An opencode that is open is
asked which sessions it has, page by page, and for one of them after the other. It is sent nothing else, and
no verdict is stored.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ...core.errors import BadReply, Rejected, Unavailable
from ...core.llm import Prompt
from ...core.policy import forbids
from ...core.session import Session
from ..feature import Feature, Route, route
from ..world import DAY_MS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ...core.guards import Limits
    from ..calls import Calls
    from ..engine import Engine

MOST_S: Final = 600.0
PAGE: Final = 100  # sessions that are listed at once
PURPOSES: Final = ("judge", "judge.again", "judge.second")


class _Query(Struct):
    """A provider; or a folder with a session, or the session that a page begins after."""

    provider: str = ""
    directory: str = ""
    session: str = ""
    after: str = ""


class _Asked(Struct):
    """``deadline_s``: how long the caller waits."""

    provider: str
    purpose: str
    system: str
    text: str
    nonce: str = ""
    schema: dict[str, Any] | None = None
    max_tokens: int = 1_500
    deadline_s: float = 180.0


class Backtest(Feature):
    name: ClassVar = "backtest"

    def __init__(self, parts: Engine) -> None:
        super().__init__(parts)
        self.parts = parts
        self._world = parts.world

    def routes(self) -> Sequence[Route]:
        """The first two of them are for `--provider`."""
        return (
            route("GET", "limits", _Query, self._limits),
            route("POST", "ask", _Asked, self._ask),
            route("GET", "sessions", _Query, self._sessions),
            route("GET", "session", _Query, self._session),
        )

    async def _sessions(self, query: _Query) -> Mapping[str, Any]:
        """``directory``, ``after`` → a page of the sessions of that folder. Raises ``Unavailable``."""
        instance = self._world.instances.telling(query.directory)
        return {"page": await instance.host.history(instance, query.after, PAGE, listed=True)}

    async def _session(self, query: _Query) -> Mapping[str, Any]:
        """``directory``, ``session`` → all its messages. Raises ``Unavailable``."""
        instance = self._world.instances.telling(query.directory)
        return {"read": await instance.host.whole(instance, query.session)}

    async def _limits(self, query: _Query) -> Mapping[str, Any]:
        """``provider`` → what was spent in 24 hours, and the caps. Raises ``Rejected``."""
        self._calls(query.provider)
        since, budget = self._world.clock.now_ms() - DAY_MS, self._world.calls.budget
        if budget is None:
            raise Rejected("this daemon keeps no ledger")
        spent = [budget.spent(since, account) for account in ("judging", "asked")]
        limits = self._within()
        return {
            "spent_24h": {"usd": sum(s.today for s in spent), "tokens": sum(s.tokens for s in spent)},
            "limits": {"usd": limits.usd_per_day, "tokens": limits.tokens_per_day},
        }

    async def _ask(self, found: _Asked) -> Mapping[str, Any]:
        """A prompt of the judge → its reply; or ``over`` with the limit that forbids it, ``silent`` with why
        nobody answered, ``bad`` with what came. Raises ``BadReply`` and ``Rejected``.
        """
        if found.purpose not in PURPOSES:
            raise BadReply(f"only prompts of the judge are asked here, not {found.purpose[:60]!r}")
        prompt = Prompt(
            f"asked.{found.purpose}",
            "judge",
            found.system,
            found.text,
            nonce=found.nonce,
            schema=found.schema,
            max_tokens=max(1, min(found.max_tokens, 8_000)),
        )
        try:
            calls = self._calls(found.provider)
            reply = await calls.ask(prompt, min(found.deadline_s, MOST_S), self._within())
        except BadReply as e:
            return {"state": "bad", "why": str(e), "raw": e.raw}
        except Unavailable as e:
            return {"state": "over", "why": e.limit.reason} if e.limit else {"state": "silent", "why": str(e)}
        return {"state": "answered", "reply": msgspec.to_builtins(reply)}

    def _calls(self, name: str) -> Calls:
        """Those to this provider alone. Raises ``Rejected``."""
        calls = self._world.calls
        mine = tuple(
            p for p in calls.providers if p.name not in {"host", "offline"} and name in {p.name, "auto"}
        )
        if not mine:
            raise Rejected(f"the daemon's settings have no provider {name[:40]!r} set up")
        if zero := forbids(self._world.settings):
            raise Rejected(f"{zero} is 0, so no model may be asked")
        return replace(calls, providers=mine, rules=None, judges={})

    def _within(self) -> Limits:
        """The caps of a day; those of a session are for sessions that run."""
        limits = self._world.limits(Session(id=""))
        return replace(limits, usd_per_session=max(limits.usd_per_session, limits.usd_per_day))

"""The ledger: one row per call to a judge, with what it cost (None is unknown, never 0)."""

from __future__ import annotations

from dataclasses import astuple, dataclass, fields, replace
from typing import TYPE_CHECKING, Literal

from ..core.guards import Spent

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..core.policy import Account
    from .db import Statement
    from .readonly import Reads

DAY_MS = 86_400_000
KEEP_DAYS = 400


@dataclass(frozen=True, slots=True)
class Entry:
    """One call. ``outcome``: ``ok``, ``cancelled``, ``timeout`` or ``error: …``. ``cost`` in USD."""

    at: int
    purpose: str
    session: str
    provider: str
    model: str
    input: int
    output: int
    cost: float | None
    ms: int
    outcome: str
    account: str = "judging"


def add(entry: Entry) -> Statement:
    """The insert of one row."""
    return (
        "INSERT INTO ledger "
        "(at, purpose, session, provider, model, input, output, cost, ms, outcome, account) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [astuple(entry)],
    )


By = Literal["day", "session", "model", "purpose", "provider", "account"]
_GROUPS: dict[By, str] = {
    "day": "date(at / 1000, 'unixepoch', 'localtime')",
    "session": "session",
    "model": "model",
    "purpose": "purpose",
    "provider": "provider",
    "account": "account",
}
_UNPRICED = "cost IS NULL AND input + output > 0"
_SUMS = (
    "count(*), "
    "total(provider = 'offline'), "
    "total(provider != 'offline' AND outcome = 'ok'), "
    "total(outcome = 'cancelled'), "
    "total(outcome NOT IN ('ok', 'cancelled')), "
    "total(input), total(output), sum(iif(provider = 'offline', NULL, cost)), "
    f"total({_UNPRICED}), total(iif({_UNPRICED}, input + output, 0)), total(ms)"
)


@dataclass(frozen=True, slots=True)
class Sums:
    """Calls of one kind together. ``cost``: USD of the calls with a known price, None when there are none.

    ``rules``: judged by fixed rules, which cost nothing. ``unpriced`` calls used ``unpriced_tokens``, at a
    price nobody told. What a ``cancelled`` or ``failed`` call cost is only known if it has a price.
    """

    calls: int = 0
    rules: int = 0
    answered: int = 0
    cancelled: int = 0
    failed: int = 0
    input: int = 0
    output: int = 0
    cost: float | None = None
    unpriced: int = 0
    unpriced_tokens: int = 0
    ms: int = 0


@dataclass(frozen=True, slots=True)
class Work:
    """What the agent's own work cost, as its host says: USD, None when no price was told; tokens in all."""

    usd: float | None = None
    tokens: int = 0


@dataclass(frozen=True, slots=True)
class Report:
    """``rows``: the newest calls; ``sums``: of all that match, not only of ``rows``; ``groups`` by name;
    ``agent``: beside it, the agent's own work in the tasks that were judged (I41).
    """

    rows: tuple[Entry, ...]
    sums: Sums
    agent: Work
    groups: tuple[tuple[str, Sums], ...] = ()


def report(db: Reads, *, session: str = "", since: int = 0, limit: int = 50, by: By | None = None) -> Report:
    """The calls since ``since`` (epoch ms), of one session or all. At most ``limit`` rows and groups."""
    where, parameters = ("at >= ? AND session = ?", (since, session)) if session else ("at >= ?", (since,))
    rows = db.read(
        "SELECT at, purpose, session, provider, model, input, output, cost, ms, outcome, account FROM ledger "
        f"WHERE {where} ORDER BY at DESC LIMIT ?",
        (*parameters, limit),
    )
    (sums,) = db.read(f"SELECT {_SUMS} FROM ledger WHERE {where}", parameters)
    groups = []
    if by is not None:
        order = "1 DESC" if by == "day" else "total(cost) DESC, total(input + output) DESC, 2 DESC, 1"
        groups = db.read(
            f"SELECT {_GROUPS[by]}, {_SUMS} FROM ledger WHERE {where} GROUP BY 1 ORDER BY {order} LIMIT ?",
            (*parameters, limit),
        )
    return Report(
        rows=tuple(Entry(*row) for row in rows),
        sums=_sums(sums),
        agent=_work(db, where, parameters),
        groups=tuple((str(name), _sums(found)) for name, *found in groups),
    )


def _work(db: Reads, where: str, parameters: tuple[object, ...]) -> Work:
    """Each verdict holds its task's work so far: the most of each task counts."""
    (found,) = db.read(
        "SELECT sum(usd), total(tokens) FROM (SELECT max(body ->> '$.work_usd') AS usd, "
        "max(body ->> '$.work_tokens') AS tokens FROM "
        f"(SELECT session, task, CAST(body AS TEXT) AS body FROM verdicts WHERE {where}) "
        "WHERE json_valid(body) "
        "GROUP BY session, task)",
        parameters,
    )
    return Work(found[0], int(found[1]))


def _sums(row: Sequence[float | None]) -> Sums:
    counts = {f.name: int(n or 0) for f, n in zip(fields(Sums), row, strict=True)}
    return replace(Sums(**counts), cost=row[7])


class Ledger:
    """What the guards ask."""

    def __init__(self, db: Reads) -> None:
        self._db = db

    def spent(self, session: str, since: int, account: Account = "judging") -> Spent:
        """What this account paid since ``since`` (epoch ms), and for the session at any time.

        USD where the price is known, tokens where it is not.
        """
        today, tokens = self._db.read(
            "SELECT total(cost), total(iif(cost IS NULL, input + output, 0)) FROM ledger "
            "WHERE at >= ? AND account = ?",
            (since, account),
        )[0]
        (of_session,) = self._db.read(
            "SELECT total(cost) FROM ledger WHERE session = ? AND account = ?", (session, account)
        )[0]
        return Spent(today, of_session, int(tokens))


def prune(now: int) -> Statement:
    """Retention: 400 days."""
    return ("DELETE FROM ledger WHERE at < ?", [(now - KEEP_DAYS * DAY_MS,)])

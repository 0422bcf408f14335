"""The ledger: one row per call of a model with its cost (None is unknown, never 0), and the dead letters:
replies that broke the form, kept and counted by ``status`` (I48).

Amounts of two currencies are never added up. A sum with one number is of the calls in USD.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, Literal

from msgspec import Struct
from msgspec.structs import astuple, replace

from ..core.guards import Spent
from .retention import DAY_MS, old

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..core.policy import Account
    from .db import Statement
    from .readonly import Reads

KEEP_DAYS = 400
USD: Final = "USD"
RATE_DAYS: Final = 7  # the pace of so many days is what the rest of a month is expected to cost


class Entry(Struct, frozen=True):
    """One call. ``outcome``: ``ok``, ``cancelled``, ``timeout`` or ``error: …``. ``cost``: in ``currency``.
    ``directory``: the session's folder, empty when it is not known.
    ``attempt``: 1 for the first try at a provider, 2 for the first one after a failure.
    """

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
    currency: str = USD
    directory: str = ""
    attempt: int = 1


_COLUMNS: Final = ", ".join(f for f in Entry.__struct_fields__)


def add(entry: Entry) -> Statement:
    """The insert of one row."""
    return (
        f"INSERT INTO ledger ({_COLUMNS}) VALUES ({', '.join('?' * len(Entry.__struct_fields__))})",
        [astuple(entry)],
    )


By = Literal["day", "session", "project", "model", "purpose", "provider", "account"]
_GROUPS: dict[By, str] = {
    "day": "date(at / 1000, 'unixepoch', 'localtime')",
    "session": "session",
    "project": "directory",
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
    f"total(input), total(output), sum(iif(provider = 'offline' OR currency != '{USD}', NULL, cost)), "
    f"total({_UNPRICED}), total(iif({_UNPRICED}, input + output, 0)), total(ms)"
)


class Sums(Struct, frozen=True):
    """Calls of one kind together. ``cost``: USD of the calls with a known price, None when there are none.
    ``others``: the cost of calls in other currencies, by code.

    ``rules``: judged by fixed rules, which cost nothing. ``unpriced`` calls used ``unpriced_tokens``, at an
    unknown price. The cost of a ``cancelled`` or ``failed`` call is only known if it has a price.
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
    others: tuple[tuple[str, float], ...] = ()


Group = tuple[str, Sums]
"""The name of a group and its sums."""


class Month(Struct, frozen=True):
    """The cost of this calendar month (local time) in one currency, and the expected cost at its end at the
    pace of the last seven days.
    """

    currency: str
    so_far: float
    expected: float


class Work(Struct, frozen=True):
    """The cost of the agent's own work, by its host: USD, None without a price; tokens in all."""

    usd: float | None = None
    tokens: int = 0


class Report(Struct, frozen=True):
    """``rows``: the newest calls; ``sums``: of all that match, not only of ``rows``; ``groups`` by name;
    ``agent``: beside it, the agent's own work in the tasks that were judged (I41).
    """

    rows: tuple[Entry, ...]
    sums: Sums
    agent: Work
    groups: tuple[Group, ...] = ()


def report(
    db: Reads,
    *,
    session: str = "",
    since: int = 0,
    limit: int = 50,
    by: By | None = None,
    work: bool = True,
) -> Report:
    """The calls since ``since`` (epoch ms), of one session or all. At most ``limit`` rows and groups.
    ``work``: with the cost of the agent's own work, for which each verdict is read.
    """
    where, parameters = ("at >= ? AND session = ?", (since, session)) if session else ("at >= ?", (since,))
    rows = db.read(
        f"SELECT {_COLUMNS} FROM ledger WHERE {where} ORDER BY at DESC LIMIT ?",
        (*parameters, limit),
    )
    (sums,) = db.read(f"SELECT {_SUMS} FROM ledger WHERE {where}", parameters)
    others = _others(db, "''", where, parameters)
    return Report(
        rows=tuple(Entry(*row) for row in rows),
        sums=_sums(sums, others.get("", ())),
        agent=_work(db, where, parameters) if work else Work(),
        groups=_grouped(db, by, where, parameters, limit) if by is not None else (),
    )


def _grouped(db: Reads, by: By, where: str, parameters: tuple[object, ...], limit: int) -> tuple[Group, ...]:
    others = _others(db, _GROUPS[by], where, parameters)
    order = "1 DESC" if by == "day" else "total(cost) DESC, total(input + output) DESC, 2 DESC, 1"
    found = db.read(
        f"SELECT {_GROUPS[by]}, {_SUMS} FROM ledger WHERE {where} GROUP BY 1 ORDER BY {order} LIMIT ?",
        (*parameters, limit),
    )
    return tuple((str(name), _sums(sums, others.get(str(name), ()))) for name, *sums in found)


def _others(
    db: Reads, group: str, where: str, parameters: tuple[object, ...]
) -> dict[str, list[tuple[str, float]]]:
    """By the name of the group: the cost of its calls in other currencies."""
    found: dict[str, list[tuple[str, float]]] = {}
    for name, currency, cost in db.read(
        f"SELECT {group}, currency, sum(cost) FROM ledger WHERE {where} AND currency != '{USD}' "
        "AND cost IS NOT NULL GROUP BY 1, 2 ORDER BY 1, 2",
        parameters,
    ):
        found.setdefault(str(name), []).append((str(currency), float(cost)))
    return found


def month(db: Reads, now_ms: int) -> tuple[Month, ...]:
    """The cost of this month so far and at its end, for each currency of the month."""
    now = datetime.fromtimestamp(now_ms / 1000).astimezone()
    first = now.replace(day=1, hour=0, minute=0, second=0, microsecond=0, tzinfo=None).astimezone()
    after = first.replace(
        year=first.year + first.month // 12, month=first.month % 12 + 1, tzinfo=None
    ).astimezone()
    begin, end = (int(t.timestamp() * 1000) for t in (first, after))
    week = now_ms - RATE_DAYS * DAY_MS
    ((oldest,),) = db.read("SELECT min(at) FROM ledger WHERE at >= ?", (week,))
    paced = min(float(RATE_DAYS), max(1.0, (now_ms - oldest) / DAY_MS)) if oldest else float(RATE_DAYS)
    rest = max(0.0, (end - now_ms) / DAY_MS)
    rows = db.read(
        "SELECT currency, total(iif(at >= ?, cost, 0)), total(iif(at >= ?, cost, 0)) FROM ledger "
        "WHERE at >= ? AND cost > 0 GROUP BY currency ORDER BY currency",
        (begin, week, min(begin, week)),
    )
    return tuple(
        Month(str(currency), so_far, so_far + lately / paced * rest)
        for currency, so_far, lately in rows
        if so_far > 0
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


def _sums(row: Sequence[float | None], others: Sequence[tuple[str, float]] = ()) -> Sums:
    counts: dict[str, Any] = {
        name: int(n or 0) for name, n in zip(Sums.__struct_fields__[:-1], row, strict=True)
    }
    return replace(Sums(**counts), cost=row[7], others=tuple(others))


class Ledger:
    """The sums that guards ask for."""

    def __init__(self, db: Reads) -> None:
        self._db = db

    def spent(self, session: str, since: int, account: Account = "judging") -> Spent:
        """The cost of this account since ``since`` (epoch ms), and of the session at any time.

        USD where the price is known in USD, else tokens; and all tokens.
        """
        today, tokens, every = self._db.read(
            f"SELECT total(iif(currency = '{USD}', cost, 0)), "
            f"total(iif(cost IS NULL OR currency != '{USD}', input + output, 0)), total(input + output) "
            "FROM ledger "
            "WHERE at >= ? AND account = ?",
            (since, account),
        )[0]
        (of_session,) = self._db.read(
            f"SELECT total(cost) FROM ledger WHERE session = ? AND account = ? AND currency = '{USD}'",
            (session, account),
        )[0]
        return Spent(today, of_session, int(tokens), int(every))

    def month(self, now_ms: int) -> tuple[Month, ...]:
        """See ``month``."""
        return month(self._db, now_ms)


def by_name(db: Reads, days: int = 30) -> list[dict[str, object]]:
    """The rows of ``api_cost_log`` of the last days, newest first. An unknown cost is None."""
    rows = db.read(
        "SELECT date, api_name, num_calls, token_count, estimated_cost, currency FROM api_cost_log "
        "WHERE date >= date('now', 'localtime', ?) ORDER BY date DESC, api_name",
        (f"-{days} days",),
    )
    names = ("date", "api_name", "num_calls", "token_count", "estimated_cost", "currency")
    return [dict(zip(names, row, strict=True)) for row in rows]


def prune(now: int) -> Statement:
    """Retention: 400 days."""
    return (f"DELETE FROM ledger WHERE {old('ledger')}", [(now - KEEP_DAYS * DAY_MS,)])


# --- dead letters -------------------------------------------------------------------------------------------

LETTERS_KEPT: Final = 500
RAW_CHARS: Final = 64_000


class DeadLetter(Struct, frozen=True):
    """One reply; ``raw`` is redacted, at most ``RAW_CHARS``. ``at`` is epoch ms."""

    at: int
    purpose: str
    session: str
    provider: str
    model: str
    why: str
    raw: str


def keep_letters(letters: list[DeadLetter]) -> tuple[Statement, Statement]:
    """The inserts; the oldest beyond ``LETTERS_KEPT`` go."""
    return (
        (
            "INSERT INTO dead_letters (at, purpose, session, provider, model, why, raw) "
            "VALUES (?, ?, ?, ?, ?, ?, ?)",
            [astuple(letter) for letter in letters],
        ),
        (
            "DELETE FROM dead_letters WHERE id <= (SELECT max(id) FROM dead_letters) - ?",
            [(LETTERS_KEPT,)],
        ),
    )


class DeadLetters:
    """The read side."""

    def __init__(self, db: Reads) -> None:
        self._db = db

    def summary(self) -> dict[str, Any]:
        """``{"count", "last_at", "last_why"}``; ``last_at`` is epoch ms, 0 when there is none."""
        count, last = self._db.read("SELECT count(*), max(id) FROM dead_letters")[0]
        if not count:
            return {"count": 0, "last_at": 0, "last_why": ""}
        at, why = self._db.read("SELECT at, why FROM dead_letters WHERE id = ?", (last,))[0]
        return {"count": count, "last_at": at, "last_why": why}

    def newest(self, session: str, limit: int) -> list[DeadLetter]:
        """Newest first; of one session when it is given."""
        rows = self._db.read(
            "SELECT at, purpose, session, provider, model, why, raw FROM dead_letters "
            "WHERE ? IN ('', session) ORDER BY id DESC LIMIT ?",
            (session, limit),
        )
        return [DeadLetter(*row) for row in rows]

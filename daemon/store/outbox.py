"""The outbox: orders stored with the decision that caused them.

A row is pending, then sent, then done, stale, failed or expired. The id is derived from session, turn and
cause, so one turn never holds the same prompt twice, in spite of restarts and races: the primary key refuses
the second.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import Struct

from ..core.orders import OutboxStatus, SendFeedback, SendNudge, ShowToast, StoredOrder
from .retention import DAY_MS, old

if TYPE_CHECKING:
    from collections.abc import Callable

    from .db import Row, Statement
    from .readonly import Reads

KEEP_DAYS = 90
TOLD = 100
KINDS: Final[dict[type[StoredOrder], str]] = {
    SendFeedback: "feedback",
    SendNudge: "nudge",
    ShowToast: "toast",
}
_TYPES: Final = {kind: order for order, kind in KINDS.items()}
_encode = msgspec.json.Encoder().encode


class Stored(Struct, frozen=True):
    """One row; ``instance``: the receiver."""

    id: str
    session: str
    status: OutboxStatus
    instance: str
    created: int
    order: StoredOrder


def order_id(session: str, turn: str, cause: str) -> str:
    """The one id that an order with this cause (``cause_of``) can have for this turn."""
    return "rfl_" + hashlib.sha256(f"{session}\0{turn}\0{cause}".encode()).hexdigest()[:20]


def cause_of(order: StoredOrder) -> str:
    """The wire kind, and the cause of a nudge: a turn may have one of each."""
    return f"nudge.{order.kind}" if isinstance(order, SendNudge) else kind_of(order)


def kind_of(order: StoredOrder) -> str:
    """The wire kind."""
    return KINDS[type(order)]


def add(orders: list[Stored]) -> Statement:
    """Insert as they are; a duplicate id fails the whole commit (never two prompts for a turn)."""
    rows = [
        (o.id, o.session, o.status, o.instance, o.created, o.created, kind_of(o.order), _encode(o.order))
        for o in orders
    ]
    return (
        "INSERT INTO outbox (id, session, status, instance, created, updated, kind, body) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        rows,
    )


def forget(order: str) -> Statement:
    """Remove an order that provably never reached the agent, so that the turn may be judged again."""
    return ("DELETE FROM outbox WHERE id = ?", [(order,)])


def set_status(order: str, status: OutboxStatus, instance: str, now: int) -> Statement:
    """Move an open order on; a closed one stays closed."""
    return (
        "UPDATE outbox SET status = ?, instance = ?, updated = ? "
        "WHERE id = ? AND status IN ('pending', 'sent')",
        [(status, instance, now, order)],
    )


def prune(now: int) -> tuple[Statement, ...]:
    """Retention as for sessions: an order id marks our own messages as long as the session is kept.

    An order without an outcome for a day never gets one: its host did not come back.
    """
    return (
        (f"DELETE FROM outbox WHERE {old('outbox', 'updated')}", [(now - KEEP_DAYS * DAY_MS,)]),
        (
            "UPDATE outbox SET status = 'expired' WHERE updated < ? AND status IN ('pending', 'sent')",
            [(now - DAY_MS,)],
        ),
    )


class Outbox:
    """The read side."""

    def __init__(self, db: Reads, on_unreadable: Callable[..., object] = lambda **_: None) -> None:
        """``on_unreadable``: told, once for each row, the ``order`` and the ``error`` (I43)."""
        self._db = db
        self._on_unreadable = on_unreadable
        self._told: set[str] = set()

    def is_ours(self, order: str) -> bool:
        """A message is ours if and only if its order id is in the store."""
        return bool(self._db.read("SELECT 1 FROM outbox WHERE id = ?", (order,)))

    def open(self, session: str = "", *, instance: str = "") -> list[Stored]:
        """Orders without an outcome, oldest first: of one session, of one instance, or all."""
        where, parameters = "", tuple[str, ...]()
        if session:
            where, parameters = " AND session = ?", (session,)
        elif instance:
            where, parameters = " AND instance = ?", (instance,)
        rows = self._db.read(
            "SELECT id, session, status, instance, created, kind, body FROM outbox "
            f"WHERE status IN ('pending', 'sent'){where} ORDER BY created",
            parameters,
        )
        return [found for r in rows if (found := self._readable(r)) is not None]

    def get(self, order: str) -> Stored | None:
        """One order by id."""
        rows = self._db.read(
            "SELECT id, session, status, instance, created, kind, body FROM outbox WHERE id = ?", (order,)
        )
        return self._readable(rows[0]) if rows else None

    def _readable(self, row: Row) -> Stored | None:
        """The order of a row. An unreadable one counts as none; it stays in place."""
        try:
            return _row(row)
        except (msgspec.MsgspecError, TypeError, UnicodeDecodeError, RecursionError) as e:
            if row[0] not in self._told and len(self._told) < TOLD:
                self._told.add(row[0])
                self._on_unreadable(order=row[0], error=str(e))
            return None


def _row(row: Row) -> Stored:
    identity, session, status, instance, created, kind, body = row
    order: StoredOrder = msgspec.json.decode(body, type=_TYPES.get(str(kind), ShowToast))
    return Stored(identity, session, status, instance, created, order)

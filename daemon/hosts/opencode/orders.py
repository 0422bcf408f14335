"""Core orders in the shim's wire form (``design/protocol.md``), each one line of JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, assert_never

import msgspec

from ...core.orders import (
    CallOrder,
    CancelOrder,
    DeleteSessions,
    ReadHistory,
    ReadMessages,
    ReadProviders,
    RenewContext,
    RunJudge,
    SendFeedback,
    SendNudge,
    ShowToast,
    StoredOrder,
)

if TYPE_CHECKING:
    from ...core.transcript import Model

TITLE = "reflectd"


def order_object(identity: str, order: StoredOrder | CallOrder) -> dict[str, Any]:
    """The order as a JSON object, for the order stream and for the answer to ``ask gate``."""
    session = getattr(order, "session", "")
    found: dict[str, Any] = {"api": 1, "id": identity, "kind": "", "session": session}
    match order:
        case SendFeedback() | SendNudge():
            data: dict[str, Any] = {"text": order.text}
            if order.agent:
                data["agent"] = order.agent
            if order.model is not None:
                data["model"] = _model(order.model)
            kind = "feedback" if isinstance(order, SendFeedback) else "nudge"
            found |= {"kind": kind, "if": {"task": order.task, "turn": order.turn}, "data": data}
        case ShowToast():
            data = {"title": TITLE, "message": order.message, "variant": order.variant}
            found |= {"kind": "toast", "data": data}
        case _:
            kind, data = _call(order)
            found |= {"kind": kind, "data": data}
    return found


def _call(order: CallOrder) -> tuple[str, dict[str, Any]]:
    """The kind and the data of an order that is answered by one result."""
    match order:
        case ReadMessages():
            return "read", {"whole": True} if order.whole else {}
        case RunJudge():
            data: dict[str, Any] = {
                "system": order.system,
                "text": order.text,
                "timeout_ms": order.timeout_ms,
            }
            return "evaluate", data | ({"model": _model(order.model)} if order.model is not None else {})
        case CancelOrder():
            return "cancel", {"order": order.order}
        case RenewContext():
            return "renew", {}
        case DeleteSessions():
            return "delete", {"sessions": list(order.sessions)}
        case ReadProviders():
            return "providers", {}
        case ReadHistory():
            data = {"after": order.after, "limit": order.limit}
            return "history", data | ({"listed": True} if order.listed else {})
        case _:
            assert_never(order)


def wire_order(identity: str, order: StoredOrder | CallOrder) -> bytes:
    """One line of the order stream."""
    return msgspec.json.encode(order_object(identity, order)) + b"\n"


def _model(model: Model) -> dict[str, str]:
    return {"providerID": model.provider, "modelID": model.model}

"""Core orders in the shim's wire form (``design/protocol.md``), each one line of JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, assert_never

import msgspec

from ...core.orders import (
    CallOrder,
    CancelOrder,
    DeleteSessions,
    ReadMessages,
    ReadProviders,
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
        case ReadMessages():
            found |= {"kind": "read", "data": {}}
        case RunJudge():
            data = {"system": order.system, "text": order.text, "timeout_ms": order.timeout_ms}
            if order.model is not None:
                data["model"] = _model(order.model)
            found |= {"kind": "evaluate", "data": data}
        case CancelOrder():
            found |= {"kind": "cancel", "data": {"order": order.order}}
        case DeleteSessions():
            found |= {"kind": "delete", "data": {"sessions": list(order.sessions)}}
        case ReadProviders():
            found |= {"kind": "providers", "data": {}}
        case _:
            assert_never(order)
    return found


def wire_order(identity: str, order: StoredOrder | CallOrder) -> bytes:
    """One line of the order stream."""
    return msgspec.json.encode(order_object(identity, order)) + b"\n"


def _model(model: Model) -> dict[str, str]:
    return {"providerID": model.provider, "modelID": model.model}

"""Reads a model's reply as an ``Answer``, or raises ``BadReply`` for any other form (I18).

``core.reply`` says which object of a reply counts.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, cast, get_args

from ..core.errors import BadReply
from ..core.reply import wanted_object

if TYPE_CHECKING:
    from ..core.llm import Reply

Action = Literal["needs_github_update", "continue_task", "needs_clarification", "task_complete"]
ACTIONS: Final[tuple[Action, ...]] = get_args(Action)
MAX_TEXT: Final = 4_000


@dataclass(frozen=True, slots=True)
class Answer:
    """What the model says the agent needs; ``confidence`` is in [0, 1]."""

    action: Action
    reason: str = ""
    confidence: float = 1.0
    message: str = ""


def parse(reply: Reply, nonce: str = "") -> Answer:
    """The answer in ``reply``. ``nonce``: if given, a reply in prose must repeat it."""
    data = wanted_object(reply, nonce, "action", "confidence", what="action")
    action, confidence = data["action"], data["confidence"]
    reason, message = data.get("reason", ""), data.get("message", "")
    numeric = isinstance(confidence, int | float) and not isinstance(confidence, bool)
    if (
        action not in ACTIONS
        or not numeric
        or not 0 <= cast("float", confidence) <= 1
        or not isinstance(reason, str)
        or not isinstance(message, str)
    ):
        raise BadReply(
            f"`action` must be one of {', '.join(ACTIONS)}, `confidence` a number from 0 to 1, the rest text",
            raw=reply.text or json.dumps(data),
        )
    return Answer(
        action,
        reason.strip()[:MAX_TEXT],
        float(cast("float", confidence)),
        message.strip()[:MAX_TEXT],
    )

"""A judge's reply → ``Judgement``, or ``BadReply``: strict in form, linear in time (I18).

Which object of a reply counts is in ``core.reply``.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from ..core.errors import BadReply
from ..core.reply import wanted_object
from ..core.verdict import Defence, Judgement, Missing, Severity

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..core.llm import Reply

MAX_ITEMS = 20
MAX_TEXT = 4_000


def parse(reply: Reply, nonce: str = "") -> Judgement:
    """The judgement in ``reply``. ``nonce``: must be echoed by a reply in prose, when given."""
    data = wanted_object(reply, nonce, "complete")
    try:
        return _judgement(data)
    except (TypeError, ValueError) as e:
        raw = reply.text or json.dumps(data)
        raise BadReply(f"the verdict object is not of the agreed form: {e}", raw=raw) from e


def parse_defence(reply: Reply, nonce: str = "") -> Defence:
    """The answer of the second look. Raises ``BadReply``."""
    data = wanted_object(reply, nonce, "defended")
    defended, why = data.get("defended"), data.get("reasons", "")
    if not isinstance(defended, bool) or not isinstance(why, str):
        raise BadReply("the second look is not of the agreed form", raw=reply.text or json.dumps(data))
    return Defence(defended, why.strip()[:MAX_TEXT])


def _judgement(data: Mapping[str, object]) -> Judgement:
    if "unscored" in data:
        raise ValueError(str(data["unscored"]))
    complete = data.get("complete")
    if not isinstance(complete, bool):
        raise TypeError("`complete` must be true or false")
    human = data.get("requires_human_action", False)
    if not isinstance(human, bool):
        raise TypeError("`requires_human_action` must be true or false")
    severity = data.get("severity", "NONE" if complete else None)
    if severity not in set(Severity):
        raise ValueError(f"`severity` must be one of {', '.join(Severity)}")
    return Judgement(
        complete=complete,
        severity=Severity(str(severity)),
        feedback=_text(data.get("feedback", ""), "feedback"),
        missing=tuple(_missing(item) for item in _items(data.get("missing"), "missing")),
        next_actions=tuple(
            _text(item, "next_actions") for item in _items(data.get("next_actions"), "next_actions")
        ),
        requires_human_action=human,
        excused=tuple(_missing(item) for item in _items(data.get("excused"), "excused")),
    )


def _items(value: object, name: str) -> list[object]:
    if value is None:
        return []
    if not isinstance(value, list):
        raise TypeError(f"`{name}` must be a list")
    return [v for v in value if v not in ("", {}, None)][:MAX_ITEMS]


def _text(value: object, name: str) -> str:
    if not isinstance(value, str):
        raise TypeError(f"`{name}` must be text")
    return value.strip()[:MAX_TEXT]


def _missing(value: object) -> Missing:
    if isinstance(value, str):
        return Missing(text=_text(value, "missing"))
    if isinstance(value, dict):
        return Missing(
            text=_text(value.get("item", ""), "missing.item"), cites=_text(value.get("cites", ""), "cites")
        )
    raise TypeError("`missing` holds something that is neither text nor an object")

"""A judge's reply → ``Judgement``, or ``BadReply``: strict in form, linear in time (I18, DESIGN §9).

Structured output is taken as it is. From prose, the *last* valid object with the wanted keys and the
call's nonce counts, found in a bounded scan: the judged text may echo a verdict (I27).
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, cast

from daemon.core.errors import BadReply
from daemon.core.verdict import Defence, Judgement, Missing, Severity

if TYPE_CHECKING:
    from collections.abc import Mapping

    from daemon.core.llm import Reply

SCAN_CHARS = 256 * 1024
SCAN_TRIES = 64
MAX_ITEMS = 20
MAX_TEXT = 4_000

REPAIR_CHARS = 4_096
_TRAILING = re.compile(r",\s{0,64}([\]}])")
_ANCHOR = re.compile(r'\{\s{0,64}"')
_DECODER = json.JSONDecoder()


def parse(reply: Reply, nonce: str = "") -> Judgement:
    """The judgement in ``reply``. ``nonce``: must be echoed by a reply in prose, when given."""
    data = _object(reply, nonce, "complete")
    try:
        return _judgement(data)
    except (TypeError, ValueError) as e:
        raw = reply.text or json.dumps(data)
        raise BadReply(f"the verdict object is not of the agreed form: {e}", raw=raw) from e


def parse_defence(reply: Reply, nonce: str = "") -> Defence:
    """The answer of the second look. Raises ``BadReply``."""
    data = _object(reply, nonce, "defended")
    defended, why = data.get("defended"), data.get("reasons", "")
    if not isinstance(defended, bool) or not isinstance(why, str):
        raise BadReply("the second look is not of the agreed form", raw=reply.text or json.dumps(data))
    return Defence(defended, why.strip()[:MAX_TEXT])


def _object(reply: Reply, nonce: str, key: str) -> Mapping[str, object]:
    data = reply.data if reply.data is not None else _last_object(reply.text, nonce, key)
    data = data if data is not None else _repaired(reply.text, nonce, key)
    if data is None:
        raise BadReply("the reply holds no verdict object", raw=reply.text)
    return data


def _repaired(text: str, nonce: str, key: str) -> Mapping[str, object] | None:
    """One repair of a short span: commas before a closing bracket, raw line ends in texts."""
    starts = [m.start() for m in _ANCHOR.finditer(text[-REPAIR_CHARS:])]
    if not starts:
        return None
    span = _TRAILING.sub(r"\1", text[-REPAIR_CHARS:][starts[0] :])
    try:
        found, _ = json.JSONDecoder(strict=False).raw_decode(span)
    except (ValueError, RecursionError):
        return None
    return found if _wanted(found, nonce, key) else None


def _wanted(found: object, nonce: str, key: str) -> bool:
    return isinstance(found, dict) and key in found and (not nonce or found.get("nonce") == nonce)


def _last_object(text: str, nonce: str, key: str) -> Mapping[str, object] | None:
    """The last object with ``key`` and the nonce, at most ``SCAN_TRIES`` places from the end."""
    tail = text[-SCAN_CHARS:]
    starts = [m.start() for m in _ANCHOR.finditer(tail)][-SCAN_TRIES:]
    for start in reversed(starts):
        try:
            found, _ = _DECODER.raw_decode(tail, start)
        except (ValueError, RecursionError):
            continue
        if _wanted(found, nonce, key):
            return cast("Mapping[str, object]", found)
    return None


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

"""Replies of reflector, curator and extraction → plain dicts of the agreed form. What is of another form is
left out, and what is missing is empty: a part of an answer is worth something here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from ..core.errors import BadReply
from ..core.reply import as_quoted, wanted_object
from .extract import extract_json

if TYPE_CHECKING:
    from ..core.llm import Reply
    from .case import Case

Json = dict[str, Any]
QUOTE_WORDS: Final = 5
MAX_TEXT: Final = 8_000


@dataclass(frozen=True, slots=True)
class Confirmed:
    """A point that waited and is shown to be true by a row, a line of the log, or the person's words."""

    name: str
    cites: str


def answer(reply: Reply, nonce: str, *keys: str, strict: bool) -> Mapping[str, Any]:
    """The object in the reply. ``strict``: a reply in prose must echo the nonce and have all ``keys``.
    Raises ``BadReply``.
    """
    if strict:
        return wanted_object(reply, nonce, *keys, what="playbook")
    found = reply.data if reply.data is not None else extract_json(reply.text)
    if not isinstance(found, dict):
        raise BadReply("the reply holds no JSON object", raw=reply.text)
    return found


def reflection(data: Mapping[str, Any]) -> Json:
    """``{"analysis": text, "bullet_tags": [{"name", "tag", "rationale"}]}`` (REQ-REFL-004)."""
    return {"analysis": _text(data, "analysis"), "bullet_tags": _dicts(data, "bullet_tags")}


def operations(data: Mapping[str, Any]) -> Json:
    """``{"reasoning": text, "operations": [{"type", …}]}``."""
    return {"reasoning": _text(data, "reasoning"), "operations": _dicts(data, "operations")}


def extraction(data: Mapping[str, Any]) -> Json:
    """``{"new_key_points": [text or {"text", "section"}], "evaluations": [{"name", "rating"}]}``."""
    new = data.get("new_key_points")
    points = [p for p in new if isinstance(p, str | Mapping) and p] if isinstance(new, list) else []
    return {"new_key_points": points, "evaluations": _dicts(data, "evaluations")}


def confirmations(data: Mapping[str, Any], case: Case) -> tuple[Confirmed, ...]:
    """The points that wait and that the reply confirms with something that is in this case."""
    found: dict[str, Confirmed] = {}
    for item in _dicts(data, "confirmed"):
        name, cites = item.get("name"), item.get("cites")
        if (
            isinstance(name, str)
            and isinstance(cites, str)
            and name in case.waiting
            and _is_there(cites, case)
        ):
            found.setdefault(name, Confirmed(name, cites[:MAX_TEXT]))
    return tuple(found.values())


def _is_there(cites: str, case: Case) -> bool:
    if cites.strip(" []().") in case.ids:
        return True
    wanted = as_quoted(cites)
    if len(wanted.split()) < QUOTE_WORDS:
        return False
    return any(wanted in as_quoted(text) for text in case.words)


def _text(data: Mapping[str, Any], name: str) -> str:
    value = data.get(name, "")
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False) if value else ""


def _dicts(data: Mapping[str, Any], name: str) -> list[Json]:
    value = data.get(name)
    return [dict(v) for v in value if isinstance(v, Mapping)] if isinstance(value, list) else []

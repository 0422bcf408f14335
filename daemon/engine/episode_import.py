"""Episodes that a person brings from elsewhere, by ``reflectd memory import``.

They come from outside, so nothing in them is believed: secrets are taken out, a lesson that may not be kept
is refused, each belongs to the project that it is brought into, and all are kept apart until confirmed: what
proved them is elsewhere. What is here already, dismissed ones too, stays as it is.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final, cast, get_args

from ..core.episodes import Episode, Trigger, TriggerKind
from ..core.errors import BadReply
from ..core.learned import refusal
from ..core.redact import redact

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..core.episodes import Episodes

MOST: Final = 200
LONGEST: Final = 20_000
LISTED: Final = 50
NEWEST: Final = 1 << 53
KINDS: Final = frozenset(get_args(TriggerKind))
TEXTS: Final = ("query", "problem", "lesson", "reflection", "author", "session", "turn", "task")
Json = dict[str, Any]


async def taken(store: Episodes, project: str, given: object, *, dry_run: bool) -> Json:
    """``new`` and ``known``: how many; ``refused``: which, and why. Raises ``BadReply``, ``Unavailable``."""
    if not isinstance(given, list) or not 0 < len(given) <= MOST:
        raise BadReply(f"`episodes` is a list of 1 to {MOST}")
    found: dict[str, Episode] = {}
    refused = []
    for one in given:
        try:
            made = await asyncio.to_thread(episode, one, project)
        except BadReply as error:
            refused.append(
                {"id": str(one.get("id", ""))[:40] if isinstance(one, dict) else "", "why": str(error)}
            )
        else:
            found.setdefault(made.id, made)
    known = {c.episode.id for c in await store.get(list(found))}
    new = [made for id_, made in found.items() if id_ not in known]
    if not dry_run:
        for made in new:
            await store.add(made)
    return {"new": len(new), "known": len(known), "refused": refused}


def episode(one: object, project: str) -> Episode:
    """An episode out of what ``export`` wrote. Raises ``BadReply``."""
    if not isinstance(one, dict):
        raise BadReply("it is no episode")
    id_ = one.get("id")
    if not isinstance(id_, str) or len(id_) != 32 or not set(id_) <= set("0123456789abcdef"):
        raise BadReply("its id has not 32 hexadecimal digits")
    texts = {name: redact(_text(one, name)) for name in TEXTS}
    if not texts["query"].strip() or not texts["lesson"].strip():
        raise BadReply("it has no task or no lesson")
    if why := refusal(texts["lesson"]):
        raise BadReply(f"its lesson may not be kept: {why}")
    reward, at = one.get("reward"), one.get("at", 0)
    if isinstance(reward, bool) or not isinstance(reward, (int, float)) or not -1 <= reward <= 1:
        raise BadReply("its reward is no number from -1 to 1")
    if type(at) is not int or not 0 <= at <= NEWEST:
        raise BadReply("its time is no number of milliseconds")
    return Episode(
        id=id_,
        project=project,
        reward=float(reward),
        at=at,
        query=texts["query"],
        problem="" if refusal(texts["problem"]) else texts["problem"],
        lesson=texts["lesson"],
        reflection=texts["reflection"],
        author=texts["author"],
        session=texts["session"],
        turn=texts["turn"],
        task=texts["task"],
        triggers=_triggers(one),
        cites=_list(one, "cites"),
        files=_list(one, "files"),
    )


def _text(one: Mapping[str, Any], name: str) -> str:
    value = one.get(name, "")
    if not isinstance(value, str) or len(value) > LONGEST:
        raise BadReply(f"`{name}` is no text of at most {LONGEST} characters")
    return value


def _list(one: Mapping[str, Any], name: str) -> tuple[str, ...]:
    value = one.get(name, [])
    if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
        raise BadReply(f"`{name}` is no list of texts")
    return tuple(redact(text[:1_000]) for text in value[:LISTED])


def _triggers(one: Mapping[str, Any]) -> tuple[Trigger, ...]:
    value = one.get("triggers", [])
    if not isinstance(value, list):
        raise BadReply("`triggers` is no list")
    found = []
    for t in value[:LISTED]:
        kind, text = (t.get("kind"), t.get("text")) if isinstance(t, dict) else (None, None)
        if kind not in KINDS or not isinstance(text, str):
            raise BadReply("a trigger has a kind (command) and a text")
        found.append(Trigger(cast("TriggerKind", kind), redact(text[:1_000])))
    return tuple(found)

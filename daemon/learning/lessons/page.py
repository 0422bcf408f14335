"""The memory's part of the page Learned: lessons, where each comes from, and what became of it.

Confirming, dismissing and forgetting are the routes that `reflectd memory` asks: the same safeguards, the
same words.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from ...core.errors import Unavailable
from ...engine.pages.sections import PIECE, action, following, off, row, section, session, when
from ..projects import ChosenProject
from ..texts import refusal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ...engine.features.feature import Parts
    from .routes import EpisodeRoutes

Json = dict[str, Any]
TITLE: Final = "Lessons"
COLUMNS: Final = (
    "task", "problem", "lesson", "state", "learned", "session", "before", "given", "good after", "bad after",
)  # fmt: skip
SAID: Final = (
    "Drawn from tasks that ended badly. Before: the reward of the verdict that taught it. After: the first "
    "verdicts of sessions that were given it."
)
STATES: Final = {
    "confirmed": "confirmed: given to agents",
    "quarantined": "apart until something proves or confirms it",
    "dismissed": "dismissed",
}


class LessonsPage:
    """One for the daemon."""

    def __init__(self, parts: Parts, routes: EpisodeRoutes) -> None:
        self._chosen = ChosenProject(parts)
        self._routes = routes
        self._world = parts.world

    async def read(self, query: Mapping[str, Any]) -> Json:
        """The lessons of the project, newest first."""
        chosen = await asyncio.to_thread(self._chosen.of, query)
        if chosen is None:
            return {"sections": []}
        asked = {"directory": str(chosen), "after": str(query.get("lessons", "")), "limit": PIECE + 1}
        try:
            found = (await self._routes.page(asked))["episodes"]
        except Unavailable as error:
            return {"sections": [section(TITLE, COLUMNS, (), text=str(error))]}
        some = found[:PIECE]
        told = off("Lessons", enabled=self._world.settings.memory.enabled)
        more = following(query, "lessons", some[-1]["id"]) if len(found) > PIECE else {}
        return {"sections": [section(TITLE, COLUMNS, [_row(e) for e in some], text=told + SAID, more=more)]}


def _row(e: Json) -> Json:
    use, state = e["use"], STATES[e["state"]]
    proof = f"; proof: {e['proof']}" if e["proof"] else ""
    return row(
        e["query"], e["problem"], e["lesson"], state + proof, when(e["at"]), session(e["session"]),
        f"{e['reward']:+.2f}", use["given"], use["helped"], use["failed"],
        actions=_actions(e),
    )  # fmt: skip


def _actions(e: Json) -> list[Json]:
    """What a person can say of it. Only forgetting can't be taken back by another click."""
    one = {"ids": [e["id"]]}
    yes, no = {**one, "yes": True}, {**one, "yes": False}
    found = []
    if e["state"] != "confirmed" and not refusal(e["lesson"]):
        found.append(action("confirm", "settle", yes, key="a"))
    if e["state"] != "dismissed":
        found.append(action("dismiss", "settle", no, key="x"))
    asks = "Forget this lesson for good? It can't be brought back, and may be learned again."
    return [*found, action("forget", "forget", one, key="f", confirm=asks)]

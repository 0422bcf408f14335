"""The playbook's part of the page Learned: its points, and the texts that wait for a person's word.

Approving, dismissing and removing do what `reflectd playbook approve` and `reflectd learned undo` do, by the
same functions, and are refused with the same words: a hostile text, a point that was edited since.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from ...core.errors import Rejected, Unavailable
from ...core.given import known_as
from ...engine.features.feature import Route
from ...engine.pages.sections import action, off, piece, row, section, session, when
from ...learning import tables
from ..projects import BY, ChosenProject, refusing, said_by_person
from ..texts import refusal
from . import project_playbook as learned_points
from .points import each, harms

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from ...engine.features.feature import Parts
    from ...learning.tables import Text
    from ..rules.learned_rules import LearnedRules
    from ..texts import Origin
    from .look_back import Lookback
    from .playbooks import Playbooks
    from .points import Point

Json = dict[str, Any]
WORD: Final = "a person's word in the dashboard"
GONE: Final = "What says the same is never learned again."
POINT: Final = (
    "point", "text", "section", "given", "cited", "helpful", "harmful", "state", "origin",
)  # fmt: skip
WAITING: Final = ("name", "section", "text", "learned", "session", "why")


class PointsPage:
    """One for the daemon."""

    def __init__(self, parts: Parts, books: Playbooks, learning_: Lookback) -> None:
        self._world = parts.world
        self._chosen = ChosenProject(parts)
        self._books = books
        self._learning = learning_

    def routes(self) -> Sequence[Route]:
        """What a click does."""
        return (
            Route("POST", "approve", self._approve, clicked=True),
            Route("POST", "dismiss", self._dismiss, clicked=True),
            Route("POST", "remove", self._remove, clicked=True),
        )

    async def read(self, query: Mapping[str, Any]) -> Json:
        """The projects, the texts that wait, and the points."""
        return await asyncio.to_thread(self._read, query)

    def _read(self, query: Mapping[str, Any]) -> Json:
        chosen = self._chosen.of(query)
        sections = [self._chosen.listed(chosen, query)]
        if chosen is not None and (project := self._books.project(str(chosen))):
            sections += [self._waiting(chosen, project, query), self._points(chosen, project, query)]
        return {"sections": sections}

    # --- texts that wait -------------------------------------------------------------------------------

    def _waiting(self, chosen: Path, project: str, query: Mapping[str, Any]) -> Json:
        blocked = self._books.blocked(project)
        found = [t for t in tables.texts(self._world.db, project) if not blocked(t.text)]
        some, more = piece(found, query, "waiting")
        rows = [
            row(
                f"new-{t.id}", t.section, t.text, when(t.at), session(t.session), t.origin.why,
                actions=self._words_on(chosen, t),
            )
            for t in some
        ]  # fmt: skip
        said = "Learned by a session and kept apart, until another one shows that it is true or you say so."
        return section("Waiting for your word", WAITING, rows, text=said, more=more)

    @staticmethod
    def _words_on(chosen: Path, t: Text) -> list[Json]:
        body = {"directory": str(chosen), "name": f"new-{t.id}", "seen": known_as(t.text)}
        yes = [] if refusal(t.text) else [action("approve", "approve", body, key="a")]
        return [*yes, action("dismiss", "dismiss", body, key="x", confirm=f"Dismiss new-{t.id}? {GONE}")]

    # --- points ----------------------------------------------------------------------------------------

    def _points(self, chosen: Path, project: str, query: Mapping[str, Any]) -> Json:
        book = self._rules(chosen).playbook
        loaded, known = book.read(), book.known()
        confirmed = {known_as(t.text): t.origin for t in tables.texts(self._world.db, project, "confirmed")}
        uses = {name: counts for name, *counts in tables.uses(self._world.db, project)}
        offered = {line.name for line in self._books.lines(project)}
        some, more = piece(list(each(loaded.playbook)), query, "points")
        rows = []
        for part, p in some:
            origin = confirmed.get(known_as(p["text"]))
            vouched = known.is_approved(p["text"])
            given, cited, *_ = uses.get(p["name"], (0, 0, 0, 0))
            rows.append(
                row(
                    p["name"], p["text"], part, given, cited, p["helpful"], p["harmful"],
                    _state(p, offered, vouched=vouched or origin is not None),
                    _origin(origin, vouched=vouched),
                    actions=_point_actions(chosen, p, waits=not vouched and origin is None),
                )
            )  # fmt: skip
        said = off("Points", enabled=self._world.settings.playbook.enabled)
        said += "What agents learned works in this project, with what became of it in later sessions."
        return section("Points", POINT, rows, text=loaded.problem or said, more=more)

    # --- what a click does -----------------------------------------------------------------------------

    async def _approve(self, body: Mapping[str, Any]) -> Json:
        """``directory``, ``name``, ``seen``: a point or a text that waits counts from now on."""
        chosen, name, seen = await self._meant(body)
        text = self._text(str(chosen), name, seen)
        if text is None:
            await asyncio.to_thread(refusing(lambda: self._vouch(chosen, name, seen)))
        else:
            refusing(lambda: learned_points.may_count({name: text.text}))()
            await self._learning.settle(text, yes=True, word=WORD)
        return {"said": f"approved {name}"}

    async def _dismiss(self, body: Mapping[str, Any]) -> Json:
        """``directory``, ``name``, ``seen``: a text that waits goes, and is never learned again."""
        chosen, name, seen = await self._meant(body)
        text = self._text(str(chosen), name, seen)
        if text is None:
            raise Rejected(f"{name} is a point of the file: remove it instead")
        journal = self._rules(chosen).journal
        await self._learning.settle(text, yes=False, word=WORD)
        try:
            await asyncio.to_thread(refusing(lambda: learned_points.never_again(journal, text.text)))
        except (Rejected, Unavailable) as error:
            return {"said": f"dismissed {name}, but another session may teach it again: {error}"}
        return {"said": f"dismissed {name}"}

    async def _remove(self, body: Mapping[str, Any]) -> Json:
        """``directory``, ``name``, ``seen``: a point goes, and is never learned again."""
        chosen, name, seen = await self._meant(body)

        def remove() -> None:
            rules = self._rules(chosen)
            text = self._seen(rules, name, seen)
            learned_points.take_back(rules.playbook, rules.journal, name, text, by=BY)

        await asyncio.to_thread(refusing(remove))
        return {"said": f"removed {name}"}

    async def _meant(self, body: Mapping[str, Any]) -> tuple[Path, str, str]:
        directory, name, seen = said_by_person(body, "directory", "name", "seen")
        return await asyncio.to_thread(self._chosen.named, directory), name, seen

    def _text(self, chosen: str, name: str, seen: str) -> Text | None:
        """The text that waits under this name; None for a point. Raises ``Rejected``."""
        number = name.removeprefix("new-")
        if number == name or not (number.isascii() and number.isdecimal()) or len(number) > 15:
            return None
        found = tables.text(self._world.db, int(number))
        here = found is not None and found.directory == self._books.project(chosen)
        if found is None or not here or found.state != "quarantined" or known_as(found.text) != seen:
            raise Rejected(f"nothing called {name!r} waits")
        return found

    def _vouch(self, chosen: Path, name: str, seen: str) -> None:
        rules = self._rules(chosen)
        learned_points.vouch(rules.playbook, {name: self._seen(rules, name, seen)})

    @staticmethod
    def _seen(rules: LearnedRules, name: str, seen: str) -> str:
        """The text of the point, if it is what the page showed. Raises ``UserError``."""
        return learned_points.as_seen(rules.playbook, name, seen)

    def _rules(self, chosen: Path) -> LearnedRules:
        return self._chosen.rules(chosen)


def _state(p: Point, offered: set[str], *, vouched: bool) -> str:
    if p["name"] in offered:
        return "given to agents"
    if why := refusal(p["text"]):
        return f"it may not be given to agents: {why}"
    if not vouched:
        return "nobody vouches for it, so no agent is given it"
    return "it harmed, so no agent is given it" if harms(p) else "a rule says it, or you dismissed it"


def _origin(origin: Origin | None, *, vouched: bool) -> str:
    if origin is not None:
        by = f", confirmed by {origin.proof}" if origin.proof else ""
        return f"session {origin.session}{f': {origin.why}' if origin.why else ''}{by}"
    return "your word" if vouched else "the file"


def _point_actions(chosen: Path, p: Point, *, waits: bool) -> list[Json]:
    name, text = p["name"], p["text"]
    body = {"directory": str(chosen), "name": name, "seen": known_as(text)}
    yes = [action("approve", "approve", body, key="a")] if waits and not refusal(text) else []
    return [*yes, action("remove", "remove", body, key="x", confirm=f"Remove {name}? {GONE}")]

"""The page Learned of the dashboard: what waits for the person, what is in use, what was taken back.

A click does what ``reflectd learned`` does, by the same functions, and is refused with the same words: a text
that was edited since the page was shown, a hostile text. Rules and preferences stand in
files that every agent reads: a terminal asks about them, and a click only undoes such a change.
"""

from __future__ import annotations

import asyncio
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final

from ..core.errors import Rejected, Unavailable, UserError
from ..engine.feature import Feature, Page, Route
from ..engine.page import action, link, piece, row, section, when
from ..files.project import find_project
from .playbook.project_playbook import may_count
from .records import NOBODY, Learned, Record, change_named, changes, settle
from .rules.learned_rules import LearnedRules
from .texts import refusal

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..engine.engine import Engine

Json = dict[str, Any]
BY: Final = "dashboard"
"""Who changed something, as the lists of changes have it."""
TERMINAL: Final = "a terminal asks about it"
NEVER: Final = "No agent is given it any more, and it is not learned again."
LOOKED_AT: Final = 50  # verdicts
LONGEST: Final = 300  # characters of a folder in a refusal
WAITS: Final = ("what", "text", "from")
USED: Final = ("what", "text", "use", "how agents get it")
KEPT: Final = ("what", "text", "why no agent gets it")
CHANGE: Final = ("change", "when", "what", "state")


class LearnedPage(Feature):
    """One for the daemon."""

    name: ClassVar = "learned"

    def __init__(self, parts: Engine) -> None:
        super().__init__(parts)
        self.parts = parts
        self._world = parts.world

    def pages(self) -> Sequence[Page]:
        """Learned."""
        return (Page("learned", "Learned", self.read),)

    def routes(self) -> Sequence[Route]:
        """The routes of clicks; the socket has none of these."""
        clicks = {"approve": self._approve, "forget": self._forget, "undo": self._undo}
        return [Route("POST", name, click, clicked=True) for name, click in clicks.items()]

    async def read(self, query: Mapping[str, Any]) -> Json:
        """The projects, and what was learned about the one that the query names."""
        chosen = await asyncio.to_thread(self._of, query)
        sections = [await asyncio.to_thread(self._projects, chosen, query)]
        if chosen is None:
            return {"sections": sections}
        await self._world.projects.read(str(chosen))
        try:
            shown = await asyncio.to_thread(self._shown, chosen, query)
        except (UserError, Unavailable) as error:
            return {"sections": [*sections, section("In use", USED, (), text=str(error))]}
        return {"sections": [*sections, *shown]}

    def _shown(self, chosen: Path, query: Mapping[str, Any]) -> list[Json]:
        learned = self._learned(chosen)
        records = learned.records(self._world.db)
        waiting = [r for r in records if r.state == "waiting"]
        terminal = (
            f"Rules are made and archived in a terminal: reflectd reflect --dir {shlex.quote(str(chosen))}"
        )
        asks = terminal if any(r.suggested for r in waiting) else ""
        in_use = [r for r in records if r.state == "in use"]
        parts = []
        for title, columns, those, text in (
            ("Waiting for you", WAITS, waiting, asks if waiting else "Nothing waits for a word of yours."),
            ("In use", USED, [r for r in in_use if r.how], " ".join(learned.look.problems)),
            ("Given to no agent", KEPT, [r for r in in_use if not r.how], ""),
            ("Taken back", KEPT, [r for r in records if r.state == "dismissed"], ""),
        ):
            some, more = piece(those, query, title.partition(" ")[0].lower())
            if some or columns is not KEPT:
                parts.append(
                    section(title, columns, [_row(r, columns, learned) for r in some], text=text, more=more)
                )
        newest, more = piece(changes(learned.rules), query, "changes")
        listed = [_change(chosen, change) for change in newest]
        return [*parts, section("Changes of files", CHANGE, listed, more=more)]

    # --- what a click does ---------------------------------------------------------------------------------

    async def _approve(self, body: Mapping[str, Any]) -> Json:
        """``directory``, ``id``, ``seen``: agents may be given it from now on."""
        learned, r = await self._meant(body)
        if r.suggested:
            raise Rejected(f"{r.id} is a {r.kind}: {TERMINAL}")
        may_count(r.id, r.text)
        await self._carry_out(learned.rules, r, yes=True)
        return {"said": f"approved {r.id}"}

    async def _forget(self, body: Mapping[str, Any]) -> Json:
        """``directory``, ``id``, ``seen``: no agent is given it any more."""
        learned, r = await self._meant(body)
        await self._carry_out(learned.rules, r, yes=False)
        return {"said": f"{'dismissed' if r.key or r.suggested else 'removed'} {r.id}"}

    async def _undo(self, body: Mapping[str, Any]) -> Json:
        """``directory``, ``change``: take a change of a file back."""
        directory, name = _texts(body, "directory", "change")
        chosen = await asyncio.to_thread(self._named, directory)
        if (change := change_named(name)) is None:
            raise Rejected("name the change by its `change`, such as r3")
        letter, number = change

        def take_back() -> Json:
            rules = self._rules(chosen)
            if letter == "p":
                return {"said": rules.playbook.undo(number).what}
            done = rules.undo(number, by=BY)
            return {"said": ". ".join((done.change.what, *done.told))}

        return await asyncio.to_thread(take_back)

    async def _meant(self, body: Mapping[str, Any]) -> tuple[Learned, Record]:
        """The record of a click, if it still is what the page showed. Raises ``Rejected``."""
        directory, id_, seen = _texts(body, "directory", "id", "seen")
        chosen = await asyncio.to_thread(self._named, directory)
        learned = await asyncio.to_thread(self._learned, chosen)
        records = await asyncio.to_thread(learned.records, self._world.db)
        record = next((r for r in records if r.id == id_), None)
        if record is None:
            raise Rejected(f"{id_[:80]} is not there any more: nothing was changed")
        if record.seen != seen:
            raise Rejected(f"{id_} was edited while you were asked: nothing was changed; try again")
        if record.kind in {"rule", "preference"} and not record.suggested:
            raise Rejected(f"{id_} is a {record.kind}: {TERMINAL}")
        return learned, record

    async def _carry_out(self, rules: LearnedRules, r: Record, *, yes: bool) -> None:
        """The feature that keeps the record settles it; then its part in files follows."""
        if route := r.route(yes=yes):
            feature, name, body = route
            answers = {(of, each.name): each.answer for of, each in self.parts.features.routes()}
            await answers[feature, name]({**body, "by": BY})
        await asyncio.to_thread(settle, rules, r, yes=yes, by=BY)

    # --- the project ---------------------------------------------------------------------------------------

    def _learned(self, chosen: Path) -> Learned:
        world = self._world
        learned = Learned(self._rules(chosen), world.settings, world.project(str(chosen)))
        if not any(map(world.calls.models, world.calls.judges)):
            learned.without_model()
        return learned

    def _rules(self, chosen: Path) -> LearnedRules:
        world = self._world
        return LearnedRules(chosen, world.db.path.parent, world.clock, playbook=world.settings.playbook.path)

    def _of(self, query: Mapping[str, Any]) -> Path | None:
        """The folder that the page is about: the one that the query names, else that of the newest verdict
        whose folder is still there. Raises ``Rejected``.
        """
        if named := str(query.get("directory", "")):
            return self._named(named)
        newest = dict.fromkeys(stored.directory for stored in self._world.verdicts.newest(limit=LOOKED_AT))
        there = next((folder for folder in newest if Path(folder).is_dir()), "")
        return self._named(there) if there else None

    def _named(self, directory: str) -> Path:
        """The project of this folder, looked up as verbs do it. Raises ``Rejected`` for what is none."""
        if not Path(directory).is_absolute() or "\0" in directory:
            raise Rejected("name the project by the whole path of its `directory`")
        known = {i.directory for i in self.parts.instances} | set(self._world.sessions.off_folders())
        try:
            project = find_project(directory, known)
            there = project.is_dir()
        except OSError as error:  # a name that is too long
            raise Rejected(f"{directory[:LONGEST]} can't be read: {error.strerror}") from error
        if not there:
            raise Rejected(f"there is no folder {project}")
        return project

    def _projects(self, chosen: Path | None, query: Mapping[str, Any]) -> Json:
        """The projects in which something was judged lately, each as a link."""
        known = self._world.verdicts.folders() | ({str(chosen)} if chosen else set())
        folders = [folder for folder in sorted(known) if Path(folder).is_dir()]
        some, more = piece(folders, query, "projects")
        rows = [row(link(f, directory=f), "below" if f == str(chosen) else "") for f in some]
        text = "" if folders else "Nothing was judged yet."
        return section("Project", ("folder", "shown"), rows, text=text, more=more)


def _row(r: Record, columns: Sequence[str], learned: Learned) -> Json:
    """One of the records in these columns, with what a person can say to it."""
    text = f'"{r.task}" → {r.text}' if r.task else r.text
    why = "" if r.why == NOBODY else r.why
    facts = {WAITS: (r.origin, why), USED: (r.how, r.origin), KEPT: (r.why, r.origin)}[tuple(columns)]
    cells = (r.id, text, *((r.use,) if columns is USED else ()), ". ".join(filter(None, facts)))
    if r.kind in {"rule", "preference"} and not r.suggested:
        return row(*cells)
    body = {"directory": learned.project, "id": r.id, "seen": r.seen}
    actions = []
    if r.approvable and not refusal(r.text):
        actions.append(action("approve", "approve", body, key="a"))
    if r.state != "dismissed":
        label = "dismiss" if r.state == "waiting" else "forget"
        asks = f"{label.capitalize()} {r.id}? {NEVER}" if r.kind == "point" else ""
        actions.append(action(label, "forget", body, key="x", confirm=asks))
    return row(*cells, actions=actions)


def _change(chosen: Path, change: Json) -> Json:
    """The row of a change, with its undo."""
    body = {"directory": str(chosen), "change": change["change"]}
    what = f"{change['what']}: {change['why']}" if change["why"] else change["what"]
    again = [] if change["undone"] else [action("undo", "undo", body, key="u")]
    state = "undone" if change["undone"] else ""
    return row(change["change"], when(change["at"]), f"{what} (by {change['by']})", state, actions=again)


def _texts(body: Mapping[str, Any], *names: str) -> list[str]:
    """The texts of a click's body, in this order. Raises ``Rejected``."""
    texts = [value for name in names if isinstance(value := body.get(name), str) and value]
    if len(texts) != len(names):
        raise Rejected(f"name {', '.join(names)}")
    return texts

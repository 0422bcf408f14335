"""The page Learned of the dashboard: what waits for the person, what is in use, what was taken back.

A click does what ``reflectd learned`` and ``reflectd reflect`` do, by the same functions, and is refused with
the same words: a text that was edited since the page was shown, a file that was, a hostile text. A suggestion
of which a model said that it contradicts a rule, or for which there are two files, is decided in a terminal,
where a person chooses; the page says why.
"""

from __future__ import annotations

import asyncio
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeVar

from ..core.errors import Rejected, Unavailable, UserError
from ..core.given import known_as
from ..engine.feature import Feature, Page, Route
from ..engine.page import action, link, piece, row, section, when
from ..files.project import find_project
from .playbook import project_playbook as points
from .records import NOBODY, Learned, Record
from .revisions import undone
from .rules.journal import against, dismiss, is_due, same
from .rules.learned_rules import LearnedRules
from .rules.rules_file import chosen as chosen_place
from .rules.section import RULES
from .texts import refusal

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ..engine.engine import Engine
    from .rules.journal import Journal

Json = dict[str, Any]
T = TypeVar("T")
BY: Final = "dashboard"
"""Who changed something, as the lists of changes have it."""
NO_MARK: Final = "-"  # of a file that is not there, or empty
NEVER: Final = "No agent is given it any more, and it is not learned again."
LOOKED_AT: Final = 50  # verdicts
LONGEST: Final = 300  # characters of a folder in a refusal
LESSONS: Final = 200
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
        """What a click does; the socket has none of these."""
        return (
            Route("POST", "approve", self._approve, clicked=True),
            Route("POST", "forget", self._forget, clicked=True),
            Route("POST", "learn", self._learn, clicked=True),
            Route("POST", "undo", self._undo, clicked=True),
        )

    # --- what is shown -------------------------------------------------------------------------------------

    async def read(self, query: Mapping[str, Any]) -> Json:
        """The projects, and what was learned about the one that the query names."""
        chosen = await asyncio.to_thread(self._of, query)
        sections = [await asyncio.to_thread(self._projects, chosen, query)]
        if chosen is None:
            return {"sections": sections}
        lessons, silent, chooses = await self._lessons(chosen)
        await self._world.projects.read(str(chosen))
        try:
            shown = await asyncio.to_thread(self._shown, chosen, lessons, chooses, query)
        except (UserError, Unavailable) as error:
            return {"sections": [*sections, section("In use", USED, (), text=str(error))]}
        if silent:
            shown[1]["text"] = f"Lessons are not shown: {silent}"
        return {"sections": [*sections, *shown]}

    def _shown(
        self, chosen: Path, lessons: list[Json], chooses: bool, query: Mapping[str, Any]
    ) -> list[Json]:
        learned = self._learned(chosen)
        if not chooses:
            learned.without_model()
        records = learned.records(self._world.db, lessons)
        marks, look = learned.rules.marks(), learned.rules.look()
        waiting = [r for r in records if r.state == "waiting"]
        terminal = f"Reword suggestions in a terminal: reflectd reflect --dir {shlex.quote(str(chosen))}"
        asks = terminal if any(r.id.startswith("sig-") for r in waiting) else ""
        in_use = [r for r in records if r.state == "in use"]
        given = [r for r in in_use if r.how]
        parts = []
        for title, columns, of, text in (
            ("Waiting for you", WAITS, waiting, asks if waiting else "Nothing waits for a word of yours."),
            ("In use", USED, given, " ".join(look.problems)),
            ("Given to no agent", KEPT, [r for r in in_use if not r.how], ""),
            ("Taken back", KEPT, [r for r in records if r.state == "dismissed"], ""),
        ):
            some, more = piece(of, query, title.partition(" ")[0].lower())
            rows = [self._row(learned, r, columns, marks) for r in some]
            if rows or columns is not KEPT:
                parts.append(section(title, columns, rows, text=text, more=more))
        return [*parts, self._changes(chosen, learned.rules, query)]

    def _row(self, learned: Learned, r: Record, columns: Sequence[str], marks: Mapping[str, str]) -> Json:
        text = f'"{r.task}" → {r.text}' if r.task else r.text
        why = "" if r.why == NOBODY else r.why
        if suggested := r.id.startswith("sig-"):
            file, no_file = _rules_file(learned.rules)
            why = no_file or _objection(learned.rules, r.id, r.text) or f"it would go into {file}"
        cells: tuple[object, ...]
        if columns is WAITS:
            cells = (r.id, text, ". ".join(filter(None, (r.origin, why))))
        elif columns is USED:
            cells = (r.id, text, r.use, ". ".join(filter(None, (r.how, r.origin))))
        else:
            cells = (r.id, text, ". ".join(filter(None, (r.why, r.origin))))
        actions = self._on_suggestion(learned, r, marks) if suggested else self._actions(learned, r, marks)
        return row(*cells, actions=actions)

    def _actions(self, learned: Learned, r: Record, marks: Mapping[str, str]) -> list[Json]:
        """What a person can say of it. Somebody else's rule is theirs; what is archived comes back by undoing
        the change.
        """
        body = {"directory": learned.project, "id": r.id, "seen": r.seen}
        if r.kind in {"rule", "preference"}:
            if r.state == "dismissed" or "somebody else's" in r.origin:
                return []
            return [action("archive", "forget", {**body, "mark": marks.get(r.file, "") or NO_MARK}, key="x")]
        found = []
        waits = r.open or r.state == "waiting" or (r.kind == "lesson" and r.state == "dismissed")
        if waits and not refusal(r.text):
            found.append(action("approve", "approve", body, key="a"))
        if r.state != "dismissed":
            label = "dismiss" if r.state == "waiting" else "forget"
            asks = "" if r.kind == "lesson" else f"{label.capitalize()} {r.id}? {NEVER}"
            found.append(action(label, "forget", body, key="x", confirm=asks))
        return found

    @staticmethod
    def _on_suggestion(learned: Learned, r: Record, marks: Mapping[str, str]) -> list[Json]:
        body = {"directory": learned.project, "id": r.id, "seen": r.seen}
        file, no_file = _rules_file(learned.rules)
        found = [action("dismiss", "forget", body, key="x")]
        if not no_file and not _objection(learned.rules, r.id, r.text):
            yes = {**body, "file": file, "mark": marks.get(file, "") or NO_MARK}
            asks = f"Write into {file}, for every agent that reads it: {r.text}"
            found.insert(0, action("make it a rule", "learn", yes, key="a", confirm=asks))
        return found

    @staticmethod
    def _changes(chosen: Path, rules: LearnedRules, query: Mapping[str, Any]) -> Json:
        """The changes of files, newest first, each with its undo."""
        every = [
            (letter, r, r.number in gone)
            for letter, kept in (("r", rules.changes.all()), ("p", rules.playbook.history()))
            for gone in (undone(kept),)
            for r in kept
        ]
        some, more = piece(sorted(every, key=lambda each: -each[1].at), query, "changes")
        rows = []
        for letter, r, gone in some:
            body = {"directory": str(chosen), "change": f"{letter}{r.number}"}
            what = f"{r.what}: {r.why}" if r.why else r.what
            again = [] if gone else [action("undo", "undo", body, key="u")]
            state = "undone" if gone else ""
            rows.append(row(body["change"], when(r.at), f"{what} (by {r.by})", state, actions=again))
        return section("Changes of files", CHANGE, rows, more=more)

    # --- what a click does ---------------------------------------------------------------------------------

    async def _approve(self, body: Mapping[str, Any]) -> Json:
        """``directory``, ``id``, ``seen``: agents may be given it from now on."""
        learned, r, _ = await self._meant(body)
        if r.kind in {"rule", "preference"}:
            raise Rejected(f"{r.id} is a {r.kind}: a terminal asks about it")
        refusing(lambda: points.may_count({r.id: r.text}))()
        if r.kind == "lesson":
            await self._ask("memory", "POST", "settle", {"ids": [r.key], "yes": True})
        elif r.key:
            await self._ask("playbook", "POST", "settle", {"id": int(r.key), "yes": True, "by": BY})
        else:
            book = learned.rules.playbook
            await asyncio.to_thread(refusing(lambda: points.vouch(book, {r.id: r.text})))
        return {"said": f"approved {r.id}"}

    async def _forget(self, body: Mapping[str, Any]) -> Json:
        """``directory``, ``id``, ``seen``, of a rule ``mark``: no agent is given it any more."""
        learned, r, mark = await self._meant(body)
        rules = learned.rules
        if r.kind == "lesson":
            await self._ask("memory", "POST", "settle", {"ids": [r.key], "yes": False})
            return {"said": f"dismissed {r.id}"}
        if r.key:
            await self._ask("playbook", "POST", "settle", {"id": int(r.key), "yes": False, "by": BY})
            try:
                await asyncio.to_thread(refusing(lambda: points.never_again(rules.journal, r.text)))
            except (Rejected, Unavailable) as error:
                return {"said": f"dismissed {r.id}, but another session may teach it again: {error}"}
            return {"said": f"dismissed {r.id}"}
        if r.kind == "point":
            await asyncio.to_thread(
                refusing(lambda: points.take_back(rules.playbook, rules.journal, r.id, r.text, by=BY))
            )
            return {"said": f"removed {r.id}"}
        if r.id.startswith("sig-"):
            return await asyncio.to_thread(refusing(lambda: _dismissed(rules, r)))

        def unlearn() -> Json:
            done = rules.unlearn(r.id, "" if mark == NO_MARK else mark, by=BY)
            return {"said": ". ".join((done.change.what, *done.told))}

        return await asyncio.to_thread(refusing(unlearn))

    async def _learn(self, body: Mapping[str, Any]) -> Json:
        """``directory``, ``id``, ``seen``, ``file``, ``mark``: make a rule of what is suggested, there.
        ``mark``: of the file when the page was shown, "-" for none.
        """
        learned, r, mark = await self._meant(body)
        rules, file = learned.rules, body.get("file")

        def learn() -> Json:
            now, no_file = _rules_file(rules)
            if no_file or now != file:
                raise Rejected(no_file or f"rules go into {now} by now: nothing was changed")
            if why := _objection(rules, r.id, r.text):
                raise Rejected(f"{why}: nothing was changed")
            place = next(p for p in rules.places() if p.name == file)
            done = rules.learn(r.text, place, "" if mark == NO_MARK else mark, signals=[r.id], by=BY)
            return {"said": ". ".join((done.change.what, *done.told))}

        if not r.id.startswith("sig-"):
            raise Rejected(f"{r.id} is no suggestion")
        return await asyncio.to_thread(refusing(learn))

    async def _undo(self, body: Mapping[str, Any]) -> Json:
        """``directory``, ``change``: take a change of a file back."""
        directory, name = said_by_person(body, "directory", "change")
        chosen = await asyncio.to_thread(self._named, directory)
        letter, number = name[:1], name[1:]
        if letter not in {"r", "p"} or not (number.isascii() and number.isdecimal()) or len(number) > 9:
            raise Rejected("name the change by its `change`, such as r3")

        def take_back() -> Json:
            rules = self._rules(chosen)
            if letter == "p":
                return {"said": rules.playbook.undo(int(number)).what}
            done = rules.undo(int(number), by=BY)
            return {"said": ". ".join((done.change.what, *done.told))}

        return await asyncio.to_thread(refusing(take_back))

    async def _meant(self, body: Mapping[str, Any]) -> tuple[Learned, Record, str]:
        """The record of a click, if it still is what the page showed; and the mark of its file. Raises
        ``Rejected``.
        """
        directory, id_, seen = said_by_person(body, "directory", "id", "seen")
        chosen = await asyncio.to_thread(self._named, directory)
        learned = await asyncio.to_thread(self._learned, chosen)
        lessons, *_ = await self._lessons(chosen)
        records = await asyncio.to_thread(refusing(lambda: learned.records(self._world.db, lessons)))
        found = next((r for r in records if r.id == id_), None)
        if found is None:
            raise Rejected(f"{id_[:80]} is not there any more: nothing was changed")
        if found.seen != seen:
            raise Rejected(f"{id_} was edited while you were asked: nothing was changed; try again")
        return learned, found, str(body.get("mark", ""))

    # --- the project ---------------------------------------------------------------------------------------

    async def _lessons(self, chosen: Path) -> tuple[list[Json], str, bool]:
        """Its lessons, newest first, why they are not known, and whether a model chooses among them."""
        asked = {"directory": str(chosen), "limit": LESSONS}
        try:
            answer = await self._ask("memory", "GET", "list", asked)
            return list(answer["episodes"]), "", bool(answer["chooses"])
        except Unavailable as error:
            return [], str(error), True

    async def _ask(self, feature: str, method: str, name: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
        """What the route of another feature answers."""
        other = self.parts.features.named(feature)
        found = (
            next((r for r in other.routes() if (r.method, r.name) == (method, name)), None) if other else None
        )
        if found is None:
            raise Unavailable(f"{feature} is not there")
        return await found.answer(body)

    def _learned(self, chosen: Path) -> Learned:
        return Learned(self._rules(chosen), self._world.settings, self._world.project(str(chosen)))

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
            found = find_project(directory, known)
            there = found.is_dir()
        except UserError as error:
            raise Rejected(str(error)) from error
        except OSError as error:  # a name that is too long
            raise Rejected(f"{directory[:LONGEST]} can't be read: {error.strerror}") from error
        if not there:
            raise Rejected(f"there is no folder {found}")
        return found

    def _projects(self, chosen: Path | None, query: Mapping[str, Any]) -> Json:
        """The projects in which something was judged lately, each as a link."""
        known = self._world.verdicts.folders() | ({str(chosen)} if chosen else set())
        folders = [folder for folder in sorted(known) if Path(folder).is_dir()]
        some, more = piece(folders, query, "projects")
        rows = [
            row(link(folder, directory=folder), "below" if folder == str(chosen) else "") for folder in some
        ]
        told = "" if folders else "Nothing was judged yet."
        return section("Project", ("folder", "shown"), rows, text=told, more=more)


def refusing(work: Callable[[], T]) -> Callable[[], T]:
    """The same work; what it refuses with ``UserError`` is a ``Rejected`` with the same words."""

    def run() -> T:
        try:
            return work()
        except UserError as error:
            raise Rejected(str(error)) from error

    return run


def said_by_person(body: Mapping[str, Any], *names: str) -> list[str]:
    """The texts of a click's body, in this order. Raises ``Rejected``."""
    found = [body.get(name) for name in names]
    texts = [value for value in found if isinstance(value, str) and value]
    if len(texts) != len(names):
        raise Rejected(f"name {', '.join(names)}")
    return texts


def _rules_file(rules: LearnedRules) -> tuple[str, str]:
    """The file that a rule goes to, else why there is none that a click may write."""
    try:
        places = rules.places()
    except UserError as error:
        return "", str(error)
    found = chosen_place(places, "", RULES)
    if found is None:
        return "", f"rules can go into {' or '.join(p.name for p in places)}: choose in a terminal"
    return found.name, ""


def _objection(rules: LearnedRules, name: str, text: str) -> str:
    """Why a click may not make a rule of this suggestion; "" when it may."""
    try:
        rules.check(text)
    except UserError as error:
        return str(error)
    look = rules.look()
    said = next((s for s in look.statements if same(s.text, text)), None)
    if said is not None:
        return f"it stands in {said.where} already"
    names = [n for s in look.journal["signals"] if s["id"] == name for n in against(s)]
    met = next((r for r in look.rows if r.active and r.id in names), None)
    return f"it contradicts {met.id}: {met.text!r}" if met is not None else ""


def _dismissed(rules: LearnedRules, r: Record) -> Json:
    """The suggestion is never made again."""
    book = rules.journal

    def edit(journal: Journal) -> None:
        found = next((s for s in journal["signals"] if s["id"] == r.id and is_due(s)), None)
        if found is None or known_as(str(found["content"])) != r.seen:
            raise UserError(f"{r.id} is not suggested any more, or was changed: nothing was changed")
        dismiss(journal, [r.id], book.day())

    done = book.change(edit)
    return {"said": ". ".join((f"dismissed {r.id}; `reflectd reflect restore {r.id}`", *done.told))}

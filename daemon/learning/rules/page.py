"""The part of the page Learned that comes from the person: rules, preferences, and the changes of them.

Each click does what `reflectd reflect`, `reflectd learned undo` and `reflectd reflect undo` do, by the same
functions. A file that was edited since the page was shown is left alone, with the same words. A suggestion
of which a model said that it contradicts a rule, or for which there are two files, is decided in a terminal,
where a person chooses; the page says why.
"""

from __future__ import annotations

import asyncio
import shlex
from typing import TYPE_CHECKING, Any, Final

from ...core.errors import Rejected, Unavailable, UserError
from ...core.given import known_as
from ...engine.features.feature import Route
from ...engine.pages.sections import action, piece, row, section, when
from ..projects import BY, ChosenProject, refusing, said_by_person
from ..revisions import undone
from .journal import against, dismiss, is_due, ranked, same
from .rules_file import chosen as chosen_place
from .section import RULES
from .standing import NOTES, wear

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from ...engine.features.feature import Parts
    from .changes import Change
    from .journal import Journal
    from .learned_rules import LearnedRules, Look
    from .standing import Standing

Json = dict[str, Any]
RULE: Final = ("rule", "text", "where", "learned", "from", "state")
CHANGE: Final = ("change", "when", "what", "file", "by", "state")
NO_MARK: Final = "-"  # of a file that is not there, or empty
ASKED: Final = "reflectd reflect --dir {project}"
SUGGESTED: Final = ("signal", "text", "sessions", "severity", "becomes a rule in", "but")


class RulesPage:
    """One for the daemon."""

    def __init__(self, parts: Parts) -> None:
        self._world = parts.world
        self._chosen = ChosenProject(parts)

    def routes(self) -> Sequence[Route]:
        """What a click does."""
        return (
            Route("POST", "unlearn", self._unlearn, clicked=True),
            Route("POST", "undo", self._undo, clicked=True),
            Route("POST", "learn", self._learn, clicked=True),
            Route("POST", "dismiss", self._dismiss, clicked=True),
        )

    async def read(self, query: Mapping[str, Any]) -> Json:
        """Rules, preferences, what is suggested, and the changes."""
        return await asyncio.to_thread(self._read, query)

    def _read(self, query: Mapping[str, Any]) -> Json:
        chosen = self._chosen.of(query)
        if chosen is None:
            return {"sections": []}
        rules = self._chosen.rules(chosen)
        try:
            marks, look = rules.marks(), rules.look()
        except (UserError, Unavailable) as error:
            return {"sections": [section("Rules: what you want", RULE, (), text=str(error))]}
        told = " ".join(look.problems)
        return {
            "sections": [
                self._standing(chosen, look, marks, query, soft=False, told=told),
                self._standing(chosen, look, marks, query, soft=True, told=told),
                self._suggested(chosen, rules, look, marks, query),
                self._changes(chosen, rules, query),
            ]
        }

    def _standing(
        self,
        chosen: Path,
        look: Look,
        marks: Mapping[str, str],
        query: Mapping[str, Any],
        *,
        soft: bool,
        told: str,
    ) -> Json:
        title = "Preferences: what you like" if soft else "Rules: what you want"
        found = [r for r in look.rows if r.active and r.soft is soft]
        some, more = piece(found, query, "preferences" if soft else "rules")
        today = self._chosen.rules(chosen).journal.day()
        rows = [
            row(
                r.id, r.text, r.where, r.learned, ", ".join(r.sources),
                _wore(r, look, today),
                actions=_rule_actions(chosen, r, marks),
            )
            for r in some
        ]  # fmt: skip
        return section(title, RULE, rows, text=told, more=more)

    @staticmethod
    def _suggested(
        chosen: Path, rules: LearnedRules, look: Look, marks: Mapping[str, str], query: Mapping[str, Any]
    ) -> Json:
        """What the person said in several sessions, with the file that a yes writes into."""
        file, no_file = _rules_file(rules)
        some, more = piece(ranked([s for s in look.journal["signals"] if is_due(s)]), query, "suggested")
        rows = []
        for s in some:
            name, text = str(s["id"]), str(s["content"])
            but = no_file or _objection(rules, look, s)
            body = {"directory": str(chosen), "name": name, "seen": known_as(text)}
            yes = {**body, "file": file, "mark": marks.get(file, "") or NO_MARK}
            asks = f"Write into {file}, for every agent that reads it: {text}"
            found = [] if but else [action("make it a rule", "learn", yes, key="a", confirm=asks)]
            found.append(action("dismiss", "dismiss", body, key="x"))
            rows.append(row(name, text, s["occurrences"], s["severity"], file, but, actions=found))
        said = "You said this in several sessions. Reword it or make it a preference in a terminal: "
        said += ASKED.format(project=shlex.quote(str(chosen)))
        return section("Suggested as rules", SUGGESTED, rows, text=said, more=more)

    @staticmethod
    def _changes(chosen: Path, rules: LearnedRules, query: Mapping[str, Any]) -> Json:
        every = rules.changes.all()
        gone = undone(every)
        some, more = piece(every, query, "changes")
        rows = [
            row(
                str(c.number), when(c.at), f"{c.what}: {c.why}" if c.why else c.what, c.file, c.by,
                "undone" if c.number in gone else "",
                actions=[] if c.number in gone else [_undo_action(chosen, c)],
            )
            for c in some
        ]  # fmt: skip
        return section("Changes of rules and preferences", CHANGE, rows, more=more)

    # --- what a click does -----------------------------------------------------------------------------

    async def _unlearn(self, body: Mapping[str, Any]) -> Json:
        """``directory``, ``name``, ``seen``: archive a rule or a preference. ``seen``: the mark of its file
        when the page was shown, "-" for none.
        """
        directory, name, seen = said_by_person(body, "directory", "name", "seen")

        def unlearn() -> Json:
            chosen = self._chosen.named(directory)
            done = self._chosen.rules(chosen).unlearn(name, "" if seen == NO_MARK else seen, by=BY)
            return {"said": ". ".join((done.change.what, *done.told))}

        return await asyncio.to_thread(refusing(unlearn))

    async def _learn(self, body: Mapping[str, Any]) -> Json:
        """``directory``, ``name``, ``seen``, ``file``, ``mark``: make a rule of what is suggested, in this
        file. ``seen``: the digest of its text. ``mark``: of the file when the page was shown, "-" for none.
        """
        directory, name, seen, file, mark = said_by_person(body, "directory", "name", "seen", "file", "mark")

        def learn() -> Json:
            rules = self._chosen.rules(self._chosen.named(directory))
            signal = _due(rules, name, seen)
            text = str(signal["content"])
            now, no_file = _rules_file(rules)
            if no_file or now != file:
                raise Rejected(no_file or f"rules go into {now} by now: nothing was changed")
            if why := _objection(rules, rules.look(), signal):
                raise Rejected(f"{why}: nothing was changed")
            place = next(p for p in rules.places() if p.name == file)
            done = rules.learn(text, place, "" if mark == NO_MARK else mark, signals=[name], by=BY)
            return {"said": ". ".join((done.change.what, *done.told))}

        return await asyncio.to_thread(refusing(learn))

    async def _dismiss(self, body: Mapping[str, Any]) -> Json:
        """``directory``, ``name``, ``seen``: never suggest this again."""
        directory, name, seen = said_by_person(body, "directory", "name", "seen")

        def drop() -> Json:
            book = self._chosen.rules(self._chosen.named(directory)).journal

            def edit(journal: Journal) -> None:
                _same(journal["signals"], name, seen)
                dismiss(journal, [name], book.day())

            done = book.change(edit)
            return {"said": ". ".join((f"dismissed {name}; `reflectd reflect restore {name}`", *done.told))}

        return await asyncio.to_thread(refusing(drop))

    async def _undo(self, body: Mapping[str, Any]) -> Json:
        """``directory``, ``number``: take a change back."""
        (directory,) = said_by_person(body, "directory")
        number = body.get("number")
        if type(number) is not int or number < 1:
            raise Rejected("name the change by its `number`")

        def take_back() -> Json:
            chosen = self._chosen.named(directory)
            done = self._chosen.rules(chosen).undo(number, by=BY)
            return {"said": ". ".join((done.change.what, *done.told))}

        return await asyncio.to_thread(refusing(take_back))


def _wore(r: Standing, look: Look, today: str) -> str:
    """What stands about it in the file, and what the person said against it since."""
    facts = [NOTES[r.note]]
    if r.note != "another":
        worn = wear(r, look.journal["signals"], today)
        often = "once" if worn.contradicted == 1 else f"{worn.contradicted} times"
        facts += [f"you contradicted it {often}"] if worn.contradicted else []
        facts += [f"nobody confirmed it for {worn.days} days"] if worn.stale else []
    return ", ".join(fact for fact in facts if fact)


def _rule_actions(chosen: Path, r: Standing, marks: Mapping[str, str]) -> list[Json]:
    """Somebody else's rule is theirs. An archived one comes back by undoing the change."""
    if r.note == "another":
        return []
    body = {"directory": str(chosen), "name": r.id, "seen": marks.get(r.file, "") or NO_MARK}
    return [action("archive", "unlearn", body, key="x")]


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


def _objection(rules: LearnedRules, look: Look, signal: Mapping[str, Any]) -> str:
    """Why a click may not make a rule of this signal; "" when it may."""
    text = str(signal["content"])
    try:
        rules.check(text)
    except UserError as error:
        return str(error)
    said = next((s for s in look.statements if same(s.text, text)), None)
    if said is not None:
        return f"it stands in {said.where} already"
    names = against(signal)
    met = next((row for row in look.rows if row.active and row.id in names), None)
    return f"it contradicts {met.id}: {met.text!r}" if met is not None else ""


def _due(rules: LearnedRules, name: str, seen: str) -> Mapping[str, Any]:
    """A suggestion, if it is still the one that the page showed. Raises ``UserError``."""
    loaded = rules.journal.read()
    if loaded.problem:
        raise UserError(loaded.problem)
    return _same(loaded.journal["signals"], name, seen)


def _same(signals: Sequence[Mapping[str, Any]], name: str, seen: str) -> Mapping[str, Any]:
    found = next((s for s in signals if s["id"] == name and is_due(s)), None)
    if found is None or known_as(str(found["content"])) != seen:
        raise UserError(f"{name} is not suggested any more, or was changed: nothing was changed")
    return found


def _undo_action(chosen: Path, c: Change) -> Json:
    return action("undo", "undo", {"directory": str(chosen), "number": c.number}, key="u")

"""The part of the page Learned that comes from the person: rules, preferences, and the changes of them.

Archiving and undoing do what `reflectd learned undo` and `reflectd reflect undo` do, by the same functions. A
file that was edited since the page was shown is left alone, with the same words. What is only suggested as a
rule is decided with `reflectd reflect`, which shows the file and what contradicts it; the page names that.
"""

from __future__ import annotations

import asyncio
import shlex
from typing import TYPE_CHECKING, Any, Final

from ...core.errors import Rejected, Unavailable, UserError
from ...files.rule_changes import undone
from ...files.rule_plan import marks_of
from ...files.rule_undo import undo
from ...rules.patterns import is_due, ranked
from ...rules.rows import NOTES
from ...rules.wear import wear
from ..features.feature import Route
from .projects import BY, ChosenProject, refusing, said_by_person
from .sections import action, piece, row, section, when

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from ...files.learned_rules import LearnedRules, Look
    from ...files.rule_changes import Change
    from ...rules.rows import Standing
    from ..features.feature import Parts

Json = dict[str, Any]
RULE: Final = ("rule", "text", "where", "learned", "from", "state")
CHANGE: Final = ("change", "when", "what", "file", "by", "state")
NO_MARK: Final = "-"  # of a file that is not there, or empty
ASKED: Final = "reflectd reflect --dir {project}"


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
            marks, look = marks_of(rules), rules.look()
        except (UserError, Unavailable) as error:
            return {"sections": [section("Rules: what you want", RULE, (), text=str(error))]}
        told = " ".join(look.problems)
        return {
            "sections": [
                self._standing(chosen, look, marks, query, soft=False, told=told),
                self._standing(chosen, look, marks, query, soft=True, told=told),
                self._suggested(chosen, look, query),
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
                r.id, r.text, f"{r.file}:{r.line}" if r.line else r.file, r.learned, ", ".join(r.sources),
                _wore(r, look, today),
                actions=_rule_actions(chosen, r, marks),
            )
            for r in some
        ]  # fmt: skip
        return section(title, RULE, rows, text=told, more=more)

    @staticmethod
    def _suggested(chosen: Path, look: Look, query: Mapping[str, Any]) -> Json:
        due = ranked([s for s in look.journal["signals"] if is_due(s)])
        some, more = piece(due, query, "suggested")
        rows = [row(s["id"], s["content"], s["occurrences"], s["severity"]) for s in some]
        said = "You said this in several sessions. Make it a rule, or dismiss it, in a terminal: "
        said += ASKED.format(project=shlex.quote(str(chosen)))
        return section(
            "Suggested as rules", ("signal", "text", "sessions", "severity"), rows, text=said, more=more
        )

    @staticmethod
    def _changes(chosen: Path, rules: LearnedRules, query: Mapping[str, Any]) -> Json:
        every = rules.changes.all()
        gone = undone(every)
        some, more = piece(every, query, "changes")
        rows = [
            row(
                str(c.number), when(c.at), f"{c.what}: {c.why}" if c.why else c.what, c.file, c.by,
                "undone" if c.number in gone else "" if c.done else "interrupted",
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

    async def _undo(self, body: Mapping[str, Any]) -> Json:
        """``directory``, ``number``: take a change back."""
        (directory,) = said_by_person(body, "directory")
        number = body.get("number")
        if type(number) is not int or number < 1:
            raise Rejected("name the change by its `number`")

        def take_back() -> Json:
            chosen = self._chosen.named(directory)
            done = undo(self._chosen.rules(chosen).steps, number, by=BY)
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


def _undo_action(chosen: Path, c: Change) -> Json:
    return action("undo", "undo", {"directory": str(chosen), "number": c.number}, key="u")

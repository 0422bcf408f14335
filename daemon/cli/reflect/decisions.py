"""Does what a person decided in a review, at once: each decision is on the disk when its function returns.

It knows the journal, the files of rules and preferences, and nothing of how a person is asked. Raises
``UserError`` and ``Unavailable``; then nothing was decided.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...core.errors import UserError
from ...files.rule_changes import digest
from ...files.rule_undo import undo
from ...files.rules_file import chosen
from ...rules.conflicts import find
from ...rules.journal import dismiss, restore
from ...rules.patterns import is_due, ranked
from ...rules.section import RULES
from ..render import place as shown_place
from .screens import Act, Decision, Pattern, pattern_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ...files.learned_rules import LearnedRules
    from ...files.rules_file import Place
    from ...rules.conflicts import Conflict


class Decisions:
    """Those on the patterns of one project. ``rules_place``: the file for rules; None while a person has not
    said which of two it is (``candidates``), or where there is none that may be written (``no_place``).
    """

    def __init__(self, rules: LearnedRules) -> None:
        self._rules = rules
        self.candidates: tuple[Place, ...] = ()
        self.rules_place: Place | None = None
        self.no_place = ""
        try:
            self.candidates = rules.places()
            self.rules_place = chosen(self.candidates, "", RULES)
        except UserError as error:
            self.no_place = str(error)
        self._seen = ""

    def due(self) -> list[Pattern]:
        """The patterns to decide on, the most pressing first."""
        quotes = self._rules.journal.state.load("quotes")
        return [pattern_of(s, _quotes(quotes.get(str(s["id"])))) for s in ranked(self._signals())]

    def is_due(self, found: Pattern) -> bool:
        """Whether it is still to be decided: another review may have been faster."""
        return any(s["id"] == found.id for s in self._signals())

    def _signals(self) -> list[Mapping[str, object]]:
        loaded = self._rules.journal.read()
        if loaded.problem:
            raise UserError(loaded.problem)
        return [s for s in loaded.journal["signals"] if is_due(s)]

    @property
    def rules_name(self) -> str:
        """What the file for rules is called; "" where there is none."""
        return self.rules_place.path.name if self.rules_place else ""

    def soft_note(self) -> str:
        """Where a preference goes, in words."""
        if self._rules.workshop() is not None:
            return "a preference, kept by Workshop"
        try:
            return f"a preference, in {self._rules.places(soft=True)[0].name}"
        except UserError:
            return "a preference"

    def target(self) -> str:
        """The file that a rule would go to, with its path, or why there is none."""
        place = self.rules_place
        if place is None:
            return f"none for a rule: {self.no_place}"
        return shown_place(place.path) + (f" ({place.note})" if place.note else "")

    def asked(self) -> None:
        """The person is asked now: what is edited from now on was not seen by them."""
        place = self.rules_place
        self._seen = digest(place.read()) if place is not None else ""

    def conflicts(self, text: str) -> list[Conflict]:
        """What stands already and contradicts the text."""
        return find(text, self._rules.look().statements)

    def replaceable(self, found: Sequence[Conflict], *, soft: bool) -> list[str]:
        """The ids of those that the new one could take the place of: rules of the same file, not of a
        person's own hand.
        """
        place = self._place(soft=soft)
        rows = {row.id: row for row in self._rules.look().rows if row.active and row.note != "another"}
        names = dict.fromkeys(c.statement.id for c in found if c.statement.id and not c.statement.own)
        return [name for name in names if name in rows and rows[name].file == place.name]

    def add(self, found: Pattern, text: str, *, soft: bool, replaces: Sequence[str] = ()) -> Decision:
        """Make a rule of it, or a preference."""
        place = self._place(soft=soft)
        seen = digest(place.read()) if soft else self._seen
        done = self._rules.learn(text, place, seen, soft=soft, signals=[found.id], replaces=replaces)
        rule = done.rule
        act: Act = "preference" if rule["target"] == "workshop_preference" else "rule"
        return Decision(
            found.id,
            act if done.change.rules[0][0] is None else "known",
            rule["content"],
            rule["id"],
            "Workshop" if rule.get("file") == "workshop" else str(rule.get("file", "")),
            done.change.number,
            done.told,
        )

    def dismiss(self, found: Pattern) -> Decision:
        """Never suggest it again."""
        book = self._rules.journal
        done = book.change(lambda journal: dismiss(journal, [found.id], book.day()))
        return Decision(found.id, "dismissed", found.content, told=done.told)

    def take_back(self, done: Decision) -> tuple[str, ...]:
        """Undo a decision; what the person should know of that."""
        if done.act == "dismissed":
            return self._rules.journal.change(lambda journal: restore(journal, [done.pattern])).told
        return undo(self._rules.steps, done.change).told if done.change else ()

    def _place(self, *, soft: bool) -> Place:
        if soft:
            return self._rules.places(soft=True)[0]
        if self.rules_place is None:
            raise UserError(self.no_place or "no file for the rules was chosen")
        return self.rules_place


def _quotes(found: object) -> list[dict[str, object]]:
    return [q for q in found if isinstance(q, dict)] if isinstance(found, list) else []

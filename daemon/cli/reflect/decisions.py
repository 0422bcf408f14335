"""Does what a person decided in a review, at once: each decision is on the disk when its function returns.

It knows the journal, the files of rules and preferences, and nothing of how a person is asked. Raises
``UserError`` and ``Unavailable``; then nothing was decided.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

from ...core.errors import Unavailable, UserError
from ...files import findings
from ...files.rule_plan import planned
from ...files.rule_undo import undo
from ...files.rules_file import chosen
from ...rules.candidates import for_a_person
from ...rules.journal import dismiss, is_due, ranked, restore
from ...rules.rows import WORKSHOP
from ...rules.section import RULES
from ..render import place as shown_place
from .screens import Act, Decision, Pattern, pattern_of, words_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ...files.learned_rules import LearnedRules
    from ...files.rule_plan import Plan
    from ...files.rule_steps import Done
    from ...files.rules_file import Place
    from ...rules.candidates import Candidate
    from ...rules.contradicts import Compare
    from ...rules.rows import Standing


class Decisions:
    """Those on the patterns of one project. ``rules_place``: the file for rules; None while a person has not
    said which of two it is (``candidates``), or where there is none that may be written (``no_place``).
    """

    def __init__(self, rules: LearnedRules, compare: Compare | None = None) -> None:
        """``compare``: a model that says what a text contradicts."""
        self._rules = rules
        self._compare = compare
        self._dropped: dict[str, Candidate] = {}
        self.candidates: tuple[Place, ...] = ()
        self.rules_place: Place | None = None
        self.no_place = ""
        try:
            self.candidates = rules.places()
            self.rules_place = chosen(self.candidates, "", RULES)
        except UserError as error:
            self.no_place = str(error)

    def due(self) -> list[Pattern]:
        """The patterns to decide on, the most pressing first."""
        quotes = self._rules.journal.state.load("quotes")
        return [pattern_of(s, _quotes(quotes.get(str(s["id"])))) for s in ranked(self._signals())]

    def unread(self) -> list[Pattern]:
        """The person's words that no model read, which they may word themselves."""
        return [words_of(c) for c in for_a_person(findings.unread(self._rules.journal))]

    def is_due(self, found: Pattern) -> bool:
        """Whether it is still to be decided: another review may have been faster."""
        if found.is_unread:
            return any(c.key == found.id for c in findings.unread(self._rules.journal))
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

    def planned(self, text: str, *, soft: bool) -> Plan:
        """What the text meets among what stands. Raises ``UserError`` for one that can't be learned."""
        return planned(self._rules, text, soft=soft, compare=self._compare)

    def add(self, found: Pattern, plan: Plan, *, replaces: Sequence[Standing] = ()) -> Decision:
        """Make a rule of it, or a preference. ``replaces``: the rules that it takes the place of."""
        place = self._rules.places(soft=True)[0] if plan.soft else self.rules_place
        if place is None:
            raise UserError(self.no_place or "no file for the rules was chosen")
        found = self._counted(found, plan.text)
        here = [row.id for row in replaces if row.file == place.name]
        mark = plan.marks.get(place.name, "")
        done = self._rules.learn(plan.text, place, mark, soft=plan.soft, signals=[found.id], replaces=here)
        changes, told = [done.change.number], list(done.told)
        for row in replaces:
            if row.id not in here:
                reason, mark = f"replaced by {done.rule['id']}", plan.marks.get(row.file, "")
                try:
                    gone = self._rules.unlearn(row.id, mark, reason=reason)
                except (UserError, Unavailable) as error:
                    told.append(f"{row.id} stays: {error}")
                    continue
                changes.insert(0, gone.change.number)
                told += gone.told
        known = done.change.rules[0][0] is not None
        act: Act = "known" if known else "preference" if plan.soft else "rule"
        return _decision(found, act, done, changes, told)

    def reword(self, found: Pattern, plan: Plan, row: Standing) -> Decision:
        """Give a rule that says the same in other words this text (FR5)."""
        found = self._counted(found, plan.text)
        done = self._rules.reword(row.id, plan.text, plan.marks.get(row.file, ""), signals=[found.id])
        return _decision(found, "reworded", done, [done.change.number], done.told)

    def dismiss(self, found: Pattern) -> Decision:
        """Never suggest it again."""
        book = self._rules.journal
        if found.is_unread:
            waiting = {c.key: c for c in findings.unread(book)}
            findings.drop(book, [found.id], _now())
            self._dropped[found.id] = waiting[found.id]
            return Decision(found.id, "dismissed", found.quotes[0].text)
        done = book.change(lambda journal: dismiss(journal, [found.id], book.day()))
        return Decision(found.id, "dismissed", found.content, told=done.told)

    def take_back(self, done: Decision) -> tuple[str, ...]:
        """Undo a decision; what the person should know of that."""
        if (dropped := self._dropped.pop(done.pattern, None)) is not None:
            findings.take_back(self._rules.journal, dropped, _now())
            return ()
        if done.act == "dismissed":
            return self._rules.journal.change(lambda journal: restore(journal, [done.pattern])).told
        return tuple(told for number in done.changes for told in undo(self._rules.steps, number).told)

    def _counted(self, found: Pattern, text: str) -> Pattern:
        """The pattern of a signal: words that the person worded themselves become one."""
        if not found.is_unread:
            return found
        signal = findings.word(self._rules.journal, [found.id], text, _now())
        return replace(found, id=signal["id"], content=text)


def replaceable(plan: Plan) -> list[Standing]:
    """The rules that the new one contradicts and can take the place of: none of another's hand."""
    names = {s.id for s in plan.conflicts if s.id and not s.own}
    return [row for row in plan.look.rows if row.id in names and row.active and row.note != "another"]


def _decision(found: Pattern, act: Act, done: Done, changes: Sequence[int], told: Sequence[str]) -> Decision:
    rule = done.rule
    file = "Workshop" if rule.get("file") == WORKSHOP else str(rule.get("file", ""))
    return Decision(found.id, act, rule["content"], rule["id"], file, tuple(changes), tuple(told))


def _now() -> int:
    return int(time.time() * 1000)


def _quotes(found: object) -> list[dict[str, object]]:
    return [q for q in found if isinstance(q, dict)] if isinstance(found, list) else []

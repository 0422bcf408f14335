"""Does what a person decided inside a host, and makes the proposals that are asked about there.

Before a new rule is written a model says what it contradicts, where there is one; that is a new question.
What the person said to that question is done if what stood in it still stands. Raises ``UserError`` and
``Unavailable``; nothing is changed then.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from ...core.errors import UserError
from ...files import findings
from ...files.rules_file import chosen
from ...learning.rules.journal import dismiss, restore, signal_named
from ...learning.rules.section import RULES
from ...learning.rules.standing import WORKSHOP
from . import screens
from .decisions import Decisions, replaceable
from .in_host import RULES_OF
from .model import HostModel
from .questions import Answer, Kind, Proposal, Stands
from .unlearn import REASON, meant

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...files.learned_rules import Done, Plan
    from ...learning.rules.journal import Journal
    from ...learning.rules.standing import Standing
    from .in_host import InHost

Json = dict[str, Any]
MOST: Final = 8  # patterns that are proposed at once
NOTHING: Final = Proposal("", "", 0, "pattern")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one decision. ``ask``: what must be asked before anything is done."""

    status: str
    told: tuple[str, ...] = ()
    text: str = ""
    rule: str = ""
    file: str = ""
    change: int = 0
    ask: tuple[Proposal, ...] = ()

    def object(self) -> Json:
        """For whoever reads the answer."""
        found = {"status": self.status, "text": self.text, "rule": self.rule, "file": self.file}
        more = {"undo": f"reflectd reflect undo {self.change}"} if self.change else {}
        return {k: v for k, v in found.items() if v} | more | ({"told": list(self.told)} if self.told else {})


class HostDecisions:
    """Those of one session's project."""

    def __init__(self, inside: InHost) -> None:
        self._rules = inside.rules
        self._now = inside.now()
        self._compare = HostModel(inside.session, inside.where).compare
        self._review = Decisions(inside.rules)
        place = self._review.rules_place
        if self._review.candidates and place is None:
            place = chosen(self._review.candidates, RULES_OF[inside.host], RULES)
            self._review.rules_place = place
        base = replace(NOTHING, target=place.name if place else "", kept=self._review.soft_note())
        self._base = base

    # --- what is asked ---------------------------------------------------------------------------------

    def patterns(self) -> tuple[list[Proposal], int]:
        """The patterns to decide on, the most pressing first, and how many more there are."""
        found: list[Proposal] = []
        for p in self._review.due():
            quotes = tuple((quote.day, screens.one_line(quote.text)) for quote in p.quotes)
            with suppress(UserError):  # what nobody could read in a question is for the terminal
                text = self._shown(self._rules.check(p.content))
                found.append(
                    replace(self._base, text=text, signals=(p.id,), count=p.occurrences, quotes=quotes)
                )
        return found[:MOST], len(found[MOST:])

    def worded(self, keys: Sequence[str], text: str) -> Proposal | None:
        """Candidates as the agent words them; None for what the person dismissed before."""
        text = self._shown(self._rules.check(text))
        signal = findings.word(self._rules.journal, keys, text, self._now)
        if signal["status"] == "dismissed":
            return None
        kept = self._rules.journal.state.load("quotes").get(signal["id"], [])
        found = screens.pattern_of(signal, [q for q in kept if isinstance(q, dict)])
        quotes = tuple((quote.day, screens.one_line(quote.text)) for quote in found.quotes)
        return replace(self._base, text=text, signals=(found.id,), count=found.occurrences, quotes=quotes)

    def learning(self, text: str, *, soft: bool) -> Proposal | Outcome:
        """A rule that somebody words. An outcome where there is nothing to ask."""
        plan = self._rules.plan(self._shown(text), soft=soft, compare=self._compare)
        if plan.same is not None:
            return Outcome("there already", text=plan.text, file=plan.same.where)
        return self._about(plan, (), "learn")

    def unlearning(self, text: str, *, delete: bool) -> list[Proposal]:
        """A question for each rule that the words mean."""
        rows = meant(self._rules.look().rows, text, archived=delete)
        return [
            replace(self._base, kind="unlearn", stands=(Stands(r.id, screens.one_line(r.text), r.file),))
            for r in rows[:MOST]
        ]

    def undoing(self, number: int) -> Proposal:
        """The change that would be taken back."""
        change = self._rules.changes.wanted(number)
        what = screens.one_line(change.what)
        return replace(self._base, kind="undo", text=what, target=change.file, number=change.number)

    def settling(self, verb: str, names: Sequence[str]) -> Proposal:
        """Signals that are dismissed or restored."""
        journal = self._rules.journal.read().journal
        found = [signal_named(journal, name) for name in names]
        stands = tuple(Stands(s["id"], screens.one_line(s["content"]), "") for s in found)
        kind: Kind = "dismiss" if verb == "dismiss" else "restore"
        return replace(self._base, kind=kind, signals=tuple(names), stands=stands)

    def _shown(self, text: str) -> str:
        """The text, if a person can be shown all of it in one line. Raises ``UserError``."""
        said = " ".join(text.split())
        if screens.one_line(said) != said or len(said) > screens.TEXT_CHARS:
            raise UserError("this wording can't be shown as it is in a question: word it shorter and plainer")
        return said

    # --- what is done ----------------------------------------------------------------------------------

    def done(self, p: Proposal, answer: Answer) -> Outcome:
        """Do it."""
        match answer:
            case "skip":
                return Outcome("not now", text=p.text)
            case "dismiss":
                return self._dismissed(p.signals, p.text)
            case "rule" | "soft":
                return self.write(p.text, p.signals, soft=answer == "soft")
            case "replace" | "both" | "reword":
                return self._settled(p, answer)
            case "archive" | "delete":
                return self.unlearn(p.stands[0], delete=answer == "delete")
            case "do":
                return self._do(p)

    def write(self, text: str, signals: Sequence[str], *, soft: bool) -> Outcome:
        """A new rule or preference; a question instead where something contradicts it."""
        plan = self._rules.plan(self._shown(text), soft=soft, compare=self._compare)
        asks = self._about(plan, signals, "pattern")
        if asks.kind in {"conflict", "near"} and not (plan.same is not None and signals):
            return Outcome("asks", text=plan.text, ask=(asks,))
        return self._written(plan, signals, ())

    def unlearn(self, rule: Stands, *, delete: bool) -> Outcome:
        """Archive or remove a rule, if it is still what the person saw."""
        row = next((r for r in self._rules.look().rows if r.id == rule.id and r.file == rule.where), None)
        if row is None or screens.one_line(row.text) != rule.text:
            raise UserError(f"{rule.id} was changed while the person was asked: ask again")
        seen = self._rules.marks().get(row.file, "")
        done = self._rules.unlearn(row.id, seen, delete=delete, reason=REASON)
        return self._outcome("removed" if delete else "archived", done, row.text, row.file)

    def _about(self, plan: Plan, signals: Sequence[str], kind: str) -> Proposal:
        """What a person is asked about this text: what contradicts it, or whether they want it."""
        base = replace(self._base, text=plan.text, soft=plan.soft, signals=tuple(signals))
        if plan.conflicts:
            rows = {row.id for row in replaceable(plan)}
            stands = tuple(Stands(s.id if s.id in rows else "", s.text, s.where) for s in plan.conflicts)
            return replace(base, kind="conflict", stands=tuple(_lined(s) for s in stands))
        if plan.near is not None and plan.same is None:
            stands = (_lined(Stands(plan.near.id, plan.near.text, plan.near.file)),)
            return replace(base, kind="near", stands=stands)
        return replace(base, kind="learn" if kind == "learn" else "pattern")

    def _settled(self, p: Proposal, answer: Answer) -> Outcome:
        """What the person said to a contradiction, if all that stood in the question still stands."""
        plan = self._rules.plan(p.text, soft=p.soft)
        if p.kind == "near":
            near = next((r for r in plan.look.rows if _lined(_of(r)) == p.stands[0]), None)
            plan, there = replace(plan, near=near), near is not None
        else:
            asked = {(s.text, s.where) for s in p.stands}
            found = tuple(s for s in plan.look.statements if _line(s.text, s.where) in asked)
            plan, there = replace(plan, conflicts=found), len(found) >= len(asked)
        if not there:
            raise UserError("what stands was changed while the person was asked: ask again")
        if answer == "reword":
            assert plan.near is not None  # noqa: S101 - there is one
            seen = plan.marks.get(plan.near.file, "")
            done = self._rules.reword(plan.near.id, plan.text, seen, signals=p.signals)
            return self._outcome("reworded", done, plan.text, plan.near.file)
        return self._written(
            plan, p.signals, [r.id for r in replaceable(plan)] if answer == "replace" else ()
        )

    def _written(self, plan: Plan, signals: Sequence[str], replaces: Sequence[str]) -> Outcome:
        place = self._rules.places(soft=True)[0] if plan.soft else self._review.rules_place
        if place is None:
            raise UserError(self._review.no_place or "there is no file for the rules")
        rows = [row for row in plan.look.rows if row.id in replaces]
        here = [row.id for row in rows if row.file == place.name]
        seen = plan.marks.get(place.name, "")
        done = self._rules.learn(plan.text, place, seen, soft=plan.soft, signals=signals, replaces=here)
        told = list(done.told)
        for row in rows:
            if row.id not in here:
                reason = f"replaced by {done.rule['id']}"
                told += self._rules.unlearn(row.id, plan.marks.get(row.file, ""), reason=reason).told
        status = "preference added" if plan.soft else "rule added"
        return self._outcome(
            status, replace(done, told=tuple(told)), plan.text, str(done.rule.get("file", ""))
        )

    def _dismissed(self, names: Sequence[str], text: str) -> Outcome:
        if not names:
            return Outcome("not added", text=text)
        book = self._rules.journal

        def edit(journal: Journal) -> object:
            return dismiss(journal, names, book.day())

        return Outcome("dismissed", book.change(edit).told, text)

    def _do(self, p: Proposal) -> Outcome:
        if p.kind == "undo":
            change = self._rules.changes.wanted(p.number)
            if screens.one_line(change.what) != p.text:
                raise UserError("the change is not the one that the person was asked about: ask again")
            return self._outcome("undone", self._rules.undo(p.number), change.what, change.file)
        if p.kind == "dismiss":
            return self._dismissed(p.signals, "; ".join(s.text for s in p.stands))
        told = self._rules.journal.change(lambda journal: restore(journal, p.signals)).told
        return Outcome("restored", told, "; ".join(s.text for s in p.stands))

    def _outcome(self, status: str, done: Done, text: str, file: str) -> Outcome:
        where = "Workshop" if file == WORKSHOP else file
        return Outcome(status, done.told, text, str(done.rule.get("id", "")), where, done.change.number)


def _lined(s: Stands) -> Stands:
    return Stands(s.id, screens.one_line(s.text), screens.one_line(s.where))


def _line(text: str, where: str) -> tuple[str, str]:
    return screens.one_line(text), screens.one_line(where)


def _of(row: Standing) -> Stands:
    return Stands(row.id, row.text, row.file)

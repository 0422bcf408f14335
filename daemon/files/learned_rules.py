"""The rules and preferences of one project as a person changes them. How a change is made whole is in
``rule_steps``.

A file that is not as the person saw it when they were asked is not changed, unless only reflectd changed it
since. Another's rules are never changed. Nobody is asked here: who calls it knows that a person wants it.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..core.errors import UserError
from ..core.learned import refusal
from ..core.redact import redact
from ..rules import journal as journals
from ..rules.contradicts import Statement
from ..rules.journal import same
from ..rules.markdown import joined
from ..rules.rows import WORKSHOP, Standing, reconcile, standing
from ..rules.rule_lines import Rule, checked
from ..rules.section import PREFERENCES, RULES, Document
from . import preferences, rules_file
from .rule_changes import Change, Pair, digest
from .rule_steps import Done, Files, Steps

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..core.ports import Clock
    from ..rules.journal import Entry, Journal
    from .rules_file import Place


_SENTENCE_END = re.compile(r"(?<=[.!?])\s+")  # cuts a paragraph into pieces that a question can quote


@dataclass(frozen=True, slots=True)
class Look:
    """What there is now. ``statements``: what a new text could contradict or repeat, a person's own lines
    too. ``by_hand``: their own lines among the active rules. ``problems``: files that can't be read.
    """

    rows: tuple[Standing, ...]
    statements: tuple[Statement, ...]
    journal: dict[str, Any]
    by_hand: tuple[Statement, ...] = ()
    problems: tuple[str, ...] = ()


class LearnedRules:
    """Those of one project."""

    def __init__(
        self,
        project: str | Path,
        state_dir: Path,
        clock: Clock,
        env: Mapping[str, str] = os.environ,
        *,
        playbook: str = "",
    ) -> None:
        """``playbook``: the person's ``playbook.path``."""
        self.state_dir = state_dir
        self.steps = Steps(Path(project), state_dir, clock, env, playbook)
        self.journal = self.steps.journal
        self.changes = self.steps.changes

    def look(self) -> Look:
        """Read everything; changes nothing. Without a journal that can be used the files and the list of
        changes say what there is. Raises ``UserError`` for a folder that can have no rules.
        """
        loaded = self.journal.read()
        told = loaded.to_tell()
        files, problems = self.steps.files()
        documents = [(place.name, doc) for place, doc in files]
        reconcile(loaded.journal, documents, self.changes.entries(), self.journal.day())
        rows = standing(loaded.journal, documents)
        said = [
            Statement(r.text, r.id, f"{r.file}:{r.line}" if r.line else r.file, own=r.note == "another")
            for r in rows
            if r.active
        ]
        own = [
            Statement(sentence, "", f"{name}:{line.line}", own=True)
            for name, doc in documents
            for line in doc.own()
            if line.part != "archived"
            for sentence in _SENTENCE_END.split(line.text)
        ]
        by_hand = [
            Statement(line.text, "", f"{name}:{line.line}", own=True)
            for name, doc in documents
            for line in doc.own()
            if line.part == "active"
        ]
        return Look(tuple(rows), (*said, *own), loaded.journal, tuple(by_hand), (*told, *problems))

    def places(self, *, soft: bool = False) -> tuple[Place, ...]:
        """The files that a new rule can go to: one, or two of which a person must choose. Raises
        ``UserError``.
        """
        if soft:
            return (preferences.place(self.steps.project),)
        return rules_file.places(self.steps.project, self.steps.env)

    def workshop(self) -> str | None:
        """Workshop's command, where it is installed."""
        return preferences.workshop(self.steps.project, self.steps.env)

    def check(self, text: str, *, soft: bool = False) -> str:
        """The text on one line. Raises ``UserError`` for one that can't be learned."""
        found = checked(text)
        if found.startswith("-"):
            raise UserError("the text can't begin with '-'")
        if redact(found) != found:
            raise UserError("the text holds a secret, and these files may be committed: leave it out")
        if soft and (why := refusal(found)):
            raise UserError(
                f"it may not be offered to agents as a preference: {why}. Without --soft it becomes a rule, "
                "which your host reads from its file"
            )
        return found

    def learn(
        self,
        text: str,
        place: Place,
        seen: str,
        *,
        soft: bool = False,
        signals: Sequence[str] = (),
        replaces: Sequence[str] = (),
        by: str = "you",
    ) -> Done:
        """A new rule in that file; with ``soft`` a preference. ``seen``: the mark of the file (``digest``)
        when the person was asked. ``replaces``: ids of rules of this file that it takes the place of. Where a
        rule says the same already, the ``signals`` become its sources. ``by``: who says so, for the list of
        changes.

        Raises ``UserError`` and ``Unavailable``; nothing is changed then.
        """
        text = self.check(text, soft=soft)

        def step(journal: Journal, files: Files, told: list[str]) -> Done:
            twin = _twin(journal, files, text)
            if twin is not None:
                linked, entry = _linked(journal, twin, signals)
                return Done(self.steps.begin(linked), entry)
            entry = self._promote(journal, files, text, place.name, signals, soft=soft)
            status = tuple((name, "pending", "promoted") for name in entry["source_signals"])
            what = f"learned {entry['id']}" + (f" in place of {', '.join(replaces)}" if replaces else "")
            change = Change(0, 0, what, soft=soft, by=by, signals=status)
            if soft and not replaces and (done := self._tell_workshop(change, entry, told)):
                return done
            day, pairs = entry["promoted_at"], list[Pair]([(None, dict(entry))])
            doc = self._document(place, seen, soft=soft)
            data = doc.append(entry["id"], text, day)
            for name in replaces:
                row = _row(journal, files, name)
                before, reason = dict(journals.rule_named(journal, name)), f"replaced by {entry['id']}"
                later = Document(data, doc.form)
                data = later.archive(_line(later, row), day, reason)
                pairs.append((before, dict(journals.archive(journal, name, reason=reason, day=day))))
            if soft:
                preferences.vouch(self.journal.state, [text], self.steps.now())
            return Done(self.steps.replace_file(replace(change, rules=tuple(pairs)), place, data, doc), entry)

        return self.steps.run(step)

    def unlearn(
        self,
        name: str,
        seen: str,
        *,
        delete: bool = False,
        reason: str = "no longer applies",
        by: str = "you",
    ) -> Done:
        """Archive a rule or a preference; with ``delete`` remove it entirely. ``seen``: the mark of the file
        that it stands in. ``by``: who says so, for the list of changes. Raises ``UserError`` and
        ``Unavailable``; nothing is changed then.
        """
        reason = checked(reason)

        def step(journal: Journal, files: Files, told: list[str]) -> Done:
            row = _row(journal, files, name)
            if not row.active and not delete:
                raise UserError(f"{name} is archived already")
            before, day = dict(journals.rule_named(journal, name)), self.journal.day()
            if delete:
                journals.remove(journal, name)
                after = None
            else:
                after = dict(journals.archive(journal, name, reason=reason, day=day))
            what = f"{'removed' if delete else 'archived'} {name}"
            change = Change(0, 0, what, soft=row.soft, why=reason, by=by, rules=((before, after),))
            if row.rule is None:
                if row.file == WORKSHOP:
                    told.append("Workshop keeps it until you remove it there")
                return Done(self.steps.begin(change), after or before)
            place = next(place for place, _ in files if place.name == row.file)
            doc = self._document(place, seen, soft=row.soft)
            line = _line(doc, row)
            data = doc.remove(line) if delete else doc.archive(line, day, reason)
            return Done(self.steps.replace_file(change, place, data, doc), after or before)

        return self.steps.run(step)

    def reword(self, name: str, text: str, seen: str, *, signals: Sequence[str] = ()) -> Done:
        """Give a rule another text in its place (FR5). ``seen``: the mark of the file that it stands in.
        ``signals``: whose wish that was. Raises ``UserError`` and ``Unavailable``; nothing is changed then.
        """

        def step(journal: Journal, files: Files, told: list[str]) -> Done:
            del told
            row = _row(journal, files, name)
            new = self.check(text, soft=row.soft)
            if row.rule is None or not row.active:
                raise UserError(f"{name} stands in no file that could be changed")
            found = [journals.signal_named(journal, signal) for signal in signals]
            status = tuple((signal["id"], signal["status"], "promoted") for signal in found)
            before = dict(journals.rule_named(journal, name))
            entry = journals.reword(journal, name, new)
            entry["source_signals"] = list(dict.fromkeys([*before["source_signals"], *signals]))
            for signal in found:
                signal["status"] = "promoted"
            place = next(place for place, _ in files if place.name == row.file)
            doc = self._document(place, seen, soft=row.soft)
            data = doc.reword(_line(doc, row), new)
            if row.soft:
                preferences.vouch(self.journal.state, [new], self.steps.now())
            pairs = ((before, dict(entry)),)
            change = Change(0, 0, f"reworded {name}", soft=row.soft, rules=pairs, signals=status)
            return Done(self.steps.replace_file(change, place, data, doc), entry)

        return self.steps.run(step)

    # --- parts of a change -----------------------------------------------------------------------------

    def _promote(
        self, journal: Journal, files: Files, text: str, file: str, signals: Sequence[str], *, soft: bool
    ) -> Entry:
        taken = [rule.id for _, doc in files for rule in doc.rules]
        return journals.promote(
            journal,
            signals,
            content=text,
            target="workshop_preference" if soft else "claude_md",
            file=file,
            day=self.journal.day(),
            taken=[*taken, f"rule-{self.changes.highest_rule():03d}"],
        )

    def _tell_workshop(self, change: Change, entry: Entry, told: list[str]) -> Done | None:
        """Told, when Workshop is installed and keeps it; else the file must. Raises ``Unavailable``."""
        program = self.workshop()
        if program is None:
            return None
        there = entry["file"]
        entry["file"] = WORKSHOP
        noted = self.steps.begin(replace(change, rules=((None, dict(entry)),)))
        try:
            self.steps.write(
                noted,
                lambda: preferences.tell_workshop(program, self.steps.project, entry["content"]),
            )
        except preferences.WorkshopRefused as error:
            entry["file"] = there
            told.append(f"{error}. It is kept in {there} instead")
            return None
        return Done(noted, entry)

    def _document(self, place: Place, seen: str, *, soft: bool) -> Document:
        """The file, if it is as the person saw it, or only reflectd changed it since."""
        doc = place.document(PREFERENCES if soft else RULES)
        now = digest(joined(doc.lines))
        for change in reversed(self.changes.all()):
            if change.done and change.file == place.name and change.before == seen and seen != now:
                seen = change.after
        if now != seen:
            raise UserError(f"{place.path} was edited while you were asked: nothing was changed; try again")
        return doc


def _row(journal: Journal, files: Files, name: str) -> Standing:
    """The rule of that id which is this person's. Raises ``UserError``."""
    rows = [r for r in standing(journal, [(place.name, doc) for place, doc in files]) if r.id == name]
    mine = [row for row in rows if row.note != "another"]
    if mine:
        return mine[0]
    if rows:
        raise UserError(
            f"{name} in {rows[0].file}:{rows[0].line} is somebody else's, who learned it elsewhere: reflectd "
            "does not change it. Edit the file yourself, if you want that"
        )
    raise UserError(f"there is no rule {name[:40]!r}; `reflectd reflect history` lists them")


def _line(doc: Document, row: Standing) -> Rule:
    """Its line in a document that was read anew. Raises ``UserError``."""
    found = [r for r in doc.rules if r.id == row.id and r.text == row.text]
    if not found:
        raise UserError(f"{row.id} does not stand in {row.file} any more: nothing was changed")
    return next((r for r in found if r.active == row.active), found[0])


def _twin(journal: Journal, files: Files, text: str) -> Standing | None:
    """The active rule that says the same."""
    rows = standing(journal, [(place.name, doc) for place, doc in files])
    return next((row for row in rows if row.active and same(row.text, text)), None)


def _linked(journal: Journal, row: Standing, signals: Sequence[str]) -> tuple[Change, Entry]:
    """A rule says already what these signals ask for: they are its sources too. Raises ``UserError``."""
    if not signals or row.note == "another":
        raise UserError(f"{row.id} in {row.file} says that already: {row.text}")
    before = dict(journals.rule_named(journal, row.id))
    found = [journals.signal_named(journal, signal) for signal in signals]
    status = tuple((signal["id"], signal["status"], "promoted") for signal in found)
    entry = journals.rule_named(journal, row.id)
    entry["source_signals"] = list(dict.fromkeys([*before["source_signals"], *signals]))
    for signal in found:
        signal["status"] = "promoted"
    what = f"{row.id} says already what {', '.join(signals)} {'asks' if len(signals) == 1 else 'ask'} for"
    return Change(0, 0, what, soft=row.soft, rules=((before, dict(entry)),), signals=status), entry

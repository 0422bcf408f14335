"""The rules and preferences of one project: what stands, what a new text meets there, and each change.

A change is whole: under the lock of the project's journal it is kept with what the file was (``changes``),
the file is replaced, then the journal; the playbook's point that says the same is taken out. A file that is
not as the person saw it when they were asked is not changed, unless only reflectd changed it since. Another's
rules are never changed. Nobody is asked here: who calls it knows that a person wants it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...core.errors import ReflectdError, Unavailable, UserError
from ...core.given import folded
from ...redact import redact
from ..playbook.points import drop, each
from ..playbook.project_playbook import ProjectPlaybook
from ..revisions import digest, undo_of, undone
from ..texts import refusal
from . import journal as journals
from . import preferences, rules_file
from .changes import Change, Pair, changes_of, entries, highest_rule, settle
from .journal import same
from .journal_file import ProjectJournal
from .questions import Compare, Compared, Statement
from .rules_file import Place
from .section import PREFERENCES, RULES, Document, Rule, checked, joined
from .standing import WORKSHOP, Standing, reconcile, standing

if TYPE_CHECKING:
    from ...core.ports import Clock
    from .changes import Files
    from .journal import Entry, Journal
    from .section import Form

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


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be decided about a new text. ``same``: what says it already, word for word. ``near``: a rule
    of the person's own that says the same in other words. ``marks``: how each file looks now, by its name.
    """

    text: str
    soft: bool
    look: Look
    same: Statement | None
    near: Standing | None
    conflicts: tuple[Statement, ...]
    marks: dict[str, str]

    @property
    def replaceable(self) -> list[Standing]:
        """The rules that the text contradicts and can take the place of: none of another's hand."""
        names = {s.id for s in self.conflicts if s.id and not s.own}
        return [r for r in self.look.rows if r.id in names and r.active and r.note != "another"]


@dataclass(frozen=True, slots=True)
class Done:
    """A change that was made. ``rule``: the entry of the journal. ``told``: what the person should know."""

    change: Change
    rule: Mapping[str, Any]
    told: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Step:
    """A change that is to be made. ``place`` and ``data``: the file and what it shall hold, None for no file.
    ``made_from``: the digest of what the file was.
    """

    change: Change
    place: Place | None = None
    data: bytes | None = None
    made_from: str = ""


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
        self.project = Path(project)
        self.state_dir = state_dir
        self.env = env
        self.journal = ProjectJournal(project, state_dir, clock)
        self.changes = changes_of(self.journal.state)
        self.playbook = ProjectPlaybook(project, state_dir, clock, playbook)
        self._clock = clock

    def look(self) -> Look:
        """Read everything; changes nothing. Without a journal that can be used the files and the list of
        changes say what there is. Raises ``UserError`` for a folder that can have no rules.
        """
        loaded = self.journal.read()
        told = loaded.to_tell()
        files, problems = self._files()
        documents = [(place.name, doc) for place, doc in files]
        reconcile(loaded.journal, documents, entries(self.changes), self.journal.day())
        rows = standing(loaded.journal, documents)
        said = [Statement(r.text, r.id, r.where, own=r.note == "another") for r in rows if r.active]
        own = [(name, line) for name, doc in documents for line in doc.own() if line.part != "archived"]
        said += [
            Statement(sentence, "", f"{name}:{line.line}", own=True)
            for name, line in own
            for sentence in _SENTENCE_END.split(line.text)
        ]
        by_hand = tuple(
            Statement(line.text, "", f"{name}:{line.line}", own=True)
            for name, line in own
            if line.part == "active"
        )
        return Look(tuple(rows), tuple(said), loaded.journal, by_hand, (*told, *problems))

    def places(self, *, soft: bool = False) -> tuple[Place, ...]:
        """The files that a new rule can go to: one, or two of which a person must choose. Raises
        ``UserError``.
        """
        if soft:
            return (preferences.place(self.project),)
        return rules_file.places(self.project, self.env)

    def workshop(self) -> str | None:
        """Workshop's command, where it is installed."""
        return preferences.workshop(self.project, self.env)

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

    def plan(self, text: str, *, soft: bool = False, compare: Compare | None = None) -> Plan:
        """Look at everything that stands. Equal texts are found here; ``compare`` asks a model what
        contradicts the text or says the same in other words. Raises ``UserError`` for a text that can't be
        learned, and ``Unavailable``.
        """
        text = self.check(text, soft=soft)
        marks, look = self.marks(), self.look()
        said = next((s for s in look.statements if same(s.text, text)), None)
        found = Compared()
        if compare is not None and said is None and look.statements:
            found = compare(text, tuple(s.text for s in look.statements))
        twins = {(s.id, s.where) for s in (look.statements[at] for at in found.same) if s.id and not s.own}
        mine = (r for r in look.rows if r.active and r.rule is not None and r.soft == soft)
        near = next((r for r in mine if r.note != "another" and (r.id, r.where) in twins), None)
        conflicts = tuple(look.statements[at] for at in found.contradicts)
        return Plan(text, soft, look, said, near, conflicts, marks)

    def marks(self) -> dict[str, str]:
        """How each file that has rules or preferences looks now, by its name. Raises ``Unavailable``."""
        return {place.name: _mark(doc) for place, doc in self._files()[0]}

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

        def step(journal: Journal, files: Files, told: list[str]) -> _Step:
            twin = _twin(journal, files, text)
            if twin is not None:
                return _linked(journal, twin, signals)
            taken = [rule.id for _, doc in files for rule in doc.rules]
            entry = journals.new_rule(
                journal,
                signals,
                content=text,
                target="workshop_preference" if soft else "claude_md",
                file=place.name,
                day=self.journal.day(),
                taken=[*taken, highest_rule(self.changes)],
            )
            what = f"learned {entry['id']}" + (f" in place of {', '.join(replaces)}" if replaces else "")
            status = journals.promoted(journal, signals)
            change = Change(0, 0, what, by=by, soft=soft, rules=((None, entry),), signals=status)
            if soft and not replaces and self._keeps_in_workshop(entry, told):
                return _Step(change)
            day, doc, pairs = entry["promoted_at"], self._document(place, seen, soft=soft), [*change.rules]
            data = doc.append(entry["id"], text, day)
            for name in replaces:
                row, reason = _row(journal, files, name), f"replaced by {entry['id']}"
                later = Document(data, doc.form)
                data = later.archive(_line(later, row), day, reason)
                before = journals.rule_named(journal, name)
                pairs.append((before, journals.archived(before, reason=reason, day=day)))
            if soft:
                preferences.vouch(self.journal.state, [text], self._clock.now_ms())
                preferences.make_its_folder(place.path)
            return _Step(replace(change, rules=tuple(pairs)), place, data, _mark(doc))

        return self._run(step)

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

        def step(journal: Journal, files: Files, told: list[str]) -> _Step:
            row = _row(journal, files, name)
            if not row.active and not delete:
                raise UserError(f"{name} is archived already")
            before, day = journals.rule_named(journal, name), self.journal.day()
            after = None if delete else journals.archived(before, reason=reason, day=day)
            what = f"{'removed' if delete else 'archived'} {name}"
            change = Change(0, 0, what, reason, by, soft=row.soft, rules=((before, after),))
            if row.rule is None:
                told += ["Workshop keeps it until you remove it there"] * (row.file == WORKSHOP)
                return _Step(change)
            place, doc = self._of(row, files, seen)
            line = _line(doc, row)
            data = doc.remove(line) if delete else doc.archive(line, day, reason)
            return _Step(change, place, data, _mark(doc))

        return self._run(step)

    def reword(self, name: str, text: str, seen: str, *, signals: Sequence[str] = ()) -> Done:
        """Give a rule another text in its place (FR5). ``seen``: the mark of the file that it stands in.
        ``signals``: whose wish that was. Raises ``UserError`` and ``Unavailable``; nothing is changed then.
        """

        def step(journal: Journal, files: Files, told: list[str]) -> _Step:
            del told
            row = _row(journal, files, name)
            new = self.check(text, soft=row.soft)
            if row.rule is None or not row.active:
                raise UserError(f"{name} stands in no file that could be changed")
            place, doc = self._of(row, files, seen)
            data = doc.reword(_line(doc, row), new)
            if row.soft:
                preferences.vouch(self.journal.state, [new], self._clock.now_ms())
            change = _sourced(journal, row, f"reworded {name}", signals, content=new)
            return _Step(change, place, data, _mark(doc))

        return self._run(step)

    def undo(self, number: int = 0, *, by: str = "you") -> Done:
        """Take a change back (0: the newest that nobody undid), also in the playbook: in its file, only while
        that is as the change left it. ``by``: who says so. Raises ``UserError`` and ``Unavailable``; nothing
        is changed then.
        """
        change = self.changes.wanted(number)

        def step(journal: Journal, files: Files, told: list[str]) -> _Step:
            self.changes.wanted(change.number)  # another process may have been faster
            pairs = tuple((after, before) for before, after in change.rules)
            _refuse_later(journal, pairs)
            signals = tuple((name, now, was) for name, was, now in change.signals)
            what, name = undo_of(change), change.number
            back = Change(0, 0, what, by=by, undoes=name, soft=change.soft, rules=pairs, signals=signals)
            if not change.file:
                if any(entry and entry.get("file") == WORKSHOP for pair in pairs for entry in pair):
                    told.append("Workshop is not told: `workshop preferences` shows what it keeps")
                return _Step(back)
            place = self._place(change, files)
            among = [c for c in self.changes.all() if c.file == change.file]
            self.changes.refuse_edited(change, digest(place.read()), place.path, among)
            return _Step(back, place, self.changes.before(change), change.after)

        done = self._run(step)
        return replace(done, told=(*done.told, *self._given_back(change)))

    # --- how a change is made whole ----------------------------------------------------------------------

    def _files(self) -> tuple[Files, list[str]]:
        """Every file that has rules or preferences, or may have, and what can't be read."""
        places, problems = rules_file.every(self.project, self.env)
        forms: list[tuple[Place, Form]] = [(place, RULES) for place in places]
        found: Files = []
        try:
            forms.append((preferences.place(self.project), PREFERENCES))
        except UserError as error:
            problems.append(str(error))
        for place, form in forms:
            try:
                found.append((place, place.document(form)))
            except (UserError, Unavailable) as error:
                problems.append(str(error))
        return found, problems

    def _run(self, step: Callable[[Journal, Files, list[str]], _Step]) -> Done:
        """Make a change: ``step`` changes the journal in place, and says what the file shall be. Raises what
        it raises, and ``Unavailable``.
        """
        told = list[str]()

        def edit(journal: Journal) -> Done:
            files, problems = self._files()
            told.extend(problems)
            settle(self.changes, journal, files)
            documents = [(place.name, doc) for place, doc in files]
            reconcile(journal, documents, entries(self.changes), self.journal.day())
            made = step(journal, files, told)
            change = replace(made.change, at=self._clock.now_ms(), file=made.place.name if made.place else "")
            if made.place is None:
                change = self.changes.note(change)
            else:
                file = made.place.path
                change = self.changes.keep(change, made.data, file=file, made_from=made.made_from)
            journals.put(journal, change.rules, change.signals)
            return Done(change, next((after or before or {} for before, after in change.rules), {}))

        found = self.journal.change(edit)
        done = found.result
        if done.change.new and not done.change.undoes:
            told.extend(self._taken_out(done.change.new))
        return replace(done, told=(*found.told, *told))

    def _taken_out(self, rule: Entry) -> list[str]:
        """Take the points out of the playbook that say the same as a new rule: one fact, one home."""
        if not self.playbook.path.exists():
            return []
        said = folded(rule["content"])
        try:
            with self.playbook.change() as edit:
                gone = [p for _, p in each(edit.playbook) if folded(p["text"]) == said]
                drop(edit.playbook, gone)
                names = ", ".join(p["name"] for p in gone)
                edit.what = f"{names} became {rule['id']}"
        except ReflectdError as error:
            return [f"the playbook was not looked through for the same: {error}"]
        return [f"{names} of the playbook became {rule['id']}"] if gone else []

    def _given_back(self, change: Change) -> list[str]:
        """The point that the change took out comes back, where nobody changed the playbook since."""
        history = self.playbook.history() if change.new else []
        mark = f" became {change.new['id']}" if change.new else ""
        taken = next((r for r in history if r.at >= change.at and r.what.endswith(mark)), None)
        if taken is None or taken.number in undone(history):
            return []
        try:
            self.playbook.undo(taken.number)
        except (UserError, Unavailable) as error:
            return [f"the playbook's point does not come back: {error}"]
        return ["the playbook's point that said the same is back"]

    # --- parts of a change -----------------------------------------------------------------------------

    def _keeps_in_workshop(self, entry: Entry, told: list[str]) -> bool:
        """Whether Workshop is installed and keeps it; else the file must. Raises ``Unavailable``."""
        program = self.workshop()
        if program is None:
            return False
        try:
            preferences.tell_workshop(program, self.project, entry["content"])
        except preferences.WorkshopRefused as error:
            told.append(f"{error}. It is kept in {entry['file']} instead")
            return False
        entry["file"] = WORKSHOP
        return True

    def _of(self, row: Standing, files: Files, seen: str) -> tuple[Place, Document]:
        """The file of a rule, as the person saw it."""
        place = next(place for place, _ in files if place.name == row.file)
        return place, self._document(place, seen, soft=row.soft)

    def _place(self, change: Change, files: Files) -> Place:
        """The file of a change. Raises ``UserError``."""
        places = [place for place, _ in files]
        places += self.places(soft=change.soft)
        found = next((place for place in places if place.name == change.file), None)
        if found is None:
            raise UserError(f"{change.file} is no file for rules any more: nothing was undone")
        return found

    def _document(self, place: Place, seen: str, *, soft: bool) -> Document:
        """The file, if it is as the person saw it, or only reflectd changed it since."""
        doc = place.document(PREFERENCES if soft else RULES)
        now = _mark(doc)
        for change in reversed(self.changes.all()):
            if change.file == place.name and change.before == seen and seen != now:
                seen = change.after
        if now != seen:
            raise UserError(f"{place.path} was edited while you were asked: nothing was changed; try again")
        return doc


def _mark(doc: Document) -> str:
    return digest(joined(doc.lines))


def _refuse_later(journal: Journal, pairs: Sequence[Pair]) -> None:
    """Raise ``UserError`` when a rule is not as the change left it."""
    rules = {entry["id"]: entry for entry in journal["learned_rules"]}
    for left, _ in pairs:
        now = rules.get(left["id"]) if left else None
        if left and now and (now["content"], now["active"]) != (left["content"], left["active"]):
            raise UserError(f"{left['id']} was changed since; undo that first")


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


def _linked(journal: Journal, row: Standing, signals: Sequence[str]) -> _Step:
    """A rule says already what these signals ask for: they are its sources too. Raises ``UserError``."""
    if not signals or row.note == "another":
        raise UserError(f"{row.id} in {row.file} says that already: {row.text}")
    what = f"{row.id} says already what {', '.join(signals)} {'asks' if len(signals) == 1 else 'ask'} for"
    return _Step(_sourced(journal, row, what, signals))


def _sourced(journal: Journal, row: Standing, what: str, signals: Sequence[str], **more: str) -> Change:
    """The change that makes these signals sources of a rule. ``more``: what else its entry says then."""
    before = journals.rule_named(journal, row.id)
    sources = list(dict.fromkeys([*before["source_signals"], *signals]))
    pair = (before, {**before, **more, "source_signals": sources})
    status = journals.promoted(journal, signals)
    return Change(0, 0, what, soft=row.soft, rules=(pair,), signals=status)

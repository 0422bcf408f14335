"""The rules and preferences of one project: what stands, what a new text meets there, and each change.

A change is whole: under the lock of the project's journal it is kept with what the file was
(``rule_changes``), the file is replaced, the journal is replaced, the playbook's point that says the same is
retired. A kill at any point leaves the file before or after; the next change makes the journal say the same.
A file that is not as the person saw it when they were asked is not changed, unless only reflectd changed it
since. Another's rules are never changed. Nobody is asked here: who calls it knows that a person wants it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...core.errors import ReflectdError, Unavailable, UserError
from ...core.given import folded
from ...core.redact import redact
from ...files.atomic import CHANGED, holds, write_atomic
from ..playbook.points import drop, each
from ..playbook.project_playbook import ProjectPlaybook
from ..texts import refusal
from . import journal as journals
from . import preferences, rules_file
from .changes import Change, Changes, Pair, digest, packed, undone
from .contradicts import Compare, Compared, Statement
from .journal import same
from .journal_file import ProjectJournal
from .section import PREFERENCES, RULES, Document, Rule, checked, joined
from .standing import WORKSHOP, Standing, reconcile, standing

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ...core.ports import Clock
    from .journal import Entry, Journal
    from .rules_file import Place
    from .section import Form

Files = list[tuple["Place", Document]]

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
        self.changes = Changes(self.journal.state)
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
        reconcile(loaded.journal, documents, self.changes.entries(), self.journal.day())
        rows = standing(loaded.journal, documents)
        said = [Statement(r.text, r.id, r.where, own=r.note == "another") for r in rows if r.active]
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
            found = compare(text, [s.text for s in look.statements])
        twins = {(s.id, s.where) for s in (look.statements[at] for at in found.same) if s.id and not s.own}
        near = next(
            (
                r
                for r in look.rows
                if r.active and r.rule is not None and r.note != "another" and r.soft == soft
                and (r.id, r.where) in twins
            ),
            None,
        )  # fmt: skip
        conflicts = tuple(look.statements[at] for at in found.contradicts)
        return Plan(text, soft, look, said, near, conflicts, marks)

    def marks(self) -> dict[str, str]:
        """How each file that has rules or preferences looks now, by its name. Raises ``Unavailable``."""
        return {place.name: digest(joined(doc.lines)) for place, doc in self._files()[0]}

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
                return Done(self._begin(linked), entry)
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
                preferences.vouch(self.journal.state, [text], self._clock.now_ms())
            made = replace(change, rules=tuple(pairs))
            return Done(self._replace(made, place, data, doc), entry)

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
                return Done(self._begin(change), after or before)
            place = next(place for place, _ in files if place.name == row.file)
            doc = self._document(place, seen, soft=row.soft)
            line = _line(doc, row)
            data = doc.remove(line) if delete else doc.archive(line, day, reason)
            return Done(self._replace(change, place, data, doc), after or before)

        return self._run(step)

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
                preferences.vouch(self.journal.state, [new], self._clock.now_ms())
            pairs = ((before, dict(entry)),)
            change = Change(0, 0, f"reworded {name}", soft=row.soft, rules=pairs, signals=status)
            return Done(self._replace(change, place, data, doc), entry)

        return self._run(step)

    def undo(self, number: int = 0, *, by: str = "you") -> Done:
        """Take a change back (0: the newest that nobody undid), also in the playbook: in its file, only while
        that is as the change left it. ``by``: who says so. Raises ``UserError`` and ``Unavailable``; nothing
        is changed then.
        """
        change = self.changes.wanted(number)

        def step(journal: Journal, files: Files, told: list[str]) -> Done:
            self.changes.wanted(change.number)  # another process may have been faster
            pairs = tuple((after, before) for before, after in change.rules)
            _refuse_later(journal, pairs)
            signals = tuple((name, now, was) for name, was, now in change.signals)
            put(journal, pairs, signals)
            what = f"undo of {change.number} ({change.what})"
            back = Change(
                0, 0, what, soft=change.soft, by=by, rules=pairs, signals=signals, undoes=change.number
            )
            entry = next((entry for pair in pairs for entry in reversed(pair) if entry), {})
            if not change.file:
                if entry.get("file") == WORKSHOP:
                    told.append("Workshop is not told: `workshop preferences` shows what it keeps")
                return Done(self._begin(back), entry)
            place = self._place(change, files)
            self._refuse_edited(place, change)
            return Done(self._replace(back, place, change.content(), change.after), entry)

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

    def _run(self, step: Callable[[Journal, Files, list[str]], Done]) -> Done:
        """Make a change: ``step`` changes the journal in place and the file, and says what was done. Raises
        what it raises, and ``Unavailable``.
        """
        told, open_changes = list[str](), list[Change]()
        made: list[Done] = []

        def edit(journal: Journal) -> None:
            files, problems = self._files()
            told.extend(problems)
            open_changes.extend(self._settle(journal, files, told))
            made.append(step(journal, files, told))
            open_changes.append(made[0].change)

        def then() -> None:
            for change in open_changes:
                self._finish(change, told)

        found = self.journal.change(edit, after=lambda *_: then())
        return replace(made[0], told=(*found.told, *told))

    def _begin(self, change: Change) -> Change:
        """Keep what is about to be done, with the next number and the time. Raises ``Unavailable``."""
        noted = replace(change, number=self.changes.next_number(), at=self._clock.now_ms())
        self.changes.put(noted)
        return noted

    def _replace(self, change: Change, place: Place, data: bytes, made_from: Document | str) -> Change:
        """Keep the change with what the file is now, and replace the file; no data removes it. ``made_from``:
        what it was, or the mark of that. Raises ``UserError`` and ``Unavailable``, also when somebody saved
        the file meanwhile: what they saved stays.
        """
        now = place.read()
        if digest(now) != (made_from if isinstance(made_from, str) else digest(joined(made_from.lines))):
            raise Unavailable(f"{place.path}: {CHANGED}")
        noted = self._begin(
            replace(change, file=place.name, before=digest(now), after=digest(data), backup=packed(now))
        )
        try:
            if data:
                if noted.soft:
                    preferences.make_its_folder(place.path)
                write_atomic(place.path, data, mode=None, expected=now)
            elif holds(place.path, now):
                place.path.unlink(missing_ok=True)
            else:
                raise Unavailable(CHANGED)
        except (ReflectdError, OSError) as error:
            replaced = False
            with suppress(ReflectdError):
                replaced = digest(place.read()) == noted.after  # so when only syncing the folder failed
            if not replaced:
                self.changes.drop(noted)
            raise Unavailable(f"nothing was changed: {error}") from error
        return noted

    def _settle(self, journal: Journal, files: Files, told: list[str]) -> list[Change]:
        """What a kill left and came about, put into the journal, which then says what the files say."""
        left = []
        for change in reversed([c for c in self.changes.all() if not c.done]):
            if change.file and not _came_about(change, files):
                self.changes.drop(change)
            elif text := _untold(change):
                self.changes.drop(change)
                told.append(
                    f"reflectd was stopped while it told Workshop {text!r}: look with `workshop preferences` "
                    "whether it keeps it"
                )
            else:
                put(journal, change.rules, change.signals)
                left.append(change)
                told.append(f"change {change.number} ({change.what}) was interrupted; it is finished now")
        documents = [(place.name, doc) for place, doc in files]
        reconcile(journal, documents, self.changes.entries(), self.journal.day())
        return left

    def _finish(self, change: Change, told: list[str]) -> None:
        """Retire the point that says the same as a new rule, and note the change as done."""
        new = next((after for before, after in change.rules if not before and after), None)
        retired = 0
        if new is not None and not change.undoes:
            try:
                retired, names = self._retire(new)
                told.extend([f"{', '.join(names)} of the playbook became {new['id']}"] if names else [])
            except ReflectdError as error:
                told.append(f"the playbook was not looked through for the same: {error}")
        self.changes.finished(change, retired=retired)

    def _retire(self, rule: Mapping[str, Any]) -> tuple[int, list[str]]:
        if not self.playbook.path.exists():
            return 0, []
        said = folded(rule["content"])
        with self.playbook.change() as edit:
            gone = [p for _, p in each(edit.playbook) if folded(p["text"]) == said]
            drop(edit.playbook, gone)
            names = [p["name"] for p in gone]
            edit.what = f"{', '.join(names)} became {rule['id']}"
        return (edit.revision.number if edit.revision else 0), names

    def _given_back(self, change: Change) -> list[str]:
        """The point that the change retired comes back, where nobody changed the playbook since."""
        if not change.retired:
            return []
        try:
            self.playbook.undo(change.retired)
        except (UserError, Unavailable) as error:
            return [f"the playbook's point does not come back: {error}"]
        return ["the playbook's point that said the same is back"]

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
        noted = self._begin(replace(change, rules=((None, dict(entry)),)))
        try:
            preferences.tell_workshop(program, self.project, entry["content"])
        except Unavailable as error:
            self.changes.drop(noted)
            if not isinstance(error, preferences.WorkshopRefused):
                raise
            entry["file"] = there
            told.append(f"{error}. It is kept in {there} instead")
            return None
        return Done(noted, entry)

    def _place(self, change: Change, files: Files) -> Place:
        """The file of a change. Raises ``UserError``."""
        places = [place for place, _ in files]
        places += self.places(soft=change.soft)
        found = next((place for place in places if place.name == change.file), None)
        if found is None:
            raise UserError(f"{change.file} is no file for rules any more: nothing was undone")
        return found

    def _refuse_edited(self, place: Place, change: Change) -> None:
        """Raise ``UserError`` when the file is not as the change left it, with what changed it first."""
        if digest(place.read()) == change.after:
            return
        every = self.changes.all()
        gone = undone(every)
        open_ones = (c for c in reversed(every) if c.number not in gone and not c.undoes)
        later = next((c for c in open_ones if c.number > change.number and c.file == change.file), None)
        edit = f"change {later.number} ({later.what})" if later else "an edit that is not reflectd's"
        raise UserError(
            f"{place.path} was changed since change {change.number}, first by {edit}: nothing was undone"
        )

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


def put(journal: Journal, pairs: Sequence[Pair], signals: Sequence[tuple[str, str, str]]) -> None:
    """Make the journal say what each entry is after the change, and the signals' status."""
    rules: list[Entry] = journal["learned_rules"]
    for before, after in pairs:
        name = (after or before or {})["id"]
        at = next((i for i, entry in enumerate(rules) if entry["id"] == name), len(rules))
        rules[at : at + 1] = [dict(after)] if after else []
    for name, was, now in signals:
        for signal in journal["signals"]:
            if signal["id"] == name and signal["status"] == was:
                signal["status"] = now


def _came_about(change: Change, files: Files) -> bool:
    """Whether the file was replaced; where somebody edited it since, whether it says what was meant."""
    found = next(((place, doc) for place, doc in files if place.name == change.file), None)
    now = digest(found[0].read()) if found else ""
    if now in {change.before, change.after}:
        return now == change.after
    there = {(r.id, r.text, r.active) for r in found[1].rules} if found else set()
    gone = [_said(before) in there for before, after in change.rules if before and before != after]
    return all(_said(after) in there for _, after in change.rules if after) and not any(gone)


def _untold(change: Change) -> str:
    """The preference that Workshop was being told of, "" where it was not."""
    new = (after for before, after in change.rules if after and not before)
    return next((str(entry["content"]) for entry in new if entry.get("file") == WORKSHOP), "")


def _said(entry: Entry) -> tuple[str, str, bool]:
    return entry["id"], entry["content"], entry["active"]


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

"""The rules and preferences of one project: what stands, and each change of it.

A change is whole: under the lock of the project's journal it is kept with what the file was
(``learning.revisions``), the file is replaced, then the journal. After a kill between the two the next change
makes the journal say what the file says. Another's rules are never changed. Nobody is asked here: the caller
knows that a person wants it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final

from msgspec import Struct

from ...core.errors import Unavailable, UserError
from ...files.project import find_program
from ...redact import redact
from ..playbook.project_playbook import ProjectPlaybook
from ..revisions import Revision, RevisionsOf, digest, undo_of
from ..texts import refusal
from .journal import Pair, Turn, archived, becoming, highest, put, same
from .journal_file import ProjectJournal, make_place
from .places import WorkshopRefused, every, for_preferences, for_rules, tell_workshop, vouch
from .section import Document, Rule, checked
from .standing import WORKSHOP, Standing, by_hand, matched

if TYPE_CHECKING:
    from ...core.ports import Clock
    from ..state import ReflectState
    from .journal import Entry, Journal
    from .journal_file import Draft
    from .places import Place

FOLDER: Final = "changes"  # in the project's folder of the state
Env = Mapping[str, str]
Files = list[tuple["Place", Document]]
Write = tuple["Place", bytes | None, str]
"""A file, its new bytes (None removes it), and the digest of those that they were made from."""


class Change(Revision, frozen=True):
    """One change. ``file``: its path from the project, "" where none was changed. ``rules``: entries of the
    journal before and after it.
    """

    noun: ClassVar[str] = "change"
    rules: tuple[Pair, ...] = ()
    signals: tuple[Turn, ...] = ()


Changes = RevisionsOf[Change]


def changes_of(state: ReflectState) -> Changes:
    """Those of one project, numbered through all of its files."""
    return RevisionsOf(state.folder / FOLDER, state.folder, Change)


def entries(changes: Changes) -> list[Entry]:
    """Every entry of the journal that a change made, newest first."""
    return [after for change in changes.all() for _, after in change.rules if after is not None]


class Look(Struct, frozen=True):
    """The present state. ``statements``: all that a new text could contradict or repeat, a person's own lines
    too. ``by_hand``: their own lines among the active rules. ``problems``: files that can't be read.
    """

    rows: list[Standing]
    statements: list[Standing]
    journal: dict[str, Any]
    by_hand: list[Standing]
    problems: list[str]


class Done(Struct, frozen=True):
    """A change that was made. ``rule``: the journal's entry. ``told``: lines for the person."""

    change: Change
    rule: Mapping[str, Any]
    told: list[str]


class LearnedRules:
    """Those of one project. Each change raises ``UserError`` and ``Unavailable``, and changes nothing then.
    ``by``: who says so, for the list of changes.
    """

    def __init__(
        self, project: str | Path, state_dir: Path, clock: Clock, env: Env = os.environ, *, playbook: str = ""
    ) -> None:
        """``playbook``: the person's ``playbook.path``."""
        self.project = Path(project)
        self.state_dir = state_dir
        self.env = env
        self.journal = ProjectJournal(project, state_dir, clock)
        self.changes = changes_of(self.journal.state)
        self.playbook = ProjectPlaybook(project, state_dir, clock, playbook)
        self._clock = clock

    # --- the present state -------------------------------------------------------------------------------

    def look(self) -> Look:
        """Read everything; changes nothing. Without a journal that can be used the files and the list of
        changes say what there is. Raises ``UserError`` for a folder that can have no rules.
        """
        self.journal.check()
        journal, problem = self.journal.read()
        told = [f"{problem}; the next change keeps it aside and begins a new one"] if problem else []
        files, problems = self._files()
        rows = self._matched(journal, files)
        own = [line for place, doc in files for line in by_hand(place.name, doc)]
        sentences = [s for place, doc in files for s in by_hand(place.name, doc, sentences=True)]
        return Look(rows, [*(r for r in rows if r.active), *sentences], journal, own, [*told, *problems])

    def place(self, *, soft: bool = False, host: str = "") -> Place:
        """The file that a new rule goes to. ``host``: the one whose file counts, where two could have it.
        Raises ``UserError``, and ``Unavailable``.
        """
        return for_preferences(self.project) if soft else for_rules(self.project, self.env, host)

    def workshop(self) -> str | None:
        """Workshop's command, where it is installed."""
        return find_program(WORKSHOP, self.env, Path(os.path.realpath(self.project)))

    def check(self, text: str, *, soft: bool = False) -> str:
        """The text on one line. Raises ``UserError`` for one that can't be learned."""
        text = checked(text)
        if text.startswith("-"):
            raise UserError("the text can't begin with '-'")
        if redact(text) != text:
            raise UserError("the text holds a secret, and these files may be committed: leave it out")
        if soft and (why := refusal(text)):
            raise UserError(
                f"it may not be offered to agents as a preference: {why}. Without --soft it becomes a rule, "
                "which your host reads from its file"
            )
        return text

    # --- changes -----------------------------------------------------------------------------------------

    def learn(
        self,
        text: str,
        place: Place | None = None,
        *,
        soft: bool = False,
        signals: Sequence[str] = (),
        replaces: Sequence[str] = (),
    ) -> Done:
        """A new rule; with ``soft`` a preference. ``place``: the file, else the usual one. ``replaces``: ids
        of rules of this file that it takes the place of. Where a rule says the same already, the ``signals``
        become its sources.
        """
        text, place = self.check(text, soft=soft), place or self.place(soft=soft)
        with self.journal.change() as draft:
            _, rows = self._now(draft)
            twin = next((row for row in rows if row.active and same(row.text, text)), None)
            if twin is not None:
                return self._linked(draft, twin, signals)
            day = self.journal.day()
            entry: Entry = {
                "id": f"rule-{self._highest(rows) + 1:03d}",
                "content": text,
                "source_signals": list(dict.fromkeys(signals)),
                "promoted_at": day,
                "target": "workshop_preference" if soft else "claude_md",
                "file": place.name,
                "active": True,
            }
            name = entry["id"]
            what = f"learned {name}" + (f" in place of {', '.join(replaces)}" if replaces else "")
            turns, pairs = becoming(draft.journal, signals, "promoted"), list[Pair]([(None, entry)])
            if soft and not replaces and self._keeps_in_workshop(entry, draft):
                return self._apply(draft, what, pairs, turns)
            doc = place.document()
            mark = digest(doc.data)
            for old in replaces:
                row, reason = _mine(rows, old), f"replaced by {name}"
                doc = Document(doc.archive(_line(doc, row), day, reason), doc.form)
                before = _entry(draft.journal, old)
                pairs.append((before, archived(before, reason=reason, day=day)))
            if soft:
                vouch(self.journal.state, [text], self._clock.now_ms())
                make_place(place.path.parent)
            write = place, doc.append(name, text, day), mark
            return self._apply(draft, what, pairs, turns, write)

    def unlearn(self, name: str, *, delete: bool = False, reason: str = "no longer applies") -> Done:
        """Archive a rule or a preference; with ``delete`` remove it entirely."""
        reason = checked(reason)
        with self.journal.change() as draft:
            files, rows = self._now(draft)
            row, day = _mine(rows, name), self.journal.day()
            if not row.active and not delete:
                raise UserError(f"{name} is archived already")
            before, what = _entry(draft.journal, name), f"{'removed' if delete else 'archived'} {name}"
            pairs = [(before, None if delete else archived(before, reason=reason, day=day))]
            write = None
            if row.rule is None:
                draft.told += ["Workshop keeps it until you remove it there"] * (row.file == WORKSHOP)
            else:
                place, doc = _file_of(row, files)
                data = doc.remove(row.rule) if delete else doc.archive(row.rule, day, reason)
                write = place, data, digest(doc.data)
            return self._apply(draft, what, pairs, (), write, why=reason)

    def reword(self, name: str, text: str, *, signals: Sequence[str] = ()) -> Done:
        """Give a rule another text in its place (FR5). ``signals``: whose wish that was."""
        with self.journal.change() as draft:
            files, rows = self._now(draft)
            row = _mine(rows, name)
            text = self.check(text, soft=row.soft)
            if row.rule is None or not row.active:
                raise UserError(f"{name} stands in no file that could be changed")
            if row.soft:
                vouch(self.journal.state, [text], self._clock.now_ms())
            place, doc = _file_of(row, files)
            write = place, doc.reword(row.rule, text), digest(doc.data)
            return self._sourced(draft, row, f"reworded {name}", signals, write, content=text)

    def dismiss(self, names: Sequence[str], *, by: str = "you") -> Done:
        """Never suggest these signals again."""
        with self.journal.change() as draft:
            self._settle(draft.journal)
            turns = becoming(draft.journal, names, "dismissed")
            for name, was, _ in turns:
                if was != "pending":
                    raise UserError(f"{name} is {was} already: nothing was changed")
            return self._apply(draft, f"dismissed {', '.join(names)}", (), turns, by=by)

    def undo(self, number: int = 0, *, by: str = "you") -> Done:
        """Take a change back (0: the newest) while its file is as the change left it."""
        with self.journal.change() as draft:
            files, _ = self._now(draft)
            change = self.changes.wanted(number)
            pairs = [(after, before) for before, after in change.rules]
            turns = [(name, now, was) for name, was, now in change.signals]
            _refuse_later(draft.journal, pairs)
            write = None
            if change.file:
                place = next((place for place, _ in files if place.name == change.file), None) or self.place()
                if place.name != change.file:
                    raise UserError(f"{change.file} is no file for rules any more: nothing was undone")
                self.changes.refuse_edited(change, digest(place.read()), place.path)
                write = place, self.changes.before(change), change.after
            elif any(entry and entry.get("file") == WORKSHOP for pair in pairs for entry in pair):
                draft.told.append("Workshop is not told: `workshop preferences` shows what it keeps")
            return self._apply(draft, undo_of(change), pairs, turns, write, by=by, undoes=change.number)

    # --- how a change is made whole ----------------------------------------------------------------------

    def _files(self) -> tuple[Files, list[str]]:
        """Every file that has rules or preferences, or may have, and the problems of the others."""
        known, problems = every(self.project, self.env)
        files: Files = []
        for place in known:
            try:
                files.append((place, place.document()))
            except (UserError, Unavailable) as error:
                problems.append(str(error))
        return files, problems

    def _matched(self, journal: Journal, files: Files) -> list[Standing]:
        documents = [(place.name, doc) for place, doc in files]
        return matched(journal, documents, entries(self.changes), self.journal.day())

    def _now(self, draft: Draft) -> tuple[Files, list[Standing]]:
        """The files, and what stands in them; the journal is made to say the same."""
        files, problems = self._files()
        draft.told += problems
        self._settle(draft.journal)
        return files, self._matched(draft.journal, files)

    def _settle(self, journal: Journal) -> None:
        """Make the journal say what a killed change wrote; one that wrote nothing is forgotten."""
        newest = next(iter(self.changes.all()), None)
        known = {entry["id"]: entry for entry in journal["learned_rules"]}
        if newest is None or not newest.rules:
            return
        if any(known.get((b or a or {}).get("id")) != b for b, a in newest.rules):
            return
        path = self.project / newest.file
        now = digest(path.read_bytes()) if newest.file and path.is_file() else ""
        if not newest.file or now == newest.after:
            put(journal, newest.rules, newest.signals, self.journal.day())
        elif now == newest.before:
            self.changes.drop(newest)

    def _apply(
        self,
        draft: Draft,
        what: str,
        pairs: Sequence[Pair],
        turns: Sequence[Turn],
        write: Write | None = None,
        *,
        why: str = "",
        by: str = "you",
        undoes: int = 0,
    ) -> Done:
        """Keep a change, replace its file, and bring the journal after it."""
        now, name = self._clock.now_ms(), write[0].name if write else ""
        change = Change(
            0, now, what, why, by, undoes=undoes, file=name, rules=tuple(pairs), signals=tuple(turns)
        )
        if write is None:
            change = self.changes.note(change)
        else:
            place, data, mark = write
            change = self.changes.keep(change, data, file=place.path, made_from=mark)
        put(draft.journal, pairs, turns, self.journal.day())
        rule = next((after or before or {} for before, after in pairs), {})
        return Done(change, rule, draft.told)

    def _highest(self, rows: Sequence[Standing]) -> int:
        """The highest number of a rule that was ever given."""
        old = [e.get("id") for c in self.changes.all() for pair in c.rules for e in pair if e]
        return highest([*(row.id for row in rows), *old])

    def _keeps_in_workshop(self, entry: Entry, draft: Draft) -> bool:
        """Says whether Workshop is installed and keeps it; else the file must. Raises ``Unavailable``."""
        program = self.workshop()
        if program is None:
            return False
        try:
            tell_workshop(program, self.project, entry["content"])
        except WorkshopRefused as error:
            draft.told.append(f"{error}. It is kept in {entry['file']} instead")
            return False
        entry["file"] = WORKSHOP
        return True

    def _linked(self, draft: Draft, row: Standing, signals: Sequence[str]) -> Done:
        """A rule says already what these signals ask for: they are its sources too. Raises ``UserError``."""
        if not signals or not row.mine:
            raise UserError(f"{row.id} in {row.file} says that already: {row.text}")
        what = f"{row.id} says already what {', '.join(signals)} {'asks' if len(signals) == 1 else 'ask'} for"
        return self._sourced(draft, row, what, signals)

    def _sourced(
        self,
        draft: Draft,
        row: Standing,
        what: str,
        signals: Sequence[str],
        write: Write | None = None,
        **more: str,
    ) -> Done:
        """Make these signals sources of a rule. ``more``: fields of its entry that change."""
        before = _entry(draft.journal, row.id)
        sources = list(dict.fromkeys([*before["source_signals"], *signals]))
        pair = (before, {**before, **more, "source_signals": sources})
        return self._apply(draft, what, [pair], becoming(draft.journal, signals, "promoted"), write)


def _entry(journal: Journal, name: str) -> Entry:
    """The entry of a rule that is this person's."""
    return next(entry for entry in journal["learned_rules"] if entry["id"] == name)


def _file_of(row: Standing, files: Files) -> tuple[Place, Document]:
    return next((place, doc) for place, doc in files if place.name == row.file)


def _refuse_later(journal: Journal, pairs: Sequence[Pair]) -> None:
    """Raise ``UserError`` when a rule is not as the change left it."""
    rules = {entry["id"]: entry for entry in journal["learned_rules"]}
    for left, _ in pairs:
        now = rules.get(left["id"]) if left else None
        if left and now and (now["content"], now["active"]) != (left["content"], left["active"]):
            raise UserError(f"{left['id']} was changed since; undo that first")


def _mine(rows: Sequence[Standing], name: str) -> Standing:
    """The rule of that id which is this person's. Raises ``UserError``."""
    named = [row for row in rows if row.id == name]
    row = next((row for row in named if row.mine), None)
    if row is not None:
        return row
    if named:
        raise UserError(
            f"{name} in {named[0].where} is somebody else's, who learned it elsewhere: reflectd "
            "does not change it. Edit the file yourself, if you want that"
        )
    raise UserError(f"there is no rule {name[:40]!r}; `reflectd reflect history` lists them")


def _line(doc: Document, row: Standing) -> Rule:
    """The line of a rule in a document that was changed. Raises ``UserError``."""
    line = next((r for r in doc.rules if (r.id, r.text, r.active) == (row.id, row.text, row.active)), None)
    if line is None:
        raise UserError(f"{row.id} does not stand in this file: nothing was changed")
    return line

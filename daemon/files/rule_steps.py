"""How a change of rules is made so that it is whole: the order of its steps, and what a kill leaves.

Under the lock of the project's journal: the change is noted, the file is replaced (as a revision), the
journal is replaced, the playbook's point that says the same is retired, the change is noted as done. What a
killed process left half done is finished by the next change, or forgotten when its file was not replaced.
Nothing is changed when a step fails before the file is replaced.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ..core.errors import ReflectdError, Unavailable, UserError
from ..core.learned import folded
from ..learning.playbook.points import drop, each
from ..rules.markdown import joined
from ..rules.rows import WORKSHOP, reconcile
from ..rules.section import PREFERENCES, RULES, Document, Form
from . import preferences, rules_file
from .journal import ProjectJournal
from .project_playbook import ProjectPlaybook
from .revise import Revisions
from .rule_changes import Change, Changes, digest

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from ..core.ports import Clock
    from ..learning.playbook.points import Names, Playbook
    from ..rules.journal import Entry, Journal
    from .rules_file import Place

Files = list[tuple["Place", Document]]


@dataclass(frozen=True, slots=True)
class Done:
    """A change that was made. ``rule``: the entry of the journal. ``told``: what the person should know."""

    change: Change
    rule: Mapping[str, Any]
    told: tuple[str, ...] = ()


class Steps:
    """Makes the changes of one project."""

    def __init__(
        self, project: Path, state_dir: Path, clock: Clock, env: Mapping[str, str], playbook: str
    ) -> None:
        self.project = project
        self.env = env
        self.journal = ProjectJournal(project, state_dir, clock)
        self.changes = Changes(self.journal.state)
        self.playbook = ProjectPlaybook(project, state_dir, clock, playbook)
        self._clock = clock

    def now(self) -> int:
        """Epoch ms."""
        return self._clock.now_ms()

    def files(self) -> tuple[Files, list[str]]:
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

    def run(self, step: Callable[[Journal, Files, list[str]], Done]) -> Done:
        """Make a change: ``step`` changes the journal in place, calls ``begin`` and ``write``, and says what
        was done. Raises what it raises, and ``Unavailable``.
        """
        told, left, made = list[str](), list[Change](), list[Done]()

        def edit(journal: Journal) -> None:
            files, problems = self.files()
            told.extend(problems)
            left.extend(self._settle(journal, files, told))
            made.append(step(journal, files, told))

        def then() -> None:
            for change in (*left, made[0].change):
                self._finish(change, told)

        found = self.journal.change(edit, after=lambda *_: then())
        return replace(made[0], told=(*found.told, *told))

    def begin(self, change: Change) -> Change:
        """Note what is about to be done, with the next number and the time. Raises ``Unavailable``."""
        noted = replace(change, number=self.changes.next_number(), at=self.now())
        self.changes.put(noted)
        return noted

    def write(self, change: Change, write: Callable[[], object]) -> Change:
        """Do what was noted; when that fails, it is forgotten. Raises ``Unavailable`` and what else ``write``
        raises. Whoever is interrupted leaves it to the next change.
        """
        try:
            write()
        except (ReflectdError, OSError) as error:
            if not self._is_replaced(change):  # it may be, when only syncing the folder failed
                self.changes.drop(change)
            if isinstance(error, OSError):
                raise Unavailable(f"nothing was changed: {error}") from error
            raise
        return change

    def _is_replaced(self, change: Change) -> bool:
        found = (place for place, _ in self.files()[0] if place.name == change.file)
        return any(digest(place.read()) == change.after != change.before for place in found)

    def replace_file(self, change: Change, place: Place, data: bytes, doc: Document) -> Change:
        """Note the change, and replace the file, which was ``doc``, as a revision. Raises ``UserError`` and
        ``Unavailable``.
        """
        before = digest(joined(doc.lines))
        noted = self.begin(replace(change, file=place.name, before=before, after=digest(data)))

        def write() -> None:
            if noted.soft:
                preferences.make_its_folder(place.path)
            folder = self.changes.folder(place.name)
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            revisions = Revisions(folder, place.path)
            revisions.write(
                data,
                at=noted.at,
                what=noted.what,
                why=noted.why,
                by=noted.by,
                number=noted.number,
                made_from=before,
            )

        return self.write(noted, write)

    # --- what a kill left ------------------------------------------------------------------------------

    def _settle(self, journal: Journal, files: Files, told: list[str]) -> list[Change]:
        """What was begun and came about, put into the journal, which then says what the files say."""
        left = []
        for change in reversed([c for c in self.changes.all() if not c.done]):
            came = self._came_about(change, files)
            if came:
                put(journal, change.rules, change.signals)
                left.append(change)
                told.append(f"change {change.number} ({change.what}) was interrupted; it is finished now")
            else:
                self.changes.drop(change)
                if came is None:
                    text = next((e["content"] for _, e in change.rules if e), "")
                    told.append(
                        f"reflectd was stopped while it told Workshop {text!r}: look with "
                        "`workshop preferences` whether it keeps it"
                    )
        documents = [(place.name, doc) for place, doc in files]
        reconcile(journal, documents, self.changes.entries(), self.journal.day())
        return left

    @staticmethod
    def _came_about(change: Change, files: Files) -> bool | None:
        """Whether the file was replaced; where somebody edited it since, whether it says what was meant. None
        when nobody can know, because Workshop was being told.
        """
        if not change.file:
            told = any(
                after and after.get("file") == WORKSHOP for before, after in change.rules if not before
            )
            return None if told and not change.undoes else True
        found = next(((place, doc) for place, doc in files if place.name == change.file), None)
        now = digest(found[0].read()) if found else ""
        if now in {change.before, change.after}:
            return now == change.after
        there = {(r.id, r.text, r.active) for r in found[1].rules} if found else set()
        gone = [_said(before) in there for before, after in change.rules if before and before != after]
        return all(_said(after) in there for _, after in change.rules if after) and not any(gone)

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
        said = folded(rule["content"])

        def edit(playbook: Playbook, names: Names) -> list[str]:
            del names
            gone = [p for _, p in each(playbook) if folded(p["text"]) == said]
            drop(playbook, gone)
            return [p["name"] for p in gone]

        if not self.playbook.path.exists():
            return 0, []
        done = self.playbook.change(edit, lambda names: f"{', '.join(names)} became {rule['id']}")
        return (done.revision.number if done.revision else 0), done.result


def put(
    journal: Journal,
    pairs: Sequence[tuple[Entry | None, Entry | None]],
    signals: Sequence[tuple[str, str, str]],
) -> None:
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


def _said(entry: Entry) -> tuple[str, str, bool]:
    return entry["id"], entry["content"], entry["active"]

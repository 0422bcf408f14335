"""Takes back a change of rules: in its file, only while that is as the change left it, and in the journal."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ..core.errors import Unavailable, UserError
from ..rules.rows import WORKSHOP
from . import preferences, rules_file
from .revise import Revisions
from .rule_changes import Pair, undone
from .rule_steps import Done, put

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from ..rules.journal import Journal
    from .rule_changes import Change, Changes
    from .rule_steps import Files, Steps


def wanted(changes: Changes, number: int = 0) -> Change:
    """The change that would be taken back: this one; for 0 the newest that nobody undid. Raises
    ``UserError``.
    """
    every = changes.all()
    gone = undone(every)
    if number == 0:
        found = next((c for c in every if c.number not in gone and not c.undoes), None)
        if found is None:
            raise UserError("there is nothing to undo")
        return found
    found = next((c for c in every if c.number == number), None)
    if found is None:
        raise UserError(f"there is no change {number}; `reflectd reflect history` lists them")
    if found.number in gone:
        raise UserError(f"change {number} is undone already")
    return found


def undo(steps: Steps, number: int = 0, *, by: str = "you") -> Done:
    """Take it back, also in the playbook. ``by``: who says so, for the list of changes. Raises ``UserError``
    and ``Unavailable``: nothing is changed.
    """
    change = wanted(steps.changes, number)

    def step(journal: Journal, files: Files, told: list[str]) -> Done:
        wanted(steps.changes, change.number)  # another process may have been faster
        pairs = tuple((after, before) for before, after in change.rules)
        signals = tuple((name, now, was) for name, was, now in change.signals)
        _refuse_later(journal, pairs)
        put(journal, pairs, signals)
        back = replace(
            change,
            what=f"undo of {change.number} ({change.what})",
            why="",
            by=by,
            before=change.after,
            after=change.before,
            rules=pairs,
            signals=signals,
            undoes=change.number,
            retired=0,
            done=False,
        )
        entry = next((entry for pair in pairs for entry in reversed(pair) if entry), {})
        if not change.file:
            if entry.get("file") == WORKSHOP:
                told.append("Workshop is not told: `workshop preferences` shows what it keeps")
            return Done(steps.begin(back), entry)
        revisions = Revisions(steps.changes.folder(change.file), _path(steps, change, files))
        noted = steps.begin(back)
        steps.write(noted, lambda: revisions.undo(change.number, at=noted.at, by=by, as_number=noted.number))
        return Done(noted, entry)

    done = steps.run(step)
    return replace(done, told=(*done.told, *_given_back(steps, change)))


def _path(steps: Steps, change: Change, files: Files) -> Path:
    """The real file of a change. Raises ``UserError``."""
    there = [place for place, _ in files]
    new = (preferences.place(steps.project),) if change.soft else rules_file.places(steps.project, steps.env)
    found = next((place for place in (*there, *new) if place.name == change.file), None)
    if found is None:
        raise UserError(f"{change.file} is no file for rules any more: nothing was undone")
    return found.path


def _given_back(steps: Steps, change: Change) -> list[str]:
    """The playbook's point that the change retired comes back, where nobody changed the playbook since."""
    if not change.retired:
        return []
    try:
        steps.playbook.undo(change.retired)
    except (UserError, Unavailable) as error:
        return [f"the playbook's point does not come back: {error}"]
    return ["the playbook's point that said the same is back"]


def _refuse_later(journal: Journal, pairs: Sequence[Pair]) -> None:
    """Raise ``UserError`` when a rule is not as the change left it."""
    rules = {entry["id"]: entry for entry in journal["learned_rules"]}
    for left, _ in pairs:
        now = rules.get(left["id"]) if left else None
        if left and now and (now["content"], now["active"]) != (left["content"], left["active"]):
            raise UserError(f"{left['id']} was changed since; undo that first")

"""What a new text meets in a project, before a person is asked: what says it already, what contradicts it.

It changes nothing. The marks say how the files looked then, so that what is written later is what the person
was asked about.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..rules.conflicts import Conflict, Contradicts, Statement, find
from ..rules.markdown import joined
from ..rules.patterns import alike, shape_of
from ..rules.rows import Standing, same
from .learned_rules import LearnedRules, Look
from .rule_changes import digest


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be decided. ``same``: what says it already. ``near``: a rule of the person's own that says
    nearly the same. ``marks``: how each file looks now, by its name.
    """

    text: str
    soft: bool
    look: Look
    same: Statement | None
    near: Standing | None
    conflicts: Sequence[Conflict]
    marks: dict[str, str]


def planned(rules: LearnedRules, text: str, *, soft: bool = False, also: Contradicts | None = None) -> Plan:
    """Look at everything that stands. ``also``: a model that finds contradictions. Raises ``UserError`` for a
    text that can't be learned, and ``Unavailable``.
    """
    text = rules.check(text, soft=soft)
    marks = marks_of(rules)
    look = rules.look()
    shape = shape_of(text)
    said = next((s for s in look.statements if same(s.text, text)), None)
    mine = (row for row in look.rows if row.active and row.rule is not None and row.note != "another")
    return Plan(
        text,
        soft,
        look,
        said,
        next((row for row in mine if row.soft == soft and alike(shape_of(row.text), shape)), None),
        find(text, look.statements, also if said is None else None),
        marks,
    )


def marks_of(rules: LearnedRules) -> dict[str, str]:
    """How each file that has rules or preferences looks now, by its name. Raises ``Unavailable``."""
    return {place.name: digest(joined(doc.lines)) for place, doc in rules.steps.files()[0]}

"""What a new text meets in a project, before a person is asked: what says it already, what contradicts it.

It changes nothing. Equal texts are found here; what contradicts the text, or says the same in other words, a
model says, where one is asked. The marks say how the files looked then, so that what is written later is what
the person was asked about.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..rules.contradicts import Compare, Compared, Statement
from ..rules.journal import same
from ..rules.markdown import joined
from ..rules.rows import Standing
from .learned_rules import LearnedRules, Look
from .rule_changes import digest


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be decided. ``same``: what says it already, word for word. ``near``: a rule of the person's
    own that says the same in other words. ``marks``: how each file looks now, by its name.
    """

    text: str
    soft: bool
    look: Look
    same: Statement | None
    near: Standing | None
    conflicts: Sequence[Statement]
    marks: dict[str, str]


def planned(rules: LearnedRules, text: str, *, soft: bool = False, compare: Compare | None = None) -> Plan:
    """Look at everything that stands. ``compare``: asks a model. Raises ``UserError`` for a text that can't
    be learned, and ``Unavailable``.
    """
    text = rules.check(text, soft=soft)
    marks = marks_of(rules)
    look = rules.look()
    said = next((s for s in look.statements if same(s.text, text)), None)
    found = Compared()
    if compare is not None and said is None and look.statements:
        found = compare(text, [s.text for s in look.statements])
    twins = {(s.id, s.where) for s in (look.statements[at] for at in found.same) if s.id and not s.own}
    mine = (
        r for r in look.rows if r.active and r.rule is not None and r.note != "another" and r.soft == soft
    )
    return Plan(
        text,
        soft,
        look,
        said,
        next((r for r in mine if (r.id, where(r)) in twins), None),
        tuple(look.statements[at] for at in found.contradicts),
        marks,
    )


def where(row: Standing) -> str:
    """Where a rule stands, as a statement of it says."""
    return f"{row.file}:{row.line}" if row.line else row.file


def marks_of(rules: LearnedRules) -> dict[str, str]:
    """How each file that has rules or preferences looks now, by its name. Raises ``Unavailable``."""
    return {place.name: digest(joined(doc.lines)) for place, doc in rules.steps.files()[0]}

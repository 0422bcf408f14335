"""Rules with how they wore, for `history`, `status` and `reflectd learned`: nothing follows from it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..render import short

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...files.learned_rules import LearnedRules, Look
    from ...learning.rules.standing import Standing, Wear
    from ..render import Paint


def wear_of(rules: LearnedRules, look: Look) -> dict[int, Wear]:
    """How each active rule of the person's own wore, by its place among the rows."""
    from ...learning.rules.standing import wear

    signals, today = look.journal["signals"], rules.journal.day()
    mine = ((i, row) for i, row in enumerate(look.rows) if row.active and row.note != "another")
    return {i: wear(row, signals, today) for i, row in mine}


def wear_lines(row: Standing, worn: Wear, paint: Paint) -> list[str]:
    """What speaks against a rule, for a person; nothing when nothing does."""
    lines = []
    if worn.worn:
        by = ", ".join(short(name, 40) for name in worn.by[:3])
        said = f"you contradicted it {worn.contradicted} times ({by}): reflectd reflect unlearn {row.id}"
        lines += paint.row("      ", paint(said, "yellow"))
    elif worn.contradicted:
        lines += paint.row("      ", paint(f"you contradicted it once ({short(worn.by[0], 40)})", "dim"))
    if worn.stale:
        lines += paint.row("      ", paint(f"nobody confirmed it for {worn.days} days", "dim"))
    return lines


def row_object(row: Standing, worn: Wear | None) -> dict[str, Any]:
    """A rule for a script."""
    found = {
        "id": row.id,
        "text": row.text,
        "active": row.active,
        "target": "workshop_preference" if row.soft else "claude_md",
        "file": row.file,
        "line": row.line,
        "learned": row.learned,
        "archived": row.archived,
        "reason": row.reason,
        "note": row.note,
        "source_signals": list(row.sources),
    }
    if worn is not None:
        found |= {
            "contradicted": worn.contradicted,
            "contradicted_by": list(worn.by),
            "confirmed": worn.confirmed,
            "unconfirmed_days": worn.days,
            "suggest_unlearning": worn.worn,
        }
    return found


def suggested(rules: LearnedRules, paint: Paint) -> list[str]:
    """The rules whose unlearning is suggested, for a person. Raises ``UserError`` and ``Unavailable``."""
    look = rules.look()
    return _part("perhaps to be unlearned", [each for each in _worn(rules, look) if each[1].worn], paint)


def worn_lines(rules: LearnedRules, look: Look, paint: Paint) -> list[str]:
    """All that speaks against rules, for a person: what is suggested for unlearning first."""
    found = _worn(rules, look)
    rest = [each for each in found if not each[1].worn]
    lines = _part("perhaps to be unlearned", [each for each in found if each[1].worn], paint)
    return lines + _part("contradicted, or not confirmed for long", rest, paint)


def worn_objects(rules: LearnedRules, look: Look) -> list[dict[str, Any]]:
    """The same for a script."""
    return [row_object(row, worn) for row, worn in _worn(rules, look)]


def _worn(rules: LearnedRules, look: Look) -> list[tuple[Standing, Wear]]:
    """The rules against which something speaks, with what does."""
    wears = wear_of(rules, look).items()
    return [(look.rows[i], worn) for i, worn in wears if worn.contradicted or worn.stale]


def _part(heading: str, found: Sequence[tuple[Standing, Wear]], paint: Paint) -> list[str]:
    lines = []
    for row, worn in found:
        lines += paint.row(f"  {row.id}  ", short(row.text, 300)) + wear_lines(row, worn, paint)
    return ["", paint(heading, "bold"), *lines] if lines else []

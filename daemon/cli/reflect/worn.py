"""How rules wear, as `history`, `status` and `reflectd learned` show it: nothing follows from it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..render import short

if TYPE_CHECKING:
    from ...files.learned_rules import LearnedRules, Look
    from ...rules.rows import Standing
    from ...rules.wear import Wear
    from ..render import Paint


def wear_of(rules: LearnedRules, look: Look) -> dict[int, Wear]:
    """How each active rule wore, by its place among the rows."""
    from ...rules.wear import wear

    signals, today = look.journal["signals"], rules.journal.day()
    return {i: wear(row, signals, today) for i, row in enumerate(look.rows) if row.active}


def wear_lines(row: Standing, worn: Wear, paint: Paint) -> list[str]:
    """What speaks against a rule, for a person; nothing when nothing does."""
    lines = []
    if worn.worn:
        by = ", ".join(short(name, 40) for name in worn.by[:3])
        said = f"you contradicted it {worn.contradicted} times ({by}): reflectd reflect unlearn {row.id}"
        lines += paint.row("      ", paint(said, "yellow"))
    if worn.stale:
        lines += paint.row("      ", paint(f"nobody confirmed it for {worn.days} days", "dim"))
    return lines


def suggested(rules: LearnedRules, paint: Paint) -> list[str]:
    """The rules whose unlearning is suggested, for a person. Raises ``UserError`` and ``Unavailable``."""
    look = rules.look()
    lines = []
    for i, worn in wear_of(rules, look).items():
        if worn.worn:
            row = look.rows[i]
            lines += paint.row(f"  {row.id}  ", short(row.text, 300)) + wear_lines(row, worn, paint)
    return ["", paint("perhaps to be unlearned", "bold"), *lines] if lines else []

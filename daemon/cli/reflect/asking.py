"""What the actions that change rules share: questions to the person at the terminal.

A question is asked only where stdin and stdout are a terminal. The end of input and an empty answer are a no.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..render import place, plain, short
from ..terminal import say
from .action import consent

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...files.learned_rules import Done
    from ...files.rules_file import Place
    from ...learning.rules.contradicts import Statement


def pick(question: str, options: Sequence[str]) -> int | None:
    """The number of the option that the person chose, from 0; None for none of them."""
    say(question)
    for i, option in enumerate(options, 1):
        say(f"  {i}  {option}")
    while True:
        answer = answered(f"1 to {len(options)}, Enter for none: ")
        if not answer:
            return None
        if answer.isdecimal() and 1 <= int(answer) <= len(options):
            return int(answer) - 1
        say(f"That is none of them: {short(answer, 40)}")


def answered(question: str) -> str:
    """What the person types. Raises ``UserError`` where no person can be asked."""
    consent("that")
    try:
        return input(question).strip()
    except EOFError:
        print()
        return ""


def which_file(found: Sequence[Place]) -> Place | None:
    """Of two files for rules the one that the person names."""
    number = pick(
        "This project has two files for rules, which have nothing to do with each other:",
        [
            f"{place(each.path)} ({'opencode' if each.via == 'AGENTS.md' else 'Claude Code'} reads it)"
            for each in found
        ],
    )
    return None if number is None else found[number]


def told_conflict(there: Statement, text: str) -> None:
    """Say what contradicts what (FR7)."""
    say(f'CONFLICT DETECTED\n  New rule:       "{plain(text)}"')
    say(f'  Conflicts with: "{short(there.text, 300)}" {named(there)}')


def named(statement: Statement) -> str:
    """Where a statement stands."""
    where = short(statement.where, 200)
    if not statement.id:
        return f"[{where}, your own line]"
    return f"[{statement.id}]" if not statement.own else f"[{statement.id} in {where}, somebody else's]"


def tell_done(done: Done, text: str) -> None:
    """Say what was changed, and how it is undone."""
    from .status import tell

    tell(done.told)
    say(text)
    say(f"undo with: reflectd reflect undo {done.change.number}")

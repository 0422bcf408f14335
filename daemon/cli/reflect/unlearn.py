"""``reflectd reflect unlearn``: a rule no longer applies (FR8). A person at a terminal decides that."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from ...core.errors import UserError
from ..render import place, plain, print_json, short
from ..setup.confirm import asked
from ..terminal import say
from .action import action, consent, rules_of
from .asking import answered, pick, tell_done

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from ...files.learned_rules import LearnedRules
    from ...learning.rules.standing import Standing

REASON: Final = "no longer applies"
ABOUT: Final = frozenset(
    {"the", "rule", "preference", "about", "concerning", "on", "which", "says", "say", "one"}
)


_WORD: Final = re.compile(r"\w+")  # a search, whose hits the person is asked about


def add_parser(what: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the action."""
    parser = action(what, "unlearn", "archive a rule that no longer applies, after asking", run)
    parser.add_argument("text", metavar="TEXT", help='its id, or what it is about: "rule about npm"')
    parser.add_argument("--delete", action="store_true", help="remove it entirely, not even archived")
    parser.add_argument("--why", default="", metavar="REASON", help="why, for the archive")
    parser.add_argument("--dry-run", action="store_true", help="say what would be asked, change nothing")


def run(args: argparse.Namespace) -> int:
    """Find it, ask, archive it."""
    rules = rules_of(args)
    marks = rules.marks()
    found = meant(rules.look().rows, args.text, archived=args.delete)
    if args.json:
        listed = [{"id": r.id, "text": r.text, "file": r.file, "line": r.line} for r in found]
        print_json({"project": str(rules.journal.project), "rules": listed, "changed": False})
        return 0
    if args.dry_run:
        for each in found:
            say(f"you would be asked: shall {_question(rules, each, delete=args.delete)}?")
        return 0
    consent("unlearning a rule")
    row = _one(found)
    if row is None or not asked(
        f"Shall {_question(rules, row, delete=args.delete)}?", "this asks a person, on a terminal"
    ):
        say("Nothing was changed.")
        return 1
    reason = args.why or ("" if args.delete else answered(f"Why? (Enter: {REASON}) "))
    done = rules.unlearn(row.id, marks.get(row.file, ""), delete=args.delete, reason=reason or REASON)
    tell_done(done, f"{'removed' if args.delete else 'archived'} {row.id}: {plain(row.text)}")
    return 0


def meant(rows: Sequence[Standing], text: str, *, archived: bool = False) -> list[Standing]:
    """The person's own rules that a text means: the one of that id, else those that have all of its words.

    ``archived``: those too. Raises ``UserError`` when there is none.
    """
    from ...learning.rules.journal import RULE_ID

    if RULE_ID.fullmatch(text.strip()):
        found = [row for row in rows if row.id == text.strip()]
    else:
        words = _words(text) - ABOUT
        found = [row for row in rows if words and words <= _words(row.text) and (row.active or archived)]
    mine = [row for row in found if row.note != "another"]
    if found and not mine:
        where = f"{found[0].file}:{found[0].line}"
        raise UserError(
            f"{found[0].id} in {where} is somebody else's: edit the file yourself, if you want that"
        )
    if not mine:
        raise UserError(f"no rule is like {short(text, 80)!r}; `reflectd reflect history` lists all")
    if len(mine) == 1 and not mine[0].active and not archived:
        raise UserError(f"{mine[0].id} is archived already; --delete removes it entirely")
    return mine


def _words(text: str) -> set[str]:
    return set(_WORD.findall(text.casefold()))


def _one(found: Sequence[Standing]) -> Standing | None:
    if len(found) == 1:
        return found[0]
    number = pick("Which one?", [f"{row.id}  {short(row.text, 200)}" for row in found])
    return None if number is None else found[number]


def _question(rules: LearnedRules, row: Standing, *, delete: bool) -> str:
    verb = "be removed entirely" if delete else "be archived"
    where = "Workshop" if row.file == "workshop" else place(rules.journal.project / row.file)
    edited = f' (you learned it as "{plain(row.content)}")' if row.note == "edited" else ""
    return f'{row.id} "{plain(row.text)}"{edited} {verb} in {where}'

"""``reflectd reflect learn``: a rule or a preference that the person states, without any transcript (FR9).

It asks on a terminal, and writes only then. With ``--json`` and ``--dry-run`` it shows what would be asked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..render import place as shown
from ..render import plain, print_json
from ..setup.confirm import asked
from ..terminal import say
from .action import action, consent, rules_of
from .asking import named, pick, tell_done, told_conflict, which_file
from .screens import KEEP_BOTH, KEEP_OLD, REPLACE, UPDATE

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from ...files.learned_rules import Done, LearnedRules, Plan
    from ...files.rules_file import Place
    from ...learning.rules.contradicts import Statement
    from ...learning.rules.standing import Standing


def add_parser(what: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the action."""
    parser = action(what, "learn", "add a rule to CLAUDE.md or AGENTS.md, after asking", run)
    parser.add_argument("text", metavar="TEXT", help='the rule, such as "Run the tests before you push"')
    parser.add_argument(
        "--soft", action="store_true", help="a preference, for Workshop or preferences.md, and no rule"
    )
    parser.add_argument("--dry-run", action="store_true", help="say what would be asked, change nothing")


def run(args: argparse.Namespace) -> int:
    """Look, ask, write."""
    from .model import own_model

    rules = rules_of(args)
    asks = not (args.json or args.dry_run)
    model = own_model(rules.journal.project, rules.state_dir) if asks else None
    compare = model.compare if model is not None else None
    plan = rules.plan(args.text, soft=args.soft, compare=compare)
    places = rules.places(soft=args.soft)
    if args.json:
        print_json(plan_object(rules, plan, places))
        return 0
    if plan.same is not None:
        say(f"nothing to do, it stands there already: {plain(plan.same.text)} {named(plan.same)}")
        return 0
    if args.dry_run:
        where = " or ".join(shown(each.path) for each in places)
        say(f"you would be asked whether this is added to {_target(rules, plan, where)}: {plan.text}")
        return 0
    consent("a rule")
    place = _place(rules, places, soft=args.soft)
    done = _decided(rules, plan, place) if place is not None else None
    if done is None:
        say("Nothing was changed.")
        return 1
    there = "Workshop" if done.rule["file"] == "workshop" else done.rule["file"]
    tell_done(done, f"learned {done.rule['id']} in {there}: {plain(plan.text)}")
    return 0


def plan_object(rules: LearnedRules, plan: Plan, places: Sequence[Place]) -> dict[str, Any]:
    """The plan for a script."""
    return {
        "project": str(rules.journal.project),
        "text": plan.text,
        "soft": plan.soft,
        "workshop": rules.workshop() if plan.soft else None,
        "files": [{"file": str(place.path), "note": place.note} for place in places],
        "same": plan.same and _statement(plan.same),
        "changed": False,
    }


def _statement(statement: Statement) -> dict[str, Any]:
    return {
        "id": statement.id or None,
        "where": statement.where,
        "text": statement.text,
        "own": statement.own,
    }


def _place(rules: LearnedRules, places: Sequence[Place], *, soft: bool) -> Place | None:
    from ...files.rules_file import chosen
    from ...learning.rules.section import PREFERENCES, RULES

    form = PREFERENCES if soft else RULES
    found = chosen(places, "", form) or which_file(places)
    if found is not None:
        found.document(form)  # one that can't be changed is told before anything is asked
    if found is not None and found.note and not (soft and rules.workshop()):
        say(f"{shown(found.path)}: {found.note}")
    return found


def _decided(rules: LearnedRules, plan: Plan, place: Place) -> Done | None:
    """Ask what is to be done, and do it; None when nothing is."""
    target, seen = _target(rules, plan, shown(place.path)), plan.marks.get(place.name, "")
    replaces = _settled(plan, target)
    if replaces is None:
        return None
    if plan.near is not None and not plan.conflicts:
        question = f'{plan.near.id} says the same in other words: "{plain(plan.near.text)}"'
        number = pick(question, [UPDATE, KEEP_BOTH])
        if number is None:
            return None
        if number == 0:
            return rules.reword(plan.near.id, plan.text, plan.marks[plan.near.file])
    elif not plan.conflicts:
        say(f'  "{plain(plan.text)}"')
        if not asked(f"Add this {'preference' if plan.soft else 'rule'} to {target}?", "no terminal"):
            return None
    here = [row.id for row in replaces if row.file == place.name]
    done = rules.learn(plan.text, place, seen, soft=plan.soft, replaces=here)
    for row in replaces:
        if row.id not in here:
            reason = f"replaced by {done.rule['id']}"
            rules.unlearn(row.id, plan.marks.get(row.file, ""), reason=reason)
    return done


def _settled(plan: Plan, target: str) -> list[Standing] | None:
    """The rules that the new one takes the place of; None when the person keeps those that stand."""
    rows = {row.id: row for row in plan.look.rows if row.note != "another"}
    replaces: list[Standing] = []
    for there in plan.conflicts:
        told_conflict(there, plan.text)
        options = [KEEP_OLD, KEEP_BOTH] if there.own else [REPLACE, KEEP_OLD, KEEP_BOTH]
        if there.own:
            say(f"  reflectd never changes that line: to replace it, edit {there.where} yourself")
        number = pick(f"The new rule would go to {target}.", options)
        if number is None or options[number] == KEEP_OLD:
            return None
        if options[number] == REPLACE:
            replaces.append(rows[there.id])
    return replaces


def _target(rules: LearnedRules, plan: Plan, file: str) -> str:
    return f"Workshop (else to {file})" if plan.soft and rules.workshop() else file

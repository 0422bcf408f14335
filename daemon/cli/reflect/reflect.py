"""The parser of ``reflectd reflect`` and its actions.

Each change asks the person at the terminal. Inside a host an action becomes a question for the host's own
tool (``in_host``). ``--json`` shows what would be asked and changes nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ...core.errors import UserError
from ..render import print_json
from ..settings import add_action, later, look
from ..terminal import attended

if TYPE_CHECKING:
    import argparse

WHERE: Final = (
    "a review asks a person: run `reflectd reflect` on a terminal. `reflectd reflect --json` shows the "
    "patterns. Nothing was read or changed"
)
EPILOG = """examples:
  reflectd reflect          read new sessions of this project, and decide on each pattern
  reflectd reflect --json   the same for a script: asks no model, decides nothing
  reflectd reflect learn "Run the tests before you push"
  reflectd reflect learn "Prefer short answers" --soft
  reflectd reflect unlearn rule-003"""


def add_parser(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = verbs.add_parser("reflect", epilog=EPILOG, bare="review")
    what = parser.add_subparsers(dest="what", metavar="WHAT")

    def action(name: str, text: str, module: str) -> argparse.ArgumentParser:
        return add_action(what, name, text, later(__package__, module, name))

    text = "read new sessions and decide on each pattern; what the bare verb does"
    add_action(what, "review", text, _review)
    action("status", "what is in the journal, and what is suggested", "status")
    action("history", "every rule, active and archived", "status")
    learn = _changing(what, "learn", "add a rule to CLAUDE.md or AGENTS.md, after asking")
    learn.add_argument("text", metavar="TEXT", help='the rule, such as "Run the tests before you push"')
    learn.add_argument(
        "--soft", action="store_true", help="a preference, for Workshop or preferences.md, and no rule"
    )
    unlearn = _changing(what, "unlearn", "archive a rule that no longer applies, after asking")
    unlearn.add_argument("text", metavar="TEXT", help='its id, or what it is about: "rule about npm"')
    unlearn.add_argument("--delete", action="store_true", help="remove it entirely, not even archived")
    unlearn.add_argument("--why", default="", metavar="REASON", help="why, for the archive")
    text = "inside a host: make questions of messages that no model read"
    propose = action("propose", text, "in_host")
    propose.add_argument(
        "--rule",
        nargs=2,
        action="append",
        default=[],
        metavar=("IDS", "TEXT"),
        help="messages, with commas between their ids, and the rule that they ask for",
    )
    propose.add_argument("--none", default="", metavar="IDS", help="messages that teach nothing")
    text = "inside a host: do what the person answered to these questions"
    apply = action("apply", text, "in_host")
    apply.add_argument("tokens", nargs="+", metavar="TOKEN", help="the tokens of the questions")


def _changing(
    what: argparse._SubParsersAction[argparse.ArgumentParser], name: str, text: str
) -> argparse.ArgumentParser:
    """Register an action that changes something: it asks on a terminal, and inside a host."""

    def run(args: argparse.Namespace) -> int:
        from . import in_host, review

        inside = in_host.sessions_here()
        return in_host.decided(name, args) if inside else review.decided(name, args)

    return add_action(what, name, text, run)


def _review(args: argparse.Namespace) -> int:
    """Read new sessions, and ask about each pattern: on a terminal, or by the questions of a host."""
    from . import in_host, review
    from .decisions import Decisions, answers, rules_of
    from .reading import Scan
    from .status import summary

    if in_host.sessions_here():
        return in_host.review(args)
    where = look(args)[1]
    if not args.json:
        if not attended():
            raise UserError(WHERE)
        return review.review(args, where)
    rules = rules_of(args)
    scan, decisions = Scan(rules), Decisions(rules)
    scan.all(where)
    print_json({
        "project": str(rules.project),
        "file": str(decisions.place.path) if decisions.place else "",
        "patterns": summary(rules.journal, rules.look().journal)["suggested"],
        "options": list(answers(decisions.base())),
        **scan.told_json(),
        "decide": WHERE,
    })  # fmt: skip
    return 0

"""``reflectd reflect apply``: do what a person answered to questions of ours inside a host.

The answer is not an argument: the host tells it. A token whose question nobody is known to have answered is
refused, and the others are done all the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...core.errors import UserError
from ..render import print_json
from .action import action

if TYPE_CHECKING:
    import argparse

    from .host_decisions import HostDecisions, Outcome
    from .in_host import InHost
    from .questions import Proposal

Json = dict[str, Any]
OWN_WORDS = (
    "the person answered in words of their own, so nothing was decided; do what they said. Another wording "
    'becomes a question by: reflectd reflect learn "WORDING" --json'
)


def add_parser(what: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the action."""
    text = "inside Claude Code or opencode: do what the person answered to these questions"
    parser = action(what, "apply", text, run)
    parser.add_argument("tokens", nargs="+", metavar="TOKEN", help="the tokens of the questions")


def run(args: argparse.Namespace) -> int:
    """Do it, and print what became of each. Exit code 2 when one was refused."""
    from .host_decisions import HostDecisions
    from .in_host import opened

    inside = opened(args)
    decisions, done = HostDecisions(inside), list[Json]()
    asks: list[Proposal] = []
    refused = False
    for token in dict.fromkeys(args.tokens):
        try:
            outcome = _applied(inside, decisions, token)
        except UserError as error:
            refused = True
            done.append({"token": token, "status": "refused", "why": str(error)})
            continue
        asks += outcome.ask
        done.append({"token": token, **outcome.object()})
    print_json({"project": str(inside.rules.journal.project), "done": done, "ask": inside.ask(asks)})
    return 2 if refused else 0


def _applied(inside: InHost, decisions: HostDecisions, token: str) -> Outcome:
    """Have the answer to one question used, and do what it says. Raises ``UserError``."""
    from .host_decisions import Outcome
    from .questions import answers

    proposal = inside.asked(token)
    label = inside.answer(proposal)
    if not label:
        return Outcome("own words", (OWN_WORDS,), proposal.text)
    return decisions.done(proposal, answers(proposal)[label][0])

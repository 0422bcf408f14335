"""The actions that change something, when an agent runs them inside a host: asked about there, or typed.

What the person typed themselves behind `/reflect`, with just these words, is done. Anything else becomes a
question for the host's question tool, and `apply` does what they answer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

    from .host_decisions import HostDecisions, Outcome
    from .in_host import InHost
    from .questions import Proposal


Json = dict[str, Any]
ACTIONS: Final = ("learn", "unlearn", "undo", "dismiss", "restore")


def hosted(name: str, run: Callable[[argparse.Namespace], int]) -> Callable[[argparse.Namespace], int]:
    """The action as it runs anywhere: as it is on a terminal and in a script, with consent inside a host."""
    if name not in ACTIONS:
        return run

    def run_where(args: argparse.Namespace) -> int:
        from .in_host import sessions_here

        if not sessions_here() or getattr(args, "dry_run", False):
            return run(args)
        return _inside(name, args)

    return run_where


def _inside(name: str, args: argparse.Namespace) -> int:
    from ..render import print_json
    from .host_decisions import HostDecisions
    from .in_host import opened

    inside = opened(args)
    outcome = _decided(name, args, inside, HostDecisions(inside))
    done = [outcome.object()] if outcome.status != "asks" else []
    project = str(inside.rules.journal.project)
    print_json({"project": project, "done": done, "ask": inside.ask(outcome.ask)})
    return 0


def _decided(name: str, args: argparse.Namespace, inside: InHost, decisions: HostDecisions) -> Outcome:
    """Do what was typed, or say what to ask. What can't be done is said before anything typed is used up."""
    from .host_decisions import Outcome

    match name:
        case "learn":
            wanted = decisions.learning(args.text, soft=args.soft)
            if isinstance(wanted, Outcome):
                return wanted
            if wanted.kind == "learn" and inside.typed(name, args.text, ["--soft"] if args.soft else []):
                return decisions.write(wanted.text, (), soft=args.soft)
            return Outcome("asks", ask=(wanted,))
        case "unlearn":
            found = decisions.unlearning(args.text, delete=args.delete)
            flags = ["--delete"] if args.delete else []
            if _names(found, args.text) and inside.typed(name, args.text, flags):
                return decisions.unlearn(found[0].stands[0], delete=args.delete)
            return Outcome("asks", ask=tuple(found))
        case "undo":
            one = decisions.undoing(args.number)
            words = str(args.number) if args.number else ""
        case _:
            one = decisions.settling(name, args.names)
            words = " ".join(args.names)
    return decisions.done(one, "do") if inside.typed(name, words, []) else Outcome("asks", ask=(one,))


def _names(found: list[Proposal], text: str) -> bool:
    """Whether the words name one rule: by its id, or by all that it says. Others only mean one."""
    said = " ".join(text.split()).strip("\"'")
    return len(found) == 1 and said in {found[0].stands[0].id, found[0].stands[0].text}

"""``reflectd reflect``: what a person keeps correcting. Owns the list of its actions, and nothing that they
do.

An action is a module of this package with ``add_parser(what)``, named in ``ACTIONS``. Its heavy imports are
in functions: all of these modules are imported whenever the verb is typed. Exit codes: 0 done, or nothing to
do · 1 the file system refused · 2 wrong arguments, no such signal, no terminal, or no journal that can be
used · 130 Ctrl-C.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

from .hosted import hosted

if TYPE_CHECKING:
    import argparse

ACTIONS: Final[tuple[str, ...]] = (
    *("review", "scan", "status", "learn", "unlearn", "history", "undo"),
    *("dismiss", "restore", "propose", "apply"),
)
"""The modules of the actions, in the order of the help."""
BARE: Final = "review"
"""The action that is meant where none is named."""
EPILOG = """examples:
  reflectd reflect                  read new sessions of this project, and decide on each pattern
  reflectd reflect --json           the patterns for a script; nothing is read or changed
  reflectd reflect scan --all --since 30d     of all projects, and only the last 30 days
  reflectd reflect scan session.json          what `opencode export` printed
  reflectd reflect status           what is in the journal, and what is suggested
  reflectd reflect learn "Run the tests before you push"
  reflectd reflect learn "Prefer short answers" --soft
  reflectd reflect unlearn "rule about npm"
  reflectd reflect history          every rule, and each change
  reflectd reflect undo 3           take one change back
  reflectd reflect dismiss sig-20251127-001   never suggest this again
  reflectd reflect restore sig-20251127-001   suggest it again

exit codes: 0 done, or nothing to do; 1 the file system refused; 2 wrong arguments, no such signal,
no terminal, or no journal that can be used; 130 Ctrl-C"""


def add_parser(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the verb and its actions."""
    more: dict[str, str] = {"bare": BARE}
    parser = verbs.add_parser(
        "reflect",
        help="what you keep correcting in past sessions, as rules to approve",
        epilog=EPILOG,
        **more,  # type: ignore[arg-type] # of our own parser
    )
    what = parser.add_subparsers(dest="what", metavar="WHAT")
    for name in ACTIONS:
        import_module(f".{name}", __package__).add_parser(what)
        what.choices[name].set_defaults(run=hosted(name, what.choices[name].get_default("run")))

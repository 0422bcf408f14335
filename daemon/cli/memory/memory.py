"""``reflectd memory``: shows the lessons from tasks that ended badly, and changes them.

All ask the daemon. ``forget`` dismisses, which ``--undo`` takes back; only ``--for-good``
deletes. Exit codes: 0 done, or nothing to do · 1 no daemon, or a store that can't be reached · 2 wrong
arguments, or no such episode.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..settings import add_flags
from ..terminal import add_flag

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

STATES = ("quarantined", "confirmed", "dismissed")
EPILOG = """examples:
  reflectd memory search "the migration fails"   what was learned from tasks like this
  reflectd memory show 3f0c…                     one episode, and what became of its lesson
  reflectd memory stats                          how many there are
  reflectd memory add "Run the migration" "Stop the workers first."
  reflectd memory forget 3f0c…                   its lesson is not shown again
  reflectd memory forget --undo 3f0c…            it is
  reflectd memory export --out lessons.jsonl     all episodes of this project
  reflectd memory import lessons.jsonl           take them over, apart until you confirm them

exit codes: 0 done, or nothing to do; 1 no daemon, or a store that can't be reached; 2 wrong arguments,
or no such episode"""


def add_parser(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the verb and its actions."""
    parser = verbs.add_parser(
        "memory", help="lessons from tasks that ended badly: show and change them", epilog=EPILOG
    )
    what = parser.add_subparsers(dest="what", metavar="WHAT", required=True)
    search = _action(what, "search", "lessons from tasks like this one", "shown", pager=True)
    search.add_argument("words", nargs="+", metavar="WORDS", help="the task, in your words")
    search.add_argument("--limit", type=int, default=10, metavar="N", help="at most N episodes (10)")
    show = _action(what, "show", "one episode, or all of this project", "shown", pager=True)
    show.add_argument("id", nargs="?", metavar="ID", help="an episode's id, or how it begins")
    show.add_argument("--state", choices=STATES, help="only episodes in this state")
    show.add_argument("--limit", type=int, default=50, metavar="N", help="at most N episodes (50)")
    stats = _action(what, "stats", "how many episodes there are, by state", "shown")
    stats.add_argument("--all", action="store_true", help="of all projects")
    add = _action(what, "add", "store a lesson of your own; typed on a terminal it counts at once", "changes")
    add.add_argument("task", metavar="TASK", help="the task that it is about, as you would give it")
    add.add_argument("lesson", metavar="LESSON", help="what to do next time")
    add.add_argument("--problem", default="", metavar="TEXT", help="what went wrong")
    add.add_argument("--dry-run", action="store_true", help="say what would be stored, change nothing")
    forget = _action(what, "forget", "do not show these lessons again, or delete them", "changes")
    forget.add_argument("ids", nargs="+", metavar="ID", help="ids of episodes, or how they begin")
    forget.add_argument(
        "--undo", action="store_true", help="they count from now on, by your word, on a terminal"
    )
    forget.add_argument("--for-good", action="store_true", help="delete them; `export` keeps a copy")
    forget.add_argument("--dry-run", action="store_true", help="say what would be done, change nothing")
    export = _action(what, "export", "print episodes as JSON, one on each line", "exchange")
    export.add_argument("--out", metavar="FILE", help="write them to FILE, which must not exist")
    export.add_argument("--all", action="store_true", help="of all projects")
    taken = _action(what, "import", "take over exported episodes, apart until confirmed", "exchange", "take")
    taken.add_argument("file", metavar="FILE", help="what `export` wrote, - for stdin")
    taken.add_argument("--dry-run", action="store_true", help="say what would be stored, change nothing")


def _action(
    what: argparse._SubParsersAction[argparse.ArgumentParser],
    name: str,
    text: str,
    module: str,
    function: str = "",
    *,
    pager: bool = False,
) -> argparse.ArgumentParser:
    parser = what.add_parser(name, help=text, description=text)
    parser.add_argument("--dir", metavar="DIR", help="the project of this folder (of the current one)")
    parser.add_argument("--json", action="store_true", help="print the outcome as JSON")
    if pager:
        add_flag(parser)
    add_flags(parser)
    parser.set_defaults(run=_lazy(module, function or name))
    return parser


def _lazy(module: str, name: str) -> Callable[[argparse.Namespace], int]:
    """The action, whose module is imported when it runs."""

    def run(args: argparse.Namespace) -> int:
        from importlib import import_module

        code: int = getattr(import_module(f".{module}", __package__), name)(args)
        return code

    return run

"""``reflectd playbook``: shows a project's playbook and changes it. Two actions need a daemon: ``report`` and
``bootstrap``.

Each change is one revision of the project's ``playbook.json``, which ``undo`` takes back while nobody edited
the file since. What a person adds or edits counts as approved; what is imported does not. Exit codes: 0 done,
or nothing to do · 1 the file system refused · 2 wrong arguments, no such point, or no playbook that can be
used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..settings import add_action

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

EPILOG = """examples:
  reflectd playbook show                   the points of this project
  reflectd playbook add --section mis "The tests hang without redis"
  reflectd playbook edit mis-001 "The tests hang without redis 7"
  reflectd playbook remove mis-001 pat-004
  reflectd playbook approve                what waits for your word
  reflectd playbook approve new-3 pat-001  let agents be given it
  reflectd playbook report                 what the points were worth
  reflectd playbook history                every change
  reflectd playbook undo 12                take one change back
  reflectd playbook export > book.json     all points, as JSON
  reflectd playbook import .claude/playbook.json
  reflectd playbook bootstrap --dry-run    what looking back on past sessions would cost
  reflectd playbook bootstrap --limit 20   do it, for the 20 oldest that are left

exit codes: 0 done, or nothing to do; 1 the file system refused; 2 wrong arguments, no such point,
or no playbook that can be used"""


def add_parser(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the verb and its actions."""
    parser = verbs.add_parser(
        "playbook",
        help="what agents learned about this project: show and change it",
        epilog=EPILOG,
    )
    parser.set_defaults(run=_lazy("points", "show"), names=[], dir=None, json=False, no_pager=False)
    what = parser.add_subparsers(dest="what", metavar="WHAT")
    show = add_action(what, "show", "the points, by section", _lazy("points", "show"), pager=True)
    show.add_argument("names", nargs="*", metavar="NAME", help="only these points, such as pat-001")
    add = _change(what, "add", "add a point", "add")
    add.add_argument("text", metavar="TEXT", help="one thought, in a sentence or two")
    add.add_argument("--section", default="oth", metavar="SECTION", help="pat, mis, pref, ctx or oth (oth)")
    edit = _change(what, "edit", "give a point another text", "edit")
    edit.add_argument("name", metavar="NAME", help="its name, such as pat-001")
    edit.add_argument("text", metavar="TEXT", help="what it shall say")
    remove = _change(what, "remove", "remove points", "remove")
    remove.add_argument("names", nargs="+", metavar="NAME", help="their names, such as pat-001")
    approve = add_action(
        what, "approve", "what nobody vouches for yet: list it, or approve it", _lazy("points", "approve")
    )
    approve.add_argument("names", nargs="*", metavar="NAME", help="points of the file, and new ones (new-12)")
    approve.add_argument("--all", action="store_true", help="everything that may be offered to agents")
    approve.add_argument("--dismiss", action="store_true", help="learn these new ones never again")
    add_action(what, "report", "what each point was worth, as far as numbers tell", _lazy("points", "report"))
    history = add_action(what, "history", "every change", _lazy("points", "history"), pager=True)
    history.add_argument("--limit", type=int, default=20, metavar="N", help="at most N changes (20)")
    undo = _change(what, "undo", "take a change back", "undo", why=False)
    undo.add_argument(
        "number", nargs="?", type=int, default=0, metavar="ID", help="of `history` (the newest)"
    )
    export = add_action(
        what, "export", "print all points as JSON, or write them to a file", _lazy("points", "export")
    )
    export.add_argument("--out", metavar="FILE", help="write them to FILE, which must not exist")
    taken = _change(what, "import", "take over the points of another playbook", "take")
    taken.add_argument("file", metavar="FILE", help="a playbook.json in any form, - for stdin")
    past = add_action(
        what,
        "bootstrap",
        "learn from this project's past sessions: says what it costs, and asks",
        _lazy("bootstrap", "bootstrap"),
    )
    past.add_argument(
        "files",
        nargs="*",
        metavar="FILE",
        help="these sessions: transcripts of Claude Code, or what `opencode export` prints (all of Claude "
        "Code's sessions of this project)",
    )
    past.add_argument("--limit", type=int, metavar="N", help="at most N sessions, the oldest that are left")
    past.add_argument("--max-cost", type=float, metavar="USD", help="end before it costs more")
    past.add_argument("--yes", "-y", action="store_true", help="don't ask, for scripts")
    past.add_argument("--dry-run", action="store_true", help="only say what it would cost")


def _lazy(module: str, name: str) -> Callable[[argparse.Namespace], int]:
    """The action, whose module is imported when it runs."""

    def run(args: argparse.Namespace) -> int:
        from importlib import import_module

        code: int = getattr(import_module(f".{module}", __package__), name)(args)
        return code

    return run


def _change(
    what: argparse._SubParsersAction[argparse.ArgumentParser],
    name: str,
    text: str,
    function: str,
    *,
    why: bool = True,
) -> argparse.ArgumentParser:
    parser = add_action(what, name, text, _lazy("points", function))
    parser.add_argument("--dry-run", action="store_true", help="say what would be done, change nothing")
    if why:
        parser.add_argument("--why", default="", metavar="TEXT", help="the reason, for `history`")
    return parser

"""``reflectd playbook use``: another file of the project becomes its playbook, after a yes.

It asks on a terminal, and no flag answers in a person's place: from then on reflectd
writes into a file that another program may write too. Approving its points is another question, which is not
answered by that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...core.errors import UserError
from ...files.playbook import FILE, Loaded, load
from ...files.playbook_place import inside
from ...playbook.points import each
from ..render import count, place, print_json
from ..setup.confirm import asked
from ..terminal import say
from .ace import offer
from .shown import opened

if TYPE_CHECKING:
    import argparse
    from pathlib import Path

    from ...files.project_playbook import ProjectPlaybook


def use(args: argparse.Namespace) -> int:
    """Let a file of the project be its playbook, or say which one is."""
    project, book = opened(args)
    if args.file is None:
        return _tell(args, project, book)
    path = inside(project, args.file)
    if problem := book.problem(path):
        raise UserError(problem)
    found = load(project / path, follow=False)
    if found.problem or not (found.mark or path == FILE):
        raise UserError(found.problem or f"there is no file {project / path}")
    if path == book.named:
        say(f"{place(project / path)} is this project's playbook already")
        return 0
    if args.json:
        raise UserError("this asks a person, on a terminal: leave out --json")
    _explain(project, book, path, found)
    if args.dry_run:
        say(f"would use {place(project / path)}")
        return 0
    if not asked(f"Use {path} as this project's playbook?", "this asks a person, on a terminal"):
        say("Nothing was changed.")
        return 1
    book.use(path)
    say(f"It is the playbook of {place(project)} now. Back: reflectd playbook use {book.named}")
    return 0


def _tell(args: argparse.Namespace, project: Path, book: ProjectPlaybook) -> int:
    found: dict[str, Any] = {"project": str(project), "file": str(book.path)}
    if args.json:
        print_json({**found, "offered": offer(project, book)})
        return 0
    say(f"the playbook of {place(project)} is {place(book.path)}")
    if told := offer(project, book):
        say(told)
    return 0


def _explain(project: Path, book: ProjectPlaybook, path: str, found: Loaded) -> None:
    """What a yes means."""
    known = book.known()
    points = [p for _, p in each(found.playbook)]
    unknown = sum(not known.is_approved(p["text"]) for p in points)
    say(
        f"{place(project / path)} has {count(len(points), 'point')}. With a yes reflectd reads this file "
        "and no other, writes what is learned into it, and `undo` takes back only what it changed there "
        "itself. Another program that writes into it at the same time may overwrite that."
    )
    if unknown:
        say(
            f"{count(unknown, 'point')} of it you did not approve: agents are given none of them before "
            "`reflectd playbook approve`."
        )
    if left := sum(1 for _ in each(book.read().playbook)):
        say(f"The {count(left, 'point')} of {book.named} stay there; `import` takes them over.")

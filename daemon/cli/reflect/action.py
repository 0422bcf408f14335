"""What the actions of ``reflectd reflect`` share: their flags, their project, and a person's consent."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...core.errors import UserError
from ..settings import add_flags, here, look
from ..terminal import attended

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

    from ...core.settings import Settings
    from ...files.journal import ProjectJournal
    from ...files.learned_rules import LearnedRules
    from ...paths import Paths


def action(
    what: argparse._SubParsersAction[argparse.ArgumentParser],
    name: str,
    text: str,
    run: Callable[[argparse.Namespace], int],
) -> argparse.ArgumentParser:
    """Register an action with the flags that all have."""
    parser = what.add_parser(name, help=text, description=text)
    parser.add_argument("--dir", metavar="DIR", help="the project of this folder (of the current one)")
    parser.add_argument("--json", action="store_true", help="print the outcome as JSON")
    add_flags(parser)
    parser.set_defaults(run=run)
    return parser


def opened(args: argparse.Namespace) -> ProjectJournal:
    """The journal of the project that the arguments mean. Raises ``UserError``."""
    from ...clock import SystemClock
    from ...files.journal import ProjectJournal

    _, where = look(args)
    project = here(where, args.dir)
    if not project.is_dir():
        raise UserError(f"there is no folder {project}")
    return ProjectJournal(project, where.state_dir, SystemClock())


def rules_of(args: argparse.Namespace) -> LearnedRules:
    """The rules of the project that the arguments mean. Raises ``UserError``."""
    return rules_at(*look(args), args.dir)


def rules_at(settings: Settings, where: Paths, folder: str | None) -> LearnedRules:
    """The rules of the project of this folder, of the current one for None. Raises ``UserError``."""
    from ...clock import SystemClock
    from ...files.learned_rules import LearnedRules

    project = here(where, folder)
    if not project.is_dir():
        raise UserError(f"there is no folder {project}")
    return LearnedRules(project, where.state_dir, SystemClock(), playbook=settings.playbook.path)


def consent(what: str) -> None:
    """A person wants this. An agent's shell is no terminal. Raises ``UserError`` where none can have said
    so.
    """
    if not attended():
        raise UserError(f"{what} is a person's decision: do it on a terminal. Nothing was changed")

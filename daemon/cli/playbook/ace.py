"""What a person may do with the playbook of the ACE plugin of Claude Code, in words. Changes nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...clock import SystemClock
from ...core.errors import UserError
from ...core.learned import folded
from ...files import upward
from ...files.playbook import load
from ...files.project_playbook import ACE, ProjectPlaybook
from ...learning.playbook.points import each
from ..render import count

if TYPE_CHECKING:
    from collections.abc import Container
    from pathlib import Path

    from ...core.settings import Settings
    from ...paths import Paths


def offer_here(settings: Settings, where: Paths, known: Container[str] = ()) -> str:
    """``offer`` for the project of the current folder. ``known``: where hosts work. Never raises."""
    try:
        project = upward.project(".", known)
    except UserError:
        return ""
    return offer(project, ProjectPlaybook(project, where.state_dir, SystemClock(), settings.playbook.path))


def offer(project: Path, book: ProjectPlaybook) -> str:
    """What a person may do with the ACE plugin's playbook of this project, in words; "" when there is none,
    or when it says nothing new. Never raises.
    """
    if book.named == ACE or book.problem(ACE):
        return ""
    theirs = [folded(p["text"]) for _, p in each(load(project / ACE, follow=False, sleep=_at_once).playbook)]
    mine = {folded(p["text"]) for _, p in each(book.read().playbook)} if theirs else set()
    new = len(set(theirs) - mine)
    if not new:
        return ""
    return (
        f"{ACE} of this project has {count(new, 'point')} that its playbook lacks: `reflectd playbook import "
        f"{ACE}` takes them over"
    )


def _at_once(seconds: float) -> None:
    """A file that is being written is offered the next time."""

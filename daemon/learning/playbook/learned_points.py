"""A person's word on the points of a project's playbook: they vouch for them, or take one back.

Both name each point with its text as the person saw it, so that a point which was edited or removed since is
left alone. Nobody is asked here: who calls it knows that a person wants it. ``UserError`` says why nothing
was changed; ``Unavailable`` when the file system refuses.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...core.errors import UserError
from ...core.given import known_as
from ..rules.journal import bury
from ..texts import refusal
from .points import by_name, drop, each

if TYPE_CHECKING:
    from collections.abc import Container, Mapping

    from ..rules.journal_file import ProjectJournal
    from ..rules.learned_rules import LearnedRules
    from .points import Names, Playbook, Point
    from .project_playbook import ProjectPlaybook


def unvouched(book: ProjectPlaybook, confirmed: Container[str]) -> list[Point]:
    """The points of the file that nobody vouches for. ``confirmed``: digests of what sessions confirmed.
    Raises ``UserError`` for a file that can't be used.
    """
    found, known = book.read(), book.known()
    if found.problem:
        raise UserError(found.problem)
    return [
        p
        for _, p in each(found.playbook)
        if not known.is_approved(p["text"]) and known_as(p["text"]) not in confirmed
    ]


def may_count(named: Mapping[str, str]) -> None:
    """Raise ``UserError`` when one of these texts (by name) may not be put in front of an agent."""
    for name, text in named.items():
        if why := refusal(text):
            raise UserError(f"{name} may not be offered to agents: {why}")


def as_seen(book: ProjectPlaybook, name: str, seen: str) -> str:
    """The text of the point, if it still has the digest ``seen`` (``known_as``)."""
    point = by_name(book.read().playbook).get(name)
    text = "" if point is None else str(point["text"])
    _unchanged(point, name, text if known_as(text) == seen else "")
    return text


def vouch(book: ProjectPlaybook, named: Mapping[str, str]) -> None:
    """A person vouches for these points: name and text as they saw it."""
    may_count(named)
    there = by_name(book.read().playbook)
    for name, text in named.items():
        _unchanged(there.get(name), name, text)
    book.approve(named.values())


def take_back(rules: LearnedRules, name: str, text: str, *, by: str = "you") -> None:
    """Remove the point, and see to it that what it says is never learned again. That comes first: who is
    ended between the two may ask again.
    """
    _unchanged(by_name(rules.playbook.read().playbook).get(name), name, text)
    never_again(rules.journal, text)

    def edit(playbook: Playbook, names: Names) -> str:
        del names
        point = by_name(playbook).get(name)
        _unchanged(point, name, text)
        drop(playbook, [point] if point is not None else [])
        return name

    rules.playbook.change(edit, lambda name: f"took back {name}", by=by)


def never_again(book: ProjectJournal, text: str) -> None:
    """A person took this text back, so nothing that says the same is learned or suggested."""
    book.change(lambda journal: bury(journal, text, book.day()))


def _unchanged(point: Point | None, name: str, text: str) -> None:
    if point is None:
        raise UserError(f"{name} is not in the playbook any more: nothing was changed")
    if point["text"] != text:
        raise UserError(f"{name} was edited while you were asked: nothing was changed; try again")

"""What a look back changes: the tags, operations and confirmations of one session become a change of the
playbook and texts that are kept apart. Pure.

Nothing that a model wrote reaches the playbook by this alone. A new text is kept apart until another session
shows that it is true; what it is to replace stays as it is until then. A point that a person approved is
neither removed nor replaced. Points whose texts the state folder does not know are not touched.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from ..core.learned import folded, refusal
from .dedup import deduplicate
from .operations import apply
from .points import Playbook, by_name, copy, each, keep_only, section_of
from .scoring import TAGS, apply_tags, prune, said_in

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from .names import Names
    from .points import Point

WHY_CHARS: Final = 300
MOST_KNOWN: Final = 2_000  # points of one playbook that agents and models are given a choice of


@dataclass(frozen=True, slots=True)
class Tag:
    """A session's word on a point that it was given."""

    name: str
    tag: str
    why: str = ""


@dataclass(frozen=True, slots=True)
class New:
    """A text that is kept apart. ``replaces``: the points that it will stand for."""

    section: str
    text: str
    replaces: tuple[str, ...] = ()
    why: str = ""


@dataclass(frozen=True, slots=True)
class Confirmed:
    """A text that was kept apart and counts now."""

    section: str
    text: str
    replaces: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Joined:
    """Points that say the same as ``into``, whose text stays."""

    into: str
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Change:
    """What changes in the playbook. It can be applied to the file as it is then, whoever edited it since.

    ``taken_back``: tags that were counted and are not true.
    """

    tags: tuple[Tag, ...] = ()
    confirmed: tuple[Confirmed, ...] = ()
    removed: tuple[str, ...] = ()
    taken_back: tuple[Tag, ...] = ()
    joined: tuple[Joined, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.tags or self.confirmed or self.removed or self.taken_back or self.joined)


@dataclass(frozen=True, slots=True)
class Proposed:
    """What a curator's operations come to: texts that are kept apart, names to remove, points that become
    another one's, and why the rest was skipped.
    """

    new: tuple[New, ...] = ()
    removed: tuple[str, ...] = ()
    joined: tuple[Joined, ...] = ()
    skipped: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Applied:
    """The playbook after it. ``pruned``: names of points that harmed; ``joined``: names that became another
    point's.
    """

    playbook: Playbook
    pruned: tuple[str, ...] = ()
    joined: tuple[str, ...] = ()
    skipped: tuple[str, ...] = field(default=())


def known_part(playbook: Playbook, known: Collection[str], digest: Callable[[str], str]) -> Playbook:
    """A copy with only the points whose texts are known and may be offered. Whatever else stands in the file
    reaches no model. Of more than ``MOST_KNOWN`` the best stay: looking at a text takes a while.
    """
    part = copy(playbook)
    points = [p for _, p in each(part) if digest(p["text"]) in known]
    if len(points) > MOST_KNOWN:
        points = sorted(points, key=lambda p: p["harmful"] - p["helpful"])[:MOST_KNOWN]
    kept = {id(p) for p in points if not refusal(p["text"])}
    keep_only(part, {id(p) for _, p in each(part)} - kept)
    return part


def counted(tags: object, given: Collection[str], before: Collection[str]) -> tuple[Tag, ...]:
    """The tags that count: of points that the session was given, the first of each, each point once a
    session. ``before``: the points that this session was counted for already.
    """
    found: dict[str, Tag] = {}
    for item in tags if isinstance(tags, list | tuple) else ():
        name, tag, why = (item.get(k) for k in ("name", "tag", "rationale"))
        if isinstance(name, str) and name in given and name not in before and tag in TAGS:
            found.setdefault(name, Tag(name, tag, why[:WHY_CHARS] if isinstance(why, str) else ""))
    return tuple(found.values())


def proposed(
    playbook: Playbook, operations: object, *, kept: Collection[str] = (), names: Names | None = None
) -> Proposed:
    """What the operations come to. ``playbook``: the part that the curator saw. ``kept``: the points that a
    person approved.

    A MERGE into the text of one of its points brings in no text that is new, so it is done at once.
    """
    applied = apply(playbook, operations, names=names, kept=kept)
    after, new, removed, skipped = by_name(applied.playbook), list[New](), list[str](), list(applied.skipped)
    said, joined = {name: p["text"] for name, p in by_name(playbook).items()}, list[Joined]()
    sections = {p["name"]: section for section, p in (*each(playbook), *each(applied.playbook))}
    for done in applied.done:
        if done.kind == "DELETE":
            removed.append(done.name)
            continue
        point = after.get(done.name)
        if point is None:
            skipped.append(f"{done.kind}: a later operation took it back")
            continue
        replaces = tuple(p["name"] for p in done.before)
        if done.kind == "MERGE" and all(said.get(p["name"]) == p["text"] for p in done.before):
            into = next((n for n in replaces if folded(said[n]) == folded(point["text"])), "")
            if into:
                others = tuple(n for n in replaces if n != into)
                if approved := [name for name in others if name in kept]:
                    skipped.append(f"{done.kind}: a person approved {approved[0]}")
                else:
                    joined.append(Joined(into, others))
                continue
        why = refusal(point["text"])
        if approved := [name for name in replaces if name in kept]:
            why = f"a person approved {approved[0]}"
        if why:
            skipped.append(f"{done.kind}: {why}")
            continue
        new.append(New(sections[done.name], point["text"], replaces, done.why))
    return Proposed(tuple(new), tuple(n for n in removed if n in said), tuple(joined), tuple(skipped))


def changed(playbook: Playbook, change: Change, names: Names, kept: Collection[str] = ()) -> Applied:
    """The playbook after the change: tags, confirmed texts, removals, duplicates, and what harms."""
    after, skipped = copy(playbook), list[str]()
    known = by_name(after)
    for tag in change.taken_back:
        if tag.name in known and tag.tag in {"helpful", "harmful"}:
            known[tag.name][tag.tag] = max(0, known[tag.name].get(tag.tag, 0) - 1)
    skipped += apply_tags(after, [{"name": t.name, "tag": t.tag} for t in change.tags])
    for text in change.confirmed:
        if refusal(text.text) or folded(text.text) in said_in(after):
            skipped.append("a confirmed text is there already, or may not be offered")
            continue
        found = apply(after, [_operation(text, by_name(after), kept)], names=names, kept=kept)
        after, skipped = found.playbook, [*skipped, *found.skipped]
    removals = [{"type": "DELETE", "target_id": name} for name in change.removed]
    for removal in removals:
        found = apply(after, [removal], names=names, kept=kept)
        after, skipped = found.playbook, [*skipped, *found.skipped]
    joined = [name for j in change.joined for name in _join(after, j, kept)]
    joined += [p["name"] for _, others in deduplicate(after) for p in others]
    pruned = [p["name"] for p in prune(after)]
    return Applied(after, tuple(pruned), tuple(joined), tuple(skipped))


def _join(playbook: Playbook, joined: Joined, kept: Collection[str]) -> list[str]:
    """Let these points become the first, in place; the names of those that did. One that is gone, or that a
    person approved meanwhile, is left out.
    """
    known = by_name(playbook)
    first, names = known.get(joined.into), [n for n in joined.names if n in known and n not in kept]
    if first is None:
        return []
    for counter in ("helpful", "harmful"):
        first[counter] = sum(p.get(counter, 0) for p in (first, *(known[n] for n in names)))
    keep_only(playbook, {id(known[n]) for n in names})
    return names


def _operation(text: Confirmed, there: Mapping[str, Point], kept: Collection[str]) -> dict[str, Any]:
    """How a confirmed text comes in: in the place of the points that it replaces, if they are there."""
    left: Sequence[str] = [name for name in text.replaces if name in there and name not in kept]
    section = section_of(text.section)
    if len(left) > 1:
        return {"type": "MERGE", "source_ids": left, "merged_text": text.text, "section": section}
    if left:
        return {"type": "UPDATE", "target_id": left[0], "text": text.text}
    return {"type": "ADD", "text": text.text, "section": section}

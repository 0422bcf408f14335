"""What one look back is about, and what it changes: judged cases become a stretch; the tags, operations and
confirmations of one session become a change of the playbook and texts that are kept apart. Pure.

A stretch is what a session did from one look back to the next. Turns of one task hold each other: a later
case of a task shows all that the earlier one showed. So the last case of each task counts, and several tasks
become one case.

Nothing that a model wrote reaches the playbook by this alone. A new text is kept apart until another session
shows that it is true; what it is to replace stays as it is until then. A point that a person approved is
neither removed nor replaced. Points whose texts the state folder does not know are not touched.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from ...core.evidence import Act, Evidence, FileChange, Row
from ...core.given import folded, known_as
from ...core.transcript import Model
from ..texts import refusal
from .curator import apply
from .points import (
    TAGS,
    Playbook,
    apply_tags,
    by_name,
    copy,
    deduplicate,
    drop,
    each,
    prune,
    said_in,
    section_of,
    sum_counters,
)  # fmt: skip

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from ...core.verdict import Verdict
    from .points import Names, Point

LOW: Final = 0.3
CALLS: Final = 3
MISSING_SHOWN: Final = 5
WHY_CHARS: Final = 300
MOST_KNOWN: Final = 2_000  # points of one playbook that agents and models are given a choice of


@dataclass(frozen=True, slots=True)
class Judged:
    """One judged turn, as it waits. ``ended``: the verdict in words. ``cited``: the names of points in all
    that the agent wrote for the task. ``reward``: None where there is none.
    """

    session: str
    task: str
    turn: str
    at: int
    directory: str
    host: str
    ended: str
    requests: tuple[str, ...]
    final: str
    evidence: Evidence
    reward: float | None = None
    cited: tuple[str, ...] = ()
    model: Model | None = None


@dataclass(frozen=True, slots=True)
class Stretch:
    """Several judged turns as one. Ids of rows and lines of the log name their task where there are several:
    ``T2.E3``.
    """

    session: str
    directory: str
    turns: tuple[str, ...]
    requests: tuple[str, ...]
    ended: str
    final: str
    evidence: Evidence
    cited: tuple[str, ...]
    lowest: float | None
    model: Model | None

    @property
    def teaches(self) -> bool:
        """Whether it is worth a question: something was cited, it went badly, or some work was done."""
        low = self.lowest is not None and self.lowest < LOW
        return bool(self.cited) or low or self.evidence.tool_calls >= CALLS


def ended(verdict: Verdict, rounds: Iterable[str]) -> str:
    """How a turn ended, in words. ``rounds``: the feedback of earlier rounds, a line each."""
    reward = verdict.reward
    said = [f"{verdict.state}, severity {verdict.severity}"]
    said += [f"reward {reward:g}"] if reward is not None else []
    said += [f"open: {m.text}" for m in verdict.missing[:MISSING_SHOWN]]
    return "; ".join([*said, *(f"feedback before: {text}" for text in rounds)])


def stretch_of(cases: Iterable[Judged]) -> Stretch | None:
    """The stretch of these cases, oldest first; None when there is none."""
    found = list(cases)
    if not found:
        return None
    tasks = {c.task: c for c in found}  # the last one of each task
    many = len(tasks) > 1
    last = found[-1]
    rewards = [c.reward for c in found if c.reward is not None]
    return Stretch(
        session=last.session,
        directory=last.directory,
        turns=tuple(c.turn for c in found),
        requests=tuple(text for c in tasks.values() for text in c.requests),
        ended="\n".join(f"T{i}: {c.ended}" if many else c.ended for i, c in enumerate(tasks.values(), 1)),
        final=last.final,
        evidence=_joined(c.evidence for c in tasks.values()) if many else last.evidence,
        cited=tuple(dict.fromkeys(name for c in found for name in c.cited)),
        lowest=min(rewards, default=None),
        model=last.model,
    )


def _joined(parts: Iterable[Evidence]) -> Evidence:
    """The evidence of several tasks, each with ids of its own."""
    rows, log, files, calls, writes = list[Row](), list[Act](), list[FileChange](), 0, 0
    for i, e in enumerate(parts, 1):
        rows += [replace(r, id=f"T{i}.{r.id}") for r in e.rows]
        log += [replace(a, id=f"T{i}.{a.id}" if a.id else "") for a in e.log]
        files += e.files
        calls, writes = calls + e.tool_calls, writes + e.writes
    return Evidence(tuple(rows), tool_calls=calls, writes=writes, log=tuple(log), files=tuple(files))


# --- what changes ------------------------------------------------------------------------------------------


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
    skipped: tuple[str, ...] = ()


def known_part(playbook: Playbook, known: Collection[str]) -> Playbook:
    """A copy with only the points whose texts are known (by digest) and may be offered. Whatever else
    stands in the file reaches no model. Of more than ``MOST_KNOWN`` the best stay: looking at
    a text takes a while.
    """
    part = copy(playbook)
    points = [p for _, p in each(part) if known_as(p["text"]) in known]
    if len(points) > MOST_KNOWN:
        points = sorted(points, key=lambda p: p["harmful"] - p["helpful"])[:MOST_KNOWN]
    kept = {id(p) for p in points if not refusal(p["text"])}
    drop(part, [p for _, p in each(part) if id(p) not in kept])
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


def proposed(playbook: Playbook, operations: object, *, kept: Collection[str] = ()) -> Proposed:
    """What the operations come to. ``playbook``: the part that the curator saw. ``kept``: the points that a
    person approved.

    A MERGE into the text of one of its points brings in no text that is new, so it is done at once.
    """
    applied = apply(playbook, operations, kept=kept)
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
    for name in change.removed:
        found = apply(after, [{"type": "DELETE", "target_id": name}], names=names, kept=kept)
        after, skipped = found.playbook, [*skipped, *found.skipped]
    joined = [name for j in change.joined for name in _join(after, j, kept)]
    joined += [p["name"] for p in deduplicate(after)]
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
    gone = [known[n] for n in names]
    sum_counters(first, (first, *gone))
    drop(playbook, gone)
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

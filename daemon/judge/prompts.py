"""The prompts of the judge: what is asked, with which data, and which form the answer has.

Stable text comes first and holds nothing of the call, so that providers can cache it; the call's nonce fences
the data.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

from msgspec import Meta, Struct

from ..core.cuts import BYTES_PER_TOKEN, head_and_tail, tokens, within
from ..core.question import Question, fill
from ..core.verdict import Judgement, Missing, Severity
from .case import FINAL_CHARS
from .citations import without_destruction

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..core.evidence import Act, FileChange, Row, RowKind
    from .case import Case

# What fits into a prompt: the lines of its sections by rank, so that what decides is never left out.
#
# Two limits: lines of the first ranks may fill the prompt up to its largest size, all others only up to the
# usual one. What room is left then shows lines in their full form. The order of the lines stays, and what
# is left out is counted where it would have stood.

USUAL: Final = 0.65  # of the largest size
DECIDES: Final = 1  # the last rank that may use the largest size
SAYS_CHARS: Final = 40


class Item(Struct, frozen=True):
    """Lines that stay together. ``rank``: 0 is kept first. ``says``: what a count of left-out items names.

    ``full``: the same with more in it, shown instead where there is room, by ``full_rank``; it may be all
    there is. ``needs``: the index, in the same list, of the item without which this one says nothing, -1 for
    none. An item without ``says`` needs one, and stands beside it.
    """

    text: str
    rank: int
    says: str = ""
    needs: int = -1
    full: str = ""
    full_rank: int = 9


def fit(sections: Sequence[Sequence[Item]], used: int, largest: int) -> list[list[str]]:
    """For each item of each section its text as it is kept, empty where it is not. ``used``: tokens that are
    spent; ``largest``: the prompt's largest size. Within a rank the later items are kept first.
    """
    kept = [[""] * len(items) for items in sections]
    order = sorted(
        (item.rank, -(item.needs if item.needs >= 0 else i), item.needs >= 0, i, s)
        for s, items in enumerate(sections)
        for i, item in enumerate(items)
    )
    gaps = [_Gaps(items) for items in sections]
    used += sum(g.cost for g in gaps if g.beside)
    room, usual = largest - used, int(largest * USUAL) - used
    for rank, _, _, i, s in order:
        item = sections[s][i]
        if not item.text or (item.needs >= 0 and not kept[s][item.needs]):
            continue
        cost = tokens(f"{item.text}\n") + gaps[s].more(i)
        if cost <= (room if rank <= DECIDES else usual):
            kept[s][i] = item.text
            gaps[s].keep(i)
            room, usual = room - cost, usual - cost
    _fill(sections, kept, room, usual)
    return kept


def _fill(sections: Sequence[Sequence[Item]], kept: list[list[str]], room: int, usual: int) -> None:
    """Shows items in their full form as long as there is room, the last ones first within a rank."""
    order = sorted(
        (item.full_rank, -i, s)
        for s, items in enumerate(sections)
        for i, item in enumerate(items)
        if item.full
    )
    for rank, at, s in order:
        item = sections[s][-at]
        if (item.text and not kept[s][-at]) or (item.needs >= 0 and not kept[s][item.needs]):
            continue
        cost = tokens(f"{item.full}\n") - (tokens(f"{kept[s][-at]}\n") if kept[s][-at] else 0)
        if cost <= (room if rank <= DECIDES else usual):
            kept[s][-at] = item.full
            room, usual = room - cost, usual - cost


class _Gaps:
    """How many counts of left-out items stand between the kept items of a section, as items are kept."""

    def __init__(self, items: Sequence[Item]) -> None:
        named = [i for i, item in enumerate(items) if item.says]
        longest = max((_short(items[i]) for i in named), key=tokens, default="")
        self.cost = tokens(f"{_count(len(named), longest, longest)}\n") if named else 0
        self.beside = {
            i: (before, after)
            for i, before, after in zip(named, [None, *named], [*named[1:], None], strict=False)
        }
        self._kept: set[int | None] = {None}

    def more(self, i: int) -> int:
        """The tokens of the counts that keeping item ``i`` adds, below zero where it closes a gap."""
        if i not in self.beside:
            return 0
        before, after = self.beside[i]
        return self.cost * ((before not in self._kept) + (after not in self._kept) - 1)

    def keep(self, i: int) -> None:
        """Item ``i`` is kept."""
        self._kept.add(i)


def lines(items: Sequence[Item], kept: Sequence[str]) -> str:
    """The kept items in their order, and a count in each gap."""
    found: list[str] = []
    gap: list[Item] = []
    for item, stays in zip(items, kept, strict=True):
        if stays:
            found += _gap(gap)
            found.append(stays)
        elif item.says:
            gap.append(item)
    return "\n".join([*found, *_gap(gap)]) or "(none)"


def _gap(gap: list[Item]) -> list[str]:
    if not gap:
        return []
    said = _count(len(gap), _short(gap[0]), _short(gap[-1]))
    gap.clear()
    return [said]


def _short(item: Item) -> str:
    return item.says[:SAYS_CHARS]


def _count(count: int, first: str, last: str) -> str:
    names = first if count == 1 else f"{first} to {last}"
    return f"({count} left out here for want of room: {names})"


EARLIER_CHARS: Final = 300
ANSWERED_CHARS: Final = 500  # of what the agent had said before a message
REQUESTS: Final = 0.42  # of the room beside the texts that are always the same: all messages,
TYPED: Final = 0.36  # of it what the person typed for this task,
FINAL: Final = 0.25  # the agent's last message,
PROJECT: Final = 0.1  # the project's rules,
EARLIER: Final = 0.08  # and open items; the rest and what these leave is for rows, log and changes
ROW_CHARS: Final = 400
FIRST_LINES: Final = 8  # of a changed file; the others only where there is much room
LARGEST: Final = 3  # files whose first lines are never left out,
LARGEST_LINES: Final = 20  # that many of them
NEWEST: Final = 5  # calls of which the raw output is shown first
BESIDE: Final[frozenset[RowKind]] = frozenset({"write", "run", "git"})
"""Kinds of rows that the log and the changes show already."""
MAX_ITEMS: Final = 20
MAX_TEXT: Final = 4_000


class Cited(Struct):
    """An open item or an excuse, as a model writes it."""

    item: str = ""
    cites: str = ""


Items = list[Cited | str | None] | None
_TEXT: Final = {"type": "string"}


class Said(Struct, kw_only=True):
    """The judge's answer. ``requirements`` and ``reasons`` have the model think first; nobody reads them, so
    they may have any form.
    """

    requirements: Annotated[object, Meta(extra_json_schema={"type": "array", "items": _TEXT})] = None
    reasons: Annotated[object, Meta(extra_json_schema=_TEXT)] = None
    nonce: Annotated[object, Meta(extra_json_schema=_TEXT)] = None
    complete: bool
    severity: Annotated[Severity | None, Meta(extra_json_schema={"enum": list(Severity)})] = None
    missing: Items = None
    next_actions: list[str | None] | None = None
    requires_human_action: bool = False
    excused: Items = None
    feedback: str = ""


class Defence(Struct, kw_only=True):
    """The answer of the second look: was it right of the agent to stop?"""

    reasons: str = ""
    nonce: str = ""
    defended: bool


def first(case: Case) -> Question[Said]:
    """The one question that every judged turn costs."""

    def check(said: Said) -> str:
        if not said.complete and said.severity is None:
            return f"`severity` must be one of {', '.join(Severity)}"
        if judgement(said, case) is None:
            return "the judge asks only to rewrite or delete what others have"
        return ""

    return Question(
        "judge",
        _slots(case),
        Said,
        tier="judge",
        nonce=case.nonce,
        session=case.session,
        model=case.model,
        evidence=case.evidence,
        check=check,
    )


def judgement(said: Said, case: Case) -> Judgement | None:
    """The judge's reply, in bounds, without blank items and without advice that destroys; None when nothing
    else is left.
    """
    actions = [action for action in said.next_actions or () if action]
    found = Judgement(
        complete=said.complete,
        severity=said.severity or Severity.NONE,
        feedback=_text(said.feedback),
        missing=_items(said.missing),
        next_actions=tuple(map(_text, actions[:MAX_ITEMS])),
        requires_human_action=said.requires_human_action,
        excused=_items(said.excused),
    )
    return without_destruction(found, case)


def _items(items: Items) -> tuple[Missing, ...]:
    cited = [Cited(item) if isinstance(item, str) else item for item in items or () if item]
    return tuple(Missing(_text(each.item), _text(each.cites)) for each in cited[:MAX_ITEMS])


def _text(text: str) -> str:
    return text.strip()[:MAX_TEXT]


def second(case: Case, found: Judgement) -> Question[Defence]:
    """The second look: can the stop be defended against this judgement?"""
    items = [f"{i}. {m.text} (cites: {m.cites})" for i, m in enumerate(found.missing, 1)] or [found.feedback]
    data = fill(case.templates["judge_case"], {"nonce": case.nonce, **_slots(case)})
    return Question(
        "judge_second",
        {"case": data, "missing": "\n".join(items)},
        Defence,
        purpose="judge.second",
        max_tokens=600,
        tier="judge",
        nonce=case.nonce,
        session=case.session,
        model=case.model,
        evidence=case.evidence,
    )


def _slots(case: Case) -> dict[str, str]:
    """The data of a prompt that is never over ``case.prompt_tokens``, unless own texts fill half of it."""
    evidence = case.evidence
    system, data = case.templates["judge"], case.templates["judge_case"]
    same = tokens(system) + tokens(data)
    room = max(case.prompt_tokens - same, case.prompt_tokens // 2)
    requests = _requests(case, int(room * TYPED))
    slots = {
        "requests": lines(requests, fit([requests], 0, int(room * REQUESTS))[0]),
        "project": within(case.project, int(room * PROJECT)) or "(none)",
        "earlier": within("\n".join((*case.rounds, *case.open_items)), int(room * EARLIER)) or "(none)",
        "final": within(head_and_tail(case.final, FINAL_CHARS), int(room * FINAL)) or "(empty)",
    }
    parts = {
        "evidence": [_row(r) for r in evidence.rows if r.kind not in BESIDE or _decides(r)],
        "log": _log(evidence.log),
        "changes": _changes(evidence.files),
    }
    empty = fill(data, {"nonce": case.nonce, **slots, **dict.fromkeys(parts, "")})
    kept = fit([*parts.values()], tokens(system) + tokens(empty), same + room)
    shown = zip(parts.items(), kept, strict=True)
    return slots | {name: lines(items, texts) for (name, items), texts in shown}


def _requests(case: Case, most: int) -> list[Item]:
    """The person's messages of this task in at most ``most`` tokens, with the words that each answered. The
    first message and the last ones are kept first.
    """
    each = max(EARLIER_CHARS / BYTES_PER_TOKEN, most / max(1, len(case.requests)))
    found = [
        Item(f"(before this task) {_indented(head_and_tail(t, EARLIER_CHARS))}", 2, "earlier messages")
        for t in case.earlier
    ]
    for i, text in enumerate(case.requests, 1):
        before = case.answered[i - 1] if i <= len(case.answered) else ""
        if before:
            said = f"(the agent had said) {_indented(head_and_tail(before, ANSWERED_CHARS))}"
            found.append(Item(said, 1, needs=len(found) + 1))
        found.append(Item(f"M{i}: {_indented(within(text, int(each)))}", int(i > 1), f"M{i}"))
    return found


def _indented(text: str) -> str:
    """Only the first line starts where ids stand, so that a pasted text can't look like another message."""
    return "\n  ".join(text.splitlines())


def _decides(row: Row) -> bool:
    return row.open or (row.kind in {"git", "run"} and row.outcome == "failed" and not row.settled)


def _row(r: Row) -> Item:
    text = f"{r.id} [{r.kind}{' ' + r.outcome if r.outcome else ''}] {head_and_tail(r.text, ROW_CHARS)}"
    return Item(text, rank=0 if r.open or r.outcome == "failed" else 1, says=r.id)


def _log(acts: tuple[Act, ...]) -> list[Item]:
    """A line for each entry, and one item for the lines of its output: as they were printed for the newest
    calls, for those after the last edit and wherever there is room, else those that decide.
    """
    newest = [act.id for act in acts if act.id][-NEWEST:]
    items: list[Item] = []
    for act in acts:
        first = act.id in newest
        rank = 0 if first else act.rank
        items.append(Item(f"{act.id} {act.text}".strip(), rank, says=act.id or act.text))
        said, raw = ("\n".join(f"    {line}" for line in part) for part in (act.said, act.raw))
        if said or raw:
            full = 0 if first else 1 if act.verifies else act.rank + 2
            items.append(Item(said, rank, needs=len(items) - 1, full=raw, full_rank=full))
    return items


def _changes(files: tuple[FileChange, ...]) -> list[Item]:
    """A line for each file, then its first lines, then the others; of the largest files more."""
    largest = sorted(files, key=lambda f: -len(f.lines))[:LARGEST]
    items: list[Item] = []
    for f in files:
        by = ", ".join(f.by[:6]) + (" …" if len(f.by) > 6 else "")
        counts = f" +{f.added} -{f.removed}" if f.added or f.removed else ""
        how = {"by_command": "changed by a command, how is not visible", "new": "new file"}.get(f.how, f.how)
        where = " (outside of the session's folder)" if f.path.startswith(("/", "~", "../")) else ""
        head, large = len(items), f in largest
        items.append(Item(f"{f.path}{where}: {how}{counts} ({by})", 1 if large else 2, says=f.path))
        first = LARGEST_LINES if large else FIRST_LINES
        for rank, part in ((1 if large else 3, f.lines[:first]), (4, f.lines[first:])):
            if part:
                items.append(Item("\n".join(f"    {line}" for line in part), rank, needs=head))
        left = f.added + f.removed - len(f.lines)
        if left > 0:
            items.append(Item(f"    ({left} more lines)", 4, needs=head))
    return items

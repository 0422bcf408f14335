"""What fits into a prompt: the lines of its sections by rank, so that what decides is never left out.

Two limits: lines of the first ranks may fill the prompt up to its largest size, all others only up to the
usual one. What room is left then shows lines in their full form. The order of the lines stays, and what is
left out is counted where it would have stood.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ..core.cuts import tokens

if TYPE_CHECKING:
    from collections.abc import Sequence

USUAL: Final = 0.65  # of the largest size
DECIDES: Final = 1  # the last rank that may use the largest size
SAYS_CHARS: Final = 40


@dataclass(frozen=True, slots=True)
class Item:
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

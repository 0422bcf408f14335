"""Composes the offers for an agent into one text, within one budget of characters.

Offers that rank higher are put in first. An offer that does not fit is left out whole, and the text says how
many were.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from msgspec import Struct

from .transcript import Model, Transcript

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

When = Literal["start", "prompt", "action", "compacted"]

OfferKind = Literal["hand_over", "preference", "point", "lesson"]
ORDER: Final[tuple[OfferKind, ...]] = ("hand_over", "preference", "point", "lesson")
"""The kinds of offers, the one that goes first at the front."""
LEARNED: Final[frozenset[OfferKind]] = frozenset({"preference", "point", "lesson"})
"""Offers from earlier sessions. A hand-over is about this session."""
LEFT_OUT: Final = "({} more left out: no room)"


class Moment(Struct, frozen=True):
    """A moment for context: a session starts, a person prompts, the agent calls a tool, the context was
    compacted.

    ``text``: the typed message; ``model``: its addressee, where known. ``transcript``: read for ``compacted``
    only, since a person waits otherwise. ``call``: the tool call, before or after it ran.
    """

    when: When
    text: str = ""
    transcript: Transcript | None = None
    call: str = ""
    model: Model | None = None

    @property
    def begins(self) -> bool:
        """Says whether the agent has no context yet. Offers for every session are given only then."""
        return self.when in {"start", "compacted"}


class Offer(Struct, frozen=True):
    """A text for an agent.

    ``id``: the same for the same offer. ``worth``: within a kind the higher one goes first. ``heading``:
    stands once before the offers that share it. ``directory``, ``name``: the project and name of the learned
    record, to count its use.
    """

    id: str
    kind: OfferKind
    text: str
    worth: float = 0.0
    heading: str = ""
    directory: str = ""
    name: str = ""


class Composed(Struct, frozen=True):
    """The text for the agent, its offers with their ids, and the number of those that did not fit."""

    text: str
    given: tuple[str, ...] = ()
    left_out: int = 0
    offers: tuple[Offer, ...] = ()


def compose(
    offers: Iterable[Offer],
    budget: int,
    known: Sequence[str] = (),
    *,
    learned: int | None = None,
    tells: bool = True,
) -> Composed:
    """The offers that fit into ``budget`` characters, best first, each id once.

    ``known``: ids that this session has; they are left out. ``learned``: the most characters of all
    ``LEARNED`` offers together. ``tells``: the text says how many were left out.
    """
    wanted: dict[str, Offer] = {}
    for offer in offers:
        if offer.id not in known and offer.text.strip():
            wanted.setdefault(offer.id, offer)
    ranked = sorted(wanted.values(), key=lambda o: (ORDER.index(o.kind), -o.worth))
    parts, given, room = list[str](), list[Offer](), budget
    left = budget if learned is None else learned
    heading = ""
    for i, offer in enumerate(ranked):
        note = 0 if i == len(ranked) - 1 and len(given) == i else len(LEFT_OUT) + 6
        joined = bool(parts and offer.heading) and offer.heading == heading
        text = offer.text if joined or not offer.heading else f"{offer.heading}\n{offer.text}"
        size = len(text) + (1 if joined else 2)
        of_learned = offer.kind in LEARNED
        if size + note > room or (of_learned and size + note > left):
            continue
        if joined:
            parts[-1] = f"{parts[-1]}\n{text}"
        else:
            parts.append(text)
        heading = offer.heading
        given.append(offer)
        room -= size
        left -= size if of_learned else 0
    left_out = len(ranked) - len(given)
    if left_out and given and tells:
        parts.append(LEFT_OUT.format(left_out))
    return Composed("\n\n".join(parts), tuple(o.id for o in given), left_out, tuple(given))

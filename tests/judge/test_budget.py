"""What fits into a prompt: by rank, in order, never over the limit."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from daemon.core.cuts import tokens, within
from daemon.judge.prompts import USUAL, Item, fit, lines


def beside(found: list[Item]) -> list[Item]:
    """Items without a name stand beside the one before them that has a name, and need it."""
    items: list[Item] = []
    named = -1
    for item in found:
        if item.says:
            named = len(items)
            items.append(item)
        elif named >= 0:
            items.append(replace(item, needs=named, rank=max(item.rank, items[named].rank)))
    return items


ITEMS = st.lists(
    st.builds(
        Item,
        text=st.text(st.sampled_from("xé漢 "), min_size=1, max_size=80),
        rank=st.integers(0, 4),
        says=st.sampled_from(["", "A1", "A123", "src/a/very/long/path/that/goes/on/and/on/for/ever.py"]),
        full=st.text(st.sampled_from("yé漢 "), max_size=120),
        full_rank=st.integers(0, 4),
    ),
    max_size=40,
).map(beside)


def texts(*items: Item, largest: int, used: int = 0) -> list[str]:
    """The texts that are kept of one section."""
    (kept,) = fit([items], used, largest)
    return [text for text in kept if text]


@given(sections=st.lists(ITEMS, max_size=3), used=st.integers(0, 200), largest=st.integers(0, 600))
def test_never_over_the_largest_size(sections: list[list[Item]], used: int, largest: int) -> None:
    """With the counts of what is left out. Only these are always there, whatever the room."""
    kept = fit(sections, used, largest)
    shown = [lines(items, k) for items, k in zip(sections, kept, strict=True)]
    none = [lines(items, [""] * len(items)) for items in sections]
    size = used + tokens("\n".join(shown))
    assert size <= max(largest, used + tokens("\n".join(none))) + len(sections)


@given(items=ITEMS, largest=st.integers(0, 600))
def test_the_order_stays_and_what_is_left_out_is_counted(items: list[Item], largest: int) -> None:
    """Kept items stand as they stood, and each named item that is missing is in a count."""
    (kept,) = fit([items], 0, largest)
    shown = lines(items, kept)
    at = 0
    for stays in kept:
        if stays:
            at = shown.index(stays, at) + len(stays)
    counts = [int(n) for n in re.findall(r"^\((\d+) left out here for want of room: ", shown, re.MULTILINE)]
    assert sum(counts) == sum(bool(i.says) and not k for i, k in zip(items, kept, strict=True))


@given(items=ITEMS, largest=st.integers(0, 600))
def test_more_room_shows_no_less(items: list[Item], largest: int) -> None:
    """With room for all, all is there."""
    assert all(fit([items], 0, 100_000)[0])
    assert len(fit([items], 0, largest)[0]) == len(items)


def test_the_first_ranks_are_kept_first() -> None:
    """Of equal ranks the later item: what happened last decides."""
    items = [Item(f"{rank}{letter}" + "x" * 68, rank) for rank in (2, 0, 1) for letter in "ab"]
    for size, names in ((21, ["0b"]), (42, ["0a", "0b"]), (63, ["0a", "0b", "1b"])):
        assert [text[:2] for text in texts(*items, largest=size)] == names


def test_only_what_decides_may_fill_it_up() -> None:
    """Other lines end at the usual size, so that most prompts are small."""
    many = [Item("x" * 33, rank) for rank in (0, 1, 2, 3) for _ in range(100)]
    size = sum(tokens(f"{t}\n") for t in texts(*many[200:], largest=1_000))
    assert 1_000 * USUAL - 20 < size <= 1_000 * USUAL
    assert sum(tokens(f"{t}\n") for t in texts(*many[:200], largest=1_000)) > 950


def test_lines_that_need_another() -> None:
    """The output of a call is nothing without the call, and comes right after it, before other calls."""
    calls = [Item("call " + "x" * 65, 1, "A1"), Item("said " + "y" * 65, 1, needs=0)]
    other = [Item("more " + "z" * 65, 1, "A2"), Item("said " + "w" * 65, 1, needs=2)]
    room = [[t[:4] for t in texts(*calls, *other, largest=n)] for n in (40, 60, 70, 120)]
    assert room == [["more"], ["more", "said"], ["call", "more", "said"], ["call", "said", "more", "said"]]
    assert texts(Item("x" * 99, 4, "A1"), Item("y", 0, needs=0), largest=20) == []


def test_a_question_before_the_message_that_answers_it() -> None:
    """What is needed may stand behind what needs it."""
    assert texts(Item("asked", 1, needs=1), Item("answered", 1, "M2"), largest=100) == ["asked", "answered"]


@pytest.mark.parametrize(
    ("kept", "shown"),
    [
        ([1, 1, 1, 1], "a\nb\nc\nd"),
        ([1, 0, 0, 1], "a\n(2 left out here for want of room: A2 to A3)\nd"),
        (
            [0, 1, 1, 0],
            "(1 left out here for want of room: A1)\nb\nc\n(1 left out here for want of room: A4)",
        ),
    ],
)
def test_gaps(kept: list[int], shown: str) -> None:
    """A count stands where the lines would have stood."""
    items = [Item(text, 0, f"A{i}") for i, text in enumerate("abcd", 1)]
    assert lines(items, [item.text if k else "" for item, k in zip(items, kept, strict=True)]) == shown


def test_the_full_form_where_there_is_room() -> None:
    """Of equal ranks the last one first; a first rank may use all the room, an item may have a full form
    only.
    """
    items = [
        Item("a" * 20, 1, "A1", full="A" * 70, full_rank=3),
        Item("b" * 20, 1, "A2", full="B" * 70, full_rank=3),
    ]
    for size, shown in ((20, "ab"), (50, "aB"), (100, "AB")):
        assert "".join(text[0] for text in texts(*items, largest=size)) == shown
    first = [replace(items[0], full_rank=0), items[1]]
    assert "".join(text[0] for text in texts(*first, largest=36)) == "Ab"
    assert texts(Item("call", 1, "A1"), Item("", 1, needs=0, full="printed"), largest=60) == [
        "call",
        "printed",
    ]


def test_nothing_at_all_says_so() -> None:
    """An empty section is not blank; nor is one whose lines have no name."""
    assert lines([], []) == "(none)"
    assert lines([Item("x", 0)], [""]) == "(none)"


@given(text=st.text(), more=st.text(max_size=20))
def test_tokens_grow_with_the_text(text: str, more: str) -> None:
    """Also for halves of characters, which no encoding has."""
    assert 1 <= tokens(text) <= tokens(text + more) <= tokens(text) + tokens(more)
    assert tokens("\ud800") == 1


@given(text=st.text(st.sampled_from("abé漢🦀\n"), max_size=2_000), most=st.integers(10, 400))
def test_a_cut_text_has_room(text: str, most: int) -> None:
    """In any script; a text that fits is not touched, another keeps both ends."""
    short = within(text, most)
    assert tokens(short) <= most
    if tokens(text) <= most:
        assert short == text
    else:
        head, tail = short.split(" […] ")
        assert text.startswith(head)
        assert text.endswith(tail)
        assert tokens(short) > most * 0.4


def test_no_room_is_no_text() -> None:
    """Rather than a lonely mark."""
    assert within("x" * 100, 1) == ""
    assert [tokens(a) <= tokens(b) for a, b in pairwise(within("漢" * 999, n) for n in (9, 50, 200))] == [
        True
    ] * 2

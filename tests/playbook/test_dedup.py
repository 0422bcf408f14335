"""Points that say the same become one."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.playbook.dedup import THRESHOLD, by_meaning, deduplicate, together, words, words_alike
from daemon.playbook.points import each
from tests.playbook.books import book, names, point, said


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Use type hints", "use TYPE hints"),
        ("Use type hints.", "  Use the type-hint!  "),
        ("Don't mock the database", "don\N{RIGHT SINGLE QUOTATION MARK}t mock databases"),
        ("Straße zuerst", "STRASSE zuerst"),
        ("\N{FULLWIDTH LATIN CAPITAL LETTER A}bc def", "abc def"),
        ("!!!", "!!!"),
    ],
)
def test_texts_of_the_same_words_are_one_point(one: str, other: str) -> None:
    """Exact, in another case, and nearly: the first stays with the sum of the counters."""
    playbook = book(point("pat-001", one, 3, 1), mis=[point("mis-001", other, 2, 4)])
    ((kept, gone),) = deduplicate(playbook)
    assert (kept["name"], [p["name"] for p in gone]) == ("pat-001", ["mis-001"])
    assert names(playbook) == ["pat-001"]
    assert playbook["sections"]["PATTERNS & APPROACHES"] == [point("pat-001", one, 5, 5)]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Use tabs", "Never use tabs"),
        ("Time out after 30 s", "Time out after 60 s"),
        ("!!!", "???"),
    ],
)
def test_texts_that_differ_in_what_they_say_stay_two(one: str, other: str) -> None:
    """A negation, a number, the order or a word more is another point."""
    playbook = book(point("pat-001", one), point("pat-002", other))
    assert deduplicate(playbook) == []
    assert said(playbook) == [one, other]


def test_a_threshold_compares_words_but_never_over_a_negation_or_a_number() -> None:
    """Bolder where it is asked for: most words in common."""
    long = "keep the generated client in sync with the schema by running make client in the api folder"
    texts = [long, f"{long} first", f"never {long}", f"{long} 2 times"]
    assert list(words_alike(texts, 0.85)) == [(0, 1)]
    assert list(words_alike(texts, 1.0)) == []


@given(
    texts=st.lists(st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=8).map(" ".join), max_size=12),
    threshold=st.sampled_from([0.1, 0.3, 0.5, 0.7, 0.85, 1.0]),
)
def test_no_pair_of_alike_words_is_overlooked(texts: list[str], threshold: float) -> None:
    """What is compared at all is chosen so that nothing is lost against comparing everything."""
    sets = [set(words(t)) for t in texts]
    every = {
        (j, i)
        for i in range(len(texts))
        for j in range(i)
        if len(sets[i] & sets[j]) >= threshold * len(sets[i] | sets[j]) - 1e-9
    }
    assert set(words_alike(texts, threshold)) == every


def test_a_port_compares_meanings_and_what_is_alike_is_so_transitively() -> None:
    """A ~ B and B ~ C: all three are A. The port sees only what the words left, and the threshold."""
    asked: list[tuple[Sequence[str], float]] = []

    def similar(texts: Sequence[str], threshold: float) -> Iterator[tuple[int, int]]:
        asked.append((texts, threshold))
        yield 2, 1
        yield 0, 1

    playbook = book(
        point("pat-001", "apple", 1), point("pat-002", "Apple!", 1), point("pat-003", "pear", 1),
        point("pat-004", "plum", 1, 2), point("pat-005", "nail", 1),
    )  # fmt: skip
    ((kept, gone),) = deduplicate(playbook, similar)
    assert asked == [(["apple", "pear", "plum", "nail"], THRESHOLD)]
    assert [p["name"] for p in gone] == ["pat-002", "pat-003", "pat-004"]
    assert (kept["name"], kept["helpful"], kept["harmful"]) == ("pat-001", 4, 2)
    assert names(playbook) == ["pat-001", "pat-005"]


def test_a_port_that_fails_leaves_the_playbook_as_it_was() -> None:
    """Half a comparison counts for nothing."""

    def similar(texts: Sequence[str], threshold: float) -> Iterator[tuple[int, int]]:
        yield 0, 1
        raise OSError("no model")

    playbook = book(point("pat-001", "a", 1), point("pat-002", "b", 1), point("pat-003", "A", 1))
    with pytest.raises(OSError, match="no model"):
        deduplicate(playbook, similar)
    assert [p["helpful"] for _, p in each(playbook)] == [1, 1, 1]


@pytest.mark.parametrize("threshold", [0.0, -1.0, 1.5, float("nan")])
def test_a_threshold_that_is_none_is_refused(threshold: float) -> None:
    """It would make all points one, or none."""
    with pytest.raises(ValueError, match="above 0 and at most 1"):
        deduplicate(book(), words_alike, threshold)


@given(
    st.lists(st.tuples(st.sampled_from(["A b", "a B.", "c", "C!", "d e f"]), st.integers(0, 5)), max_size=12)
)
def test_counters_are_summed_and_no_twins_are_left(points: list[tuple[str, int]]) -> None:
    """The sums over all points stay, the first of each kind stays, and a second run finds nothing."""
    playbook = book(*(point(f"pat-{i:03d}", text, count, i) for i, (text, count) in enumerate(points, 1)))
    helpful = sum(p["helpful"] for _, p in each(playbook))
    deduplicate(playbook)
    assert sum(p["helpful"] for _, p in each(playbook)) == helpful
    left = [words(t) for t in said(playbook)]
    assert len(set(left)) == len(left)
    assert deduplicate(playbook) == []


@pytest.mark.slow("thousands of points are compared")
def test_many_points_are_compared_in_little_more_than_linear_time() -> None:
    """Twenty thousand texts, most of them alike in part: comparing each with each would take minutes."""
    chosen = random.Random(7)
    vocabulary = [f"word{i:04d}" for i in range(3_000)]
    texts = [" ".join(chosen.choices(vocabulary, k=10)) + " in this project" for _ in range(20_000)]
    texts[19_999] = texts[5] + " please"
    assert list(words_alike(texts, 0.85)) == [(5, 19_999)]


SAME_TO_A_MODEL = [
    ("Run the tests before the build", "Run the build before the tests"),
    ("Increase the timeout when CI is slow", "Decrease the timeout when CI is slow"),
    ("Use redis 7 in the tests", "The tests want a redis 6 to be used"),
    ("Squash the commits of a branch", "Never make one commit of many when merging"),
]


@pytest.mark.parametrize(("one", "other"), SAME_TO_A_MODEL)
def test_meanings_are_not_asked_where_words_decide(one: str, other: str) -> None:
    """A model for embeddings finds these closer than most texts that mean the same."""
    similar = by_meaning(lambda texts, threshold: [(0, 1)])
    playbook = book(point("pat-001", one), point("pat-002", other))
    assert deduplicate(playbook, similar) == []


def test_a_text_between_two_that_contradict_does_not_bring_them_together() -> None:
    """A is like B and B is like C, but A and C differ in the word that decides: only A and B become one."""
    texts = ["prefer composition over inheritance", "classes are better built of parts"]
    texts += ["prefer inheritance over composition"]
    every = [(0, 1), (1, 2), (0, 2)]
    assert list(by_meaning(lambda _texts, _threshold: every)(texts, 0.85)) == [(0, 1)]


def test_other_words_for_the_same_become_one_by_their_meaning() -> None:
    """What the words could not find, and all ways together."""
    texts = ["keep commit messages short", "the person likes brief commits"]
    texts += ["a b c d e f g h", "a b c d e f g h i"]
    playbook = book(*(point(f"pat-{i:03d}", text, 1) for i, text in enumerate(texts)))
    both = together(words_alike, by_meaning(lambda texts, threshold: [(0, 1)]))
    merged = [(kept["name"], [p["name"] for p in gone]) for kept, gone in deduplicate(playbook, both)]
    assert merged == [("pat-000", ["pat-001"]), ("pat-002", ["pat-003"])]
    assert deduplicate(playbook, together()) == []

"""What is put in front of an agent: best first, whole, within the budget, once."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from daemon.core.offers import ORDER, Offer, compose


def offer(name: str, kind: str = "point", size: int = 20, worth: float = 0.0) -> Offer:
    return Offer(name, kind, name.ljust(size, "."), worth)  # type: ignore[arg-type]


def test_the_kinds_have_an_order_and_worth_decides_within_one() -> None:
    """A hand-over first, then preferences, points, lessons; the better point before the worse."""
    found = compose(
        [offer("l", "lesson"), offer("p1", worth=1), offer("p2", worth=2), offer("h", "hand_over")], 1_000
    )
    assert found.given == ("h", "p2", "p1", "l")
    assert found.left_out == 0


def test_what_does_not_fit_is_left_out_whole_and_counted() -> None:
    """Nothing is cut in the middle, and a small offer takes the room that a large one could not."""
    found = compose([offer("large", size=500), offer("small")], 120)
    assert found.given == ("small",)
    assert found.text.endswith("(1 more left out: no room)")


def test_nothing_is_given_twice() -> None:
    """Not in one text, and not what the session was given before."""
    found = compose([offer("a"), offer("a"), offer("b")], 1_000, known=("b",))
    assert found.given == ("a",)


def test_nothing_offered_is_nothing_said() -> None:
    """No heading, no note."""
    assert compose([], 1_000).text == ""
    assert compose([Offer("a", "point", "  ")], 1_000).given == ()
    assert compose([offer("a", size=500)], 100).text == ""


OFFERS = st.lists(
    st.builds(
        Offer,
        st.text(min_size=1, max_size=5),
        st.sampled_from(ORDER),
        st.text(max_size=300),
        st.floats(allow_nan=False),
        st.sampled_from(["", "Points:", "Lessons:"]),
    ),
    max_size=30,
)


@given(OFFERS, st.integers(0, 3_000))
def test_the_budget_holds(offers: list[Offer], budget: int) -> None:
    """For any offers: within the budget, each id once, all accounted for."""
    found = compose(offers, budget)
    assert len(found.text) <= budget
    assert len(set(found.given)) == len(found.given)
    wanted = {o.id for o in offers if o.text.strip()}
    first = {o.id: o for o in reversed(offers) if o.text.strip()}
    assert set(found.given) <= wanted
    assert len(found.given) + found.left_out == len(first)


def test_offers_share_a_heading() -> None:
    """It stands once, before the first of them; another heading begins a block of its own."""
    a, b = (Offer(n, "point", f"[{n}] text", heading="Points:") for n in "ab")
    found = compose([a, b, Offer("c", "lesson", "text", heading="Lessons:")], 1_000)
    assert found.text == "Points:\n[a] text\n[b] text\n\nLessons:\ntext"
    assert found.offers[:2] == (a, b)


def test_what_was_learned_has_a_budget_of_its_own() -> None:
    """A hand-over of any size stays whole beside it."""
    found = compose([offer("h", "hand_over", 500), offer("p"), offer("l", "lesson", 40)], 2_000, learned=60)
    assert found.given == ("h", "p")
    assert compose([offer("h", "hand_over", 500), offer("p")], 2_000, learned=0).given == ("h",)

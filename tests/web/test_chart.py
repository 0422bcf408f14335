"""The numbers of the chart: bars within the picture, a scale that is round, a limit where it belongs."""

from __future__ import annotations

from daemon.web.reads import HEIGHT, TOP, chart


def days(*amounts: float) -> list[tuple[str, float]]:
    return [(f"2026-05-{n:02d}", amount) for n, amount in enumerate(amounts, 1)]


def test_bars_and_scale() -> None:
    """The highest day is at the top of a round scale, a day without cost has no height."""
    found = chart(days(0.0, 0.25, 0.5), "USD")
    assert [bar["height"] for bar in found["bars"]] == [0.0, HEIGHT / 2, HEIGHT]
    assert [said for _, said in found["lines"]] == ["0", "0.25", "0.5"]
    assert [bar["label"] for bar in found["bars"]] == ["", "", "3 May"]
    assert found["bars"][1]["said"] == "2026-05-02: 0.25 USD"


def test_the_limit_is_shown_where_it_does_not_flatten_the_days() -> None:
    """A limit near the days is a line; one far above is left out."""
    assert chart(days(1.0), "USD", 2.0)["cap"] == TOP
    assert chart(days(0.01), "USD", 2.0)["cap"] is None
    assert chart(days(0.0), "USD", 2.0)["cap"] is None

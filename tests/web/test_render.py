"""What becomes of a text before it is shown."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jinja2 import UndefinedError

from daemon.web.render import LINE, TEXT, Renderer, clean, count, iso, money, project, utc


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("two\nlines\tand a tab", "two\nlines\tand a tab"),
        ("\x1b[1;31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07after", "after"),
        ("\x1b]8;;http://evil.test\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("half \x1b[", "half \N{SYMBOL FOR ESCAPE}["),
        ("a\rb", "a\N{SYMBOL FOR CARRIAGE RETURN}b"),
        ("a\r\nb", "a\nb"),
        ("\0\x7f", "\N{SYMBOL FOR NULL}\N{SYMBOL FOR DELETE}"),
        ("\x9b31m", r"\x9b31m"),
        ("abc\u202egpj.exe", "abc\N{REPLACEMENT CHARACTER}gpj.exe"),
        ("שלום, мир", "שלום, мир"),
        ("\ud800", "?"),
    ],
)
def test_nothing_is_obeyed(text: str, shown: str) -> None:
    """Escape sequences of terminals go, control characters are seen, all writing stays."""
    assert clean(text) == shown


def test_long_texts_are_cut_with_a_note() -> None:
    """A line of 1 MB and a text of 10 MB: how much is missing is said."""
    line = clean("x" * (LINE + 7) + "\nshort")
    assert line == "x" * LINE + " [… 7 characters more in this line are not shown]\nshort"
    text = clean("y\n" * 5_000_000)
    assert text.endswith(f"[… {10_000_000 - TEXT:,} characters more are not shown]")
    assert len(text) < TEXT + 100


@given(st.text())
def test_any_text_can_be_shown(text: str) -> None:
    """Whatever comes: it can be sent as UTF-8, and no control character but tab and newline is left."""
    found = clean(text)
    found.encode()
    assert not [c for c in found if ord(c) < 32 and c not in "\n\t"]
    assert clean(found) == found


def test_a_template_that_misses_a_value_fails() -> None:
    """An error, not an empty place on the page."""
    with pytest.raises(UndefinedError):
        Renderer().page("error.html", {"title": "x", "live": False, "menu": [], "here": "/"})


def test_values_in_words() -> None:
    """Unknown is never 0; what is no time is the first moment of all."""
    shown = [money(c) for c in (None, 0, 0.5, 0.1234, 2.5, "x")]
    assert shown == ["unknown", "0.00 USD", "0.50 USD", "0.1234 USD", "2.50 USD", "unknown"]
    assert money(2, "EUR") == "2.00 EUR"
    assert (count(1, "round"), count(2, "reply", "replies")) == ("1 round", "2 replies")
    assert utc(1_700_000_000_000) == "2023-11-14 22:13 UTC"
    assert iso(1_700_000_000_000) == "2023-11-14T22:13:20Z"
    assert iso("never") == iso(10**30) == "1970-01-01T00:00:00Z"
    assert (project("/a/b/"), project("/"), project("")) == ("b", "/", "")

"""The pictures of the README: what was on a terminal stands in the SVG, each screen in its time."""

from __future__ import annotations

import re
from xml.etree import ElementTree as ET

import pyte

from pictures.svg import CELL_W, Frame, animated

SVG = "{http://www.w3.org/2000/svg}"


def frame(written: str, seconds: float = 1.0) -> Frame:
    """A terminal of 20 x 2 on which this was written."""
    screen = pyte.Screen(20, 2)
    pyte.Stream(screen).feed(written)
    return Frame([[screen.buffer[y][x] for x in range(20)] for y in range(2)], seconds)


def test_words_keep_their_place_and_colours() -> None:
    """A run of letters that look alike is one text; blanks are not drawn, backgrounds are."""
    root = ET.fromstring(animated("T", [frame("\x1b[1;31mno\x1b[0m   \x1b[42myes\x1b[0m\r\n  end")]))
    group = root.find(f"{SVG}g")
    assert group is not None
    texts = [(t.text, float(t.get("x") or 0), t.get("class")) for t in group.iter(f"{SVG}text")]
    assert texts == [("no", 0.0, "b"), ("yes", 5 * CELL_W, None), ("end", round(2 * CELL_W, 1), None)]
    assert len({t.get("fill") for t in group.iter(f"{SVG}text")}) == 2
    assert len(list(group.iter(f"{SVG}rect"))) == 1


def test_what_a_program_prints_is_text() -> None:
    """Markup on the screen is no markup of the picture; a wide letter takes two cells."""
    text = animated("a < b", [frame("<script>&\r\n漢字 x")])
    root = ET.fromstring(text)
    assert "<script" not in text
    found = {t.text: t.get("textLength") for t in root.iter(f"{SVG}text")}
    assert found["<script>&"] == f"{9 * CELL_W:.1f}"
    assert found["漢字 x"] == f"{6 * CELL_W:.1f}"


def test_each_screen_has_its_time() -> None:
    """One after the other; who wants no motion sees the last one."""
    text = animated("T", [frame("one", 1), frame("two", 3)])
    first, second = (re.search(rf"@keyframes k{n}{{(.*?}})}}", text) for n in (0, 1))
    assert first is not None
    assert second is not None
    assert "25.00%{opacity:1}" in first[1]
    assert "25.10%{opacity:0}" in first[1]
    assert second[1].startswith("0.00%{opacity:0}")
    assert second[1].endswith("100.00%{opacity:1}")
    assert ".f0{opacity:0}" in text
    assert ".f1{opacity:0}" not in text

"""A terminal's screens as one SVG that shows them in turn. Plain XML: no script, font or address in it.

A frame is a list of rows, a row a list of pyte's cells. Nothing here waits or writes.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple
from xml.sax.saxutils import escape

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyte.screens import Char

CELL_W, CELL_H, BASELINE = 8.4, 18.0, 13.5  # pixels; 14 px letters of a monospaced font
MARGIN, BAR = 12.0, 30.0
INK, PAPER = "d6d6d6", "101214"
FADE = 0.001  # of the whole time: a frame is there or not
FONT = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace"
COLOURS = {
    "black": "3b4048",
    "red": "e06c75",
    "green": "98c379",
    "brown": "e5c07b",
    "blue": "61afef",
    "magenta": "c678dd",
    "cyan": "56b6c2",
    "white": "d6d6d6",
    "brightblack": "7f848e",
    "brightred": "ff7b86",
    "brightgreen": "b1e18b",
    "brightbrown": "ffd68a",
    "brightblue": "7cc3ff",
    "brightmagenta": "dd95f3",
    "brightcyan": "72d5e0",
    "brightwhite": "ffffff",
}


@dataclass(frozen=True, slots=True)
class Frame:
    """A screen, and for how many seconds it is shown."""

    rows: Sequence[Sequence[Char]]
    seconds: float


class _Look(NamedTuple):
    ink: str
    paper: str
    bold: bool


def animated(title: str, frames: Sequence[Frame]) -> str:
    """The frames one after the other, for ever. ``title`` stands in the window's bar and is read aloud."""
    width = len(frames[0].rows[0]) * CELL_W + 2 * MARGIN
    height = len(frames[0].rows) * CELL_H + 2 * MARGIN + BAR
    whole = sum(f.seconds for f in frames)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" role="img">',
        f"<title>{escape(title)}</title>",
        f"<style>text{{font:14px {FONT};white-space:pre}}.b{{font-weight:bold}}",
        *_times([f.seconds / whole for f in frames], whole),
        "</style>",
        f'<rect width="{width:.0f}" height="{height:.0f}" rx="10" fill="#{PAPER}"/>',
        *(f'<circle cx="{20 + 18 * n}" cy="17" r="5.5" fill="#3b4048"/>' for n in range(3)),
        f'<text x="{width / 2:.0f}" y="22" text-anchor="middle" fill="#7f848e">{escape(title)}</text>',
    ]
    for number, frame in enumerate(frames):
        parts.append(f'<g class="f{number}" transform="translate({MARGIN:g} {MARGIN + BAR:g})">')
        for row, cells in enumerate(frame.rows):
            parts += _row(cells, row * CELL_H)
        parts.append("</g>")
    return "\n".join([*parts, "</svg>", ""])


def _times(shares: Sequence[float], whole: float) -> list[str]:
    """Style rules that show each frame in its part of ``whole`` seconds."""
    rules, begin = [], 0.0
    for number, share in enumerate(shares):
        end = begin + share
        steps = {0.0: int(number == 0), begin: 1, end: 1, min(1.0, end + FADE): 0}
        if number:
            steps[max(0.0, begin - FADE)] = 0
        if number == len(shares) - 1:
            steps[1.0] = 1
        keys = "".join(f"{100 * at:.2f}%{{opacity:{on}}}" for at, on in sorted(steps.items()))
        rules.append(f"@keyframes k{number}{{{keys}}}.f{number}{{animation:k{number} {whole:g}s infinite}}")
        # whoever wants no motion, and what knows no animation, sees the last frame
        hidden = "" if number == len(shares) - 1 else f".f{number}{{opacity:0}}"
        rules.append(f"{hidden}@media(prefers-reduced-motion:reduce){{.f{number}{{animation:none}}}}")
        begin = end
    return rules


def _row(cells: Sequence[Char], top: float) -> list[str]:
    """The backgrounds of a row, then its words."""
    papers, words, column = [], [], 0
    for look, group in groupby(cells, _look):
        run = list(group)
        if look.paper != PAPER:
            papers.append(
                f'<rect x="{column * CELL_W:.1f}" y="{top:g}" width="{len(run) * CELL_W:.1f}" '
                f'height="{CELL_H:g}" fill="#{look.paper}"/>'
            )
        inked = [n for n, cell in enumerate(run) if cell.data.strip()]
        if inked:
            shown = run[inked[0] : inked[-1] + 1]  # the second half of a wide letter is a cell without data
            bold = ' class="b"' if look.bold else ""
            text = escape("".join(cell.data for cell in shown))
            words.append(
                f'<text x="{(column + inked[0]) * CELL_W:.1f}" y="{top + BASELINE:g}" '
                f'textLength="{len(shown) * CELL_W:.1f}" fill="#{look.ink}"{bold}>{text}</text>'
            )
        column += len(run)
    return papers + words


def _look(cell: Char) -> _Look:
    ink = INK if cell.fg == "default" else COLOURS.get(cell.fg, cell.fg)
    paper = PAPER if cell.bg == "default" else COLOURS.get(cell.bg, cell.bg)
    return _Look(paper, ink, cell.bold) if cell.reverse else _Look(ink, paper, cell.bold)

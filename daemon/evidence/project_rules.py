"""Cuts a project's AGENTS.md and CLAUDE.md to a prompt's room, by headings and length (I26).

A text that fits stays whole. Of a longer one every section keeps its heading and its first lines: short
sections whole, long ones an equal share of the rest. A model reads which rules matter. The text is untrusted:
the prompt fences it. Linear in the size of the texts.
"""

from __future__ import annotations

import re
from typing import Final

LIMIT: Final = 2_400  # characters of the result
LINE: Final = 300  # characters of one line
TEXT_READ: Final = 64 * 1024
SECTIONS: Final = 60
LEFT_OUT: Final = "[…]"
_HEADING: Final = re.compile(
    r" {0,3}#{1,6}[ \t]|(?:\*\*|__)[^*_]{1,80}(?:\*\*|__):?$|</?[A-Za-z][\w -]{0,60}>$"
)
_FENCE: Final = re.compile(r"[ \t]{0,40}(?:`{3,20}|~{3,20})")


def select(*texts: str, limit: int = LIMIT) -> str:
    """The texts in order, each line once, in at most ``limit`` characters."""
    sections = _sections("\n".join(_visible(text[:TEXT_READ]) for text in texts))
    sizes = [sum(len(line) + 1 for line in lines) for lines in sections]
    share = _share(sizes, limit)
    return "\n".join(line for lines in sections for line in _within(lines, share))[:limit]


def _sections(text: str) -> list[list[str]]:
    """The lines by section, without empty ones and those that stood before."""
    found: list[list[str]] = [[]]
    seen: set[str] = set()
    fenced = False
    for raw in text.split("\n"):
        line = _clean(raw)
        if _FENCE.match(raw):
            fenced = not fenced
            continue
        if not fenced and _HEADING.match(raw.rstrip()) and len(found) < SECTIONS:
            found.append([])
        if line and line not in seen:
            seen.add(line)
            found[-1].append(line)
    return [lines for lines in found if lines]


def _share(sizes: list[int], limit: int) -> int:
    """The largest size of a section with which all of them fit into ``limit``."""
    left, sections = limit, len(sizes)
    for size in sorted(sizes):
        if size * sections > left:
            return left // sections
        left, sections = left - size, sections - 1
    return limit


def _within(lines: list[str], size: int) -> list[str]:
    """The first lines of a section in at most ``size`` characters, and a mark where some are left out."""
    if sum(len(line) + 1 for line in lines) <= size:
        return lines
    kept: list[str] = []
    left = size - len(LEFT_OUT) - 1
    for line in lines:
        left -= len(line) + 1
        if left < 0:
            break
        kept.append(line)
    return [*kept, LEFT_OUT] if kept else []


def _clean(line: str) -> str:
    """One line, nothing unprintable, its indentation, not too long."""
    shown = (
        line.rstrip() if line.isprintable() else "".join(c if c.isprintable() else " " for c in line).rstrip()
    )
    return shown if len(shown) <= LINE else f"{shown[: LINE - 1]}…"


def _visible(text: str) -> str:
    """Without HTML comments, which a reader of the page does not see."""
    parts: list[str] = []
    at = 0
    while (start := text.find("<!--", at)) >= 0:
        parts.append(text[at:start])
        end = text.find("-->", start)
        if end < 0:
            return "".join(parts)
        at = end + 3
    return "".join([*parts, text[at:]])

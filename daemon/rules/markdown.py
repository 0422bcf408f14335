"""Reads a Markdown file line by line: what is a heading, what is code, what is hidden in a comment.

Pure, in linear time, and exact: joined again, the lines are the file byte for byte. It knows as much of
Markdown as one needs to find a section and to leave what only quotes one: fences (also in list items),
comments and raw HTML blocks, headings of both kinds. A file that is no UTF-8 text is refused.
"""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ..core.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Iterable

BOM: Final = "\ufeff"
_LINE: Final = re.compile(r"[^\r\n]*(?:\r\n|\n|\r)|[^\r\n]+")
_FENCE: Final = re.compile(r" {0,3}(`{3,}|~{3,})(.*)", re.DOTALL)
_HEADING: Final = re.compile(r" {0,3}(#{1,6})(?=[ \t]|$)(.*)", re.DOTALL)
_UNDERLINE: Final = re.compile(r" {0,3}(?:=+|-+)[ \t]*")
_ITEM: Final = re.compile(r"( {0,3})([-*+]|\d{1,9}[.)])([ \t]+)(?=\S)")
_RAW: Final = re.compile(r" {0,3}<(pre|script|style|textarea)(?=[\s>]|$)", re.IGNORECASE)
_OTHER_BOMS: Final = (
    (codecs.BOM_UTF32_LE, "UTF-32"),
    (codecs.BOM_UTF32_BE, "UTF-32"),
    (codecs.BOM_UTF16_LE, "UTF-16"),
    (codecs.BOM_UTF16_BE, "UTF-16"),
)


@dataclass(frozen=True, slots=True)
class Line:
    """One line. ``end``: how it ends, "" for the last one of a file without a final newline. ``code``: it is
    code, raw HTML or a comment, so nothing in it counts. ``level``: of a heading, 0 for any other line; of
    two lines that make a heading, the first has it. ``title``: of a heading.
    """

    text: str
    end: str = "\n"
    code: bool = False
    level: int = 0
    title: str = ""

    @property
    def blank(self) -> bool:
        """Whether nothing is seen in it."""
        return not self.text.strip(" \t")

    @property
    def indent(self) -> int:
        """The columns before its text; a tab goes to the next multiple of four."""
        column = 0
        for c in self.text:
            if c not in " \t":
                break
            column += 1 if c == " " else 4 - column % 4
        return column

    @property
    def is_item(self) -> bool:
        """Whether it begins an item of a list."""
        return not self.code and _ITEM.match(self.text) is not None


def decoded(data: bytes) -> str:
    """The file's text, a BOM included. Raises ``UserError`` for what is no UTF-8 text."""
    for mark, name in _OTHER_BOMS:
        if data.startswith(mark):
            raise UserError(f"it is {name}: save it as UTF-8 first")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise UserError(f"it is not UTF-8 (byte {error.start}): save it as UTF-8 first") from None
    if "\0" in text:
        raise UserError("it holds a NUL character, so it is no text")
    return text


def joined(lines: Iterable[Line]) -> bytes:
    """The file that these lines are."""
    return "".join(line.text + line.end for line in lines).encode()


def scan(text: str) -> list[Line]:
    """The lines of a text. A BOM stays part of the first one, and hides nothing of it."""
    pairs = [(raw.rstrip("\r\n"), raw) for raw in _LINE.findall(text)]
    lines, fence, raw_end, column = list[Line](), "", "", 0
    for body, raw in pairs:
        shown = body.removeprefix(BOM) if not lines else body
        line = Line(body, raw[len(body) :])
        blank, indent = line.blank, Line(shown).indent
        if fence and column and not blank and indent < column:
            fence = ""  # the list item ended, and its fence with it
        if fence:
            found = _FENCE.match(shown)
            closes = found is not None and found[1].startswith(fence) and not found[2].strip(" \t")
            lines.append(Line(line.text, line.end, code=True))
            fence = "" if closes else fence
            continue
        if raw_end:
            lines.append(Line(line.text, line.end, code=True))
            raw_end = "" if raw_end in shown.lower() else raw_end
            continue
        found = _FENCE.match(shown)
        if found is not None and not (found[1][0] == "`" and "`" in found[2]):
            fence = found[1]
            column = column if indent >= column else 0
            lines.append(Line(line.text, line.end, code=True))
            continue
        raw_end, code = _raw(shown)
        item = _ITEM.match(shown)
        if item is not None:
            column = item.end()
        elif not blank and indent < column:
            column = 0
        lines.append(Line(line.text, line.end, code=True) if code else _heading(line, shown))
    return _underlined(lines)


def _raw(shown: str) -> tuple[str, bool]:
    """What ends the comment or raw block that is still open after this line, and whether the line begins
    one.
    """
    if shown.lstrip(" ").startswith("<!--") and len(shown) - len(shown.lstrip(" ")) < 4:
        return ("" if "-->" in shown[shown.index("<!--") + 4 :] else "-->"), True
    found = _RAW.match(shown)
    if found is None:
        return "", False
    end = f"</{found[1].lower()}>"
    return ("" if end in shown.lower() else end), True


def _heading(line: Line, shown: str) -> Line:
    found = _HEADING.match(shown)
    if found is None:
        return line
    title = found[2].strip(" \t")
    bare = title.rstrip("#")
    title = bare.rstrip(" \t") if bare != title and (not bare or bare[-1] in " \t") else title
    return Line(line.text, line.end, level=len(found[1]), title=title)


def _underlined(lines: list[Line]) -> list[Line]:
    """With the headings that a line of ``=`` or ``-`` below them makes."""
    for i, line in enumerate(lines[1:], 1):
        above = lines[i - 1]
        if line.code or not _UNDERLINE.fullmatch(line.text):
            continue
        plain = not (above.code or above.blank or above.level or above.is_item or above.indent > 3)
        plain = plain and not _UNDERLINE.fullmatch(above.text)
        if plain and above.text.lstrip(" ")[:1] not in {">", "|"}:
            level = 1 if "=" in line.text else 2
            lines[i - 1] = Line(above.text, above.end, level=level, title=above.text.strip(" \t"))
    return lines

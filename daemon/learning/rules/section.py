"""The section of learned rules in CLAUDE.md or AGENTS.md (FR5), and the same in a file of preferences.

Bytes in, bytes out. A rule is one line that begins with its id; only such lines are ever written, moved or
removed. Everything else stays byte for byte: line endings, a BOM, a missing final newline, notes that a
person put between the rules. After each change the file is read again: when the result is not exactly what
was meant, as behind a code fence that nobody closed, it is a ``UserError`` and no bytes come out.

It knows as much of Markdown as one needs to find a section and to leave what only quotes one: fences,
comments and headings that begin with ``#``. Pure, in linear time.
"""

from __future__ import annotations

import re
from collections import Counter
from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from ...core.errors import UserError
from ..texts import has_hidden

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

# --- the lines of a Markdown file -----------------------------------------------------------------------

BOM: Final = "\ufeff"
_LINE: Final = re.compile(r"[^\r\n]*(?:\r\n|\n|\r)|[^\r\n]+")
_FENCE: Final = re.compile(r" {0,3}(`{3,}|~{3,})(.*)", re.DOTALL)
_COMMENT: Final = re.compile(r" {0,3}<!--(.*)", re.DOTALL)
_HEADING: Final = re.compile(r" {0,3}(#{1,6})(?=[ \t]|$)(.*)", re.DOTALL)
_ITEM: Final = re.compile(r" {0,3}(?:[-*+]|\d{1,9}[.)])[ \t]+\S")
_END: Final = "-->"  # of a comment


class Line(Struct, frozen=True):
    """One line. ``end``: how it ends, "" for the last one of a file without a final newline. ``code``: it is
    code or a comment, so nothing in it counts. ``level`` and ``title``: of a heading, 0 for any other line.
    """

    text: str
    end: str = "\n"
    code: bool = False
    level: int = 0
    title: str = ""

    @property
    def blank(self) -> bool:
        """Says whether nothing is seen in it."""
        return not self.text.strip(" \t")

    @property
    def indent(self) -> int:
        """The columns before its text."""
        text = self.text.expandtabs(4)
        return len(text) - len(text.lstrip(" "))

    @property
    def is_item(self) -> bool:
        """Says whether it begins an item of a list."""
        return not self.code and _ITEM.match(self.text) is not None


def decoded(data: bytes) -> str:
    """The file's text, a BOM included. Raises ``UserError`` for what is no UTF-8 text."""
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
    lines, within = list[Line](), ""  # the fence that is open, or the end of the comment
    for raw in _LINE.findall(text):
        body = raw.rstrip("\r\n")
        shown = body.removeprefix(BOM)
        fence, code = _FENCE.match(shown), True
        if within == _END:
            within = "" if _END in shown else within
        elif within:
            closes = fence is not None and fence[1].startswith(within) and not fence[2].strip(" \t")
            within = "" if closes else within
        elif comment := _COMMENT.match(shown):
            within = "" if _END in comment[1] else _END
        elif fence is not None and not (fence[1][0] == "`" and "`" in fence[2]):
            within = fence[1]
        else:
            code = False
        heading = None if code else _HEADING.match(shown)
        level, title = (len(heading[1]), heading[2].strip(" \t")) if heading else (0, "")
        lines.append(Line(body, raw[len(body) :], code, level, title))
    return lines


# --- the line of one rule -------------------------------------------------------------------------------

CHARS: Final = 500  # of a rule's text
REASON_CHARS: Final = 200
BEGIN: Final = re.compile(r" {0,3}[-*+][ \t]+(?:\*\*|__)\[(rule-\d{1,9})\](?:\*\*|__)[ \t]+(?=\S)")
"""The beginning of a rule's line; group 1 is the id."""
_DATE: Final = r"\d{4}-\d{2}-\d{2}"
_LEARNED: Final = re.compile(rf"\(learned: ({_DATE})\)$")
_ARCHIVED: Final = re.compile(rf"\(archived: ({_DATE})(?:\)$|, reason: )")
_MARK: Final = re.compile(r"\((?:learned|archived):")


class Rule(Struct, frozen=True):
    """A rule as the file has it. ``day``: when it was learned or archived, "" when the line does not say.
    ``line``: its number, from 1. ``lines``: how many lines its text takes. ``below``: lines of a person's own
    that belong to it, such as a note below it.
    """

    id: str
    text: str
    active: bool
    day: str = ""
    reason: str = ""
    line: int = 0
    lines: int = 1
    below: int = 0


def checked(text: str, most: int = CHARS) -> str:
    """A rule's text or reason on one line. Raises ``UserError`` if it would not be read again as it is."""
    found = one_line(text)
    if not found:
        raise UserError("the text is empty")
    if len(found) > most:
        raise UserError(f"the text has {len(found)} characters; at most {most} fit here")
    if has_hidden(found):
        raise UserError("the text holds characters that nobody sees")
    if "<!--" in found or _MARK.search(found):
        raise UserError(
            "leave `<!--`, `(learned:` and `(archived:` out of the text: the file uses them itself"
        )
    return found


def one_line(text: str) -> str:
    """A text without line breaks and runs of blanks."""
    return " ".join(text.split())


def written(rule: Rule) -> str:
    """The line of a rule."""
    if rule.active:
        end = f" (learned: {rule.day})" if rule.day else ""
    else:
        end = f" (archived: {rule.day}" + (f", reason: {rule.reason})" if rule.reason else ")")
    return f"- **[{rule.id}]** {rule.text}{end}"


def ending(text: str) -> tuple[str, str, bool, str]:
    """A rule's text, its day, whether it says that it is archived, and why."""
    text = text.rstrip(" \t")
    if text.endswith(")"):
        if found := _ARCHIVED.search(text):
            reason = text[found.end() : -1] if found.end() < len(text) else ""
            return text[: found.start()].rstrip(" \t"), found[1], True, reason
        if found := _LEARNED.search(text):
            return text[: found.start()].rstrip(" \t"), found[1], False, ""
    return text, "", False, ""


# --- the section ---------------------------------------------------------------------------------------

_MARKER: Final = re.compile(r"[\s>]*(?:[-*+]|\d{1,9}[.)])[ \t]")
_DECORATION: Final = re.compile(r"[\s>|\ufeff]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)?(?:\[[ xX]\][ \t]+)?")


class Form(NamedTuple):
    """The headings of a section."""

    title: str
    active: str
    archived: str


NOTE: Final = "<!-- Auto-managed by /reflect - manual edits may be overwritten -->"
ARCHIVE_NOTE: Final = "<!-- Rules no longer active but kept for history -->"
RULES: Final = Form("Learned Rules (via /reflect)", "Active Rules", "Archived Rules")
PREFERENCES: Final = Form("Learned Preferences (via /reflect)", "Active Preferences", "Archived Preferences")


class Own(Struct, frozen=True):
    """A line of a person's own. ``part``: of the section, "active", "archived" or "section"; "" elsewhere."""

    text: str
    line: int
    part: str = ""


class _Part(Struct, frozen=True):
    """A part of a section: from the line after its heading to the line before the next one."""

    kind: str
    start: int
    end: int


class Document:
    """A file with such a section, or without one yet. Raises ``UserError`` for what is no UTF-8 text."""

    def __init__(self, data: bytes, form: Form = RULES) -> None:
        self.data, self.form = data, form
        self.lines = scan(decoded(data))
        self._sections = self._find()
        self._parts = [part for section in self._sections for part in self._divide(*section)]
        self.rules = tuple(rule for part in self._parts for rule in self._rules(part))

    @property
    def there(self) -> bool:
        """Says whether it has the section."""
        return bool(self._sections)

    def own(self) -> list[Own]:
        """A person's own words in it, by blocks: paragraphs, items of lists. No code, no headings."""
        ours = self._ours()
        inside = {i: p.kind or "section" for p in self._parts for i in range(p.start, p.end)}
        found: list[Own] = []
        open_block = False
        for i, line in enumerate(self.lines):
            if i in ours or line.code or line.blank or line.level:
                open_block = False
                continue
            text = _bare(line.text)
            if open_block and not _MARKER.match(line.text) and found:
                found[-1] = replace(found[-1], text=f"{found[-1].text} {text}")
            else:
                found.append(Own(text, i + 1, inside.get(i, "")))
            open_block = True
        return found

    # --- changes -------------------------------------------------------------------------------------

    def append(self, identity: str, text: str, day: str) -> bytes:
        """With a new active rule, after those that are there; with the whole section when it has none."""
        rule = Rule(identity, checked(text), active=True, day=day)
        wanted = [*self.rules, rule]
        if not self.there:
            return self._done(self._with_section(written(rule)), wanted)
        return self._done(self._inserted(written(rule), "active"), wanted)

    def archive(self, rule: Rule, day: str, reason: str) -> bytes:
        """With that active rule among the archived ones, and what a person wrote below it."""
        gone = replace(rule, active=False, day=day, reason=checked(reason, REASON_CHARS))
        start, end = rule.line - 1, rule.line - 1 + rule.lines + rule.below
        below = self.lines[start + rule.lines : end]
        rest = Document(joined([*self.lines[:start], *self.lines[end:]]), self.form)
        wanted = [*(r for r in self.rules if r is not rule), gone]
        return self._done(rest._inserted(written(gone), "archived", below), wanted)

    def reword(self, rule: Rule, text: str) -> bytes:
        """With another text of that rule, in its place."""
        new = replace(rule, text=checked(text))
        start = rule.line - 1
        last = self.lines[start + rule.lines - 1]
        lines = [*self.lines[:start], Line(written(new), last.end), *self.lines[start + rule.lines :]]
        return self._done(lines, [new if r is rule else r for r in self.rules])

    def remove(self, rule: Rule) -> bytes:
        """Without that rule."""
        if rule.below:
            raise UserError(
                f"below {rule.id} stand lines of your own (from line {rule.line + rule.lines}): remove those "
                "first, or archive the rule, which moves them along"
            )
        start = rule.line - 1
        lines = [*self.lines[:start], *self.lines[start + rule.lines :]]
        return self._done(lines, [r for r in self.rules if r is not rule])

    # --- how it is read --------------------------------------------------------------------------------

    def _find(self) -> list[tuple[int, int]]:
        """Each section of that title (a merge may leave two): from its heading to the next of its level."""
        found = []
        for i, line in enumerate(self.lines):
            if line.level == 2 and line.title == self.form.title:
                ends = (j for j in range(i + 1, len(self.lines)) if 0 < self.lines[j].level <= 2)
                found.append((i, next(ends, len(self.lines))))
        return found

    def _divide(self, start: int, end: int) -> list[_Part]:
        heads = [start, *(i for i in range(start + 1, end) if self.lines[i].level == 3)]
        kinds = {self.form.active: "active", self.form.archived: "archived"}
        return [_Part(kinds.get(self.lines[i].title, ""), i + 1, stop) for i, stop in pairwise([*heads, end])]

    def _rules(self, part: _Part) -> list[Rule]:
        found = []
        for i in range(part.start, part.end):
            mark = None if self.lines[i].code else BEGIN.match(self.lines[i].text)
            if mark is None:
                continue
            stop = i + 1
            while stop < part.end and self._continues(self.lines[stop]):
                stop += 1
            texts = [self.lines[i].text[mark.end() :], *(line.text for line in self.lines[i + 1 : stop])]
            below = self._below(stop, part.end)
            text, day, archived, reason = ending(" ".join(t.strip(" \t") for t in texts))
            active = part.kind == "active" or (not part.kind and not archived)
            found.append(Rule(mark[1], text, active, day, reason, i + 1, stop - i, below))
        return found

    @staticmethod
    def _continues(line: Line) -> bool:
        """Says whether the line goes on with the paragraph of an item above it, as a formatter wraps one."""
        return not (line.blank or line.code or line.level or line.is_item) and line.indent >= 2

    def _below(self, start: int, end: int) -> int:
        """The number of lines from ``start`` that belong to the item above: indented or blank ones, and the
        rest of a fence that begins there.
        """
        last = start
        for i in range(start, end):
            line, within = self.lines[i], self.lines[i].code and self.lines[i - 1].code
            if not within and not line.blank and (line.indent < 2 or BEGIN.match(line.text)):
                break
            last = last if line.blank else i + 1
        return last - start

    # --- how it is written -----------------------------------------------------------------------------

    def _with_section(self, rule: str) -> list[Line]:
        form, lines = self.form, self.lines
        new = [f"## {form.title}", NOTE, "", f"### {form.active}", rule, ""]
        new += [f"### {form.archived}", ARCHIVE_NOTE]
        if lines and not lines[-1].blank:
            new.insert(0, "")
        return self._put(len(lines), new)

    def _inserted(self, rule: str, kind: str, below: Sequence[Line] = ()) -> list[Line]:
        """With a rule behind the last one of that kind; a part that is gone is made again."""
        part = next((p for p in self._parts if p.kind == kind), None)
        if part is not None:
            at = part.start
            while at < part.end and self.lines[at].code:
                at += 1
            ends = (r.line - 1 + r.lines + r.below for r in self.rules if part.start < r.line <= part.end)
            return self._put(max(ends, default=at), [rule], below)
        start, end = self._sections[0]
        at = next(i + 1 for i in range(end - 1, start - 1, -1) if not self.lines[i].blank)
        form = self.form
        heads = [f"### {form.active}"] if kind == "active" else [f"### {form.archived}", ARCHIVE_NOTE]
        return self._put(at, ["", *heads, rule], below)

    def _put(self, at: int, new: Sequence[str], below: Sequence[Line] = ()) -> list[Line]:
        """These lines at that place, which end as most lines do; a missing final newline stays missing."""
        ends = Counter(line.end for line in self.lines if line.end)
        newline = ends.most_common(1)[0][0] if ends else "\n"
        added = [*(Line(text, newline) for text in new), *below]
        added = [line if line.end else replace(line, end=newline) for line in added]
        before, after = self.lines[:at], self.lines[at:]
        if before and not before[-1].end:
            before[-1] = replace(before[-1], end=newline)
            added[-1] = replace(added[-1], end="")
        if after and not (after[0].blank or after[0].is_item or after[0].level):
            added.append(Line("", newline))
        return [*before, *added, *after]

    def _done(self, lines: Sequence[Line], wanted: Sequence[Rule]) -> bytes:
        """The bytes, when reading them gives exactly these rules and every line of a person's own."""
        data = joined(lines)
        found = Document(data, self.form)
        kept = Counter(self._others()) <= Counter(found._others())
        if not kept or Counter(map(_said, found.rules)) != Counter(map(_said, wanted)):
            raise UserError(
                f'its section "{self.form.title}" can\'t be changed safely: close the code fence or the '
                "comment that is open there, and see that no rule has two dates"
            )
        return data

    def _ours(self) -> set[int]:
        """The places of the lines of rules."""
        return {i for r in self.rules for i in range(r.line - 1, r.line - 1 + r.lines)}

    def _others(self) -> list[str]:
        """The text of each line that is not a rule's."""
        ours = self._ours()
        return [line.text for i, line in enumerate(self.lines) if i not in ours]


def _said(rule: Rule) -> tuple[str, str, bool]:
    return rule.id, rule.text, rule.active


def _bare(text: str) -> str:
    """A line without the marks of lists, quotes and tables, and without emphasis."""
    begin = _DECORATION.match(text)
    return text[begin.end() if begin else 0 :].replace("**", "").replace("__", "").strip(" \t|")

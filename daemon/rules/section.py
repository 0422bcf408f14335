"""The section of learned rules in CLAUDE.md or AGENTS.md (FR5), and the same in a file of preferences.

Bytes in, bytes out. A rule is one line that begins with its id; only such lines are ever written, moved or
removed. Everything else stays byte for byte: line endings, a BOM, a missing final newline, notes that a
person put between the rules. After each change the file is read again: when the result is not exactly what
was meant, as behind a code fence that nobody closed, it is a ``UserError`` and no bytes come out.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

from ..core.errors import UserError
from .markdown import Line, decoded, joined, scan
from .rule_lines import BEGIN, REASON_CHARS, Rule, checked, ending, written

if TYPE_CHECKING:
    from collections.abc import Sequence

_MARKER: Final = re.compile(r"[\s>]*(?:[-*+]|\d{1,9}[.)])[ \t]")
_DECORATION: Final = re.compile(r"[\s>|\ufeff]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)?(?:\[[ xX]\][ \t]+)?")


class Form(NamedTuple):
    """How a section is headed. ``note`` and ``archive_note`` are comments below the headings."""

    title: str
    note: str
    active: str
    archived: str
    archive_note: str


RULES: Final = Form(
    "Learned Rules (via /reflect)",
    "<!-- Auto-managed by /reflect - manual edits may be overwritten -->",
    "Active Rules",
    "Archived Rules",
    "<!-- Rules no longer active but kept for history -->",
)
PREFERENCES: Final = RULES._replace(
    title="Learned Preferences (via /reflect)", active="Active Preferences", archived="Archived Preferences"
)


@dataclass(frozen=True, slots=True)
class Own:
    """A line of a person's own. ``part``: of the section, "active", "archived" or "section"; "" elsewhere."""

    text: str
    line: int
    part: str = ""


@dataclass(frozen=True, slots=True)
class _Part:
    """A part of a section: from the line after its heading to the line before the next one."""

    kind: str
    start: int
    end: int


class Document:
    """A file with such a section, or without one yet. Raises ``UserError`` for what is no UTF-8 text."""

    def __init__(self, data: bytes, form: Form = RULES) -> None:
        self.form = form
        self.lines = scan(decoded(data))
        self._sections = self._find()
        self._parts = [part for section in self._sections for part in self._divide(*section)]
        self.rules = tuple(rule for part in self._parts for rule in self._rules(part))

    @property
    def there(self) -> bool:
        """Whether it has the section."""
        return bool(self._sections)

    def own(self) -> list[Own]:
        """What a person wrote in it, by blocks: paragraphs, items of lists. No code, no headings."""
        ours = {i for r in self.rules for i in range(r.line - 1, r.line - 1 + r.lines)}
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
        """Whether the line goes on with the paragraph of an item above it, as a formatter wraps one."""
        return not (line.blank or line.code or line.level or line.is_item) and line.indent >= 2

    def _below(self, start: int, end: int) -> int:
        """How many lines from ``start`` on belong to the item above: indented ones, and blanks before
        them.
        """
        last = start
        for i in range(start, end):
            if self.lines[i].blank:
                continue
            if self.lines[i].indent < 2 or BEGIN.match(self.lines[i].text):
                break
            last = i + 1
        return last - start

    # --- how it is written -----------------------------------------------------------------------------

    def _newline(self) -> str:
        """How most lines of the file end."""
        ends = Counter(line.end for line in self.lines if line.end)
        return ends.most_common(1)[0][0] if ends else "\n"

    def _with_section(self, rule: str) -> list[Line]:
        form, lines = self.form, self.lines
        new = [f"## {form.title}", form.note, "", f"### {form.active}", rule, ""]
        new += [f"### {form.archived}", form.archive_note]
        if lines and not lines[-1].blank:
            new.insert(0, "")
        return self._put(len(lines), new)

    def _inserted(self, rule: str, kind: str, below: Sequence[Line] = ()) -> list[Line]:
        """With a rule at the end of the part of that kind, which is made when there is none."""
        part = next((p for p in self._parts if p.kind == kind), None)
        if part is not None:
            at = self._end(part.start, part.end)
            return self._put(at, [*self._gap(at, part.start), rule], below)
        start, end = self._sections[0]
        if kind == "active":
            other = next((p for p in self._parts if p.kind == "archived" and p.start <= end), None)
            at = self._end(start + 1, other.start - 1 if other else end)
            return self._put(at, ["", f"### {self.form.active}", rule], below)
        at = self._end(start + 1, end)
        return self._put(at, ["", f"### {self.form.archived}", self.form.archive_note, rule], below)

    def _end(self, start: int, end: int) -> int:
        """After the last line that is not blank."""
        return next((i + 1 for i in range(end - 1, start - 1, -1) if not self.lines[i].blank), start)

    def _gap(self, at: int, start: int) -> list[str]:
        """A blank line where the one above is no item, so that the new one does not run into it."""
        if at <= start:
            return []
        above = self.lines[at - 1]
        joins = above.is_item or self._continues(above) or above.text.lstrip(" ").startswith("<!--")
        return [] if joins else [""]

    def _put(self, at: int, new: Sequence[str], below: Sequence[Line] = ()) -> list[Line]:
        """With these lines at that place. The line above gets an end if it has none; then the last new one
        has none.
        """
        newline = self._newline()
        added = [*(Line(text, newline) for text in new), *below]
        added = [line if line.end else replace(line, end=newline) for line in added]
        before, after = self.lines[:at], self.lines[at:]
        if before and not before[-1].end:
            before[-1] = replace(before[-1], end=newline)
            added[-1] = replace(added[-1], end="")
        if after and not after[0].blank and after[0].text.lstrip(" ")[:1] != "#":
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

    def _others(self) -> list[str]:
        """The text of each line that is not a rule's."""
        ours = {i for r in self.rules for i in range(r.line - 1, r.line - 1 + r.lines)}
        return [line.text for i, line in enumerate(self.lines) if i not in ours]


def _said(rule: Rule) -> tuple[str, str, bool]:
    return rule.id, rule.text, rule.active


def _bare(text: str) -> str:
    """A line without the marks of lists, quotes and tables, and without emphasis."""
    begin = _DECORATION.match(text)
    return text[begin.end() if begin else 0 :].replace("**", "").replace("__", "").strip(" \t|")

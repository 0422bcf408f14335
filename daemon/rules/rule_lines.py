"""The line of one learned rule: its form, and which text may stand in it.

``- **[rule-001]** <text> (learned: <day>)``, or ``(archived: <day>, reason: <why>)`` once it does not count
any more. What is written is read again as it was; other lists and dates are lines of a person's own.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from ..core.errors import UserError
from ..core.learned import has_hidden

CHARS: Final = 500  # of a rule's text
REASON_CHARS: Final = 200
BEGIN: Final = re.compile(r" {0,3}[-*+][ \t]+(?:\*\*|__)\[(rule-\d{1,9})\](?:\*\*|__)[ \t]+(?=\S)")
"""How a rule's line begins; group 1 is the id."""
_DAY: Final = r"\d{4}-\d{2}-\d{2}"
_LEARNED: Final = re.compile(rf"\(learned: ({_DAY})\)$")
_ARCHIVED: Final = re.compile(rf"\(archived: ({_DAY})(?:\)$|, reason: )")
_MARK: Final = re.compile(r"\((?:learned|archived):")


@dataclass(frozen=True, slots=True)
class Rule:
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
    """A rule's text, or why it was archived, on one line. Raises ``UserError`` for what could not be read
    again as it is.
    """
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

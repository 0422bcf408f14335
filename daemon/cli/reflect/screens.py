"""What the review says, as lines of text: a pattern, a conflict, what was decided. Pure.

Of these texts only ours are trusted. What a person or an agent said may be anything, so control characters
are made visible and secrets are taken out, whatever was done before. All marks of ours are ASCII: they show
on every terminal.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

from ...core.redact import redact
from ..render import count, plain, short

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from ...learning.rules.candidates import Candidate
    from ...learning.rules.contradicts import Statement
    from ...learning.rules.standing import Standing
    from ..render import Paint, Style

Act = Literal["rule", "preference", "reworded", "known", "dismissed", "skipped"]
"""``known``: a rule says it already, and has the pattern as a source now."""
QUOTES: Final = 3
QUOTE_CHARS: Final = 140  # so that three quotes and the choices fit on 24 lines
ID_CHARS: Final = 12
REPLACE: Final = "Replace existing rule"
KEEP_OLD: Final = "Keep existing, dismiss new"
KEEP_BOTH: Final = "Keep both (different contexts)"
UPDATE: Final = "Update its text"
TEXT_CHARS: Final = 500
_SEVERITY: Final[dict[str, Style]] = {"high": "red", "medium": "yellow", "low": "dim"}
_DONE: Final[dict[Act, str]] = {
    "rule": "rules added",
    "preference": "preferences added",
    "reworded": "rules reworded",
    "known": "said by a rule already",
    "dismissed": "dismissed",
    "skipped": "skipped for now",
}


@dataclass(frozen=True, slots=True)
class Quote:
    """What a person said: the day, the session's id, the words."""

    day: str
    session: str
    text: str


@dataclass(frozen=True, slots=True)
class Pattern:
    """A signal of the journal that came up often enough to be suggested as a rule (FR3); without ``content``
    words of the person that nobody read yet.
    """

    id: str
    content: str
    type: str
    severity: str
    occurrences: int
    first_seen: str
    last_seen: str
    quotes: tuple[Quote, ...] = ()
    before: str = ""  # the agent's words before them

    @property
    def is_unread(self) -> bool:
        """Whether the person must word it first."""
        return not self.content


@dataclass(frozen=True, slots=True)
class Choice:
    """An answer to choose. ``key``: the letter that stands for it. ``note``: shown where there is room."""

    key: str
    label: str
    note: str = ""


BACK: Final = Choice("g", "Go back", "decide nothing yet")


@dataclass(frozen=True, slots=True)
class Decision:
    """What was decided on a pattern. ``rule``: the id of the rule. ``file``: where it stands now.
    ``changes``: their numbers, newest first. ``told``: what the person should know besides.
    """

    pattern: str
    act: Act
    text: str
    rule: str = ""
    file: str = ""
    changes: tuple[int, ...] = ()
    told: tuple[str, ...] = ()


def pattern_of(signal: Mapping[str, Any], quotes: Iterable[Mapping[str, Any]]) -> Pattern:
    """A pattern from the journal's signal and what the state folder has of it."""
    kept = tuple(
        Quote(str(q.get("day", "")), str(q.get("session", "")), redact(str(q.get("text", ""))))
        for q in quotes
    )
    return Pattern(
        signal["id"],
        redact(signal["content"]),
        signal["type"],
        signal["severity"],
        signal["occurrences"],
        signal["first_seen"],
        signal["last_seen"],
        kept[:QUOTES],
    )


def words_of(found: Candidate) -> Pattern:
    """Words of the person that no model read."""
    seen = sorted(found.seen, key=lambda s: s.day)
    newest = {s.session: s for s in seen}
    text = redact(found.text)
    quotes = tuple(Quote(s.day, s.session, text) for s in newest.values())
    days = seen[0].day, seen[-1].day
    before = redact(found.prior)
    return Pattern(found.key, "", ", ".join(found.reasons), "", found.sessions, *days, quotes[:1], before)


def choices(rules_name: str, soft_note: str, *, undo: bool, worded: bool = True) -> tuple[Choice, ...]:
    """The answers to a pattern (FR4). ``rules_name``: the file for rules, "" where none can be written.
    ``soft_note``: where a preference goes. ``undo``: whether something was decided before. ``worded``:
    whether there is a text that could become a rule.
    """
    return (
        *([Choice("a", f"Add to {rules_name}", "a rule that always holds")] if rules_name and worded else []),
        *([Choice("w", "Add to Workshop", soft_note)] if worded else []),
        Choice("d", "Dismiss", "never suggest it again" if worded else "it teaches nothing"),
        Choice("s", "Skip for now", "ask again next time"),
        Choice("e", "Edit the wording") if worded else Choice("e", "Word it yourself", "then decide"),
        *([Choice("u", "Undo the last decision")] if undo else []),
        Choice("q", "Quit", "what you decided is kept"),
    )


def conflict_choices(names: Sequence[str]) -> tuple[Choice, ...]:
    """The answers to a conflict (FR7). ``names``: the rules whose place the new one may take."""
    gone = f"{', '.join(names)} {'is' if len(names) == 1 else 'are'} archived"
    return (
        *([Choice("r", REPLACE, gone)] if names else []),
        Choice("d", KEEP_OLD),
        Choice("b", KEEP_BOTH),
        BACK,
    )


def near_choices() -> tuple[Choice, ...]:
    """The answers where a rule says the same in other words (FR5)."""
    return (Choice("t", UPDATE), Choice("b", KEEP_BOTH), BACK)


def opening(number: int, unread: int, project: str, paint: Paint) -> list[str]:
    """What comes before the first pattern. ``unread``: how many words of the person wait to be worded."""
    if unread:
        waiting = f"{count(unread, 'message')} of yours that no model read"
        many = f"{count(number, 'pattern')} in {project}, and {waiting}."
        return paint.row("", f"{many} Nothing is written before you say so.", "  ")
    if not number:
        return paint.row("", f"No pattern in {project} came up often enough to be suggested as a rule.", "  ")
    said = f"{count(number, 'pattern')} in {project}. Nothing is written before you say so."
    return paint.row("", said, "  ")


def pattern(found: Pattern, text: str, at: tuple[int, int], target: str, paint: Paint) -> list[str]:
    """A pattern for a person. ``text``: its wording by now. ``at``: its number, and of how many. ``target``:
    the file that a rule would go to, or why there is none.
    """
    number, of = at
    often = count(found.occurrences, "occurrence")
    if found.is_unread:
        lines = [
            "",
            *paint.row("", paint(f"Your words: {said(found.quotes[0].text)} ({often})", "bold"), "  "),
        ]
        lines += paint.row("  agent     ", said(found.before)) if found.before else []
    else:
        head = f"Found pattern: {one_line(found.content)} ({often})"
        lines = ["", *paint.row("", paint(head, "bold"), "  ")]
    if text != found.content:
        lines += paint.row("  wording   ", paint(one_line(text), "bold"))
    severity = paint(found.severity, _SEVERITY.get(found.severity, "dim")) + ", "
    days = (
        found.last_seen if found.first_seen == found.last_seen else f"{found.first_seen} to {found.last_seen}"
    )
    if found.is_unread:
        lines += paint.row("  because   ", f"{one_line(found.type)}, {one_line(days)}")
    else:
        lines += paint.row("  severity  ", f"{severity}{one_line(found.type)}, {one_line(days)}")
    for quote in () if found.is_unread else found.quotes:
        lines += paint.row(f"  {cut(quote.day, 10):<10}  ", f"{short_id(quote.session)}: {said(quote.text)}")
    lines += paint.row("  file      ", target)
    return [
        *lines,
        *paint.row("", paint(f"Pattern {number} of {of}. What shall become of it?", "bold"), "  "),
    ]


def conflict(text: str, found: Sequence[Statement], paint: Paint) -> list[str]:
    """What contradicts the new text."""
    lines = ["", paint("CONFLICT DETECTED", "bold", "yellow"), ""]
    lines += paint.row("  New rule:       ", f'"{one_line(text)}"')
    for there in found:
        name = f" [{there.id}]" if there.id else ""
        lines += paint.row("  Conflicts with: ", f'"{one_line(there.text)}"{name}')
        why = one_line(there.where)
        if there.own:
            why += "; reflectd never changes that line, edit it yourself"
        lines += paint.row("                  ", why)
    return [*lines, ""]


def near(text: str, row: Standing, paint: Paint) -> list[str]:
    """A rule that says the same in other words."""
    lines = ["", *paint.row("", paint(f"{row.id} says the same in other words", "bold"))]
    lines += paint.row("  New rule:   ", f'"{one_line(text)}"')
    return [*lines, *paint.row(f"  {row.id}:   ", f'"{one_line(row.text)}" ({one_line(row.file)})'), ""]


def decided(done: Decision, paint: Paint) -> list[str]:
    """One decision, as soon as it is kept."""
    match done.act:
        case "rule" | "preference":
            head, rest = "Added", f" to {done.file} as {done.rule}: {one_line(done.text)}"
        case "reworded":
            head, rest = "Reworded", f" {done.rule} in {done.file}: {one_line(done.text)}"
        case "known":
            head, rest = "There already", f" as {done.rule} in {done.file}: {one_line(done.text)}"
        case "dismissed":
            head, rest = "Dismissed", f": {one_line(done.text)}"
        case "skipped":
            head, rest = "Skipped for now", f": {one_line(done.text)}"
    style: Style = "green" if done.act in {"rule", "preference", "reworded"} else "dim"
    lines = paint.row("", paint(head, style) + rest, "  ")
    return [*lines, *(part for told in done.told for part in paint.row("  ", plain(told), "  "))]


def summary(decisions: Sequence[Decision], left: int, paint: Paint) -> list[str]:
    """All decisions of a review, by what became of the patterns. ``left``: how many were not decided on."""
    lines = ["", paint(f"{count(len(decisions), 'decision')}", "bold")]
    for act, words in _DONE.items():
        those = [d for d in decisions if d.act == act]
        if those:
            lines += paint.row("  ", f"{words}: {len(those)}")
        for one in those:
            name = f"{one.rule} " if one.rule else f"{one.pattern} " if act == "dismissed" else ""
            where = f" ({one.file})" if one.file else ""
            lines += paint.row("    ", f"{name}{one_line(one.text)}{where}")
    if left:
        lines += paint.row("  ", f"not decided: {left}; `reflectd reflect` asks about them again")
    if any(d.changes for d in decisions):
        lines += paint.row("  ", "`reflectd reflect undo` takes the last change of a file back")
    if any(d.act == "dismissed" for d in decisions):
        lines += paint.row("  ", "`reflectd reflect restore ID` takes a dismissal back")
    return lines


def said(text: str) -> str:
    """A quote: one line, in quotation marks."""
    return f'"{cut(text, QUOTE_CHARS)}"'


def short_id(session: str) -> str:
    """The beginning of a session's id, by which other verbs take it."""
    return cut(session[:ID_CHARS], ID_CHARS)


def one_line(text: object) -> str:
    """A foreign text as one line in which a terminal obeys nothing."""
    return cut(text, TEXT_CHARS)


def cut(text: object, width: int) -> str:
    """``short`` with dots that every terminal has."""
    return short(text, width).replace("\N{HORIZONTAL ELLIPSIS}", "...")

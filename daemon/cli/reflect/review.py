"""``reflectd reflect`` alone: read new sessions, and ask a person about each pattern (FR4).

Only a terminal is asked on. Elsewhere nothing is read and nothing is changed: ``--json`` shows the patterns
that the journal has. Each decision is kept when it is made, so Ctrl-C, a closed terminal and a kill lose
none.
"""

from __future__ import annotations

import os
import sys
from dataclasses import asdict
from io import TextIOWrapper
from typing import TYPE_CHECKING, Any, Final, Literal

from ...core.errors import Unavailable, UserError
from ..render import Paint, count, place, plain, print_json
from ..settings import look
from ..terminal import attended, say
from . import screens
from .action import action, opened
from .screens import Choice, Decision, Pattern
from .status import tell
from .worn import suggested

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable

    from ...files.journal import ProjectJournal
    from ...files.learned_rules import LearnedRules
    from ...files.rule_plan import Plan
    from ...paths import Paths
    from ...rules.rows import Standing
    from .decisions import Decisions
    from .menu import Asking

Then = Literal["next", "again", "quit"]
MOST_WORDS: Final = 20  # messages that nobody read, which one review asks about
WHERE: Final = (
    "a review asks a person: run `reflectd reflect` on a terminal. `reflectd reflect --json` shows the "
    "patterns. Nothing was read or changed"
)


def add_parser(what: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the action."""
    action(what, "review", "read new sessions and decide on each pattern; what the bare verb does", run)


def run(args: argparse.Namespace) -> int:
    """Review, or show the patterns as JSON."""
    from ...clock import SystemClock
    from ...files.learned_rules import LearnedRules

    if not args.json and not attended():
        raise UserError(WHERE)
    book = opened(args)
    settings, where = look(args)
    rules = LearnedRules(book.project, where.state_dir, SystemClock(), playbook=settings.playbook.path)
    if args.json:
        print_json(_json(book, rules))
        return 0
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a terminal that can't show all there is
    _read_new(rules, where)
    return _reviewed(book, rules)


def _read_new(rules: LearnedRules, where: Paths) -> None:
    """Gather what the person said in this project's sessions since the last time, with a bar: Claude Code's,
    and opencode's while one is open in the project. A model reads it, where there is one.
    """
    from ...files.findings import gathering, known_cursors
    from .past import read_past
    from .scan import ask_own_model
    from .scanning import Scan, read_all
    from .sources import of_project

    book = rules.journal
    before = book.read().journal
    scan = Scan(book, gathering(book, before), known_cursors(book, before), 0, dry_run=False)
    listed = of_project(book.project, os.environ, everywhere=False)
    try:
        read_all(scan, listed, quiet=False)
        asked = read_past(scan, where, quiet=False)
    finally:
        scan.count()  # also after Ctrl-C: what was read is not read again
    ask_own_model(scan, rules)
    tell(dict.fromkeys(scan.told + scan.failed))
    if not (listed or asked):
        say(
            "Claude Code has no sessions of this project, and no opencode is open in it. "
            "`reflectd reflect scan FILE` reads what you name."
        )
        return
    said = f"{count(scan.gathering.messages, 'new message')} of yours"
    say(f"Read {count(scan.read, 'session')} ({scan.unchanged} unchanged), {said}.")


def _reviewed(book: ProjectJournal, rules: LearnedRules) -> int:
    """Ask about each pattern, and say what was decided. Returns the exit code."""
    from .decisions import Decisions
    from .menu import asking
    from .model import own_model

    model = own_model(book.project, rules.state_dir)
    decisions = Decisions(rules, model.compare if model is not None else None)
    patterns, words = decisions.due(), decisions.unread()
    Review.print(screens.opening(len(patterns), len(words), place(book.project), Paint()))
    patterns += words[:MOST_WORDS]
    code = 0
    if patterns:
        review = Review(decisions, asking())
        try:
            review.run(patterns)
        except KeyboardInterrupt:
            code = 130
        Review.print(screens.summary(review.made, len(review.open), Paint()))
    if worn := suggested(rules, Paint()):
        Review.print(worn)
    return code


def _json(book: ProjectJournal, rules: LearnedRules) -> dict[str, Any]:
    """The patterns that the journal has, and what there is to decide."""
    from .decisions import Decisions

    decisions = Decisions(rules)
    found = decisions.due()
    options = screens.choices(decisions.rules_name, "", undo=False)
    return {
        "project": str(book.project),
        "files": [str(p.path) for p in decisions.candidates],
        "patterns": [asdict(pattern) for pattern in found],
        "unread": [asdict(pattern) for pattern in decisions.unread()],
        "options": [c.label for c in options if c.key in "awds"],
        "decide": WHERE,
    }


class _Elsewhere(Exception):
    """The pattern was decided on while this review asked about it."""


class Review:
    """One review: the patterns, and what was decided on them so far."""

    def __init__(self, decisions: Decisions, asking: Asking) -> None:
        self._decisions = decisions
        self._asking = asking
        self.made: list[Decision] = []
        self.open: list[Pattern] = []
        self._of = 0

    def run(self, patterns: list[Pattern]) -> None:
        """Ask about each. Ends early when the person quits. Raises ``KeyboardInterrupt``."""
        self.open, self._of = list(patterns), len(patterns)
        try:
            if self._decisions.rules_place is None and len(self._decisions.candidates) > 1:
                self._ask_which_file()
            while self.open and self._ask(self.open[0]) != "quit":
                pass
        except EOFError:
            pass  # the terminal is gone, or Ctrl-D: as if they quit

    def _ask_which_file(self) -> None:
        """Two files, which have nothing to do with each other: the person says which one it is."""
        from ...files.rules_file import AGENTS

        self.print(["", *Paint().row("", "Two files could have the rules. Which one shall it be?", "  ")])
        found = self._decisions.candidates
        options = [
            Choice(str(i), p.name, f"{'opencode' if p.via == AGENTS else 'Claude Code'} reads it")
            for i, p in enumerate(found, 1)
        ]
        picked = self._asking.choose(options, options[0].key)
        self._decisions.rules_place = found[int(picked) - 1]

    def _ask(self, pattern: Pattern) -> Then:
        """Ask about one pattern, if no other review decided on it: before the question, or meanwhile."""
        try:
            self._check(pattern)
            return self._asked(pattern)
        except _Elsewhere:
            say(f"Decided elsewhere meanwhile: {screens.one_line(pattern.content or pattern.quotes[0].text)}")
            self.open.pop(0)
            return "next"

    def _check(self, pattern: Pattern) -> None:
        """Raises ``_Elsewhere`` when there is nothing to decide any more."""
        if not self._decisions.is_due(pattern):
            raise _Elsewhere

    def _asked(self, pattern: Pattern) -> Then:
        """Ask until something is decided. What can't be done is told, and asked again. Raises
        ``_Elsewhere``.
        """
        text, shown = pattern.content, None
        while True:
            if shown != text:
                at = (self._of - len(self.open) + 1, self._of)
                self.print(screens.pattern(pattern, text, at, self._decisions.target(), Paint()))
                shown = text
            try:
                answer = self._asking.choose(self._choices(worded=bool(text)), "s")
                if answer == "e":
                    text = self._edited(text)
                    continue
                if answer == "u":
                    self._undo()
                    return "again"
                if answer == "q":
                    return "quit"
                done = self._decide(answer, pattern, text)
            except (UserError, Unavailable) as error:
                say(f"reflectd: {plain(error)}")
                continue
            if done is None:
                shown = None
                continue
            self.made.append(done)
            self.open.pop(0)
            self.print(screens.decided(done, Paint()))
            return "next"

    def _choices(self, *, worded: bool) -> tuple[Choice, ...]:
        name, note = self._decisions.rules_name, self._decisions.soft_note()
        return screens.choices(name, note, undo=bool(self.made), worded=worded)

    def _decide(self, answer: str, pattern: Pattern, text: str) -> Decision | None:
        """Do it; None where the person went back. Raises ``_Elsewhere``."""
        self._check(pattern)
        if answer == "s":
            return Decision(pattern.id, "skipped", text or pattern.quotes[0].text)
        if answer == "d":
            return self._decisions.dismiss(pattern)
        plan = self._decisions.planned(text, soft=answer == "w")
        if plan.conflicts:
            return self._settle(pattern, plan)
        if plan.near is not None and plan.same is None:
            return self._join(pattern, plan, plan.near)
        return self._decisions.add(pattern, plan)

    def _settle(self, pattern: Pattern, plan: Plan) -> Decision | None:
        """The text contradicts what stands: the person says which one counts (FR7)."""
        from .decisions import replaceable

        rows = replaceable(plan)
        self.print(screens.conflict(plan.text, plan.conflicts, Paint()))
        answer = self._asking.choose(screens.conflict_choices([row.id for row in rows]), screens.BACK.key)
        self._check(pattern)
        match answer:
            case "r":
                return self._decisions.add(pattern, plan, replaces=rows)
            case "b":
                return self._decisions.add(pattern, plan)
            case "d":
                return self._decisions.dismiss(pattern)
            case _:
                return None

    def _join(self, pattern: Pattern, plan: Plan, row: Standing) -> Decision | None:
        """A rule says nearly the same: it gets the new text, or both stand."""
        self.print(screens.near(plan.text, row, Paint()))
        answer = self._asking.choose(screens.near_choices(), screens.BACK.key)
        self._check(pattern)
        match answer:
            case "t":
                return self._decisions.reword(pattern, plan, row)
            case "b":
                return self._decisions.add(pattern, plan)
            case _:
                return None

    def _edited(self, text: str) -> str:
        """The wording as the person wants it."""
        return self._asking.edit("Rule", text) or text

    def _undo(self) -> None:
        """Take the last decision back; its pattern is asked about again."""
        done = self.made[-1]
        told = self._decisions.take_back(done)
        self.made.pop()
        waiting = (*self._decisions.due(), *self._decisions.unread())
        again = next((p for p in waiting if p.id == done.pattern), None)
        self.open[:0] = [again] if again else []
        say("Undone.")
        for line in told:
            say(f"  {plain(line)}")

    @staticmethod
    def print(lines: Iterable[str]) -> None:
        """Write lines that are as wide as they may be."""
        print("\n".join(lines), flush=True)

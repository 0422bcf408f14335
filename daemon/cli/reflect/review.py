"""Asks a person at a terminal: the review of all patterns (FR4), and one question for `learn` and its like.

Only a terminal is asked on. Each decision is kept when it is made, so Ctrl-C, a closed terminal and a kill
lose none. Nothing is decided by accident: Enter writes nothing.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from ...core.errors import Unavailable, UserError
from ...learning.rules import findings
from ...learning.rules.rules_file import AGENTS
from ...redact import redact
from ..choices import Choice, choose, entered
from ..render import Paint, count, place, plain
from ..terminal import attended, say
from .decisions import Decisions, Outcome, Proposal, answers, cut, lines, now, one_line

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ...learning.rules.candidates import Candidate
    from ...learning.rules.learned_rules import LearnedRules
    from .decisions import Answer

MOST_WORDS: Final = 20  # messages that nobody read, which one review asks about
LETTERS: Final[dict[str, str]] = {
    "rule": "a", "soft": "w", "dismiss": "d", "skip": "s", "replace": "r", "both": "b", "reword": "t",
    "archive": "a", "delete": "x", "do": "y",
}  # fmt: skip
BACK: Final = Choice("g", "Go back", "decide nothing yet")
_UNWORDED: Final = (
    Choice("d", "Dismiss", "it teaches nothing"),
    Choice("s", "Skip for now", "ask again next time"),
)


def consent(what: str) -> None:
    """A person wants this. An agent's shell is no terminal. Raises ``UserError`` where nobody said so."""
    if not attended():
        raise UserError(f"{what} is a person's decision: do it on a terminal. Nothing was changed")


def which_file(decisions: Decisions) -> None:
    """Of two files that have nothing to do with each other the person says which one has the rules."""
    if decisions.place is not None or len(decisions.places) < 2:
        return
    say("Two files could have the rules. Which one shall it be?")
    found = {str(i): p for i, p in enumerate(decisions.places, 1)}
    options = [
        Choice(key, place(p.path), f"{'opencode' if p.via == AGENTS else 'Claude Code'} reads it")
        for key, p in found.items()
    ]
    decisions.place = found[choose(options, "1")]


def one(decisions: Decisions, found: Sequence[Proposal], *, why: str = "") -> Outcome | None:
    """Ask about the one of these that the person means; None for none of them."""
    if found[0].kind in {"learn", "conflict", "near"} and not found[0].soft:
        which_file(decisions)
        found = [replace(found[0], target=decisions.base().target)]
    if len(found) > 1:
        say("Which one?")
        meant = {str(i): p for i, p in enumerate(found, 1)}
        options = [Choice(key, p.stands[0].id, cut(p.stands[0].text, 200)) for key, p in meant.items()]
        key = choose([*options, Choice("s", "None of them")], "s")
        found = [meant[key]] if key in meant else []
    return asked(decisions, found[0], why=why) if found else None


def asked(decisions: Decisions, p: Proposal, *, back: bool = False, why: str = "") -> Outcome | None:
    """Ask one question, and do what is answered; None when the person went back. What contradicts a new rule
    is asked about next. Raises ``UserError``, ``Unavailable``, ``EOFError`` and ``KeyboardInterrupt``.
    """
    seen = decisions.rules.marks()
    _print([*lines(p), *_goes_to(decisions, p)])
    options = [*_options(p), *([BACK] if back else [])]
    key = choose(options, options[-1].key if back else "s")
    if key == BACK.key:
        return None
    return then(decisions, p, _meant(p, key), seen, back=back, why=why)


def then(
    decisions: Decisions, p: Proposal, answer: Answer, seen: Mapping[str, str], *, back: bool, why: str = ""
) -> Outcome | None:
    """Do what was answered, and ask what follows from it."""
    outcome = decisions.done(p, answer, seen=seen, why=why)
    return asked(decisions, outcome.ask[0], back=back) if outcome.ask else outcome


def tell(outcome: Outcome) -> None:
    """Say what became of a decision."""
    _print([outcome.line(), *(f"  {plain(told)}" for told in outcome.told)])


def review(rules: LearnedRules) -> int:
    """Ask about each pattern, and say what was decided. Returns the exit code."""
    from .model import own_model
    from .status import worn_lines

    model = own_model(rules.journal.project, rules.state_dir)
    decisions = Decisions(rules, model.compare if model is not None else None)
    patterns, words = decisions.patterns(), decisions.unread()
    here = plain(place(rules.journal.project))
    if not patterns and not words:
        say(f"No pattern in {here} came up often enough to be suggested as a rule.")
    else:
        more = f", and {count(len(words), 'message')} of yours that no model read" if words else ""
        say(f"{count(len(patterns), 'pattern')} in {here}{more}. Nothing is written before you say so.")
        found = Review(decisions, [*patterns, *words[:MOST_WORDS]])
        code = found.run()
        found.sum_up()
        if code:
            return code
    _print(worn_lines(rules, rules.look(), Paint(), suggested=True))
    return 0


class Review:
    """One review: what is still to be decided, and what was decided so far."""

    def __init__(self, decisions: Decisions, waiting: Sequence[Proposal | Candidate]) -> None:
        self._decisions = decisions
        self._waiting = list(waiting)
        self._of = len(waiting)
        self._made: list[tuple[Proposal | Candidate, Outcome]] = []

    def run(self) -> int:
        """Ask about each; the exit code."""
        try:
            which_file(self._decisions)
            target = self._decisions.base().target
            self._waiting = [
                replace(w, target=target) if isinstance(w, Proposal) else w for w in self._waiting
            ]
            while self._waiting and self._ask(self._waiting[0]):
                pass
        except EOFError:
            say("")  # the terminal is gone, or Ctrl-D: as if they quit
        except KeyboardInterrupt:
            say("")
            return 130
        return 0

    def sum_up(self) -> None:
        """All decisions by what became of the patterns, and how they are taken back."""
        many: dict[str, int] = {}
        for _, done in self._made:
            many[done.status] = many.get(done.status, 0) + 1
        said = [f"{status}: {n}" for status, n in many.items()]
        said += [f"not decided: {len(self._waiting)}"] if self._waiting else []
        say(f"{count(len(self._made), 'decision')}. {', '.join(said)}")
        if any(done.changes for _, done in self._made):
            say("`reflectd reflect undo` takes the last change of a file back")
        if "dismissed" in many:
            say("`reflectd reflect restore ID` takes a dismissal back")

    def _ask(self, item: Proposal | Candidate) -> bool:
        """Ask about one until something is decided; whether there is more to ask. What can't be done is told,
        and asked again.
        """
        text, shown = (item.text if isinstance(item, Proposal) else ""), None
        while True:
            if not self._decisions.waits(item):
                say(f"Decided elsewhere meanwhile: {one_line(item.text)}")
                self._waiting.pop(0)
                return True
            if shown != text:
                self._show(item, text)
                shown = text
            seen = self._decisions.rules.marks()
            key = choose(self._choices(item, text), "s")
            if key == "q":
                return False
            try:
                if key == "u":
                    self._undo()
                    return True
                if key == "e":
                    text = entered(f"Rule now: {text or 'none'}. In your words (empty keeps it): ") or text
                    continue
                item, done = self._decided(item, text, key, seen)
            except (UserError, Unavailable) as error:
                say(f"reflectd: {plain(error)}")
                continue
            if done is not None:
                self._made.append((item, done))
                self._waiting.pop(0)
                tell(done)
                return True
            self._waiting[0], shown = item, None

    def _show(self, item: Proposal | Candidate, text: str) -> None:
        number = f"Pattern {self._of - len(self._waiting) + 1} of {self._of}"
        if isinstance(item, Proposal):
            said = lines(item)
            said += [f'Wording: "{one_line(text)}"'] if text != item.text else []
            _print(["", number, *said, *_goes_to(self._decisions, item)])
            return
        often = count(item.sessions, "occurrence")
        said = [f'Your words: "{one_line(redact(item.text))}" ({often}, {", ".join(item.reasons)})']
        said += [f'The agent before: "{cut(redact(item.prior), 240)}"'] if item.prior else []
        _print(["", number, *said, *([f'Wording: "{one_line(text)}"'] if text else [])])

    def _choices(self, item: Proposal | Candidate, text: str) -> list[Choice]:
        made = item if isinstance(item, Proposal) else self._decisions.base()
        found = _options(made) if text else list(_UNWORDED)
        found.append(
            Choice("e", "Edit the wording") if text else Choice("e", "Word it yourself", "then decide")
        )
        found += [Choice("u", "Undo the last decision")] if self._made else []
        return [*found, Choice("q", "Quit", "what you decided is kept")]

    def _decided(
        self, item: Proposal | Candidate, text: str, key: str, seen: Mapping[str, str]
    ) -> tuple[Proposal | Candidate, Outcome | None]:
        """Do it; without an outcome the person went back."""
        if not self._decisions.waits(item):
            return item, None
        if not isinstance(item, Proposal):
            if key == "s":
                return item, Outcome("skipped for now", text=item.text)
            if key == "d":
                findings.drop(self._decisions.rules.journal, [item.key], now())
                return item, Outcome("dismissed", text=item.text)
            worded = self._decisions.worded([item.key], text)
            if worded is None:
                return item, Outcome("dismissed", text=text)
            item = worded
        return item, then(self._decisions, replace(item, text=text), _meant(item, key), seen, back=True)

    def _undo(self) -> None:
        """Take the last decision back; its pattern is asked about again."""
        item, done = self._made[-1]
        told: tuple[str, ...] = ()
        if isinstance(item, Proposal):
            told = self._decisions.take_back(done, item)
        elif done.status == "dismissed":
            findings.take_back(self._decisions.rules.journal, item, now())
        self._made.pop()
        self._waiting.insert(0, item)
        _print(["Undone.", *(f"  {plain(line)}" for line in told)])


def _options(p: Proposal) -> list[Choice]:
    return [Choice(LETTERS[answer], label, note) for label, (answer, note) in answers(p).items()]


def _meant(p: Proposal, key: str) -> Answer:
    return next(answer for answer, _ in answers(p).values() if LETTERS[answer] == key)


def _goes_to(decisions: Decisions, p: Proposal) -> list[str]:
    """The file that a rule would go to, with its path, or why there is none."""
    if p.soft or p.kind not in {"pattern", "learn"}:
        return []
    where = decisions.place
    if where is None:
        return [f"  file  none for a rule: {plain(decisions.no_place)}"]
    return [f"  file  {plain(place(where.path))}" + (f" ({plain(where.note)})" if where.note else "")]


def _print(found: Sequence[str]) -> None:
    for line in found:
        say(line)
